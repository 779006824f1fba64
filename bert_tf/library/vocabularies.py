"""Vocabularies made, extended and shown, as calls."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from bert_tf.jobs import vocabulary_extend, vocabulary_make, vocabulary_show
from bert_tf.jobs.vocabulary_extend import Extended
from bert_tf.jobs.vocabulary_make import Made
from bert_tf.jobs.vocabulary_settings import FROM, SETTINGS
from bert_tf.jobs.vocabulary_show import Shown
from bert_tf.library.keywords import takes, values_of

_EXTEND = tuple(row for row in SETTINGS["extend"] if row.name != FROM)


@takes(SETTINGS["make"])
def make_vocabulary(corpus: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], **settings: Any) -> Made:
    """Writes a vocabulary of a corpus; as `python -m bert_tf vocabulary make`.

        bert_tf.make_vocabulary("books/*.txt", size=8000, output="vocab.txt")

    Args:
      corpus: a file or a pattern, or several.
      **settings: those of the command, by the names of its flags.

    Raises:
      BertError: something that the caller can fix.
    """
    names = [corpus] if isinstance(corpus, (str, os.PathLike)) else list(corpus)
    return vocabulary_make.make([os.fspath(name) for name in names], values_of(SETTINGS["make"], settings))


@takes(_EXTEND)
def extend_vocabulary(
    checkpoint: str | os.PathLike[str] | None = None, *, corpus: str | os.PathLike[str] | None = None, **settings: Any
) -> Extended:
    """Writes a model that knows more words; as `python -m bert_tf vocabulary extend`.

    Args:
      checkpoint: a model in any layout; None for that of $BERT_BASE_DIR, else the default one.
      corpus: whose words save most pieces; --from of the command.
      **settings: those of the command, by the names of its flags.

    Raises:
      BertError: something that the caller can fix.
    """
    given = settings if corpus is None else {**settings, FROM: corpus}
    rows = _EXTEND if corpus is None else SETTINGS["extend"]
    values = {FROM: None, **values_of(rows, given)}
    return vocabulary_extend.extend(checkpoint, values, environment=os.environ)


@takes(SETTINGS["show"])
def show_vocabulary(vocabulary: str | os.PathLike[str], **settings: Any) -> Shown:
    """Says what is in a vocabulary, and how well it fits a text; as `python -m bert_tf vocabulary show`.

    Args:
      vocabulary: its file, or a folder with vocab.txt in it.
      **settings: those of the command, by the names of its flags.

    Raises:
      BertError: something that the caller can fix.
    """
    return vocabulary_show.show(vocabulary, values_of(SETTINGS["show"], settings))

"""Making, extending and inspecting vocabularies, as calls."""

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
      **settings: the command's flags, by name.

    Raises:
      BertError: invalid settings or input.
    """
    names = [corpus] if isinstance(corpus, (str, os.PathLike)) else list(corpus)
    return vocabulary_make.make([os.fspath(name) for name in names], values_of(SETTINGS["make"], settings))


@takes(_EXTEND)
def extend_vocabulary(
    checkpoint: str | os.PathLike[str] | None = None, *, corpus: str | os.PathLike[str] | None = None, **settings: Any
) -> Extended:
    """Writes a model with additional words; as `python -m bert_tf vocabulary extend`.

    Args:
      checkpoint: a model in any layout; None for that of $BERT_BASE_DIR, else the default one.
      corpus: source of the words, chosen by the pieces they save; the flag is --from.
      **settings: the command's flags, by name.

    Raises:
      BertError: invalid settings or input.
    """
    given = settings if corpus is None else {**settings, FROM: corpus}
    rows = _EXTEND if corpus is None else SETTINGS["extend"]
    values = {FROM: None, **values_of(rows, given)}
    return vocabulary_extend.extend(checkpoint, values, environment=os.environ)


@takes(SETTINGS["show"])
def show_vocabulary(vocabulary: str | os.PathLike[str], **settings: Any) -> Shown:
    """Reports what a vocabulary contains and how well it fits a text; as `python -m bert_tf vocabulary show`.

    Args:
      vocabulary: its file, or a folder with vocab.txt.
      **settings: the command's flags, by name.

    Raises:
      BertError: invalid settings or input.
    """
    return vocabulary_show.show(vocabulary, values_of(SETTINGS["show"], settings))

"""Makes a vocabulary from a corpus."""

from __future__ import annotations

import dataclasses
import html
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf import atomic, lock, run_layout
from bert_tf.corpus import documents
from bert_tf.errors import FlagError, OutputError
from bert_tf.jobs import corpus_words
from bert_tf.jobs.vocabulary_form import fertility_lines, shown
from bert_tf.log_form import log
from bert_tf.text_table import counted
from bert_tf.tokenization import fertility, training
from bert_tf.tokenization.fertility import Fertility
from bert_tf.tokenization.training import Trained
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer


@dataclasses.dataclass(frozen=True)
class Made:
    output: Path
    vocabulary: Vocabulary
    trained: Trained  # the same, with the characters it lacks
    fertility: Fertility  # on the corpus

    def __str__(self) -> str:
        return "\n".join(_lines(self)) + "\n"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def make(corpus: Sequence[str], settings: Mapping[str, Any]) -> Made:
    """Writes the same file on every call, regardless of the number of cores; `corpus` has files or patterns."""
    training.refuse_missing()
    if settings["unused"] >= settings["size"]:
        raise FlagError(f"--unused={settings['unused']}: --size={settings['size']} counts these rows too; raise it")
    output = _output(settings)
    if os.path.realpath(output) in map(os.path.realpath, documents.find(",".join(corpus))):
        raise FlagError(f"{output}: is an input and the output")
    if not atomic.is_written_into(output):
        atomic.make_folder(output.parent)  # before a large corpus is counted
    counts = corpus_words.count(corpus, settings, lower_case=settings["do_lower_case"])
    trained = training.train(counts, size=settings["size"], unused=settings["unused"], min_frequency=settings["min_frequency"])
    if len(trained.tokens) < settings["size"]:
        log.warning("%d pieces, fewer than --size=%d: the corpus has no more", len(trained.tokens), settings["size"])
    vocabulary = Vocabulary(trained.tokens, path=output)
    found = fertility.of(counts, WordPieceTokenizer(vocabulary, lower_case=settings["do_lower_case"]))
    with lock.writing_file(output):
        atomic.write_text(output, vocabulary.to_text())
    return Made(output, vocabulary, trained, found)


def _output(settings: Mapping[str, Any]) -> Path:
    if settings["output"] is None:
        raise FlagError("--output is required: a file to write, as vocab.txt")
    path = Path(settings["output"])
    run_layout.refuse_taken_name(path)
    if path.is_dir():
        raise OutputError(f"{path}: is a folder; name a file in it, as {path / 'vocab.txt'}")
    if os.path.lexists(path) and not settings["overwrite"] and not atomic.is_written_into(path):
        raise OutputError(f"{path}: is there already; name another --output, or add --overwrite")
    return path


def _lines(made: Made) -> Iterator[str]:
    left_out = [repr(c) for c, _ in made.trained.left_out.most_common()]
    yield f"{made.output}: {len(made.vocabulary):,} pieces, {counted(made.trained.characters, 'character')}"
    yield f"sha256 of the pieces {made.vocabulary.fingerprint}"
    if left_out:
        yield f"characters that are too rare, whose words become [UNK]: {shown(left_out)}"
    yield ""
    yield from fertility_lines({"corpus": made.fertility})

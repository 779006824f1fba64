"""Makes a vocabulary from a corpus."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bert_tf import run_layout
from bert_tf.errors import FlagError, OutputError
from bert_tf.extensions.vocabulary import show, training
from bert_tf.extensions.vocabulary.counting import Fertility, fertility_of
from bert_tf.extensions.vocabulary.texts import CorpusSettings, documents
from bert_tf.extensions.vocabulary.training import Trained
from bert_tf.io import atomic, lock
from bert_tf.io.log_form import log
from bert_tf.io.text_table import Printed, counted
from bert_tf.library.keywords import takes
from bert_tf.operations.command import Call, Command
from bert_tf.settings import group, read_settings, setting
from bert_tf.tokenization.characters import Rules
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

_MOST_PIECES = 1 << 24  # of any model, see `BertConfig`


@dataclasses.dataclass(frozen=True)
class MakeSettings:
    corpus: tuple[str, ...] = setting(None, "files, patterns or - for a pipe", positional=True, required=True)
    output: str = setting(None, "vocab.txt to write", required=True)
    size: int = setting(30522, "vocabulary size, special pieces and characters included", lowest=1, highest=_MOST_PIECES)
    do_lower_case: bool = setting(True, "lower-case and strip accents, as uncased models require")
    unused: int = setting(0, "spare rows for words added later: [unused0] and so on", lowest=0, highest=_MOST_PIECES)
    min_frequency: int = setting(2, "minimum occurrences of a character or pair of pieces", lowest=1)
    form: CorpusSettings = group(CorpusSettings, without=("input_file",))
    overwrite: bool = setting(False, "replace an existing file")

    def __post_init__(self) -> None:
        if self.unused >= self.size:
            raise FlagError(f"--unused={self.unused}: --size={self.size} counts these rows too; raise it")


@dataclasses.dataclass(frozen=True)
class Made(Printed):
    output: Path
    vocabulary: Vocabulary
    trained: Trained  # the same vocabulary, and the characters it lacks
    fertility: Fertility  # on the corpus

    def __str__(self) -> str:
        return "\n".join(_lines(self)) + "\n"


@takes(MakeSettings)
def make_vocabulary(corpus: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], **settings: Any) -> Made:
    """Writes a vocabulary of a corpus; as `python -m bert_tf vocabulary make`.

        bert_tf.make_vocabulary("books/*.txt", size=8000, output="vocab.txt")

    Args:
      corpus: a file or a pattern, or several.
      **settings: the command's flags, by name.

    Raises:
      BertError: invalid settings or input.
    """
    return make(read_settings(MakeSettings, {"corpus": corpus, **settings}))


def make(settings: MakeSettings) -> Made:
    """Writes the same file on every call, regardless of the number of cores."""
    training.refuse_missing()
    output = _output(settings)
    if os.path.realpath(output) in map(os.path.realpath, documents.find(",".join(settings.corpus))):
        raise FlagError(f"{output}: is both input and output")
    if not atomic.is_written_into(output):
        atomic.make_folder(output.parent)  # before a large corpus is counted
    counts = show.count_words(settings.corpus, settings.form, rules=Rules.published(lower_case=settings.do_lower_case))
    trained = training.train(counts, size=settings.size, unused=settings.unused, min_frequency=settings.min_frequency)
    if len(trained.tokens) < settings.size:
        log.warning("%d pieces, fewer than --size=%d: the corpus yields no more", len(trained.tokens), settings.size)
    vocabulary = Vocabulary(trained.tokens, path=output)
    fertility = fertility_of(counts, WordPieceTokenizer(vocabulary, lower_case=settings.do_lower_case))
    with contextlib.nullcontext() if atomic.is_written_into(output) else lock.writing_file(output):
        _output(settings)  # another command may have written it meanwhile
        atomic.write_text(output, vocabulary.to_text(), follows=True)
    return Made(output, vocabulary, trained, fertility)


def _output(settings: MakeSettings) -> Path:
    path = Path(settings.output)
    run_layout.refuse_taken_name(path)
    if path.is_dir():
        raise OutputError(f"{path}: is a folder; name a file in it, as {path / 'vocab.txt'}")
    if os.path.lexists(path) and not settings.overwrite and not atomic.is_written_into(path):
        raise OutputError(f"{path}: already exists; name another --output, or add --overwrite")
    return path


def _lines(made: Made) -> Iterator[str]:
    left_out = [repr(c) for c, _ in made.trained.left_out.most_common()]
    yield f"{made.output}: {len(made.vocabulary):,} pieces, {counted(made.trained.characters, 'character')}"
    yield f"sha256 of the pieces {made.vocabulary.fingerprint}"
    if left_out:
        yield f"characters that are too rare, whose words become [UNK]: {show.shortened(left_out)}"
    yield ""
    yield from show.fertility_lines({"corpus": made.fertility})


def _print(call: Call) -> None:
    print(make(call.settings), end="")


COMMAND = Command(
    "builds a WordPiece vocabulary from text files, patterns, or - for a pipe",
    MakeSettings,
    _print,
    example="python -m bert_tf vocabulary make 'texts/*.txt' --output=vocab.txt --size=30000",
    first=("output", "size", "do_lower_case", "min_frequency", "input_format"),
)

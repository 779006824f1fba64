"""Shows the contents of a vocabulary and how well it fits a text, whose words are counted on all cores."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf import run_layout
from bert_tf.errors import DataError, FlagError
from bert_tf.extensions.vocabulary import additions, counting
from bert_tf.extensions.vocabulary.counting import Chunks, Counts, Fertility, fertility_of
from bert_tf.extensions.vocabulary.texts import Corpus, CorpusSettings, Piece, documents, processes
from bert_tf.io import files
from bert_tf.io.log_form import log
from bert_tf.io.text_table import Printed, counted, table
from bert_tf.library.keywords import takes
from bert_tf.operations.command import Call, Command
from bert_tf.settings import changed, group, read_settings, setting
from bert_tf.tokenization import casing
from bert_tf.tokenization.characters import Rules
from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

_ALONE = 1 << 27  # bytes that are counted before other processes have started
_HEAD = ("", "words", "pieces", "pieces a word", "cut", "[UNK]", "tokens a sentence")
_NOTES = 5  # shown at most


@dataclasses.dataclass(frozen=True)
class ShowSettings:
    vocabulary: str = setting(
        None, "vocabulary file, or a folder with vocab.txt", positional=True, required=True, refuse_missing=files.refuse_missing
    )
    text: str | None = setting(None, "text to measure the vocabulary on: a file, a pattern, or - for a pipe")
    do_lower_case: bool | None = setting(None, "lower-case --text; default: as the folder and the pieces suggest")
    form: CorpusSettings = group(CorpusSettings, without=("input_file",))

    def __post_init__(self) -> None:
        if self.text is None:
            refuse_idle(self.form, "--text")


def refuse_idle(form: CorpusSettings, texts: str) -> None:
    """Raises FlagError for settings of texts; `texts` are the flags that name some."""
    idle = next(iter(changed(form)), None)
    if idle is not None:
        raise FlagError(f"--{idle} belongs to {texts}; add it, or leave this out")


@dataclasses.dataclass(frozen=True)
class Shown(Printed):
    vocabulary: Vocabulary
    lower_case: bool  # whether texts are lowercased for it
    reason: str  # how casing was determined
    fertility: Fertility | None  # None without a text

    @property
    def special(self) -> dict[str, int]:
        return dict(zip(SPECIAL_TOKENS, self.vocabulary.ids(SPECIAL_TOKENS)))

    @property
    def unused(self) -> list[int]:
        return additions.unused_rows(self.vocabulary)

    @property
    def longest(self) -> str:
        return max(self.vocabulary.tokens, key=len)

    def __str__(self) -> str:
        return "\n".join(_lines(self)) + "\n"


@takes(ShowSettings)
def show_vocabulary(vocabulary: str | os.PathLike[str], **settings: Any) -> Shown:
    """Reports what a vocabulary contains and how well it fits a text; as `python -m bert_tf vocabulary show`.

    Args:
      vocabulary: vocabulary file, or a folder with vocab.txt.
      **settings: the command's flags, by name.

    Raises:
      BertError: invalid settings or input.
    """
    return show(read_settings(ShowSettings, {"vocabulary": vocabulary, **settings}))


def show(settings: ShowSettings) -> Shown:
    path, lower_case = Path(settings.vocabulary), settings.do_lower_case
    vocabulary = Vocabulary.from_file(run_layout.vocabulary_in(path) if path.is_dir() else path)
    reason = "--do_lower_case"
    if lower_case is None:
        signs = casing.find(vocabulary)
        lower_case, reason = signs.lower_case, str(signs) or "no evidence against it"
    if settings.text is None:
        return Shown(vocabulary, lower_case, reason, None)
    tokenizer = WordPieceTokenizer(vocabulary, lower_case=lower_case)
    counts = count_words([settings.text], settings.form, rules=tokenizer.rules)
    return Shown(vocabulary, lower_case, reason, fertility_of(counts, tokenizer))


def _lines(shown: Shown) -> Iterator[str]:
    tokens, unused = shown.vocabulary.tokens, shown.unused
    within = sum(token.startswith("##") for token in tokens)
    yield f"{len(tokens):,} pieces, {within:,} of them within words (##)"
    yield "special: " + ", ".join(f"{token} {row}" for token, row in shown.special.items())
    yield f"unused rows: {len(unused):,}" + (f", {unused[0]} to {unused[-1]}" if unused else "")
    yield f"longest: {shown.longest}"
    yield f"letters are {'lower-cased' if shown.lower_case else 'kept as they are'}: {shown.reason}"
    yield f"sha256 of the pieces {shown.vocabulary.fingerprint}"
    if shown.fertility is not None:
        yield ""
        yield from fertility_lines({"text": shown.fertility})


def count_words(patterns: Sequence[str], form: CorpusSettings, *, rules: Rules) -> Counts:
    """Counts words, reading each file once; independent of the number of cores.

    `patterns` are files, `glob` patterns or `-` (standard input), also comma-separated.
    """
    corpus = form.corpus(documents.find(",".join(patterns)))
    size = sum(os.path.getsize(path) for path in corpus.files if os.path.isfile(path))
    workers = 1 if corpus.can_be_read_again and size < _ALONE else processes.cores()
    parts = processes.mapped(functools.partial(_chunks, corpus), documents.pieces(corpus), workers=workers)
    counts = counting.count(parts, rules=rules)
    if not counts.words:
        raise DataError("the text has no words", ", ".join(corpus.files)[:200])
    log.info("%s, %d different, in %s", counted(counts.total, "word"), len(counts.words), counted(counts.texts, "sentence"))
    return counts


def _chunks(corpus: Corpus, piece: Piece) -> Chunks:
    return counting.chunks(documents.parse(piece, corpus).sentences)


def fertility_lines(fertilities: Mapping[str, Fertility]) -> Iterator[str]:
    rows = []
    for name, fertility in fertilities.items():
        counts = (f"{number:,}" for number in (fertility.words, fertility.pieces))
        shares = (f"{100 * share:.2f} %" for share in (fertility.cut_share, fertility.unknown_share))
        rows.append((name, *counts, f"{fertility.pieces_a_word:.4f}", *shares, f"{fertility.tokens_a_sentence:.2f}"))
    yield from table(_HEAD, rows)


def shortened(words: Iterable[str], most: int = 20) -> str:
    every = list(words)
    return ", ".join(every[:most]) + (f" and {len(every) - most:,} more" if len(every) > most else "")


def warn(notes: Sequence[str]) -> None:
    for note in notes[:_NOTES]:
        log.warning("%s", note)
    if len(notes) > _NOTES:
        log.warning("... and %d more", len(notes) - _NOTES)


def _print(call: Call) -> None:
    print(show(call.settings), end="")


COMMAND = Command(
    "describes a vocab.txt and how well it fits a text",
    ShowSettings,
    _print,
    example="python -m bert_tf vocabulary show vocab.txt --text=texts.txt",
)

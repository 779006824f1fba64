"""Shows the contents of a vocabulary and how well it fits a text."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bert_tf import run_layout
from bert_tf.corpus.settings import CorpusSettings
from bert_tf.library.keywords import takes
from bert_tf.operations.command import Call, Command
from bert_tf.operations.vocabulary import words
from bert_tf.settings import group, read, setting
from bert_tf.text_table import Printed
from bert_tf.tokenization import additions, casing, fertility
from bert_tf.tokenization.fertility import Fertility
from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer


@dataclasses.dataclass(frozen=True)
class ShowSettings:
    vocabulary: str = setting(None, "its file, or a folder with vocab.txt", positional=True, required=True)
    text: str | None = setting(None, "text to measure the vocabulary on: a file, a pattern, or - for a pipe")
    do_lower_case: bool | None = setting(None, "whether --text is lowered; else as the folder and the pieces say")
    form: CorpusSettings = group(CorpusSettings, without=("input_file",))


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
      vocabulary: its file, or a folder with vocab.txt.
      **settings: the command's flags, by name.

    Raises:
      BertError: invalid settings or input.
    """
    return show(read(ShowSettings, {"vocabulary": vocabulary, **settings}))


def show(settings: ShowSettings) -> Shown:
    path, lower_case = Path(settings.vocabulary), settings.do_lower_case
    vocabulary = Vocabulary.from_file(path / run_layout.VOCABULARY if path.is_dir() else path)
    reason = "--do_lower_case"
    if lower_case is None:
        signs = casing.find(vocabulary)
        lower_case, reason = signs.lower_case, str(signs) or "nothing speaks against it"
    if settings.text is None:
        return Shown(vocabulary, lower_case, reason, None)
    counts = words.count([settings.text], settings.form, lower_case=lower_case)
    return Shown(vocabulary, lower_case, reason, fertility.of(counts, WordPieceTokenizer(vocabulary, lower_case=lower_case)))


def _lines(shown: Shown) -> Iterator[str]:
    tokens, unused = shown.vocabulary.tokens, shown.unused
    within = sum(token.startswith("##") for token in tokens)
    yield f"{len(tokens):,} pieces, {within:,} of them within words (##)"
    yield "special: " + ", ".join(f"{token} {row}" for token, row in shown.special.items())
    yield f"unused rows: {len(unused):,}" + (f", {unused[0]} to {unused[-1]}" if unused else "")
    yield f"longest: {shown.longest}"
    yield f"letters are {'lowered' if shown.lower_case else 'kept as they are'}: {shown.reason}"
    yield f"sha256 of the pieces {shown.vocabulary.fingerprint}"
    if shown.fertility is not None:
        yield ""
        yield from words.fertility_lines({"text": shown.fertility})


def _print(call: Call) -> None:
    print(show(call.settings), end="")


COMMAND = Command("what is in a vocab.txt, or in that of a folder, and how well it fits a text", ShowSettings, _print)

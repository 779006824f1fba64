"""Shows the contents of a vocabulary and how well it fits a text."""

from __future__ import annotations

import dataclasses
import html
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bert_tf import run_layout
from bert_tf.jobs import corpus_words
from bert_tf.jobs.vocabulary_form import fertility_lines
from bert_tf.tokenization import additions, casing, fertility
from bert_tf.tokenization.fertility import Fertility
from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer


@dataclasses.dataclass(frozen=True)
class Shown:
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

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def show(name: str | os.PathLike[str], settings: Mapping[str, Any]) -> Shown:
    path = Path(name)
    vocabulary = Vocabulary.from_file(path / run_layout.VOCABULARY if path.is_dir() else path)
    signs = casing.find(vocabulary)
    given = settings["do_lower_case"]
    lower_case = signs.lower_case if given is None else given
    reason = "--do_lower_case" if given is not None else str(signs) or "nothing speaks against it"
    text = settings["text"]
    found = None
    if text is not None:
        tokenizer = WordPieceTokenizer(vocabulary, lower_case=lower_case)
        found = fertility.of(corpus_words.count([text], settings, lower_case=lower_case), tokenizer)
    return Shown(vocabulary, lower_case, reason, found)


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
        yield from fertility_lines({"text": shown.fertility})

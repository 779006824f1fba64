"""Texts with [MASK], of files or of a program."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from bert_tf.errors import DataError
from bert_tf.filling import masked_text
from bert_tf.tasks import tables, text_lines
from bert_tf.tasks.sentence.example import SentenceExample
from bert_tf.tokenization.vocabulary import MASK
from bert_tf.vectors.texts import TextInputs


@dataclasses.dataclass(frozen=True)
class MaskedTextInputs(TextInputs):
    def _stream(self, source: text_lines.Source, report: tables.Report) -> Iterator[SentenceExample]:
        for text in super()._stream(source, report):
            problem = _problem(text)
            if problem is None:
                yield text
            else:
                report(DataError(f"row {text.guid}: {problem}", str(source)))


def refuse_unusable(texts: Sequence[SentenceExample], where: str) -> None:
    """Raises DataError for a text without a mask; names the row, counted from 0, if there are several."""
    for number, text in enumerate(texts):
        problem = _problem(text)
        if problem:
            raise DataError(problem if len(texts) == 1 else f"row {number}: {problem}", where)


def _problem(text: SentenceExample) -> str | None:
    """Why words cannot be filled in; None if they can."""
    if text.text_b is not None:
        return "is a pair; give one text"
    return None if masked_text.places(text.text_a) else f"has no {MASK}; write {MASK} where words are wanted"

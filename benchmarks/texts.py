"""Inputs of contenders: examples of a task, written once as a file that each of them reads."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bert_tf.extensions.choice.reader import ChoiceExample
from bert_tf.extensions.pretrain import TASK as PRETRAINING_TASK
from bert_tf.extensions.pretrain.rows import RANDOM, PretrainingExample
from bert_tf.extensions.similarity import STS_B_VECTORS
from bert_tf.extensions.similarity.family import SimilarityFamily
from bert_tf.extensions.span.reader import SpanExample
from bert_tf.extensions.tags.columns import TagExample
from bert_tf.io import documents
from bert_tf.tasks.base import DEV, TEST, TRAIN, Family, Task
from bert_tf.tasks.registry import get_task
from bert_tf.tasks.sentence.family import SentenceFamily
from bert_tf.tasks.sentence.rows import SentenceExample

EXAMPLES = 8  # that are checked, of each contender
_FILLED_EXAMPLES = 512
_FILLED_WORDS = 512  # a word has one piece at least, so this fills every length that a BERT knows
_SPREAD_TEXTS, _SHORTEST, _LONGEST = 12, 64, 2048
_WHOLE_WORDS = 8192  # of one text, as long as ModernBERT takes
_ENCODED_TEXTS = 2048

MRPC, SQUAD, CONLL2003, SWAG = "MRPC", "SQuAD", "CoNLL2003", "SWAG"


def family_of(task: Task) -> Family:
    """Returns a task's family, for any number of texts: a suite reads pairs, another single sentences."""
    return dataclasses.replace(task.family, texts=None) if isinstance(task.family, SentenceFamily) else task.family


def _train(task: Task, folder: Path) -> Sequence[Any]:
    found: Sequence[Any] = task.examples(folder, TRAIN)
    return found


def _dev(task: Task, folder: Path) -> list[SentenceExample]:
    return list(task.examples(folder, DEV))


def _dev_and_test(task: Task, folder: Path) -> list[SentenceExample]:
    return [*_dev(task, folder), *task.examples(folder, TEST)]


def _single(task: Task, folder: Path) -> list[SentenceExample]:
    texts = (text for example in [*_train(task, folder), *_dev_and_test(task, folder)] for text in example.texts)
    return [SentenceExample(str(number), text) for number, text in enumerate(texts)]


def _sentences(task: Task, folder: Path) -> list[SentenceExample]:
    """SST-2's training split if it lies beside the data, else every text of the task as its own sentence."""
    beside = folder.parent / "SST-2"
    sentences = get_task("SST-2")
    if sentences.file(beside, TRAIN).is_file():
        return list(sentences.examples(beside, TRAIN))
    return _single(task, folder)


def _filled(task: Task, folder: Path) -> list[SentenceExample]:
    """Sentences joined so that they fill any length limit."""
    texts = _joined(task, folder, [_FILLED_WORDS] * _FILLED_EXAMPLES)
    return [SentenceExample(str(n), text, text, label=task.family.labels[n % 2]) for n, text in enumerate(texts)]


def _spread(task: Task, folder: Path) -> list[SentenceExample]:
    """Single texts of 64 words to a length limit of 2,048 tokens, evenly on a scale of logarithms."""
    lengths = np.geomspace(_SHORTEST, _LONGEST, _SPREAD_TEXTS).round().astype(int).tolist()
    texts = enumerate(_joined(task, folder, lengths))
    return [SentenceExample(str(n), text, label=task.family.labels[n % 2]) for n, text in texts]


def _whole(task: Task, folder: Path) -> list[SentenceExample]:
    """Texts that are cut at the longest limit."""
    texts = enumerate(_joined(task, folder, [_WHOLE_WORDS] * 2))
    return [SentenceExample(str(n), text, label=task.family.labels[n % 2]) for n, text in texts]


def _joined(task: Task, folder: Path, lengths: Sequence[int]) -> list[str]:
    """Sentences joined to texts of so many words."""
    words = [word for example in _sentences(task, folder)[: 4 * _FILLED_EXAMPLES] for word in example.text_a.split()]
    endless = words * (max(lengths) // len(words) + 2)
    starts = [number * 97 % len(words) for number in range(len(lengths))]
    return [" ".join(endless[start : start + length]) for start, length in zip(starts, lengths)]


def _sentence_lines(examples: Sequence[SentenceExample], family: Family) -> Iterator[str]:
    """Yields one object per line; an unknown label is class 0, as in the published script."""
    class_of: dict[object, int] = {label: number for number, label in enumerate(family.labels)}
    for example in examples:
        row = {"text_a": example.text_a, "text_b": example.text_b, "label": class_of.get(example.label, 0)}
        yield documents.to_json(row, ensure_ascii=False) + "\n"


def _word_lines(examples: Sequence[TagExample], _: Family) -> Iterator[str]:
    for example in examples:
        yield documents.to_json({"tokens": example.words, "tags": example.label}, ensure_ascii=False) + "\n"


def _option_lines(examples: Sequence[ChoiceExample], _: Family) -> Iterator[str]:
    for example in examples:
        options = [second for _, second in example.rows]
        yield documents.to_json({"context": example.context, "options": options, "label": example.label}) + "\n"


def _scored_lines(examples: Sequence[SentenceExample], family: Family) -> Iterator[str]:
    """Yields pairs with scores from 0 to 1."""
    highest = family.highest_score if isinstance(family, SimilarityFamily) else 1.0
    for example in examples:
        row = {"text_a": example.text_a, "text_b": example.text_b, "label": float(str(example.label)) / highest}
        yield documents.to_json(row, ensure_ascii=False) + "\n"


def _piece_lines(examples: Sequence[PretrainingExample], _: Family) -> Iterator[str]:
    """Yields the word pieces of rows without masks, and 1 if the second text is random."""
    for example in examples:
        row = {"pieces": example.pieces, "is_random": int(example.label == RANDOM)}
        yield documents.to_json(row, ensure_ascii=False) + "\n"


def _articles(examples: Sequence[SpanExample], _: Family) -> Iterator[str]:
    """Yields SQuAD's layout: consecutive questions with the same title and context share a paragraph."""
    paragraphs = itertools.groupby(examples, key=lambda example: (example.title, example.context))
    by_title = itertools.groupby(
        ((title, {"context": context, "qas": [_asked(example) for example in of]}) for (title, context), of in paragraphs),
        key=lambda pair: pair[0],
    )
    articles = [{"title": title, "paragraphs": [paragraph for _, paragraph in of]} for title, of in by_title]
    yield documents.to_json({"version": "1.1", "data": articles}, ensure_ascii=False)


def _asked(example: SpanExample) -> dict[str, Any]:
    answers = [{"text": answer.text, "answer_start": answer.start} for answer in example.answers or ()]
    return {"id": example.guid, "question": example.question, "answers": answers}


class Kind(NamedTuple):
    """A row of the table."""

    read: Callable[[Task, Path], Any]  # returns the examples in a task's folder, or where they are on disk
    task: str = MRPC  # name
    lines: Callable[[Sequence[Any], Family], Iterable[str]] = _sentence_lines  # of the workers' file
    suffix: str = ".jsonl"  # of that file


TEXTS: Mapping[str, Kind] = {
    "train": Kind(_train),
    "dev": Kind(_dev),
    "dev and test": Kind(_dev_and_test),
    "sentences": Kind(_sentences),
    "filled": Kind(_filled),
    "spread": Kind(_spread),
    "whole": Kind(_whole),
    "to encode": Kind(lambda task, folder: _single(task, folder)[:_ENCODED_TEXTS]),
    "questions": Kind(_train, SQUAD, _articles, ".json"),
    "words": Kind(_train, CONLL2003, _word_lines),
    "options": Kind(_train, SWAG, _option_lines),
    "scored pairs": Kind(_train, STS_B_VECTORS, _scored_lines),
    "pieces": Kind(_train, PRETRAINING_TASK, _piece_lines),
}
TASKS = tuple(dict.fromkeys(kind.task for kind in TEXTS.values()))


def write(path: Path, kind: Kind, examples: Sequence[Any], family: Family) -> None:
    """Writes examples for the workers, the shortest first.

    The checked ones should be neither truncated nor split into windows, where libraries differ (in a pair of equally
    long texts, the published rule shortens the second, `tokenizers` the first).
    """
    by_length = sorted(range(len(examples)), key=lambda number: sum(map(len, examples[number].texts)))
    checked = by_length[:EXAMPLES]
    order = [*checked, *sorted(set(range(len(examples))) - set(checked))]
    with path.open("w", encoding="utf-8") as file:
        file.writelines(kind.lines([examples[number] for number in order], family))

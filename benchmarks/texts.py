"""The texts that contenders work on, written once as JSON lines."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.checks import EXAMPLES
from bert_tf import documents
from bert_tf.tasks.base import DEV, TEST, TRAIN, Task
from bert_tf.tasks.registry import get_task
from bert_tf.tasks.sentence.example import SentenceExample

_FILLED_EXAMPLES = 512
_FILLED_WORDS = 512  # a word has one piece at least, so this fills every length that a BERT knows


def _train(task: Task, folder: Path) -> list[SentenceExample]:
    return list(task.examples(folder, TRAIN))


def _dev_and_test(task: Task, folder: Path) -> list[SentenceExample]:
    return [*task.examples(folder, DEV), *task.examples(folder, TEST)]


def _sentences(task: Task, folder: Path) -> list[SentenceExample]:
    """SST-2's training split where it lies beside the data, else every text of the task as a sentence of its own."""
    beside = folder.parent / "SST-2"
    sentences = get_task("SST-2")
    if sentences.file(beside, TRAIN).is_file():
        return list(sentences.examples(beside, TRAIN))
    examples = [*_train(task, folder), *_dev_and_test(task, folder)]
    texts = [text for example in examples for text in (example.text_a, example.text_b) if text is not None]
    return [SentenceExample(str(number), text) for number, text in enumerate(texts)]


def _filled(task: Task, folder: Path) -> list[SentenceExample]:
    """Sentences joined until no length limit leaves room."""
    words = [word for example in _sentences(task, folder)[: 4 * _FILLED_EXAMPLES] for word in example.text_a.split()]
    starts = [number * 97 % len(words) for number in range(_FILLED_EXAMPLES)]
    endless = words * (_FILLED_WORDS // len(words) + 2)
    return [
        SentenceExample(str(number), " ".join(endless[start : start + _FILLED_WORDS]), label=task.family.labels[number % 2])
        for number, start in enumerate(starts)
    ]


TEXTS: Mapping[str, Callable[[Task, Path], list[SentenceExample]]] = {
    "train": _train,
    "dev and test": _dev_and_test,
    "sentences": _sentences,
    "filled": _filled,
}


def write(path: str | os.PathLike[str], examples: Sequence[SentenceExample], labels: Sequence[str]) -> None:
    """Writes one object a line; an unknown label is class 0, as in the published script.

    The shortest stand first: those that are checked shall not be truncated, where libraries differ by one token (of a pair
    whose texts are equally long, the published rule shortens the second, `tokenizers` the first).
    """
    class_of: dict[object, int] = {label: number for number, label in enumerate(labels)}
    by_length = sorted(range(len(examples)), key=lambda number: len(examples[number].text_a + (examples[number].text_b or "")))
    checked = by_length[:EXAMPLES]
    order = [*checked, *sorted(set(range(len(examples))) - set(checked))]
    with open(path, "w", encoding="utf-8") as file:
        for example in (examples[number] for number in order):
            row = {"text_a": example.text_a, "text_b": example.text_b, "label": class_of.get(example.label, 0)}
            file.write(documents.to_json(row, ensure_ascii=False) + "\n")

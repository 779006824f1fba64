"""Describes the first examples, the features and the variables of a run, in files and in the published log format."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from bert_tf import run_layout
from bert_tf.features.columns import Features
from bert_tf.fields import INPUTS, ROW
from bert_tf.io import atomic
from bert_tf.io.log_form import published
from bert_tf.tasks.base import Example
from bert_tf.tokenization.vocabulary import Vocabulary

tf1 = tf.compat.v1


_SHOWN = 5  # examples shown per split
_OFTEN = 10_000  # examples between two progress lines of the published form
_TITLE = re.compile(r"^\*{5} (.*) \*{5}\n", re.MULTILINE)


def examples_lines(
    examples: Sequence[Example], features: Features, vocabulary: Vocabulary, *, max_seq_length: int
) -> list[str]:
    """Returns the published script's log lines of the first examples: tokens and padded ids, of the first window only."""
    shown = min(_SHOWN, len(examples))
    batch = features.batch(features.first_rows[:shown], max_seq_length)
    targets = [field for field in features.fields if field.in_batches]
    shown_whole = [field.name for field in (*INPUTS, *targets) if field.axis != ROW]
    ids = [field.name for field in targets if field.axis == ROW and np.issubdtype(field.dtype, np.integer)]
    lines = []
    for row, example in enumerate(examples[:shown]):
        tokens = batch["input_ids"][row][batch["input_mask"][row] == 1]
        lines += ["*** Example ***", f"guid: {example.guid}"]
        lines.append(f"tokens: {' '.join(vocabulary.tokens[i] for i in tokens)}")
        lines += [f"{name}: {' '.join(map(str, batch[name][row]))}" for name in shown_whole]
        if example.label is not None:
            lines.append(f"label: {example.label}" + "".join(f" (id = {batch[name][row]})" for name in ids))
    return lines


def keep_examples(folder: str | os.PathLike[str], split: str, lines: Sequence[str]) -> None:
    """Writes the lines of a split to examples.txt, keeping other splits; raises OutputError if it cannot be written."""
    path = Path(folder) / run_layout.EXAMPLES
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    _, *parts = _TITLE.split(text)  # alternating titles and texts
    by_split = {**dict(zip(parts[::2], parts[1::2])), split: "".join(f"{line}\n" for line in lines)}
    atomic.write_text(path, "".join(f"***** {name} *****\n{text}" for name, text in by_split.items()))


def log_writing(count: int) -> None:
    """Logs the number of examples being converted, only in the published log format."""
    for number in range(0, count, _OFTEN):
        published.info("Writing example %d of %d", number, count)


def log_graph(
    features: Mapping[str, tf.Tensor], tokens: int | None, variables: Sequence[tf.Variable], loaded: Collection[str]
) -> None:
    """Logs features [B] or [B, T] and trained variables in the published format; marks those loaded from a checkpoint.

    Batches may be cut to their longest row: `tokens` is T before that, None if unknown.
    """
    published.info("*** Features ***")
    for name in sorted(features):
        published.info("  name = %s, shape = %s", name, _shape(features[name], tokens))
    published.info("**** Trainable Variables ****")
    for variable in variables:
        mark = ", *INIT_FROM_CKPT*" if variable.op.name in loaded else ""
        published.info("  name = %s, shape = %s%s", variable.name, _shape(variable), mark)


def _shape(tensor: tf.Tensor | tf.Variable, tokens: int | None = None) -> str:
    first, *others = tensor.shape.as_list()
    sizes = ["?" if size is None else str(size) for size in (first, *(tokens if size is None else size for size in others))]
    return f"({sizes[0]},)" if not others else f"({', '.join(sizes)})"


class VariablesHook(tf1.train.SessionRunHook):
    """Writes variables.tsv before the first step: each trained variable and the source of its initial value."""

    def __init__(self, folder: str | os.PathLike[str], loaded: Collection[str]) -> None:
        self._path = Path(folder) / run_layout.VARIABLES
        self._loaded = frozenset(loaded)

    def begin(self) -> None:
        rows = [("name", "shape", "dtype", "from")]
        for variable in tf1.trainable_variables():
            origin = "checkpoint" if variable.op.name in self._loaded else "random"
            rows.append((variable.op.name, str(variable.shape.as_list()), variable.dtype.base_dtype.name, origin))
        atomic.write_text(self._path, "".join("\t".join(row) + "\n" for row in rows))

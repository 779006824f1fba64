"""Sentence tasks of GLUE (Wang et al., 2018), as rows of one table."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path

from bert_tf.errors import DataError, FlagError, unknown_name
from bert_tf.tasks import tsv
from bert_tf.tasks.base import SPLITS, TEST, HeadSpec, SentenceExample


@dataclasses.dataclass(frozen=True)
class GlueTask:
    """A classification task over files in GLUE's layout; the fields are the columns of the table below."""

    name: str
    labels: tuple[str, ...]
    text_a: str
    text_b: str | None = None
    label: str = "label"
    metrics: tuple[str, ...] = ("accuracy",)
    # Column names of splits whose file has no header line.
    headless: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)

    @property
    def head(self) -> HeadSpec:
        """One logit for each label."""
        return HeadSpec(num_labels=len(self.labels))

    def file(self, data_dir: str | os.PathLike[str], split: str) -> Path:
        """Returns train.tsv, dev.tsv or test.tsv of the folder."""
        return Path(data_dir) / f"{split}.tsv"

    def examples(self, data_dir: str | os.PathLike[str], split: str) -> list[SentenceExample]:
        """Reads a split; test examples have no label.

        Raises:
          DataError: the file is missing or cannot be read, a text is empty, or a label unknown; names file and line.
        """
        path = self.file(data_dir, split)
        header = self.headless.get(split)
        texts = [self.text_a] if self.text_b is None else [self.text_a, self.text_b]
        labelled = [] if split == TEST else [self.label]
        first_line = 1 if header is not None else 2
        examples = []
        for line, cells in tsv.read_table(path, texts + labelled, header=header):
            for column, text in zip(texts, cells):
                if not text.strip():
                    raise DataError(f"the text in column {column!r} is empty", path, line)
            label = cells[-1] if labelled else None
            if label is not None and label not in self.labels:
                raise DataError(f"unknown label {label!r}; known are {', '.join(self.labels)}", path, line)
            # The published script numbers lines from 0, so that the first example below a header line is number 1.
            guid = f"{split}-{line - 1}"
            examples.append(SentenceExample(guid, cells[0], cells[1] if self.text_b else None, label))
        if not examples:
            raise DataError("no examples below the header line", path, first_line)
        return examples


TASKS = {
    task.name: task
    for task in (
        GlueTask("MRPC", ("0", "1"), "#1 String", "#2 String", label="Quality", metrics=("accuracy", "f1")),
        GlueTask("RTE", ("entailment", "not_entailment"), "sentence1", "sentence2"),
        GlueTask("SST-2", ("0", "1"), "sentence"),
        GlueTask(
            "CoLA",
            ("0", "1"),
            "sentence",
            metrics=("accuracy", "matthews_correlation"),
            headless=dict.fromkeys(SPLITS[:2], ("source", "label", "mark", "sentence")),
        ),
    )
}


def get_task(name: str) -> GlueTask:
    """Returns the task of a name; case and hyphens do not matter.

    Raises:
      FlagError: the name is unknown; the message names the nearest known one.
    """
    for known, task in TASKS.items():
        if known.lower().replace("-", "") == name.lower().replace("-", ""):
            return task
    raise FlagError(f"--task_name: {unknown_name('task', name, TASKS)}")

"""Sentence tasks of GLUE (Wang et al., 2018), as rows of one table."""

from __future__ import annotations

import dataclasses
import functools
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from bert_tf.errors import DataError
from bert_tf.head_spec import CLASSIFICATION, REGRESSION
from bert_tf.tasks import cells, names, tables, text_lines
from bert_tf.tasks.base import DEV, TEST, TRAIN, Submission
from bert_tf.tasks.sentence import scores
from bert_tf.tasks.sentence.family import SentenceFamily
from bert_tf.tasks.sentence.rows import Label, SentenceExample
from bert_tf.tasks.settings import SKIP

NLI_LABELS = ("contradiction", "entailment", "neutral")
SIMILARITIES = (0.0, 5.0)  # of STS-B, the one task whose prediction is a number
UNSCORED = "WNLI"  # left out of GLUE's score: its dev set contradicts its training set (gluebenchmark.com/faq, 12)

_LOG = logging.getLogger(__name__)  # Python's own, below TensorFlow and absl; the commands show it beside theirs
_PLAIN = {purpose: (purpose,) for purpose in (TRAIN, DEV, TEST)}


@dataclasses.dataclass(frozen=True)
class GlueTask:
    """A task over files in GLUE's layout; the fields are the columns of the table below."""

    name: str
    labels: tuple[str, ...]  # empty for regression
    text_a: str
    text_b: str | None = None
    label: str = "label"
    metrics: tuple[str, ...] = ("accuracy",)
    bounds: tuple[float, float] | None = None  # of a numeric label
    # Splits by purpose, and the server's names of test splits; a split's file has its name.
    split_names: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=lambda: _PLAIN)
    submissions: Mapping[str, str] | None = None  # None: {test: name}
    # Column that numbers the examples, if the file has it; else they are numbered by line.
    index: str | None = None
    # The published script's names of splits, if different.
    published_names: Mapping[str, str] = dataclasses.field(default_factory=dict)
    # Column names of splits whose file has no header line.
    headless: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    # Maximum share of unusable rows in a labelled split as published.
    broken: float = 0.0
    skip_bad_rows: bool = False  # the setting

    reads_folder: ClassVar[bool] = True

    @property
    def family(self) -> SentenceFamily:
        kind = CLASSIFICATION if self.labels else REGRESSION
        return SentenceFamily(self.labels, kind, self.metrics, texts=1 if self.text_b is None else 2)

    @property
    def scored(self) -> tuple[str, ...]:
        """The metrics whose mean is the task's part of GLUE's score: for CoLA only Matthews' correlation."""
        return self.metrics[:1] if self.name == "CoLA" else self.metrics

    def splits(self, data_dir: str | os.PathLike[str], purpose: str) -> tuple[str, ...]:
        names = self.split_names.get(purpose, ())
        if not names:
            has = ", ".join(name for split_names in self.split_names.values() for name in split_names)
            raise DataError(f"{self.name} has no split for {purpose}, only {has}", data_dir)
        present = tuple(name for name in names if data_dir and self.file(data_dir, name).is_file())
        for name in names if present else ():
            if name not in present:
                _warn_of_missing(self.file(data_dir, name), purpose, ", ".join(present))
        return present or names[:1]

    def file(self, data_dir: str | os.PathLike[str], split: str) -> Path:
        return Path(data_dir) / f"{split}.tsv"

    def examples(self, data_dir: str | os.PathLike[str], split: str) -> list[SentenceExample]:
        """Reads a split; rows that are broken as published are left out and counted, but none of a file for the server."""
        path = self.file(data_dir, split)
        is_submitted = self.skip_bad_rows and self.submission(split) is not None
        examples = tables.usable(
            lambda report: self.stream(path, split, _refuse_gap if is_submitted else report),
            path,
            skip=self.skip_bad_rows,
            broken=0.0 if self._is_test(split) else self.broken,
        )
        if not examples:
            raise DataError("no examples below the header line", path, 1 if split in self.headless else 2)
        return examples

    def stream(self, source: text_lines.Source, split: str, report: tables.Report = tables.refuse) -> Iterator[SentenceExample]:
        """Rows of test splits may have empty texts, which are counted: GLUE's server expects a prediction for every row."""
        table = tables.open_table(source, form=names.TSV, header=self.headless.get(split, True))
        columns = [self.text_a] if self.text_b is None else [self.text_a, self.text_b]
        labelled = not self._is_test(split)
        labels = [self.label] if labelled else []
        numbered = [self.index] if self.index and table.has(self.index) else []
        name = self.published_name(split)

        def example(line: int, row: list[str]) -> SentenceExample:
            texts = [cells.text(cell, column, may_be_empty=not labelled) for cell, column in zip(row, columns)]
            label: Label | None = None
            if labelled:
                cell = row[len(columns)]
                label = cells.known_label(cell, self.labels) if self.labels else cells.number(cell, self.bounds)
            # The published script numbers lines from 0, so that the first example below a header line is number 1.
            number = row[-1] if numbered else line - 1
            return SentenceExample(f"{name}-{number}", texts[0], texts[1] if self.text_b else None, label)

        examples = table.read_rows([*columns, *labels, *numbered], example, report)
        return examples if labelled else _counting_empty(examples, table.path)

    def submission(self, split: str) -> Submission | None:
        name = ({TEST: self.name} if self.submissions is None else self.submissions).get(split)
        return None if name is None else Submission(name, submission_lines)

    def published_name(self, split: str) -> str:
        return self.published_names.get(split, split)

    def _is_test(self, split: str) -> bool:
        return split in self.split_names[TEST]


def submission_lines(family: SentenceFamily, predictions: scores.Logits) -> list[str]:
    """Lines in the format of GLUE's server (index and prediction, in test order) from [E, L] logits."""
    predicted = scores.predictions(family.kind, predictions, family.decision)
    if family.kind == REGRESSION:
        shown = [f"{abs(number):.3f}" for number in predicted.clip(*SIMILARITIES)]  # abs: -0.0
    else:
        shown = [str(label) for label in scores.decode(family.kind, predicted, family.labels)]
    return ["index\tprediction", *(f"{index}\t{prediction}" for index, prediction in enumerate(shown))]


def _refuse_gap(problem: DataError) -> None:
    """Report of a split whose predictions the server takes by the numbers of rows."""
    why = f"GLUE's server takes a prediction of each row, so --{SKIP} leaves none out of this file"
    problem.args = (f"{problem}; {why}: correct it, or predict it with python -m bert_tf predict",)
    raise problem


@functools.cache  # once, however often a run asks for the splits
def _warn_of_missing(path: Path, purpose: str, present: str) -> None:
    _LOG.warning("%s is missing: for %s there is only %s", path, purpose, present)


def _counting_empty(examples: Iterable[SentenceExample], path: str) -> Iterator[SentenceExample]:
    """Passes examples on and reports how many have an empty text."""
    empty, first = 0, ""
    for example in examples:
        if not all(text is None or text.strip() for text in (example.text_a, example.text_b)):
            empty, first = empty + 1, first or example.guid
        yield example
    if empty:
        _LOG.warning("%s: rows with an empty text, which are predicted anyway: %d; the first: %s", path, empty, first)


_ENTAILMENT = ("entailment", "not_entailment")
_SENTENCES = ("sentence1", "sentence2")

TASKS = {
    task.name: task
    for task in (
        GlueTask(
            "CoLA",
            ("0", "1"),
            "sentence",
            metrics=("matthews_correlation", "accuracy"),
            headless=dict.fromkeys((TRAIN, DEV), ("source", "label", "mark", "sentence")),
        ),
        GlueTask("SST-2", ("0", "1"), "sentence"),
        GlueTask("MRPC", ("0", "1"), "#1 String", "#2 String", label="Quality", metrics=("accuracy", "f1")),
        GlueTask("STS-B", (), *_SENTENCES, label="score", metrics=("pearson", "spearman"), bounds=SIMILARITIES),
        GlueTask(
            "QQP",
            ("0", "1"),
            "question1",
            "question2",
            label="is_duplicate",
            metrics=("accuracy", "f1"),
            broken=0.001,  # line ends within questions, and two empty ones, of 364 thousand
        ),
        GlueTask(
            "MNLI",
            NLI_LABELS,
            *_SENTENCES,
            label="gold_label",
            split_names={
                TRAIN: (TRAIN,),
                DEV: ("dev_matched", "dev_mismatched"),
                TEST: ("test_matched", "test_mismatched"),
            },
            submissions={"test_matched": "MNLI-m", "test_mismatched": "MNLI-mm"},
            index="index",
            published_names={"test_matched": TEST},
            broken=0.03,  # of dev of MNLI 1.0, whose annotators agreed on no label of 2 %: "-"
        ),
        GlueTask("QNLI", _ENTAILMENT, "question", "sentence"),
        GlueTask("RTE", _ENTAILMENT, *_SENTENCES),
        GlueTask("WNLI", ("0", "1"), *_SENTENCES),
        GlueTask("AX", NLI_LABELS, *_SENTENCES, split_names={TEST: ("diagnostic",)}, submissions={"diagnostic": "AX"}),
    )
}

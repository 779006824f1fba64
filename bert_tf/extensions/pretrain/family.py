"""Masked words and next sentences as a family of tasks. Shapes: N rows, S masked positions of all rows."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from bert_tf.errors import DataError
from bert_tf.extensions.pretrain import TASK as NAME
from bert_tf.extensions.pretrain import evaluation
from bert_tf.extensions.pretrain.evaluation import (
    OF_PAIRS,
    OF_WORDS,
    MaskedPredictions,
    most_confident_mistakes,
    of_outputs,
)
from bert_tf.extensions.pretrain.opening import SplitFiles
from bert_tf.extensions.pretrain.rows import FIELDS, TextRows
from bert_tf.extensions.pretrain.settings import OF_ROWS, PretrainingSettings
from bert_tf.features.columns import Features
from bert_tf.fields import Field
from bert_tf.head_spec import PRETRAINING, HeadSpec
from bert_tf.tasks import tables, text_lines
from bert_tf.tasks.base import DEV, TRAIN, Family, Limits, OnDisk, Outputs, Splits
from bert_tf.tasks.evaluation import Evaluation
from bert_tf.tasks.names import JSONL, no_labels
from bert_tf.tasks.settings import TaskSettings
from bert_tf.tokenization.tokenizer import Tokenizer
from bert_tf.tokenization.vocabulary import Vocabulary

_HELD_OUT = "held_out_documents"


@dataclasses.dataclass(frozen=True)
class PretrainingFamily(Family):
    next_sentence: bool = True
    sampled_softmax: int = 0  # words drawn in training, see the head
    of_rows: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # settings of rows and masks, as recorded

    kind: ClassVar[str] = PRETRAINING
    targets: ClassVar[tuple[Field, ...]] = FIELDS
    trains_on_windows = True
    sample_settings: ClassVar[Mapping[str, Any]] = {
        "learning_rate": 3e-4,
        "num_train_steps": 48,
        "train_batch_size": 16,
        "max_seq_length": 64,
        "eval_every_n_steps": 12,
    }

    @classmethod
    def from_settings(cls, settings: PretrainingSettings) -> PretrainingFamily:
        return cls(settings.nsp, settings.sampled_softmax, {name: getattr(settings, name) for name in OF_ROWS})

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> PretrainingFamily:
        of_rows = {name: record[name] for name in OF_ROWS if name in record}
        return cls(record["nsp"], record["sampled_softmax"], of_rows)

    def as_trained(self, record: Mapping[str, Any]) -> PretrainingFamily:
        """Returns the family of a trained model, to measure the same on other rows.

        Only the number of held-out documents must not change: others would be among the training documents.
        """
        if "nsp" not in record:
            return self
        trained = self.from_record(record)
        return dataclasses.replace(trained, of_rows={**trained.of_rows, _HELD_OUT: self.of_rows[_HELD_OUT]})

    @property
    def head(self) -> HeadSpec:
        options = (("next_sentence", self.next_sentence), ("sampled_softmax", self.sampled_softmax))
        defaults = {"next_sentence": True, "sampled_softmax": 0}
        return HeadSpec(2, PRETRAINING, tuple((name, value) for name, value in options if value != defaults[name]))

    @property
    def metrics(self) -> tuple[str, ...]:
        return (*OF_WORDS, *OF_PAIRS) if self.next_sentence else OF_WORDS

    def from_rows(self, rows: Iterable[Any], split: str, *, labelled: bool) -> Sequence[Any]:
        del rows, split, labelled
        raise DataError(no_labels(), NAME)

    def features(self, examples: Sequence[Any], tokenizer: Tokenizer, limits: Limits) -> Features:
        """Returns the rows for evaluation; raises `DataError` if they are not rows of files."""
        del tokenizer, limits
        if not isinstance(examples, OnDisk):
            raise DataError(no_labels(), NAME)
        return examples.features()

    def predictions(self, outputs: Outputs, features: Features, examples: Sequence[Any]) -> MaskedPredictions:
        del examples
        return of_outputs(outputs, features)

    def listed(self, predictions: MaskedPredictions, examples: Sequence[Any]) -> Sequence[Any]:
        """Returns the rows themselves: fill-mask predicts words."""
        del predictions
        return examples

    def evaluation(self, predictions: MaskedPredictions, examples: Sequence[Any]) -> Evaluation:
        return evaluation.evaluate(predictions, _vocabulary(examples))

    def mistakes(self, predictions: MaskedPredictions, examples: Sequence[Any]) -> list[dict[str, Any]]:
        return most_confident_mistakes(predictions, examples, _vocabulary(examples))

    def layout(self, form: str = JSONL) -> Any:
        del form
        raise DataError(no_labels(), NAME)

    def record(self) -> dict[str, Any]:
        return {
            **super().record(),
            "nsp": self.next_sentence,
            "sampled_softmax": self.sampled_softmax,
            **self.of_rows,
        }


def _vocabulary(examples: Sequence[Any]) -> Vocabulary:
    if not isinstance(examples, TextRows):
        raise DataError(no_labels(), NAME)
    return examples.vocabulary


_SECOND = "phase2"


class PretrainingTask(Splits):
    """Pre-training on text; a second phase adds a second split for both training and evaluation."""

    name: str = NAME
    named_by = "--input_file"  # its files without a folder

    def __init__(self, settings: PretrainingSettings) -> None:
        self._settings = settings
        self.family = PretrainingFamily.from_settings(settings)

    @property
    def reads_folder(self) -> bool:
        return self._settings.input_file is None

    def splits(self, data_dir: str | os.PathLike[str], purpose: str) -> tuple[str, ...]:
        del data_dir
        if purpose not in (TRAIN, DEV):
            raise DataError(f"no split {purpose}: {no_labels()}", NAME)
        return (purpose, f"{purpose}_{_SECOND}") if self._settings.phase2_num_train_steps else (purpose,)

    def file(self, data_dir: str | os.PathLike[str], split: str) -> Path:
        settings = self._of_folder(data_dir)
        named = settings.input_file if split.startswith(TRAIN) else settings.held_out_file or settings.input_file
        return Path(named or "")

    def examples(self, data_dir: str | os.PathLike[str], split: str) -> Any:
        """Returns `SplitFiles`: its rows are made once the tokenizer is known."""
        purpose, _, second = split.partition("_")
        return SplitFiles(split, purpose, self._of_folder(data_dir), second=bool(second))

    def _of_folder(self, data_dir: str | os.PathLike[str]) -> PretrainingSettings:
        """Fills in the files of the folder if the settings name none."""
        if not self.reads_folder:
            return self._settings
        trained, held_out = (os.path.join(data_dir, name) for name in ("train.txt", "held_out.txt"))
        return dataclasses.replace(self._settings, input_file=trained, held_out_file=held_out)

    def stream(self, source: text_lines.Source, split: str, report: tables.Report = tables.refuse) -> Iterator[Any]:
        del split, report
        raise DataError("pre-training reads text and shards as a whole: python -m bert_tf pretrain", source)


def task(name: str, settings: TaskSettings, labels: object = None) -> PretrainingTask:
    del name, labels
    return PretrainingTask(settings.extensions.pretrain)

"""Masked words and next sentences as a family of tasks. Shapes: N rows, S masked positions of all rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from bert_tf.errors import DataError
from bert_tf.features.columns import Features
from bert_tf.fields import Field
from bert_tf.head_spec import PRETRAINING, HeadSpec
from bert_tf.tasks.base import Limits, Outputs
from bert_tf.tasks.on_disk import OnDisk
from bert_tf.tasks.pretraining import evaluation
from bert_tf.tasks.pretraining.evaluation import OF_PAIRS, OF_WORDS, PretrainingEvaluation
from bert_tf.tasks.pretraining.predictions import FIELDS, MaskedPredictions, most_confident_mistakes, of_outputs
from bert_tf.tasks.pretraining.settings import OF_ROWS, PretrainingSettings
from bert_tf.tasks.pretraining.texts import TextRows
from bert_tf.tasks.tables import JSONL
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

_HELD_OUT = "held_out_documents"
TASK = "Pretraining"
NO_LABELS = (
    "masked words were learned, no labels; python -m bert_tf fill-mask predicts them,"
    " python -m bert_tf pretrain --do_eval measures them on held-out text"
)


@dataclasses.dataclass(frozen=True)
class PretrainingFamily:
    next_sentence: bool = True
    sampled_softmax: int = 0  # words drawn in training, see the head
    of_rows: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # settings of rows and masks, as recorded

    kind: ClassVar[str] = PRETRAINING
    labels: ClassVar[tuple[str, ...]] = ()
    targets: ClassVar[tuple[Field, ...]] = FIELDS
    rules: ClassVar[tuple[str, ...]] = ()
    file_patterns: ClassVar[tuple[str, ...]] = ()
    trains_on_windows, trains_together = True, False
    usual_settings: ClassVar[Mapping[str, Any]] = {}  # those of the command
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
        """Returns the family of a trained model, so that the same is measured on other rows.

        Only the number of held-out documents must not change: others would be among the training documents.
        """
        if not record:
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
        raise DataError(NO_LABELS, TASK)

    def features(self, examples: Sequence[Any], tokenizer: WordPieceTokenizer, limits: Limits) -> Features:
        """Returns the rows for evaluation; raises `DataError` if they are not rows of files."""
        del tokenizer, limits
        if not isinstance(examples, OnDisk):
            raise DataError(NO_LABELS, TASK)
        return examples.features()

    def class_weights(self, features: Features) -> tuple[float, ...]:
        del features
        return ()

    def predictions(self, outputs: Outputs, features: Features, examples: Sequence[Any]) -> MaskedPredictions:
        del examples
        return of_outputs(outputs, features)

    def listed(self, predictions: MaskedPredictions, examples: Sequence[Any]) -> Sequence[Any]:
        """Returns the rows themselves: fill-mask predicts words."""
        del predictions
        return examples

    def evaluation(self, predictions: MaskedPredictions, examples: Sequence[Any]) -> PretrainingEvaluation:
        return evaluation.evaluate(predictions, _vocabulary(examples))

    def mistakes(self, predictions: MaskedPredictions, examples: Sequence[Any]) -> list[dict[str, Any]]:
        return most_confident_mistakes(predictions, examples, _vocabulary(examples))

    def files(
        self, predictions: MaskedPredictions, examples: Sequence[Any], *, suffix: str, published_suffix: str
    ) -> dict[str, str]:
        """Empty: there are no predictions of files."""
        del predictions, examples, suffix, published_suffix
        return {}

    def layout(self, form: str = JSONL) -> Any:
        del form
        raise DataError(NO_LABELS, TASK)

    def record(self) -> dict[str, Any]:
        return {
            "labels": [],
            "kind": PRETRAINING,
            "nsp": self.next_sentence,
            "sampled_softmax": self.sampled_softmax,
            **self.of_rows,
        }


def _vocabulary(examples: Sequence[Any]) -> Vocabulary:
    if not isinstance(examples, TextRows):
        raise DataError(NO_LABELS, TASK)
    return examples.vocabulary

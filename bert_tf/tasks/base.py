"""Protocols: `Family` defines a problem from examples to metrics; `Task` locates a data set and names its family."""

from __future__ import annotations

import abc
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

from bert_tf.features.columns import Array, Features, TrainingRows
from bert_tf.features.long_text import TRUNCATE
from bert_tf.fields import Field
from bert_tf.head_spec import HeadSpec
from bert_tf.metrics.probabilities import LabelledLogits
from bert_tf.tasks.evaluation import Evaluation
from bert_tf.tasks.tables import Report, refuse
from bert_tf.tasks.text_lines import Source
from bert_tf.tokenization.tokenizer import Tokenizer

TRAIN, DEV, TEST = "train", "dev", "test"
PURPOSES = (TRAIN, DEV, TEST)

Outputs = Mapping[str, Array]  # of a head over a split: [N, ...] or [total, ...], by the axis of the output's field


class Example(Protocol):
    """An example of any family; families use dataclasses whose first field is `guid`."""

    @property
    def guid(self) -> str:
        """Name in files and messages."""

    @property
    def label(self) -> Any:
        """Label or target; None if it is to be predicted."""

    @property
    def texts(self) -> tuple[str, ...]:
        """Input texts: one or two."""


class Limits(NamedTuple):
    """Limits on the text in one row."""

    max_seq_length: int  # word pieces, including special tokens
    long_text: str = TRUNCATE  # key of `long_text.CUTS`


class Layout(Protocol):
    """Text format of predictions; can be written in parts."""

    def header(self) -> str:
        """Returns the header line with its newline; empty if the format has none."""

    def rows(self, examples: Sequence[Any], predictions: Any) -> str:
        """Returns one line per example, in order."""


class Submission(NamedTuple):
    """Submission of a test split to GLUE's server."""

    name: str  # file name, for example MNLI-mm
    lines: Callable[[Any, Any], Iterable[str]]  # of the family, and its predictions in the order of the examples


class Family(Protocol):
    """A kind of problem. E examples become N rows of features, N >= E; the head computes outputs per row.

    A subclass inherits defaults; a class that has all members need not be one.

    Attributes:
      rules: names of settings (attributes of the family) that affect predictions only; see `families.with_rules`.
      file_patterns: glob patterns of `files`, `*` in place of the suffix; matching files are deleted with the run.
      usual_settings: training defaults of this family by name, used if a setting is not specified.
      sample_settings: the same for the default checkpoint trained on the bundled sample.
    """

    rules: ClassVar[tuple[str, ...]] = ()
    file_patterns: ClassVar[tuple[str, ...]] = ()
    usual_settings: ClassVar[Mapping[str, Any]] = {}
    sample_settings: ClassVar[Mapping[str, Any]] = {}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Family:
        """Returns the family of a trained model from the result of its `record`."""
        del record
        return cls()

    def as_trained(self, record: Mapping[str, Any]) -> Family:
        """Returns the family with the settings a trained model was made with, such as the window stride."""
        del record
        return self

    @property
    def kind(self) -> str:
        """Registry key: `tasks.families` creates the family of a record, `modeling.heads.registry` the head."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of classes or tags by index; empty if there are none."""
        return ()

    @property
    def head(self) -> HeadSpec:
        """The head of the model."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics; the first one selects the best checkpoint."""

    @property
    def targets(self) -> tuple[Field, ...]:
        """Fields that batches hold for the loss, and that features keep beside batches for predictions."""

    @property
    def reads_words(self) -> bool:
        """Whether texts are words, each of which becomes pieces by itself."""
        return False

    @property
    def usual_id_column(self) -> str | None:
        """The column of ids of tables, unless another is given; None for numbers of rows."""
        return None

    @property
    def may_have_no_label(self) -> bool:
        """Whether a labelled row may have none: of several labels none applies, a question has no answer."""
        return False

    @property
    def trains_on_windows(self) -> bool:
        """Whether a text's windows are always made, and trained on one by one, whatever `Limits.long_text` says."""
        return False

    @property
    def trains_together(self) -> bool:
        """Whether the head has a loss of an example's rows in one batch, as windows of a long text; see `Features.together`.

        Without this and `trains_on_windows`, training cuts texts that evaluation reads in windows.
        """
        return False

    def no_effect(self, rule: str) -> str:
        """Says why a rule, one of `rules`, cannot change what this family predicts; empty if it can."""
        del rule
        return ""

    def from_rows(self, rows: Iterable[Any], split: str, *, labelled: bool) -> Sequence[Any]:
        """Converts rows in memory to examples.

        Args:
          rows: read once; the family defines their format.
          split: used in the names of examples and in messages.
          labelled: whether the rows have labels.

        Raises:
          DataError: a row has another format; names split and row, counted from 0.
        """

    def features(self, examples: Sequence[Any], tokenizer: Tokenizer, limits: Limits) -> Features:
        """Returns the features of examples; targets are undefined if labels are None.

        Args:
          examples: E examples.
          tokenizer: splits their texts.
          limits: limits per row.
        """

    def class_weights(self, features: Features) -> tuple[float, ...]:
        """Returns a loss weight per label that balances the classes; used only by heads with such a loss."""
        del features
        return ()

    def predictions(self, outputs: Outputs, features: Features, examples: Sequence[Any]) -> Any:
        """Returns the predictions for E examples; the rows of an example become one prediction.

        Args:
          outputs: outputs of the head for all rows.
          features: the rows.
          examples: the E examples of these rows.
        """

    def listed(self, predictions: Any, examples: Sequence[Any]) -> Sequence[Any]:
        """Returns one object per example, for programs: its `label` and any other predicted values.

        Args:
          predictions: predictions of the examples.
          examples: E examples.
        """

    def evaluation(self, predictions: Any, examples: Sequence[Any]) -> Evaluation:
        """Measures predictions against the labels of their examples.

        Args:
          predictions: predictions of the examples.
          examples: E labelled examples.
        """

    def mistakes(self, predictions: Any, examples: Sequence[Any]) -> Sequence[Mapping[str, Any]]:
        """Returns the most confident wrong predictions, worst first, as JSON values.

        The page shows `id`, `text_a`, `text_b`, `label`, `predicted`, and either `confidence` or, for regression, `error`.
        `marks` are spans in `text_a`: first character, end (exclusive), and the source: `label`, `predicted` or `both`.

        Args:
          predictions: predictions of the examples.
          examples: E labelled examples.
        """

    def labelled_logits(self, predictions: Any, examples: Sequence[Any]) -> Sequence[LabelledLogits]:
        """Returns logits and true classes, one part for each temperature; empty if probabilities cannot be calibrated.

        A family that returns some has an attribute `decision`, see `tasks.decision`, whose temperatures its head takes.

        Args:
          predictions: predictions of the examples.
          examples: E labelled examples.
        """
        del predictions, examples
        return ()

    def files(self, predictions: Any, examples: Sequence[Any], *, suffix: str, published_suffix: str) -> Mapping[str, str]:
        """Returns the files of a predicted split: contents by name; by default those of `file_patterns`.

        Args:
          predictions: predictions of the examples.
          examples: examples of the split.
          suffix: distinguishes splits of the same purpose, see `evaluation.split_suffix`.
          published_suffix: the same in the naming of the published script.
        """
        del published_suffix
        layouts = {pattern.replace("*", suffix): self.layout(pattern.rpartition(".")[2]) for pattern in self.file_patterns}
        return {name: layout.header() + layout.rows(examples, predictions) for name, layout in layouts.items()}

    def layout(self, form: str) -> Layout:
        """Returns the layout of predictions for a format of `names.FORMATS`."""

    def record(self) -> dict[str, Any]:
        """Returns the definition of the family for a run's record: at least `labels` and `kind`.

        Must include every setting that affects features and outputs, as JSON values: the family is restored from it, and
        cached features are shared by families with the same record.
        """
        return {"labels": list(self.labels), "kind": self.kind}


class Splits(Protocol):
    """Where a task finds its splits, with defaults; see `Task`."""

    @property
    def reads_folder(self) -> bool:
        """Whether the task reads its files from a folder; otherwise each file is named."""
        return False

    def splits(self, data_dir: str | os.PathLike[str], purpose: str) -> tuple[str, ...]:
        """Returns the splits of a purpose that exist in the folder, or the first one if none exists.

        Args:
          data_dir: folder of the files; empty for a file that the user names, whatever lies in the working directory.
          purpose: train, dev or test.

        Raises:
          DataError: the task has no split for this purpose, for example AX for training.
        """
        self.file(data_dir, purpose)
        return (purpose,)

    def file(self, data_dir: str | os.PathLike[str], split: str) -> Path:
        """Returns the file of a split, or the folder if it has several files, whether or not it exists.

        Args:
          data_dir: folder of the files.
          split: name of the split.
        """

    def published_name(self, split: str) -> str:
        """Returns the name of a split in the published script: test for test_matched of MNLI."""
        return split

    def submission(self, split: str) -> Submission | None:
        """Returns the submission of a split to GLUE's server; None if the server does not accept it."""
        del split
        return None


class Task(Splits, Protocol):
    """A data set and the family of its problem.

    A subclass of `Splits` inherits defaults; a class that has all members need not be one.
    A purpose (train, dev, test) has one or several splits: MNLI is evaluated on dev_matched and dev_mismatched.
    """

    @property
    def name(self) -> str:
        """Display name, for example MRPC."""

    @property
    def family(self) -> Family:
        """The family of the problem."""

    def examples(self, data_dir: str | os.PathLike[str], split: str) -> Sequence[Any]:
        """Reads a split; the label is None in test splits.

        Args:
          data_dir: folder of the files.
          split: name of the split.

        Raises:
          DataError: the file is missing or cannot be read; names file and line.
        """

    def stream(self, source: Source, split: str, report: Report = refuse) -> Iterator[Any]:
        """Reads a file in the layout of a split, in constant memory.

        Args:
          source: a path, or `-` for standard input.
          split: split that defines the layout.
          report: called for each unusable row, which is then skipped.

        Raises:
          DataError: the file is missing or has other columns. Errors raised by `report` propagate.
        """


class OnDisk(Sequence[Any], abc.ABC):
    """Lazy examples on disk; intermediate files are made on first use."""

    @property
    @abc.abstractmethod
    def digest(self) -> str:
        """Digest of everything that rows are made from, except settings in the family's record and the number of rows."""

    @property
    @abc.abstractmethod
    def rows(self) -> TrainingRows:
        """Rows to draw from in training."""

    @property
    @abc.abstractmethod
    def longest(self) -> int:
        """Maximum tokens per row."""

    @abc.abstractmethod
    def features(self) -> Features:
        """Returns the rows for evaluation, deterministic."""


class Opening(NamedTuple):
    """Settings of a run beyond those of the task."""

    tokenizer: Tokenizer
    max_seq_length: int  # tokens per row
    output_dir: Path  # of the run; intermediate files go into a subfolder
    eval_batch_size: int | None = None  # None if not set
    positions: int = 1 << 30  # most tokens that the model reads


class Unopened(abc.ABC):
    """A split whose files are known but whose tokenizer is not yet."""

    @abc.abstractmethod
    def opened(self, opening: Opening) -> OnDisk:
        """Returns its examples."""

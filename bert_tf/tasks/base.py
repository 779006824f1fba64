"""What a task is: where its examples are, and what is learned of them.

A `Family` knows one kind of thing that can be learned, from examples to metrics: sentences with classes are one family, tags of
words another. A `Task` knows where the examples of one data set are, and names its family.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

from bert_tf.features.columns import Array, Features
from bert_tf.features.long_text import TRUNCATE
from bert_tf.fields import Field
from bert_tf.head_spec import HeadSpec
from bert_tf.tasks.evaluation import Evaluation
from bert_tf.tasks.tables import Report, refuse
from bert_tf.tasks.text_lines import Source
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

TRAIN, DEV, TEST = "train", "dev", "test"
PURPOSES = (TRAIN, DEV, TEST)

Outputs = Mapping[str, Array]  # of a head over a split: [N, ...] or [total, ...], by the axis of the output's field


class Example(Protocol):
    """What all examples have; those of a family are dataclasses of which `guid` is the first field."""

    @property
    def guid(self) -> str:
        """Its name in files and messages."""

    @property
    def label(self) -> Any:
        """What it is; None where that is to be predicted."""

    @property
    def texts(self) -> tuple[str, ...]:
        """What is read: one text or two."""


class Limits(NamedTuple):
    """How much of a text a row may hold: word pieces, the special ones included, and a key of `long_text.CUTS`."""

    max_seq_length: int
    long_text: str = TRUNCATE


class Layout(Protocol):
    """How predictions are written, line by line; any part of a file may be made at a time."""

    def header(self) -> str:
        """Returns the first line, with its end; nothing where the format has none."""

    def rows(self, examples: Sequence[Any], predictions: Any) -> str:
        """Returns the lines of some examples, in their order.

        Args:
          examples: that were predicted.
          predictions: of these examples.
        """


class Submission(NamedTuple):
    """What GLUE's server takes of a split of test.

    Attributes:
      name: of the file, MNLI-mm.
      lines: returns its lines, of predictions in the order of the examples.
    """

    name: str
    lines: Callable[[Any], Iterable[str]]


class Family(Protocol):
    """A kind of thing to be learned. E examples become N rows of features, N >= E; the head computes outputs of rows.

    Attributes:
      rules: names of settings, attributes of the family, that decide on predictions alone; see `tasks.rules`.
      file_patterns: the names of `files` with any suffix, as patterns of `glob`; they are deleted with the run.
      usual_settings: of training, by name, in the place of defaults; where none are given.
      sample_settings: the same where the default checkpoint is trained on the bundled sample.
    """

    rules: ClassVar[tuple[str, ...]]
    file_patterns: ClassVar[tuple[str, ...]]
    usual_settings: ClassVar[Mapping[str, Any]]
    sample_settings: ClassVar[Mapping[str, Any]]

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Family:
        """Returns the family of a trained model, of what its `record` returned."""

    def as_trained(self, record: Mapping[str, Any]) -> Family:
        """Returns the family with those of its settings that a trained model was made with, as the stride of windows."""

    @property
    def kind(self) -> str:
        """Key of the registries: `tasks.families` makes the family of a record, `modeling.heads.registry` the head."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of classes or tags; the position is the index. Empty where there are none."""

    @property
    def head(self) -> HeadSpec:
        """What the model computes."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics; the best checkpoint is the best by the first."""

    @property
    def targets(self) -> tuple[Field, ...]:
        """What batches hold for the loss, and what features keep beside batches for predictions."""

    @property
    def trains_on_windows(self) -> bool:
        """Whether each window of a long text can be trained on; else what is cut off a training text is lost."""

    @property
    def trains_together(self) -> bool:
        """Whether the rows of an example stay in one batch, see `Features.together`."""

    def from_rows(self, rows: Iterable[Any], split: str, *, labelled: bool) -> Sequence[Any]:
        """Returns rows that a program has in memory as examples.

        Args:
          rows: read once; of which form, the family says.
          split: for names of examples and messages.
          labelled: whether they have labels.

        Raises:
          DataError: a row is of another form; names split and row, counted from 0.
        """

    def features(self, examples: Sequence[Any], tokenizer: WordPieceTokenizer, limits: Limits) -> Features:
        """Returns the features of examples; targets mean nothing where labels are None.

        Args:
          examples: E of them.
          tokenizer: cuts their texts.
          limits: of a row.
        """

    def class_weights(self, features: Features) -> tuple[float, ...]:
        """Returns a factor for each label, with which all weigh the same in the loss; only heads with such a loss ask."""

    def predictions(self, outputs: Outputs, features: Features, examples: Sequence[Any]) -> Any:
        """Returns what the outputs say of the E examples; rows of one example become one prediction.

        Args:
          outputs: of the head, for all rows.
          features: the rows.
          examples: E of them, which the rows are of.
        """

    def listed(self, predictions: Any, examples: Sequence[Any]) -> Sequence[Any]:
        """Returns one object for each example, for programs: its `label`, and what else is predicted.

        Args:
          predictions: of the examples.
          examples: E of them.
        """

    def evaluation(self, predictions: Any, examples: Sequence[Any]) -> Evaluation:
        """Measures predictions by the labels of their examples.

        Args:
          predictions: of the examples.
          examples: E of them, with labels.
        """

    def mistakes(self, predictions: Any, examples: Sequence[Any]) -> Sequence[Mapping[str, Any]]:
        """Returns the predictions that are most confidently wrong, the worst first, as values for JSON.

        The page shows of each `id`, `text_a`, `text_b`, `label`, `predicted`, and how sure the model is: `confidence`, or how
        far off: `error`. `marks` are places in `text_a`: first character, the one after the last, and whose they are: `label`,
        `predicted` or `both`.

        Args:
          predictions: of the examples.
          examples: E of them, with labels.
        """

    def files(self, predictions: Any, examples: Sequence[Any], *, suffix: str, published_suffix: str) -> Mapping[str, str]:
        """Returns the files of a predicted split: their contents by name.

        Args:
          predictions: of the examples.
          examples: of the split.
          suffix: tells it from other splits of its purpose, see `evaluation.split_suffix`.
          published_suffix: the same of its name in the published script.
        """

    def layout(self, form: str) -> Layout:
        """Returns how predictions are written in a format of `tables.FORMATS`."""

    def record(self) -> dict[str, Any]:
        """Returns what is learned, as a run's record keeps it: `labels` and `kind` at least.

        Whatever else decides on features and outputs belongs here too, as values of JSON: a run is made again from it, and
        cached features are those of a family with the same record.
        """


class Task(Protocol):
    """A data set, and what is learned of it.

    A purpose (train, dev, test) has one split or several: MNLI is evaluated on dev_matched and dev_mismatched.
    """

    @property
    def name(self) -> str:
        """Name as people write it, MRPC."""

    @property
    def family(self) -> Family:
        """What is learned."""

    @property
    def reads_folder(self) -> bool:
        """Whether a folder holds its files; else it knows each."""

    def splits(self, data_dir: str | os.PathLike[str], purpose: str) -> tuple[str, ...]:
        """Returns the splits of train, dev or test that the folder holds; the first one where it holds none.

        Args:
          data_dir: folder of the files.
          purpose: train, dev or test.

        Raises:
          DataError: the task has no split for this purpose, as AX for training.
        """

    def file(self, data_dir: str | os.PathLike[str], split: str) -> Path:
        """Returns the file of a split, or the folder where it has several, whether it exists or not.

        Args:
          data_dir: folder of the files.
          split: its name.
        """

    def examples(self, data_dir: str | os.PathLike[str], split: str) -> Sequence[Any]:
        """Reads a split; the label is None in splits of test.

        Args:
          data_dir: folder of the files.
          split: its name.

        Raises:
          DataError: the file is missing or cannot be read; names file and line.
        """

    def stream(self, source: Source, split: str, report: Report = refuse) -> Iterator[Any]:
        """Reads a file in the layout of a split, in constant memory.

        Args:
          source: a path, or `-` for the standard input.
          split: whose layout it is.
          report: is called for each row that cannot be used, which is then left out.

        Raises:
          DataError: the file is missing or has other columns; whatever `report` raises.
        """

    def published_name(self, split: str) -> str:
        """Returns what the published script calls a split: test for test_matched of MNLI."""

    def submission(self, split: str) -> Submission | None:
        """Returns how predictions of a split are sent to GLUE's server; None where it takes none."""

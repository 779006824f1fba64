"""One run: what was asked, with data, weights and machine; what it optimizes and watches, and the features of its splits."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bert_tf import run_layout
from bert_tf.batch.trained import Trained
from bert_tf.checkpoints.restore import RestorePlan
from bert_tf.config import BertConfig
from bert_tf.errors import DataError, FlagError, unknown_name
from bert_tf.estimator import describe, run_folder
from bert_tf.features import cache
from bert_tf.features.batching import Schedule
from bert_tf.features.columns import MANY_TRUNCATED, MANY_UNKNOWN, UNKNOWN, Features, TrainingRows
from bert_tf.features.long_text import HEAD_TAIL, TRUNCATE, WINDOWS
from bert_tf.io.log_form import log, published
from bert_tf.modeling.heads import registry as heads
from bert_tf.modeling.heads.base import Head, LossOptions
from bert_tf.optimization.parts import POOLER
from bert_tf.profiling.wall_clock import FEATURES, WALL
from bert_tf.runtime.machine import Machine
from bert_tf.settings import setting_names
from bert_tf.tasks import families
from bert_tf.tasks.base import TRAIN, Example, Family, Limits, OnDisk, Task
from bert_tf.tasks.decision import PUBLISHED, Decision
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.training.run_spec import RunSpec
from bert_tf.training.settings import TrainSettings
from bert_tf.training.sources import DataSource, ModelSource, PartOfSplit, Whole

if TYPE_CHECKING:
    from bert_tf.estimator.evaluations import Target
    from bert_tf.training.part import Part

MakeLossOptions = Callable[[Features], LossOptions]  # from the features of the training split, to balance its classes

_LOSS = "loss"
_BALANCED = "balanced"
_NAMED = 5  # examples in a message
_DESCRIBED = 8  # rows on disk that are described


class PhasePlan(NamedTuple):
    split: str
    max_seq_length: int  # tokens per row
    batch_size: int  # units per step
    steps: int | None  # None to count epochs
    prefix: str = ""  # of its flags and keys


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
    """What was asked, complete, with all that it needs; made by `preparation.prepare`."""

    spec: RunSpec  # completed by recipe and run record
    task: Task
    data: DataSource
    source: ModelSource
    weights: Trained  # to train from or evaluate
    splits: Mapping[str, tuple[str, ...]]  # by purpose
    examples: Mapping[str, Sequence[Example]]  # by split
    machine: Machine
    restore: RestorePlan | None = None  # which variables the weights have; `checks.check` adds it
    decision: Decision = PUBLISHED  # of the weights that are evaluated
    layers: tuple[int, ...] = ()  # of the checkpoint to start from, if not all
    parts: Mapping[str, Part] = dataclasses.field(default_factory=dict)  # of extensions

    @functools.cached_property
    def family(self) -> Family:
        return families.with_decision(self.task.family, self.decision)

    @property
    def config(self) -> BertConfig:
        return self.weights.config

    @property
    def vocabulary(self) -> Vocabulary:
        return self.weights.vocabulary

    @property
    def output_dir(self) -> Path:
        return self.spec.output.folder

    @functools.cached_property
    def results_dir(self) -> Path:
        """Folder of results: that of the checkpoints, or one in it if the model was trained on another task."""
        folder, task = self.output_dir, self.task.name
        trained_on = task if self.spec.actions.do_train else run_folder.trained(folder).get("task_name", task)
        return folder if trained_on == task else folder / task

    @property
    def run_dir(self) -> Path:
        """Folder of the run trained or evaluated; contains folders of the best checkpoint and averages."""
        if self.spec.actions.do_train:
            return self.output_dir
        folder = self.weights.folder
        return folder.parent if folder.name in run_layout.MODELS else folder

    @functools.cached_property
    def target(self) -> Target | None:
        return find_target(self.spec.train, self.task)

    @functools.cached_property
    def selection_metric(self) -> str | None:
        return find_metric(self.spec.train, self.task)

    @functools.cached_property
    def loss_options(self) -> MakeLossOptions:
        return find_loss_options(self.spec.train, self.task)

    @property
    def new_parts(self) -> frozenset[str | int]:
        """Of --reinit_layers: the top layers, and the pooler (Zhang et al., 2021)."""
        count, layers = self.spec.train.reinit_layers, self.config.weighted_layers
        return frozenset({POOLER, *range(layers - count, layers)}) if count else frozenset()

    @property
    def around(self) -> Callable[[Head], Head] | None:
        """What a part wraps around the head in training."""
        return next((around for part in self.parts.values() if (around := part.head()) is not None), None)

    @property
    def fewest_examples(self) -> int:
        """Minimum number of examples that the loss of the training compares; see `Head`."""
        head, around = heads.make_head(self.task.family.head), self.around
        return (around(head) if around else head).fewest_examples

    @property
    def train_split(self) -> str:
        return self.splits[TRAIN][0]

    @property
    def phases(self) -> tuple[PhasePlan, ...]:
        """Phases in order; only extensions add further ones."""
        train, length = self.spec.train, self.spec.data.max_seq_length
        first = PhasePlan(self.train_split, length, train.train_batch_size, train.num_train_steps)
        return first, *(phase for part in self.parts.values() for phase in part.phases(self, first))

    @property
    def least_schedule(self) -> Schedule:
        """Lower bound of the schedule: one row of features per example."""
        return self.schedule(len(self.examples[self.train_split]))

    def schedule(self, rows: int) -> Schedule:
        train = self.spec.train
        return Schedule(rows, train.train_batch_size, train.num_train_epochs, train.num_train_steps)

    def digest(self, split: str) -> str:
        examples = self.examples[split]
        if isinstance(examples, OnDisk):
            return examples.digest
        if split not in self._digests:
            self._digests[split] = cache.examples_digest(examples)
        return self._digests[split]

    @functools.cached_property
    def _digests(self) -> dict[str, str]:
        return {}


@WALL.span(FEATURES)
def training_rows(run: Run, split: str) -> TrainingRows:
    """Returns the rows training draws from, and logs the first; BertError if there is nothing to learn."""
    examples = run.examples[split]
    if not isinstance(examples, OnDisk):
        return features(run, split)
    some = np.arange(min(_DESCRIBED, len(examples)))
    _describe(run, split, examples.rows.drawn(some, np.zeros_like(some)).features, examples.longest)
    log.info("%s: %d rows of up to %d tokens", split, len(examples), examples.longest)
    return examples.rows


@WALL.span(FEATURES)
def features(run: Run, split: str) -> Features:
    data, examples, family = run.spec.data, run.examples[split], run.task.family
    if isinstance(examples, OnDisk):
        fixed = examples.features()
        _describe(run, split, fixed, examples.longest)
        log.info("%s: %d rows, %.1f tokens on average", split, len(fixed), fixed.lengths.mean())
        return fixed
    part = examples if isinstance(examples, PartOfSplit) else None
    whole = part.whole if part else Whole(split, examples, run.output_dir / run_layout.FEATURES)
    trains = split in run.splits.get(TRAIN, ())
    limits = training_limits(run) if trains else Limits(data.max_seq_length, data.long_text)

    def build() -> Features:
        describe.log_writing(len(whole.examples))
        return family.features(whole.examples, run.weights.tokenizer, limits)

    key = _cache_key(run, whole.split, part.whole.digest if part else run.digest(split), limits)
    columns, cached = cache.load_or_build(whole.features_dir, key, family.targets, build, writes=run.machine.is_chief)
    columns = columns.taken(part.numbers) if part else columns
    columns = together(columns, family) if trains else columns
    _describe(run, split, columns, data.max_seq_length)
    log.info(
        "%s: %d examples%s, %.1f tokens on average, %d%s truncated to %d%s",
        *(split, columns.examples, "" if len(columns) == columns.examples else f" in {len(columns)} rows"),
        *(columns.lengths.mean(), columns.truncated),
        *(f" of all {len(whole.examples)}" if part else "", data.max_seq_length, " (from the cache)" if cached else ""),
    )
    _say_truncated(run, split, columns.truncated / max(len(whole.examples) if part else columns.examples, 1))
    _say_unknown(split, columns, run.vocabulary)
    if trains:
        _say_left_out(split, examples, columns)
    return columns


def _cache_key(run: Run, split: str, examples: str, limits: Limits) -> cache.CacheKey:
    family = run.task.family
    return cache.CacheKey(
        task=run.task.name,
        split=split,
        labels=family.labels,
        kind=family.kind,
        examples=examples,
        vocabulary=run.vocabulary.fingerprint,
        lower_case=run.spec.data.do_lower_case,
        max_seq_length=limits.max_seq_length,
        long_text=limits.long_text,
        of_family={name: value for name, value in family.record().items() if name not in ("labels", "kind")},
    )


def training_limits(run: Run) -> Limits:
    data, family = run.spec.data, run.task.family
    truncates = data.long_text == WINDOWS and not (family.trains_on_windows or family.trains_together)
    return Limits(data.max_seq_length, TRUNCATE if truncates else data.long_text)


def together(columns: Features, family: Family) -> Features:
    """Returns the rows with the windows of a text in one batch, if the family's loss is of a whole text."""
    unites = family.trains_together and columns.example_ids is not None
    return dataclasses.replace(columns, together=True) if unites else columns


def _describe(run: Run, split: str, columns: Features, longest: int) -> None:
    lines = describe.examples_lines(run.examples[split], columns, run.vocabulary, max_seq_length=longest)
    for line in lines:
        published.info("%s", line)
    if run.machine.is_chief:
        describe.keep_examples(run.results_dir, split, lines)


def _say_truncated(run: Run, split: str, share: float) -> None:
    longest = run.spec.data.max_seq_length
    if share > MANY_TRUNCATED:
        others = " or ".join(rule for rule in (WINDOWS, HEAD_TAIL) if rule != run.spec.data.long_text)
        raised = "raise it, or " if longest < run.config.max_position_embeddings else ""
        remedy = f"{raised}add --long_text={others} (docs/tasks.md)"
        log.warning("%s: %.0f %% of the examples lose text at --max_seq_length=%d; %s", split, 100 * share, longest, remedy)


def _say_unknown(split: str, columns: Features, vocabulary: Vocabulary) -> None:
    unknown = float(np.mean(columns.token_ids == vocabulary.unk_id))
    if unknown > MANY_UNKNOWN:
        log.warning("%s: %s", split, UNKNOWN.format(100 * unknown))


def _say_left_out(split: str, examples: Sequence[Example], columns: Features) -> None:
    """Warns about examples without anything to learn; DataError if all are."""
    left_out = columns.weightless
    if len(left_out) == columns.examples:
        raise DataError("no example can be trained on: no row contains its target", split)
    if len(left_out):
        names = ", ".join(examples[number].guid for number in left_out[:_NAMED]) + (", ..." if len(left_out) > _NAMED else "")
        log.warning(
            "%s: %d of %d examples are not trained on, since no row contains their target: %s",
            split,
            len(left_out),
            columns.examples,
            names,
        )


def find_metric(train: TrainSettings, task: Task) -> str | None:
    """Result that selects the best checkpoint, such as eval_accuracy; None without evaluation during training."""
    if not train.eval_every_n_steps:
        for flag in setting_names(TrainSettings, needs_evaluations=True):
            if getattr(train, flag):
                raise FlagError(f"--{flag}={getattr(train, flag)} needs evaluations: give --eval_every_n_steps as well")
        return None
    name = train.best_metric or task.family.metrics[0]
    if name not in (*task.family.metrics, _LOSS):
        raise FlagError(f"--best_metric: {unknown_name('metric', name, (*task.family.metrics, _LOSS))}")
    return f"eval_{name}"


def find_target(train: TrainSettings, task: Task) -> Target | None:
    """Parses --target_metric; None if not set; FlagError if the task lacks the metric."""
    text = train.target_metric
    if text is None:
        if train.stop_at_target:
            raise FlagError("--stop_at_target: needs --target_metric, such as accuracy:0.8")
        return None
    from bert_tf.estimator.evaluations import Target

    name, _, number = text.partition(":")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise FlagError(f"--target_metric={text}: write a metric and a number, as accuracy:0.8 or loss:0.4")
    if name not in (*task.family.metrics, _LOSS):
        raise FlagError(f"--target_metric: {unknown_name('metric', name, (*task.family.metrics, _LOSS))}")
    return Target(f"eval_{name}", value)


def find_loss_options(train: TrainSettings, task: Task) -> MakeLossOptions:
    """Returns a function from features to loss options; FlagError unless weights are positive, one per label."""
    taken = heads.make_head(task.family.head).loss_options
    for flag, value in (("class_weights", train.class_weights), ("label_smoothing", train.label_smoothing)):
        if value and flag not in taken:
            raise FlagError(f"--{flag}={value}: not for {task.name}, whose kind is {task.family.kind}")
    if train.class_weights == _BALANCED:
        return lambda features: LossOptions(task.family.class_weights(features), train.label_smoothing)
    options = LossOptions(_listed(train.class_weights, task), train.label_smoothing)
    return lambda _: options


def _listed(text: str | None, task: Task) -> tuple[float, ...]:
    if not text:
        return ()
    try:
        weights = tuple(float(part) for part in text.split(","))
    except ValueError:
        weights = ()
    if len(weights) != len(task.family.labels) or not all(0.0 < weight < float("inf") for weight in weights):
        raise FlagError(
            f"--class_weights={text}: give {_BALANCED}, or {len(task.family.labels)} positive numbers with commas,"
            f" one for each of {', '.join(task.family.labels)}"
        )
    return weights

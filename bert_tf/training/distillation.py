"""A job's teacher: its outputs for all rows, computed once and kept on disk, and what a student learns from them."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf import run_layout
from bert_tf.batch import inputs
from bert_tf.batch.job import Columns, ModelOverrides
from bert_tf.batch.trained import Trained
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.errors import DataError, FlagError, TrainingError
from bert_tf.estimator import run_folder
from bert_tf.estimator.failures import readable_errors
from bert_tf.estimator.forward import Forward
from bert_tf.estimator.model_fn import Model
from bert_tf.features.columns import Array, Features
from bert_tf.fields import Field
from bert_tf.head_spec import CLASSIFICATION, MULTI_LABEL, REGRESSION
from bert_tf.io import atomic, documents, progress
from bert_tf.io.log_form import log
from bert_tf.modeling.heads import registry as heads
from bert_tf.modeling.heads.base import Head
from bert_tf.modeling.heads.distillation import LABELLED, RELATED, STATES, Lesson, Observed, Taught, observed
from bert_tf.profiling.timing.wall_clock import TEACHER, WALL
from bert_tf.tasks.base import DEV, Example, Family
from bert_tf.tasks.evaluation import summarize
from bert_tf.tasks.sentence.example import SentenceExample
from bert_tf.training import sources, speed
from bert_tf.training.fine_tune_config import FineTuneConfig
from bert_tf.training.job import UNLABELLED, Job, features
from bert_tf.training.recipes import flags
from bert_tf.training.settings import FEW_TEXTS, RECOMBINED

_RECIPE: Mapping[str, Any] = {"train_batch_size": 8, "num_train_epochs": 4.0}  # with recombined pairs (docs/distillation.md)
_JUDGES_PAIRS = (CLASSIFICATION, MULTI_LABEL, REGRESSION)
_CHUNK = 1024  # examples computed between writes to disk
_DONE = "examples.json"  # the number of finished ones


def find_teacher(settings: FineTuneConfig, environment: Mapping[str, str]) -> Trained:
    """Returns the teacher without its decision rule: the student starts from its head, which has no temperatures."""
    asked = settings.distillation
    return sources.find(asked.teacher, ModelOverrides(), environment=environment, task=settings.data.task_name).undecided


def with_recombined(settings: FineTuneConfig, family: Family, examples: Sequence[Example]) -> FineTuneConfig:
    """Decides --recombine, by the number of training examples, and says what few of them cost."""
    asked = settings.distillation
    are_pairs = family.kind in _JUDGES_PAIRS and len(examples[0].texts) == 2
    if asked.recombine and not are_pairs:
        raise FlagError(f"--recombine={asked.recombine}: is for tasks on pairs of texts; add other texts by --unlabelled")
    few = len(examples) < FEW_TEXTS and not asked.unlabelled
    count = (RECOMBINED if few and are_pairs else 0) if asked.recombine is None else asked.recombine
    chosen = {
        name: value for name, value in {"recombine": count, **(_RECIPE if count else {})}.items() if name not in settings.given
    }
    if settings.train.num_train_steps:
        chosen.pop("num_train_epochs", None)
    if count:
        log.info("the student also learns from %d pairs of the training texts: %s", count * len(examples), flags(chosen))
    elif few:
        log.warning(
            "%d texts are few: a student may keep only nine tenths of its teacher's score; add texts without labels"
            " (--unlabelled=FILE)",
            len(examples),
        )
    return settings.replaced(chosen)


def more_examples(settings: FineTuneConfig, teacher: Trained, examples: Sequence[Example]) -> list[Any]:
    """Returns the examples without labels: those of --unlabelled, as `predict` would read them, and recombined pairs."""
    path, count = settings.distillation.unlabelled, settings.distillation.recombine or 0
    found: list[Any] = []
    if path:
        reads = inputs.inputs(teacher, Columns(), task_name=None, skip_bad_rows=False)
        found = [example for chunk in reads.chunks(path) for example in chunk]
        if not found:
            raise DataError("no texts", path)
    return [*found, *(recombined(examples, count, settings.train.seed) if count else ())]


def recombined(examples: Sequence[Example], count: int, seed: int) -> Iterator[SentenceExample]:
    """Yields `count` pairs for each pair of texts: the pair swapped, then texts of any pairs, drawn at random.

    Few pairs are learned by heart; other combinations show what the teacher looks at, and cost no new texts.
    """
    texts = [text for example in examples for text in example.texts]
    drawn = np.random.default_rng(seed).integers(len(texts), size=((count - 1) * len(examples), 2)).tolist()
    pairs = [*(example.texts[::-1] for example in examples), *((texts[first], texts[second]) for first, second in drawn)]
    for number, (first, second) in enumerate(pairs):
        yield SentenceExample(f"recombined-{number}", first, second)


def problems(job: Job, teacher: Trained) -> Iterator[str]:
    """Yields the incompatibilities of teacher and student."""
    if teacher.config.num_hidden_layers < 2:
        yield f"{teacher.prefix}: a teacher has at least 2 layers, this has {teacher.config.num_hidden_layers}"
    if teacher.vocabulary.fingerprint != job.vocabulary.fingerprint:
        yield f"{job.source.vocabulary}: not the vocabulary of the teacher in {teacher.folder}; they must share one"
    if job.machine.plan.cluster:
        yield "distill runs on one machine: leave out the settings of several (TF_CONFIG)"
    yield from run_folder.misfits(teacher.folder, job.task.family.record())


@WALL.span(TEACHER)
def taught(job: Job, teacher: Trained, columns: Features) -> tuple[Features, Callable[[Head], Head]]:
    """Returns training rows with the teacher's outputs, and a function that makes a head learn from them.

    Evaluates the teacher on the dev splits, for the page.
    """
    columns = _with(columns, LABELLED, np.ones(len(columns), np.float32))
    if UNLABELLED in job.examples:
        more = features(job, UNLABELLED)
        columns = columns.followed_by(_with(more, LABELLED, np.zeros(len(more), np.float32)))
    fields = [field.sized(teacher.config.hidden_size) for field in Observed(heads.of(teacher.head)).outputs]
    folder = job.output_dir / run_layout.FEATURES / f"teacher-{_key(teacher, columns)}"
    with contextlib.closing(_Outputs(job, teacher, folder, fields)) as outputs:
        found = outputs.of(columns)
        if not (job.output_dir / run_layout.TEACHER).exists():
            outputs.evaluate()
    for field in fields:
        columns = _with(columns, observed(field, teacher.config.hidden_size), found[field.name])
    return columns, functools.partial(Taught, lesson=_lesson(job, teacher, found[STATES.name]))


class _Outputs:
    """The teacher's outputs on disk; its graph is built if some are missing. Must be closed."""

    def __init__(self, job: Job, teacher: Trained, folder: Path, fields: list[Field]) -> None:
        self._job, self._teacher, self._folder, self._fields = job, teacher, folder, fields

    @functools.cached_property
    def _forward(self) -> Forward:
        job, teacher = self._job, self._teacher
        execution = speed.execution(job.settings.speed, job.machine)
        model = Model(
            teacher.config, teacher.head, execution=execution, around=Observed, max_seq_length=job.settings.data.max_seq_length
        )
        forward = Forward(model, job.machine)
        forward.load(teacher.prefix)
        return forward

    def _computed(self, columns: Features) -> Mapping[str, Array]:
        batching = speed.eval_batching(
            self._job.settings.speed, self._job.settings.data.max_seq_length, self._teacher.config, self._job.machine
        )
        return self._forward.outputs(columns, batching=batching)

    def of(self, columns: Features) -> dict[str, Array]:
        """Maps the outputs for all rows, after computing missing ones."""
        with readable_errors(str(self._folder)):
            self._folder.mkdir(parents=True, exist_ok=True)
            shapes = {field.name: columns.shape(field) for field in self._fields}
            done = _done(self._folder)
            arrays = _opened(self._folder, shapes) if done else None
            if arrays is None:
                done, arrays = 0, {name: _made(self._folder / f"{name}.npy", shape) for name, shape in shapes.items()}
            if done < columns.examples:
                self._compute(columns, arrays, done)
        return arrays

    def _compute(self, columns: Features, arrays: Mapping[str, Any], done: int) -> None:
        total, size = columns.examples, sum(array.nbytes for array in arrays.values())
        log.info(
            "the teacher's outputs: %d of %d examples left to compute, %.0f MB in all, in %s",
            *(total - done, total, size / 1e6, self._folder),
        )
        for first in progress.bar(range(done, total, _CHUNK), desc="teacher", unit="chunk"):
            numbers = np.arange(first, min(first + _CHUNK, total))
            part = columns.taken(numbers)
            found = self._computed(part)
            rows = columns.rows_of_examples(numbers)
            for field in self._fields:
                values = found[field.name]
                if not np.all(np.isfinite(values.astype(np.float16))):
                    raise TrainingError(f"{self._teacher.prefix}: its outputs are outside the range of float16, or NaN")
                arrays[field.name][columns.places(field.axis, rows)] = values
                arrays[field.name].flush()  # before the file below counts them
            atomic.write_text(self._folder / _DONE, documents.to_json({"examples": int(numbers[-1]) + 1}))

    def evaluate(self) -> None:
        """Writes the teacher's results for the page."""
        job, family = self._job, self._job.task.family
        evaluations = {}
        for split in job.splits.get(DEV, ()):
            columns, examples = features(job, split), job.examples[split]
            evaluations[split] = family.evaluation(family.predictions(self._computed(columns), columns, examples), examples)
        metrics = summarize(evaluations) if evaluations else {}
        student = dataclasses.replace(job.weights, given_head=family.head)
        said = {"teacher": {**_sizes(self._teacher), "metrics": metrics}, "student": _sizes(student)}
        atomic.write_text(job.output_dir / run_layout.TEACHER, documents.to_json(said, indent=1) + "\n")

    def close(self) -> None:
        if "_forward" in self.__dict__:
            self._forward.close()


def _sizes(model: Trained) -> dict[str, Any]:
    return {
        "checkpoint": model.prefix,
        "layers": model.config.num_hidden_layers,
        "hidden_size": model.config.hidden_size,
        "weight_bytes": model.weight_bytes,
    }


def _done(folder: Path) -> int:
    try:
        return int(documents.parse_json((folder / _DONE).read_text())["examples"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _opened(folder: Path, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Any] | None:
    """Arrays of an earlier call; None if files are missing or damaged."""
    try:
        arrays = {name: np.lib.format.open_memmap(folder / f"{name}.npy", "r+") for name in shapes}
    except (OSError, ValueError):
        return None
    return arrays if {name: array.shape for name, array in arrays.items()} == shapes else None


def _made(path: Path, shape: tuple[int, ...]) -> Any:
    array = np.lib.format.open_memmap(path, "w+", np.float16, shape)
    with path.open("r+b") as file:  # here a full disk raises an error; on writing a mapped page it kills the process
        os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    return array


def _with(columns: Features, field: Field, values: Array) -> Features:
    return dataclasses.replace(columns, targets={**columns.targets, field.name: values}, fields=(*columns.fields, field))


def _key(teacher: Trained, columns: Features) -> str:
    digest = hashlib.sha256(teacher.digest.encode())
    for values in (columns.token_ids, columns.lengths, columns.first_lengths):
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()[:16]


def _lesson(job: Job, teacher: Trained, states: Array) -> Lesson:
    asked = job.settings.distillation
    some = states[:: max(len(states) // 10_000, 1)].astype(np.float64)
    projections = {}
    if asked.relation_weight:
        reader = CheckpointReader(teacher.prefix)
        scope = f"bert/encoder/layer_{teacher.config.num_hidden_layers - 1}/attention/self"
        for name in RELATED:
            kernel, bias = (np.asarray(reader[f"{scope}/{name}/{part}"], np.float32) for part in ("kernel", "bias"))
            projections[name] = (kernel, bias)
    return Lesson(
        asked.distill_temperature,
        asked.output_weight,
        asked.label_weight,
        asked.state_weight,
        asked.relation_weight,
        float(np.mean(np.sum(np.square(some), axis=-1))),
        projections,
    )

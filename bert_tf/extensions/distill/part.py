"""A run's teacher: its outputs for all rows, computed once and kept on disk, and what a student learns from them."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from bert_tf import run_layout
from bert_tf.batch import inputs
from bert_tf.batch.job import Columns, ModelOverrides
from bert_tf.batch.trained import Trained, refuse_what_is_no_number
from bert_tf.checkpoints.reader import model_reader
from bert_tf.errors import DataError, FlagError, TrainingError
from bert_tf.estimator import run_folder
from bert_tf.estimator.failures import readable_errors
from bert_tf.estimator.forward import Forward
from bert_tf.estimator.model_fn import Model
from bert_tf.extensions.distill import FEW_TEXTS, FILE, RECIPE, RECIPE_OF_PAIRS, RECOMBINED, TEACHER, DistillSettings
from bert_tf.extensions.distill.head import LABELLED, RELATED, STATES, Lesson, Observed, Taught, observed
from bert_tf.features import cache
from bert_tf.features.columns import Array, Features, TrainingRows
from bert_tf.fields import Field
from bert_tf.head_spec import CLASSIFICATION, MULTI_LABEL, REGRESSION
from bert_tf.io import atomic, documents, progress
from bert_tf.io.log_form import log
from bert_tf.modeling.heads import registry as heads
from bert_tf.modeling.heads.base import Head
from bert_tf.profiling.wall_clock import WALL
from bert_tf.settings import setting_names, values_of
from bert_tf.tasks.base import DEV, Example, Family
from bert_tf.tasks.evaluation import summarize
from bert_tf.tasks.sentence.rows import SentenceExample
from bert_tf.training import sources, speed
from bert_tf.training.part import Part
from bert_tf.training.results import ROWS
from bert_tf.training.run import Run, features, together
from bert_tf.training.run_spec import RunSpec
from bert_tf.training.settings import ModelSettings

_JUDGES_PAIRS = (CLASSIFICATION, MULTI_LABEL, REGRESSION)
UNLABELLED = "unlabelled"  # name of the rows without labels

_OF_TEXTS = "unlabelled_sha256"  # in the record
_CHUNK = 1024  # examples computed between writes to disk
_DONE = "examples.json"  # the number of finished ones


class Distillation(Part):
    """Trains a student of `settings.teacher`; without training it does nothing."""

    def __init__(self, settings: DistillSettings) -> None:
        super().__init__(settings)
        self.teacher: Any = None  # a Trained in training
        self._from_layers = True  # of the teacher
        self._skips_bad_rows = False
        self._texts: Sequence[Any] = ()  # of --unlabelled
        self._lesson: Any = None  # a Lesson once there are rows

    def complete(self, config: RunSpec, environment: Mapping[str, str]) -> RunSpec:
        """The student starts from the teacher's head, which has no decision rule."""
        task = config.data.task_name
        trained = sources.find(self.settings.teacher, ModelOverrides(), environment=environment, task=task)
        self.teacher, self.labels = trained.undecided, trained.record.get("labels")
        self._from_layers = "init_checkpoint" not in config.given
        self._skips_bad_rows = config.of_task.custom.skip_bad_rows
        return config.replaced({"init_checkpoint": config.model.init_checkpoint or self.teacher.prefix})

    def recipe(self, family: Family, examples: Sequence[Example]) -> dict[str, float | str]:
        count = pairs_for_each_row(self.settings, family, examples)
        of_pairs = {**RECIPE_OF_PAIRS, "recombine": count} if count else {}
        return {**family.usual_settings, **RECIPE, **of_pairs}

    def layers(self, count: int) -> tuple[int, ...]:
        numbers: tuple[int, ...] = self.settings.layers(count, self.teacher.config.kind_of_layer) if self._from_layers else ()
        return numbers

    def further_examples(self, examples: Sequence[Example], seed: int) -> dict[str, Sequence[Any]]:
        """Texts without labels: those of --unlabelled, as `predict` would read them, and recombined pairs."""
        path, count = self.settings.unlabelled, self.settings.recombine or 0
        more: list[Any] = []
        if path:
            reads = inputs.inputs(self.teacher, Columns(), task_name=None, skip_bad_rows=self._skips_bad_rows)
            more = [example for chunk in reads.chunks(path) for example in chunk]
            if not more:
                raise DataError("no texts", path)
        self._texts = tuple(more)
        if count:
            log.info("the student also learns from %d pairs of the training texts", count * len(examples))
            more += recombined(examples, count, seed)
        elif len(examples) < FEW_TEXTS and not path:
            log.warning(
                "%d texts are few: a student may keep only nine tenths of its teacher's score; add texts without labels"
                " (--unlabelled=FILE)",
                len(examples),
            )
        return {UNLABELLED: more} if more else {}

    def check(self, run: Run) -> Iterator[str]:
        teacher = self.teacher
        if teacher is None:
            return
        if teacher.config.num_hidden_layers < 2:
            yield f"{teacher.prefix}: a teacher has at least 2 layers, this has {teacher.config.num_hidden_layers}"
        for model, config in ((teacher.prefix, teacher.config), ("the student", run.config)):
            if self.settings.relation_weight and (config.norm_first or config.layer_groups):
                difference = f"the last layer of {config.model_type} ({model}) is computed otherwise than BERT's"
                yield f"--relation_weight: {difference}; leave it out"
        heads = run.config.num_attention_heads
        if self.settings.relation_weight and teacher.config.hidden_size % heads:
            size = f"the {teacher.config.hidden_size} numbers of a vector of {teacher.prefix}"
            yield f"--relation_weight: {size} cannot be divided among the {heads} heads of the student; leave it out"
        has_states = run.config.num_hidden_layers > 1
        for name in ("state_weight", "relation_weight"):
            if not has_states and getattr(self.settings, name) not in (0.0, getattr(DistillSettings, name)):
                yield f"--{name}: a student of one layer has no token vectors before its last one; leave it out"
        self.dropout = not (has_states and self.settings.compares_states)
        if not any((self.settings.output_weight, self.settings.label_weight, not self.dropout)):
            yield "every weight is 0, so there is nothing to learn: leave out --output_weight, or add --label_weight=1"
        for name in ("class_weights", "label_smoothing"):
            if name in run.spec.given and getattr(run.spec.train, name) and not self.settings.label_weight:
                yield f"--{name}: a student that learns no labels has no use for it; leave it out, or add --label_weight=1"
        if teacher.vocabulary.fingerprint != run.vocabulary.fingerprint:
            yield f"{run.source.vocabulary}: not the vocabulary of the teacher in {teacher.folder}; they must share one"
        if run.machine.plan.cluster:
            yield "distill runs on one machine: leave out the settings of several (TF_CONFIG)"
        yield from run_folder.misfits(teacher.folder, run.task.family.record())

    def recorded(self, run: Run) -> dict[str, Any]:
        """Recombined pairs are left out: they follow from --recombine and the seed, in which runs of a series differ."""
        of_texts = cache.examples_digest(self._texts) if self._texts else None
        earlier = run_folder.trained(run.output_dir).get(_OF_TEXTS)
        if earlier and UNLABELLED in run.examples and earlier == run.digest(UNLABELLED):  # earlier versions recorded the pairs
            of_texts = earlier
        more = {_OF_TEXTS: of_texts} if of_texts else {}
        return {"teacher_sha256": self.teacher.digest, "teacher_layers": list(run.layers), **more}

    def repeated(self, run: Run) -> dict[str, Any]:
        """If the student starts from layers of the teacher, no other checkpoint is named."""
        path = self.settings.unlabelled
        absolute = {"teacher": self.teacher.anchored.prefix, "unlabelled": path and str(Path(path).resolve())}
        own_start = dict.fromkeys(setting_names(ModelSettings) if run.layers else ())
        return {**values_of(self.settings), **absolute, **own_start}

    @WALL.span(TEACHER)
    def rows(self, run: Run, rows: TrainingRows) -> Features:
        """Returns the training rows, and those without labels, with the teacher's outputs.

        Evaluates the teacher on the dev splits, for the page.
        """
        teacher, labelled = self.teacher, cast(Features, rows)  # all tasks with labels are in memory
        columns = _with(labelled, LABELLED, np.ones(len(labelled), np.float32))
        if UNLABELLED in run.examples:
            more = together(features(run, UNLABELLED), run.task.family)
            columns = columns.followed_by(_with(more, LABELLED, np.zeros(len(more), np.float32)))
        fields = [field.sized(teacher.config.hidden_size) for field in Observed(heads.make_head(teacher.head)).outputs]
        folder = run.output_dir / run_layout.FEATURES / f"teacher-{_key(teacher, columns)}"
        with contextlib.closing(_Outputs(run, teacher, folder, fields)) as outputs:
            arrays = outputs.arrays_of(columns)
            dev = {split: run.digest(split) for split in run.splits.get(DEV, ())}
            if not (run.output_dir / FILE).exists() or (dev and dev != _measured_on(run.output_dir / FILE)):
                outputs.evaluate(dev)
        for field in fields:
            columns = _with(columns, observed(field, teacher.config.hidden_size), arrays[field.name])
        self._lesson = _lesson(self.settings, teacher, arrays[STATES.name])
        return columns

    def head(self) -> Callable[[Head], Head] | None:
        return None if self.teacher is None else self._taught

    def _taught(self, head: Head) -> Taught:
        return Taught(head, self._lesson)


def pairs_for_each_row(asked: DistillSettings, family: Family, examples: Sequence[Example]) -> int:
    """--recombine, else decided by the number of training examples."""
    are_pairs = family.kind in _JUDGES_PAIRS and len(examples[0].texts) == 2
    if asked.recombine and not are_pairs:
        raise FlagError(f"--recombine={asked.recombine}: is for tasks on pairs of texts; add other texts by --unlabelled")
    few = len(examples) < FEW_TEXTS and not asked.unlabelled
    return (RECOMBINED if few and are_pairs else 0) if asked.recombine is None else asked.recombine


def recombined(examples: Sequence[Example], count: int, seed: int) -> Iterator[SentenceExample]:
    """Yields `count` pairs for each pair of texts: the pair swapped, then texts of any pairs, drawn at random.

    Few pairs are learned by heart; other combinations show what the teacher looks at, and cost no new texts.
    """
    texts = [text for example in examples for text in example.texts]
    drawn = np.random.default_rng(seed).integers(len(texts), size=((count - 1) * len(examples), 2)).tolist()
    pairs = [*(example.texts[::-1] for example in examples), *((texts[first], texts[second]) for first, second in drawn)]
    for number, (first, second) in enumerate(pairs):
        yield SentenceExample(f"recombined-{number}", first, second)


class _Outputs:
    """The teacher's outputs on disk; its graph is built if some are missing. Must be closed."""

    def __init__(self, run: Run, teacher: Trained, folder: Path, fields: list[Field]) -> None:
        self._run, self._teacher, self._folder, self._fields = run, teacher, folder, fields

    @functools.cached_property
    def _forward(self) -> Forward:
        run, teacher = self._run, self._teacher
        tokens = run.spec.data.max_seq_length
        execution = speed.execution(run.spec.speed, run.machine).for_rows(teacher.config, tokens)
        model = Model(teacher.config, teacher.head, execution=execution, around=Observed, max_seq_length=tokens)
        forward = Forward(model, run.machine)
        forward.load(teacher.prefix)
        return forward

    def _computed(self, columns: Features) -> Mapping[str, Array]:
        batching = speed.eval_batching(
            self._run.spec.speed, self._run.spec.data.max_seq_length, self._teacher.config, self._run.machine
        )
        return self._forward.outputs(columns, batching=batching)

    def arrays_of(self, columns: Features) -> dict[str, Array]:
        """Maps the outputs for all rows, after computing missing ones."""
        with readable_errors(str(self._folder)):
            self._folder.mkdir(parents=True, exist_ok=True)
            shapes = {field.name: columns.shape(field) for field in self._fields}
            done = _examples_done(self._folder)
            arrays = _earlier_arrays(self._folder, shapes) if done else None
            if arrays is None:
                _write_done(self._folder, 0)  # before the arrays: a kill would leave their zeros counted as outputs
                try:
                    done, arrays = 0, {name: _new_array(self._folder / f"{name}.npy", shape) for name, shape in shapes.items()}
                except OSError:  # those that are there may fill the disk
                    shutil.rmtree(self._folder, ignore_errors=True)
                    raise
            if done < columns.examples:
                self._compute(columns, arrays, done)
        return arrays

    def _compute(self, columns: Features, arrays: Mapping[str, Any], done: int) -> None:
        total, size = columns.examples, sum(array.nbytes for array in arrays.values())
        text = "the teacher's outputs: %d of %d examples left to compute, %.0f MB in all, in %s"
        log.info(text, total - done, total, size / 1e6, self._folder)
        for first in progress.bar(range(done, total, _CHUNK), desc="teacher", unit="chunk"):
            numbers = np.arange(first, min(first + _CHUNK, total))
            part = columns.taken(numbers)
            outputs = self._computed(part)
            rows = columns.rows_of_examples(numbers)
            for field in self._fields:
                values = outputs[field.name]
                if not np.all(np.isfinite(values.astype(np.float16))):
                    raise TrainingError(f"{self._teacher.prefix}: its outputs are outside the range of float16, or NaN")
                arrays[field.name][columns.places(field.axis, rows)] = values
                arrays[field.name].flush()  # before the file below counts them
            _write_done(self._folder, int(numbers[-1]) + 1)

    def evaluate(self, dev: Mapping[str, str]) -> None:
        """Writes the teacher's results on splits, which are given with the digests of their rows, for the page."""
        run, family = self._run, self._run.task.family
        evaluations = {}
        for split in dev:
            columns, examples = features(run, split), run.examples[split]
            outputs = self._computed(columns)
            refuse_what_is_no_number(outputs, self._teacher.prefix)
            evaluations[split] = family.evaluation(family.predictions(outputs, columns, examples), examples)
        metrics = summarize(evaluations) if evaluations else {}
        student = dataclasses.replace(run.weights, given_head=family.head)
        comparison = {"teacher": {**_sizes(self._teacher), "metrics": metrics}, "student": _sizes(student), ROWS: dev}
        atomic.write_text(run.output_dir / FILE, documents.to_json(comparison, indent=1) + "\n")

    def close(self) -> None:
        if "_forward" in self.__dict__:
            self._forward.close()


def _measured_on(path: Path) -> Any:
    """Digests of the rows that the teacher's results are of, by split; None if they are unknown."""
    try:
        return documents.parse_json(path.read_text(), has_paths=True)[ROWS]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _sizes(model: Trained) -> dict[str, Any]:
    return {
        "checkpoint": model.prefix,
        "layers": model.config.num_hidden_layers,
        "hidden_size": model.config.hidden_size,
        "weight_bytes": model.weight_bytes,
    }


def _examples_done(folder: Path) -> int:
    try:
        return int(documents.parse_json((folder / _DONE).read_text())["examples"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _write_done(folder: Path, examples: int) -> None:
    atomic.write_text(folder / _DONE, documents.to_json({"examples": examples}))


def _earlier_arrays(folder: Path, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Any] | None:
    """Arrays of an earlier call; None if files are missing or damaged."""
    try:
        arrays = {name: np.lib.format.open_memmap(folder / f"{name}.npy", "r+") for name in shapes}
    except (OSError, ValueError):
        return None
    return arrays if {name: array.shape for name, array in arrays.items()} == shapes else None


def _new_array(path: Path, shape: tuple[int, ...]) -> Any:
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


def _lesson(asked: DistillSettings, teacher: Trained, states: Array) -> Lesson:
    sample = states[:: max(len(states) // 10_000, 1)].astype(np.float64)
    projections = {}
    if asked.relation_weight:
        reader = model_reader(teacher.prefix)
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
        float(np.mean(np.sum(np.square(sample), axis=-1))),
        projections,
    )

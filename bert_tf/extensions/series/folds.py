"""Cross-validation: for each fold of the training split, trains on all others and predicts the fold.

The final model is trained on all rows, in the folder of the series.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import pickle
import signal
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bert_tf import run_layout
from bert_tf.batch import average, loading
from bert_tf.batch.job import ModelOverrides
from bert_tf.batch.session import Predictor
from bert_tf.errors import BertError, DataError, FlagError
from bert_tf.estimator import run_folder
from bert_tf.extension import Driven
from bert_tf.extensions.series import FOLDS, OUT_OF_FOLD, SeriesSettings, driver, table
from bert_tf.extensions.series.driver import Run, Trained
from bert_tf.features.columns import Numbers
from bert_tf.head_spec import CLASSIFICATION, CONTRASTIVE, SIMILARITY, SPAN
from bert_tf.io import atomic, documents, scratch
from bert_tf.io.log_form import log
from bert_tf.profiling.wall_clock import DATA, WALL
from bert_tf.runtime import cluster
from bert_tf.runtime.machine import without_devices
from bert_tf.settings import defaults
from bert_tf.tasks import cells, text_lines
from bert_tf.tasks.base import DEV, TEST, TRAIN, Family, Task, Unopened
from bert_tf.tasks.names import JSONL, TSV
from bert_tf.tasks.predictions import delimited, joined
from bert_tf.tasks.tables import RowError
from bert_tf.training import batch_machine, preparation
from bert_tf.training import results as run_results
from bert_tf.training.checks import check
from bert_tf.training.fine_tune import FineTuned, fine_tune
from bert_tf.training.run_spec import RunSpec, all_rows, undecided
from bert_tf.training.settings import MachineSettings
from bert_tf.training.sources import SAMPLE_NOTE, DataSource, PartialTask, PartOfSplit, Whole, checkpoint_of

FOLD, TRUE_LABEL = "fold", "true_label"  # columns besides those of prediction files

_TITLE = "title"
_NO_FOLDS = defaults(SeriesSettings)
_NOT_OF_FOLDS = {**all_rows(), **undecided()}  # for all rows before they are divided, and for the final model


@dataclasses.dataclass(frozen=True)
class FoldResult:
    """Result of one fold on its own rows."""

    fold: int  # from 1
    folder: str  # of the run, relative to the series
    steps: int
    metrics: Mapping[str, float]  # by name, including eval_loss
    collapsed: str | None  # why nothing was learned; None if it was


class Outcome(NamedTuple):
    done: Trained[FoldResult]
    task: Task
    data: DataSource
    stopped_by: signal.Signals | None  # also of the final model


def drive(config: RunSpec, *, environment: Mapping[str, str], task: Task | None = None) -> Driven:
    """Trains each fold, writes the out-of-fold predictions, and trains the final model; finished folds survive an error."""
    folder = config.output.folder
    outcome = fine_tune_folds(config, environment=environment, task=task)
    results = outcome.done.results
    from bert_tf.extensions.series.runs import FoldRuns  # processes of their own do without

    return Driven(
        FoldRuns(folder.absolute(), results, config, outcome.task, outcome.data.data_dir),
        table.summary(results) if len(results) == config.extensions.series.folds else (),
        len(results),
        f"the runs are in {folder}, the predictions of all rows in {folder / OUT_OF_FOLD}",
        outcome.stopped_by,
    )


def fine_tune_folds(config: RunSpec, *, environment: Mapping[str, str], task: Task | None = None) -> Outcome:
    if not (config.actions.do_train and config.actions.do_eval):
        raise FlagError("--folds trains and evaluates: add --do_train and --do_eval")
    if cluster.read_cluster(environment) is not None:
        raise FlagError("--folds is for one machine")
    resolved_task, data = preparation.find_task(config, task, None, environment)
    settings = config.extensions.series
    with run_folder.writing(config.output.folder):
        _refuse_earlier(config)
        folds = _folds(config, resolved_task, data)
        last = config.replaced({**_NO_FOLDS, "do_eval": _has_dev(resolved_task, data)})
        if not settings.folds_only:
            _check_last(last, environment, task)
        done, outputs = _trained(folds, task, environment)
        if done.stopped_by is not None:
            return Outcome(done, resolved_task, data, done.stopped_by)
        _write_predictions(folds, done.results, outputs)
        if settings.folds_average:
            _evaluate_average(folds, done.results, environment)
        if settings.folds_only or settings.folds_average:
            run_results.write_page(config.output.folder)
            return Outcome(done, resolved_task, data, None)
    log.info("***** Final model, of all rows *****")
    final = fine_tune(last, environment=environment, task=task)
    return Outcome(done, resolved_task, data, final.stopped_by)


def _refuse_earlier(config: RunSpec) -> None:
    """Refuses a folder with another run, and folds beyond the number: they would be averaged and listed with these."""
    driver.warn_of_earlier_default(config, "fold-*")
    count, settings = config.extensions.series.folds, config.extensions.series
    has_folds = (config.output.folder / "fold-1" / run_layout.RECORD).exists()
    if settings.folds_only or settings.folds_average or not (has_folds or config.output.overwrite_output_dir):
        run_folder.refuse_run(config.output.folder, "the folds")
    for path in sorted(config.output.folder.glob(f"fold-*/{run_layout.RECORD}")):
        number = path.parent.name.partition("-")[2]
        if number.isdecimal() and int(number) > count:
            raise FlagError(f"--folds={count}: {path.parent} is of more folds; delete it, or name another --output_dir")


def _check_last(config: RunSpec, environment: Mapping[str, str], task: Task | None) -> None:
    """Reads and checks what follows the folds: its faults would be found after hours."""
    if config.deciding and not config.actions.do_eval:
        raise FlagError(
            "--folds: no dev rows choose the decision rule of the final model: add them (--dev_file, or in --data_dir),"
            " or leave out --calibrate, --threshold, --abstain and --sets"
        )
    check(preparation.prepare(config, without_devices(), environment=environment, task=task))


def _has_dev(task: Task, data: DataSource) -> bool:
    """Whether there are rows to evaluate the final model on."""
    try:
        split, *_ = task.splits(data.folder, DEV)
        return not data.has_command or task.file(data.folder, split).exists()
    except BertError:
        return False


class _Folds(NamedTuple):
    config: RunSpec  # of the series
    task: Task
    data: DataSource
    whole: Whole
    numbers: Sequence[Numbers]  # of each fold's examples

    def runs(self, private: str = "") -> list[Run]:
        """`private` is a folder for the outputs of folds that are trained in processes of their own."""
        return [self._run(fold, private) for fold in range(1, len(self.numbers) + 1)]

    def _run(self, fold: int, private: str) -> Run:
        folder = str(self.config.output.folder / f"fold-{fold}")
        config = self.config.without_predictions.replaced({**_NO_FOLDS, **_NOT_OF_FOLDS, "output_dir": folder})
        rows = f"{len(self.numbers[fold - 1])} of {len(self.whole.examples)} rows"
        alone = functools.partial(
            train_alone, series=self.config, fold=fold, private=private, digest=self.whole.digest, numbers=self.numbers
        )
        title = f"Fold {fold} of {len(self.numbers)}: {rows}"
        return Run(fold, config, title, functools.partial(self.task_of, fold), {"fold": fold}, alone)

    def task_of(self, fold: int) -> PartialTask:
        held_out = self.numbers[fold - 1]
        others = np.setdiff1d(np.arange(len(self.whole.examples)), held_out)
        return PartialTask(
            self.task, self.data, {TRAIN: PartOfSplit(self.whole, others), DEV: PartOfSplit(self.whole, held_out)}
        )


def _whole(config: RunSpec, task: Task, data: DataSource) -> Whole:
    split, *_ = task.splits(data.folder, TRAIN)
    examples = preparation.read_examples(task, data, [split], config)[split]
    return Whole(split, examples, config.output.folder / run_layout.FEATURES)


@WALL.span(DATA)
def _folds(config: RunSpec, task: Task, data: DataSource) -> _Folds:
    whole = _whole(config, task, data)
    examples = whole.examples
    if isinstance(examples, Unopened) or task.family.kind == CONTRASTIVE:
        raise FlagError(f"--folds: the rows of {task.name} have no labels to evaluate a fold on")
    if config.extensions.series.folds_average and task.family.kind == SIMILARITY:
        raise FlagError("--folds_average: vectors of different models cannot be averaged; leave it out")
    groups = _groups(config, task, data, whole.split, examples)
    count = config.extensions.series.folds
    numbers = list(divided(task.family, examples, count, seed=config.train.seed, groups=groups))
    return _Folds(config, task, data, whole, numbers)


def train_alone(
    config: RunSpec,
    *,
    environment: Mapping[str, str],
    series: RunSpec,
    fold: int,
    private: str,
    digest: str,
    numbers: Sequence[Numbers],
) -> FineTuned:
    """Trains a fold of a series in a process of its own, and leaves its outputs in the folder of the series' process.

    Reads the rows again; DataError if their digest is not that of the series.
    """
    task, data = preparation.find_task(series, None, None, environment)
    whole = _whole(series, task, data)
    if whole.digest != digest:
        raise DataError("its rows have changed since the folds began; restore them, or name another --output_dir", whole.split)
    folds = _Folds(series, task, data, whole, numbers)
    done = fine_tune(config, environment=environment, task=folds.task_of(fold))
    if done.stopped_by is None:
        with atomic.readable_errors(_outputs(private, fold)):
            _outputs(private, fold).write_bytes(pickle.dumps(done.outputs[DEV]))
    return done


def _outputs(private: str, fold: int) -> Path:
    return Path(private) / f"fold-{fold}.pickle"


def _trained(folds: _Folds, task: Task | None, environment: Mapping[str, str]) -> tuple[Trained[FoldResult], list[Any]]:
    """Returns results and outputs of the folds. `task` is one in memory, if any."""
    folder = folds.config.output.folder
    slots = driver.slots(folds.config, task, environment)
    if not slots:
        outputs: list[Any] = []
        done = driver.in_turn(folds.runs(), folder, FoldResult, environment, lambda run: outputs.append(run.outputs[DEV]))
        return done, outputs
    with WALL.span(FOLDS), scratch.folder() as private:  # which nobody else can write
        done = driver.on_slots(folds.runs(private), folder, FoldResult, slots, folds.task.name)
        finished = [] if done.stopped_by else done.results
        return done, [pickle.loads(_outputs(private, result.fold).read_bytes()) for result in finished]  # noqa: S301


def _evaluate_average(folds: _Folds, fold_results: Sequence[FoldResult], environment: Mapping[str, str]) -> None:
    """Evaluates and predicts with the mean of the outputs of the folds' models, instead of a final model."""
    config, task, data = folds.config, folds.task, folds.data
    folder, speed = config.output.folder, config.speed
    prefixes = [str(checkpoint_of(folder / fold.folder, environment=environment)) for fold in fold_results]
    models = average.comparable([loading.load(prefix, ModelOverrides(), family=task.family) for prefix in prefixes])
    machine = MachineSettings(precision=speed.precision, native_kernels=speed.native_kernels, devices=config.devices)
    inference = batch_machine.inference(
        machine, config.inference.eval_batch_size, environment=environment, checkpoints=prefixes
    )
    log.info("***** Mean of the outputs of %d folds *****", len(models))
    with contextlib.closing(Predictor(models[0], task.family, average.averaging(models, inference))) as predictor:
        if _has_dev(task, data):
            splits = preparation.read_examples(task, data, task.splits(data.folder, DEV), config)
            evaluations = {
                split: task.family.evaluation(predictor.predictions(examples), examples) for split, examples in splits.items()
            }
            step, note = max(fold.steps for fold in fold_results), SAMPLE_NOTE if data.is_sample else ""
            run_results.write_evaluation(folder, evaluations, step=step, note=note)
        for split in task.splits(data.folder, TEST) if config.actions.do_predict else ():
            examples = preparation.read_examples(task, data, [split], config)[split]
            run_results.write_predictions(folder, task, split, examples, predictor.predictions(examples))
    if config.inference.submission_zip:
        log.info("the files for GLUE's server are in %s", run_results.zip_submissions(folder))


@WALL.span(FOLDS)
def _write_predictions(folds: _Folds, results: Sequence[FoldResult], outputs: Sequence[Any]) -> None:
    """Writes the predictions of all rows, and their metrics together."""
    folder, family, order = folds.config.output.folder, folds.task.family, np.concatenate(folds.numbers)
    ordered, predictions = [folds.whole.examples[number] for number in order], joined(outputs)
    pooled = family.evaluation(predictions, ordered).values
    table.write(folder, results, all_rows={name: value for name, value in pooled.items() if math.isfinite(value)})
    numbers = np.repeat(np.arange(len(folds.numbers)) + 1, [len(of_fold) for of_fold in folds.numbers])
    header, *rows = _rows(family, ordered, predictions, numbers.tolist())
    in_order = (rows[number] for number in np.argsort(order))
    atomic.write_text(folder / OUT_OF_FOLD, delimited(TSV, [header, *in_order]))
    log.info("predictions of %d rows, each by a model that was not trained on it, are in %s", len(order), folder / OUT_OF_FOLD)


def _groups(config: RunSpec, task: Task, data: DataSource, split: str, examples: Sequence[Any]) -> list[str] | None:
    column = config.extensions.series.group_column
    if column is None:
        return None
    path = task.file(data.folder, split)
    if not path.is_file():
        raise FlagError(f"--group_column={column}: {path} is not a file; for rows in memory, give groups to scikit-learn")
    groups = groups_of(task, path, split, column)
    names = []
    for example in examples:
        try:
            names.append(cells.name(groups[example.guid], column))
        except RowError as error:
            problem = f"--group_column={column}: row {example.guid}: {error}; fill it in, or leave the row out"
            raise DataError(problem, path) from error
    return names


def groups_of(task: Task, path: Path, split: str, column: str) -> dict[str, Any]:
    """Returns the value of a column by the id of each usable row of a table, or the `title` of each question's article."""
    source = text_lines.Kept(path)
    groups: dict[str, Any] = {}
    index = None
    for example in task.stream(source, split, lambda _: None):
        columns = source.columns
        if index is None and columns is None:
            if column != _TITLE or not hasattr(example, column):
                raise DataError(f"--group_column={column}: the file is not a table with columns", path)
        elif index is None and columns is not None:
            if column not in columns:
                raise DataError(f"--group_column={column}: no such column; there are {', '.join(columns):.200}", path)
            index = columns.index(column)
        value = getattr(example, column) if index is None else source.row[index]
        if groups.setdefault(example.guid, value) != value:
            raise DataError(f"--group_column={column}: {example.guid!r} is the id of rows of several groups", path)
    return groups


def divided(
    family: Family, examples: Sequence[Any], count: int, *, seed: int, groups: Sequence[Any] | None = None
) -> Iterator[Numbers]:
    """Yields the numbers of each fold's examples; classes are distributed evenly, groups stay together."""
    from sklearn import model_selection

    classes = [example.label if family.kind == CLASSIFICATION else "" for example in examples]
    options = {"n_splits": count, "shuffle": True, "random_state": seed}
    if groups is not None:
        splitter = model_selection.StratifiedGroupKFold(**options)  # without classes: of about equal size
    elif family.kind == CLASSIFICATION:
        splitter = model_selection.StratifiedKFold(**options)
    else:
        splitter = model_selection.KFold(**options)
    if groups is not None and len(set(groups)) < count:
        raise FlagError(f"--folds={count}: there are only {len(set(groups))} groups")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            numbers = [held_out for _, held_out in splitter.split(classes, classes, groups)]
        except ValueError as error:
            raise FlagError(f"--folds={count}: {' '.join(str(error).split())}") from error
    for warning in caught:
        log.warning("--folds=%d: %s", count, warning.message)
    for fold, held_out in enumerate(numbers, start=1):
        if not len(held_out):
            raise FlagError(f"--folds={count}: fold {fold} would have no rows; its groups are too large")
    yield from numbers


def _rows(family: Family, examples: Sequence[Any], predictions: Any, folds: Sequence[int]) -> Iterator[list[str]]:
    """Yields the header and a row for each example: the columns of predictions as JSON lines, which all families have."""
    lines = family.layout(JSONL).rows(examples, predictions).split("\n")[:-1]
    separator = getattr(family, "label_separator", " ")
    for example, line, fold in zip(examples, lines, folds):
        columns = documents.json_value(line)
        if example is examples[0]:
            yield [*columns, FOLD, TRUE_LABEL]
        label = example.label[:1] if family.kind == SPAN else example.label
        yield [*(_cell(value, separator) for value in columns.values()), str(fold), _cell(label, separator)]


def _cell(value: Any, separator: str) -> str:
    if isinstance(value, (list, tuple)) and not any(isinstance(item, (dict, list)) for item in value):
        return separator.join(map(str, value))
    if isinstance(value, (dict, list)):
        return documents.to_json(value, ensure_ascii=False)
    return "" if value is None else str(value)

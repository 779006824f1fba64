"""Evaluate: many checkpoints on labelled examples, in one table."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import html
import itertools
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Union

from bert_tf import extension, extras
from bert_tf.batch import job
from bert_tf.batch.job import LabelledColumns, ModelOverrides, Rules, as_trained
from bert_tf.errors import CheckpointError, DataError, FlagError, OutputError
from bert_tf.head_spec import PRETRAINING
from bert_tf.io import files
from bert_tf.io.log_form import log
from bert_tf.library.keywords import Arguments, Beam, run_pipeline, runner, takes
from bert_tf.operations.command import Call, Command
from bert_tf.settings import MOST_EXAMPLES, group, of_extensions, read_settings, refuse_taken, setting, settings_of, values_of
from bert_tf.tasks.registry import canonical_name, get_task
from bert_tf.tasks.settings import CUSTOM, SKIP
from bert_tf.training.settings import MachineSettings

if TYPE_CHECKING:  # lazy import of TensorFlow: --help stays fast
    from bert_tf.batch.checkpoints import Named
    from bert_tf.batch.trained import Trained
    from bert_tf.extensions.evaluate.evaluation import Dataset
    from bert_tf.extensions.evaluate.results_table import Glue, Row
    from bert_tf.tasks.base import Task

Names = Union[str, "os.PathLike[str]", Iterable[Union[str, "os.PathLike[str]"]]]

INCOMPLETE = 3  # exit status

_OF_COLUMNS = tuple(row.name for row in settings_of(LabelledColumns))
_NO_KEYS = ("task_name", "data_dir", "data", *_OF_COLUMNS, *(row.name for row in settings_of(MachineSettings)))


def refuse_both(file: str | None, data_dir: str | None) -> None:
    if file is not None and data_dir is not None:
        raise FlagError(f"{file} and {data_dir}: a file of examples, and a folder of the task's files; name one of both")


@dataclasses.dataclass(frozen=True)
class TaskEntry:
    """Labelled examples: the dev splits of a task, another split, or a file."""

    name: str = setting(None, "task", required=True)
    data_dir: str | None = setting(None, "folder of the task's files")
    split: str | None = setting(None, "split, if not dev")
    file: str | None = setting(None, "file of labelled examples")
    columns: LabelledColumns = group(LabelledColumns)

    def __post_init__(self) -> None:
        refuse_both(self.file, self.data_dir)

    @staticmethod
    def from_job(value: Any) -> TaskEntry:
        """Reads an entry of `tasks` in a job file."""
        return job.read_entry(TaskEntry, {"name": value} if isinstance(value, str) else value)


@dataclasses.dataclass(frozen=True)
class EvaluateSettings:
    checkpoints: tuple[str, ...] = setting(
        None, "comma-separated: prefixes, folders (their best or newest), FOLDER:all for all steps, patterns", required=True
    )
    task_name: tuple[str, ...] | None = setting(None, "comma-separated tasks, evaluated on their dev splits")
    data_dir: str | None = setting(
        None,
        "folder of the task's files; default: $GLUE_DIR/TASK, data/TASK or the sample",
        refuse_missing=files.refuse_missing_folder,
    )
    data: str | None = setting(
        None,
        f"file of labelled examples of the one task; default for {CUSTOM}: --dev_file of the run",
        refuse_missing=files.refuse_missing,
    )
    columns: LabelledColumns = group(LabelledColumns, **as_trained())
    job: str | None = setting(None, "YAML or JSON job file; flags override it", refuse_missing=files.refuse_missing)
    output_dir: str = setting(None, "folder of results.tsv and results.json", required=True, written=True)
    extensions: Any = group(functools.partial(of_extensions, "evaluating"))
    eval_batch_size: int | None = setting(
        None, "batch size per device; default: by length and GPU memory", lowest=1, highest=MOST_EXAMPLES
    )
    rules: Rules = group(Rules)
    model: ModelOverrides = group(ModelOverrides)
    machine: MachineSettings = group(MachineSettings)
    tasks: tuple[TaskEntry, ...] = ()  # of `task_name`, else of the job file

    @classmethod
    def complete(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Adds the tasks, and the settings of the job file."""
        keys = job.with_job(cls, values, lists={"tasks": TaskEntry.from_job}, without=_NO_KEYS)
        if "job" not in values:
            keys = {**evaluator_of(values).defaults, **keys}
        if "task_name" in values:
            if "data" in values and len(values["task_name"]) > 1:
                raise FlagError("--data is a file of one task; name the files of several in a job file (--job)")
            columns = read_settings(LabelledColumns, {name: values[name] for name in _OF_COLUMNS if name in values})
            data = values.get("data_dir"), None, values.get("data"), columns
            keys["tasks"] = tuple(TaskEntry(name, *data) for name in values["task_name"])
        elif of_columns := [name for name in _OF_COLUMNS if name in values]:
            raise FlagError(f"--{of_columns[0]}: add --task_name; in a job file it is a key of a task")
        elif "data_dir" in values or "data" in values:
            what = "data_dir is the folder" if "data_dir" in values else "data is a file"
            raise FlagError(f"--{what} of a task: add --task_name")
        elif "job" not in values:
            raise FlagError("--task_name is required, or --job=FILE")
        elif "tasks" not in keys:
            raise FlagError(f"{values['job']}: tasks is required")
        return keys


refuse_taken(EvaluateSettings, {name: one.evaluating for name, one in extension.installed().items()})
refuse_taken(EvaluateSettings, {name: one.of_tasks for name, one in extension.installed().items()})


@dataclasses.dataclass(frozen=True)
class Table:
    """Results of checkpoints, one row for each checkpoint and split.

    Attributes:
      rows: of the table, including those of earlier calls with the same folder.
      failed: rows that say why a checkpoint could not be evaluated.
      path: of the table as a file; results.json beside it has the same content.
    """

    rows: Sequence[Row]
    failed: Sequence[Row]
    path: Path

    @property
    def glue(self) -> Glue | None:
        """The GLUE score from the best checkpoint for each task; None if there are fewer than two tasks."""
        from bert_tf.extensions.evaluate import results_table

        return results_table.glue_of(self.rows)

    def __str__(self) -> str:
        """The command's output."""
        from bert_tf.extensions.evaluate import results_table

        return results_table.for_screen(self._all)

    def _repr_html_(self) -> str:
        from bert_tf.extensions.evaluate import results_table

        return "".join(_html(lines) for lines in results_table.cells_for_screen(self.rows)) + "".join(
            f"<p>{html.escape(f'{row.checkpoint}: {row.error}')}</p>" for row in self._all if row.error
        )

    @property
    def _all(self) -> list[Row]:
        return [*self.rows, *(row for row in self.failed if row not in self.rows)]


@takes(EvaluateSettings)
def evaluate(
    checkpoints: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None = None,
    *,
    task_name: Names | None = None,
    output_dir: str | os.PathLike[str] | None = None,
    beam: Arguments = False,
    **settings: Any,
) -> Table:
    """Evaluates many checkpoints in one process and keeps existing rows; as `python -m bert_tf evaluate`.

    Args:
      checkpoints: prefixes, folders (their best or newest checkpoint), FOLDER:all for all steps, or patterns.
      task_name: tasks to evaluate on, by their dev splits.
      output_dir: receives results.tsv and results.json.
      beam: arguments of Apache Beam, to predict in a pipeline; True for none.
      **settings: the command's flags, by name.

    Raises:
      BertError: invalid settings or input; an unusable checkpoint becomes a row of `failed` instead.
    """
    values = {"checkpoints": checkpoints, "task_name": task_name, "output_dir": output_dir, **settings}
    return fill_table(read_settings(EvaluateSettings, values), runner(beam))


def fill_table(settings: EvaluateSettings, beam: Beam | None) -> Table:
    """Evaluates checkpoints and writes the table; a failing checkpoint becomes a row, other errors raise BertError."""
    from bert_tf.batch import checkpoints
    from bert_tf.estimator import run_folder
    from bert_tf.extensions.evaluate import evaluation
    from bert_tf.extensions.evaluate.results_table import TSV_FILE, ResultsTable
    from bert_tf.training import batch_machine

    if beam is not None:
        by_workers: Table = run_pipeline("evaluate", settings, beam)
        return by_workers
    extras.refuse_missing_metrics()
    with run_folder.writing_where_a_run_is([settings.output_dir]):
        evaluator = evaluator_of(values_of(settings))
        named = checkpoints.named([evaluator.checkpoint(name, settings.model) for name in settings.checkpoints])
        by_entry = (datasets_of(entry, named, settings.rules.given(), evaluator) for entry in settings.tasks)
        datasets = list(itertools.chain.from_iterable(by_entry))
        order = [(checkpoint.prefix, dataset.task.name, dataset.split) for checkpoint in named for dataset in datasets]
        table = ResultsTable(settings.output_dir, order)
        prefixes = [checkpoint.prefix for checkpoint in named if not checkpoint.problem]
        inference = batch_machine.inference(
            settings.machine, settings.eval_batch_size, environment=os.environ, checkpoints=prefixes
        )
        evaluation.leave_out_outdated(table, settings.checkpoints, named, datasets)
        log.info("%d checkpoints on %s", len(named), ", ".join(f"{data.task.name} {data.split}" for data in datasets))
        failed = evaluation.evaluate(named, datasets, table, settings.model, inference, load=evaluator.load)
        table.write()
    return Table(table.rows, failed, Path(settings.output_dir) / TSV_FILE)


class Evaluator:
    """How models are found, loaded and given their task: trained ones; see `bert_tf.extension` for others."""

    defaults: ClassVar[Mapping[str, Any]] = {}  # of settings

    def checkpoint(self, name: str, overrides: ModelOverrides) -> str:
        """What `checkpoints.named` takes."""
        from bert_tf.checkpoints import weight_files
        from bert_tf.training import sources

        del overrides
        if os.path.isdir(name) and weight_files.in_folder(name) is not None:
            return str(sources.checkpoint_of(name, environment=os.environ))
        return sources.of_extension(name, environment=os.environ) or name

    def load(self, prefix: str, overrides: ModelOverrides) -> Trained:
        from bert_tf.batch import loading

        return loading.load(prefix, overrides)

    def task(self, entry: TaskEntry, named: Sequence[Named]) -> Task:
        return task_of(entry, named)

    def evaluated(self, task: Task) -> Task:
        """The task with what is measured, for which files are found."""
        return task


def evaluator_of(values: Mapping[str, Any]) -> Evaluator:
    """The evaluator of the extension of which a flag is given, by settings by name."""
    for entry in extension.installed().values():
        if any(values.get(row.name, row.default) != row.default for row in settings_of(entry.evaluating)):
            evaluator: Evaluator = extension.load(entry.evaluator)()
            return evaluator
    return Evaluator()


def datasets_of(entry: TaskEntry, named: Sequence[Named], rules: Mapping[str, Any], evaluator: Evaluator) -> Iterator[Dataset]:
    """Yields the data sets of an entry; BertError if a task, file or label is missing."""
    from bert_tf.batch.inputs import read_labelled
    from bert_tf.extensions.evaluate.evaluation import Dataset
    from bert_tf.tasks.base import DEV
    from bert_tf.tasks.families import with_rules
    from bert_tf.training.sources import SAMPLE_NOTE, find_data

    base = evaluator.task(entry, named)
    task = evaluator.evaluated(base)
    with_rules(task.family, rules)
    if entry.file is not None:
        examples = read_labelled(task, entry.file, entry.split)
        yield _labelled(Dataset(task, entry.file, examples, rules), entry.file)
        return
    data = find_data(base, entry.data_dir, environment=os.environ)
    log.info("%s: data from %s (%s)", task.name, data.folder, data.origin)
    if data.is_sample:
        log.warning("this is the %s", SAMPLE_NOTE)
    for split in [entry.split] if entry.split else task.splits(data.folder, DEV):
        yield _labelled(Dataset(task, split, task.examples(data.folder, split), rules), task.file(data.folder, split))


def _labelled(dataset: Dataset, path: object) -> Dataset:
    if not dataset.examples:
        raise DataError("no examples below the header line", path)
    if dataset.examples[0].label is None:
        raise DataError(f"split {dataset.split} has no labels to evaluate on", path)
    return dataset


def task_of(entry: TaskEntry, named: Sequence[Named]) -> Task:
    from bert_tf.batch.inputs import own_task

    columns = entry.columns.given()
    if canonical_name(entry.name) == CUSTOM:
        record, files_of_run = _first_record(named)
        if not record:
            _refuse_missing(named[0])
        file = entry.file or files_of_run.get("dev_file")
        if file is None:
            raise FlagError(f"{CUSTOM}: no run names a --dev_file; name a file of labelled examples with --data=FILE")
        of_training = {} if entry.file or entry.columns.file_format else {"file_format": record.get("file_format")}
        skip = files_of_run.get(SKIP, False)
        return own_task(record, dataclasses.replace(entry.columns, **of_training), dev_file=file, **{SKIP: skip})
    if columns:
        raise FlagError(f"tasks: {next(iter(columns))} belongs to the task {CUSTOM}; {entry.name} has columns of its own")
    task = get_task(entry.name)
    if task.family.head.kind == PRETRAINING:
        advice = extension.advice("pretrain", "python -m bert_tf pretrain --do_eval, with the flags of the run")
        raise FlagError(f"{task.name}: held-out text is evaluated by {advice}")
    return task


def _refuse_missing(checkpoint: Named) -> None:
    """Reports a missing or damaged model as such, instead of its missing record."""
    from bert_tf.batch import loading

    if checkpoint.problem:
        raise CheckpointError(checkpoint.problem)
    loading.record_of(checkpoint.prefix)
    from bert_tf.checkpoints.reader import CheckpointReader  # imports TensorFlow

    CheckpointReader(checkpoint.prefix)


def _first_record(named: Sequence[Named]) -> tuple[Mapping[str, Any], dict[str, Any]]:
    """Training record of the first checkpoint of a run, and its own files; a damaged one is reported in its row."""
    from bert_tf.batch import loading
    from bert_tf.estimator import run_folder

    for checkpoint in named:
        with contextlib.suppress(CheckpointError, OutputError):
            if "kind" in (record := loading.record_of(checkpoint.prefix)):
                return record, run_folder.own_files(Path(checkpoint.prefix).parent)
    return {}, {}


def _html(lines: Sequence[Sequence[str]]) -> str:
    tags = itertools.chain(["th"], itertools.repeat("td"))
    rows = ("".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in line) for tag, line in zip(tags, lines))
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def _run(call: Call) -> int:
    table = fill_table(call.settings, call.beam)
    sys.stdout.write(str(table))
    if table.glue is not None:
        print(table.glue)
    log.info("the table is in %s", table.path)
    return INCOMPLETE if table.failed else 0


COMMAND = Command(
    "Evaluates many checkpoints on many data sets, in one table (docs/batch_jobs.md).",
    EvaluateSettings,
    _run,
    example="python -m bert_tf evaluate --task_name=MRPC --checkpoints=out/mrpc:all --output_dir=out/eval",
    first=("checkpoints", "task_name", "data_dir", "data", "output_dir"),
    stopped="stopped; the same command skips finished rows",
    pipeline="evaluate",
    reports_to=lambda settings: settings.output_dir,
)

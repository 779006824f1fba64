"""Exports a trained model to a folder for other software."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf import run_layout, versions
from bert_tf.batch.inputs import own_task, read_labelled
from bert_tf.batch.job import LabelledColumns
from bert_tf.batch.trained import Trained
from bert_tf.checkpoints.prefixes import CHECKPOINT_NAME
from bert_tf.errors import DataError, FlagError, OutputError
from bert_tf.estimator import run_folder
from bert_tf.extensions.export.formats import FORMATS, Target
from bert_tf.extensions.export.job import ExportJob, Labelled, readable_errors
from bert_tf.extensions.export.onnx_folder import FILES, RECORD, record_in
from bert_tf.io import atomic, documents, files, lock
from bert_tf.io.log_form import log
from bert_tf.library.keywords import takes
from bert_tf.library.model import Model
from bert_tf.settings import read_settings
from bert_tf.tasks.base import DEV, Task
from bert_tf.tasks.rows_task import RowsTask
from bert_tf.tasks.settings import CUSTOM

_OF_RUNS = (run_layout.RECORD, run_layout.LIST, f"{run_layout.CHECKPOINTS}.index", f"{CHECKPOINT_NAME}.index")
_NEEDED = "labelled examples are required to measure the export"


def write(model: Trained, target: Target, *, find_data: Callable[[Task], str] | None = None) -> Path:
    """Writes a model to a folder, whole or not at all; `find_data` locates the task files that verify the export."""
    row, folder = FORMATS[target.format], _folder(target.output)
    row.require(target.options.precision)
    exported = job_of(model, target, find_data)
    with writing(target, [model]) as temporary:
        row.write(exported, temporary)
        more = row.record(exported, temporary) if row.record else {}
        write_record(temporary, {**record_of(exported, row.name), **more})
    log.info("%s: %s of %s", folder, row.name, model.prefix)
    return folder


def job_of(model: Trained, target: Target, find_data: Callable[[Task], str] | None) -> ExportJob:
    """How a model is exported; DataError for labels that UTF-8 cannot encode: all formats use it."""
    for label in model.task.family.labels:
        try:
            label.encode()
        except UnicodeEncodeError as error:
            raise DataError(f"label {label!a} is not valid Unicode; train with another name", model.prefix) from error
    labelled = functools.partial(labelled_examples, model, target.options.gate_data, find_data)
    return ExportJob(model, model.task, model.step, target.options, labelled)


@contextlib.contextmanager
def writing(target: Target, models: Sequence[Trained]) -> Iterator[Path]:
    """Yields an empty folder that replaces that of the target, unless the block fails."""
    folder = _folder(target.output)
    place = Path(os.path.realpath(folder))  # of a link, beside whose target is written
    atomic.make_folder(place.parent)
    with run_folder.writing_where_a_run_is([place.parent]), lock.claiming(place) as other:
        if other is not None:
            raise OutputError(f"{folder}: {other}; wait until it ends, or name another --output")
        atomic.delete_unfinished(place)
        _refuse_foreign(folder, target, models)
        _refuse_changed(models)
        before = set(folder.rglob("*"))
        with atomic.replacing(folder) as temporary, readable_errors(folder):
            temporary.mkdir()
            yield temporary
            _refuse_foreign(folder, target, models)  # again: it took minutes
            _refuse_changed(models)
            appeared = sorted(path for path in folder.rglob("*") if path not in before)
            if appeared:  # `--overwrite` does not mean these
                raise OutputError(f"{appeared[0]}: appeared during the export; move it away, or name another --output")
        atomic.delete_unfinished(place)


def _refuse_changed(models: Sequence[Trained]) -> None:
    for model in models:
        model.refuse_changed()


def _folder(output: str) -> Path:
    """Rejects a path that cannot be the target of a rename."""
    folder = Path(output)
    if folder.name in ("", ".."):  # as of "."
        folder = Path(os.path.abspath(folder))
    if not folder.name or "\0" in output:
        raise OutputError(f"{output!r}: no folder can be written by this name; name another --output")
    return folder


def write_record(folder: Path, record: Mapping[str, Any]) -> None:
    """Writes the record of a folder, whose other files are there."""
    (folder / RECORD).write_text(documents.to_json({**record, FILES: _contents(folder)}) + "\n", encoding="utf-8")


def _contents(folder: Path) -> dict[str, str]:
    """Digests of files by name, to know what others added or edited."""
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: files.digest(path) for name, path in sorted(paths.items()) if name != RECORD}


def record_of(exported: ExportJob, name: str) -> dict[str, Any]:
    """Metadata of the export in a format; without times and paths, so it is reproducible."""
    return {
        "format": name,
        "precision": exported.options.precision,
        "bert_tf": versions.__version__,
        "task_name": exported.task.name,
        "step": exported.step,
        **exported.family.record(),
        **exported.trained.settings,
    }


def _refuse_foreign(folder: Path, target: Target, models: Sequence[Trained]) -> None:
    """Rejects a folder that is not an export of the same format, or has files that others added or edited."""
    run_layout.refuse_taken_name(folder)
    if not os.path.lexists(folder):
        return
    if not folder.is_dir():
        raise OutputError(f"{folder}: is not a folder; name another --output")
    inside = (path for name in _OF_RUNS for path in folder.rglob(name))  # those of a sweep, seeds or folds are further down
    above = {parent for model in models for parent in Path(model.prefix).resolve().parents}
    if folder.resolve() in above or any(inside):
        raise OutputError(f"{folder}: holds a run or its checkpoints; name another --output")
    if target.overwrite or not any(folder.iterdir()):
        return
    record = record_in(folder)
    if record.get("format") != target.format:
        raise OutputError(
            f"{folder}: holds something other than an export as {target.format}; name another --output, or --overwrite"
        )
    written = record.get(FILES)
    if isinstance(written, dict):
        for name, content in _contents(folder).items():
            if name not in written or written[name] not in (None, content):  # None: of a large file, by an earlier version
                what = "was edited after the export" if name in written else "is not of the export"
                raise OutputError(f"{folder}: {name} {what}; move it away, name another --output, or --overwrite")


def labelled_examples(model: Trained, gate_data: str | None, find_data: Callable[[Task], str] | None) -> Labelled:
    """Examples by split or file; `gate_data` is a folder, a file in the layout of dev, or None for the task's folder."""
    task = model.task
    if gate_data is not None and Path(gate_data).is_file():
        has_own_files = isinstance(task, RowsTask) or task.name == CUSTOM
        reader = own_task(model.record, LabelledColumns(), dev_file=gate_data) if has_own_files else task
        return {gate_data: _labelled(read_labelled(reader, gate_data), gate_data)}
    if gate_data is None:
        if find_data is None or isinstance(task, RowsTask):
            raise DataError(f"{_NEEDED}; name them with --gate_data", task.name)
        gate_data = find_data(task)
    elif not task.reads_folder:
        raise DataError(f"--gate_data of {task.name} is a file of examples with labels, no folder or pattern", gate_data)
    log.info("%s: measured on %s", task.name, f"the files in {gate_data}" if task.reads_folder else "--dev_file of the run")
    try:
        splits = task.splits(gate_data, DEV)
    except FlagError as error:  # of a run without dev examples
        raise DataError(f"{_NEEDED}; name them with --gate_data", task.name) from error
    return {split: _labelled(task.examples(gate_data, split), split) for split in splits}


def _labelled(examples: Sequence[Any], name: str) -> Sequence[Any]:
    if not examples or getattr(examples[0], "label", None) is None:
        raise DataError("no labelled examples to measure on", name)
    return examples


class Exporter:
    """See `Model.session`."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @takes(Target)
    def export(self, format: str, output: str | os.PathLike[str], **options: Any) -> Path:  # noqa: A002  (as the flag)
        """See `Model.export`."""
        model, target = self._model, read_settings(Target, {"format": format, "output": output, **options})
        FORMATS[target.format].refuse_idle(target.options)
        return write(model.trained.with_task(model.task), target, find_data=model.find_data)

    def close(self) -> None:
        """Holds nothing."""

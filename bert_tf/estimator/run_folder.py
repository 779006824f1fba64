"""The record of a run in its output folder: the settings that determined it, and whether a new command continues it."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf import run_layout
from bert_tf.config import BertConfig
from bert_tf.errors import FlagError, OutputError
from bert_tf.io import atomic, documents, files, lock
from bert_tf.io.log_form import log
from bert_tf.run_layout import CHECKPOINTS, RECORD, REPLACED
from bert_tf.run_layout import DETERMINING as DETERMINING
from bert_tf.settings import Setting, checked, setting_names, settings_of
from bert_tf.tasks import families
from bert_tf.tasks.decision import DECISION
from bert_tf.tasks.registry import canonical_name
from bert_tf.tasks.sentence.rows import TEXTS
from bert_tf.tasks.settings import FILES, SKIP, CustomSettings, TaskSettings, lasting_names
from bert_tf.tokenization.vocabulary import Vocabulary

MACHINE, NATIVE = "machine", "native_kernels"  # what computes: affects only rounding
VERSIONS, EARLIER = "versions", "earlier_tensorflow"  # the second: earlier versions that opened the run, oldest first
LEARNED = "learned_sha256"  # digest of the meaning of outputs, see `learned_digest`
COLUMNS = "columns"  # settings of the task: columns of custom tables, and others

SCHEDULE = "schedule"  # examples and steps
STOPPED = "stopped_at"  # in the schedule: the step of an early end
EXTENDED = "extended_at"  # among what determines a run: the steps at which it was extended, see `training.record`
DURATION = {"num_train_steps", "num_train_epochs"}
_REMEDY = "restore it, or train with --overwrite_output_dir"


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_count(value: object) -> bool:
    return type(value) is int and value > 0


def _is_setting(row: Setting, value: object) -> bool:
    with contextlib.suppress(FlagError):
        checked(row, value)
        return True
    return False


# Keys of a record that other commands read, besides settings of tasks, with a check of their values.
_KINDS: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("task_name", "long_text", "vocabulary_sha256", "label_separator"), _is_text),
    **dict.fromkeys((run_layout.POOLING, run_layout.LEFT_OUT), _is_text),
    **dict.fromkeys(
        setting_names(CustomSettings, is_column=True), lambda value: value is None or (_is_text(value) and value != "")
    ),
    run_layout.NORMALIZE: lambda value: isinstance(value, bool),
    "kind": _is_text,
    "has_header": lambda value: value is None or isinstance(value, bool),
    "labels": lambda value: isinstance(value, list) and all(map(_is_text, value)) and len(set(value)) == len(value),
    TEXTS: lambda value: value in (1, 2),
    "max_seq_length": lambda value: isinstance(value, int) and value > 0,
    "do_lower_case": lambda value: isinstance(value, bool),
    "bert_config": lambda value: isinstance(value, dict),
    EXTENDED: lambda value: isinstance(value, list) and all(map(_is_count, value)),
    "ema": lambda value: value is None or type(value) in (int, float),
}


@functools.cache
def read_by_others() -> Mapping[str, Callable[[Any], bool]]:
    """Checks of the settings of a run that other commands read, by name."""
    lasting = lasting_names()
    of_tasks = {row.name: functools.partial(_is_setting, row) for row in settings_of(TaskSettings) if row.name in lasting}
    return {**of_tasks, **_KINDS}


# Differences whose values are too long to be read.
_DIFFER = {
    "train_examples_sha256": "other training rows",
    "dev_examples_sha256": "other dev rows",
    "checkpoint_sha256": "another --init_checkpoint",
    "bert_config": "another configuration of the model",
}
_TASK = ("task_name", "kind")
_TOGETHER = ("task_name", "labels", "kind")  # a task's record has all of them
_MEANING = ("kind", "labels", "do_lower_case")
# Configuration keys that do not affect the outputs of trained weights.
OF_TRAINING_ONLY = ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout_prob", "initializer_range")


@contextlib.contextmanager
def writing(output_dir: str | os.PathLike[str], *, instead: str = "name another --output_dir") -> Iterator[None]:
    """Locks a run's folder and deletes half-written files of killed writers; OutputError if another process writes to it.

    `instead` tells the second writer its alternative to waiting.
    """
    with lock.writing_folder(output_dir, instead=instead):
        with contextlib.suppress(OSError):  # leftovers do no harm
            is_run = (Path(output_dir) / RECORD).is_file()
            inner = [path for path in Path(output_dir).iterdir() if path.is_dir()] if is_run else []
            for directory in (
                *([Path(output_dir)] if is_run else []),
                *(path for path in inner if path.name in run_layout.folders() or _is_task(path.name)),
            ):
                delete_unfinished(directory)
        yield


@contextlib.contextmanager
def writing_where_a_run_is(folders: Iterable[files.StrPath]) -> Iterator[None]:
    """Locks the folders that hold a run, as `writing` does; of its best checkpoint and averages that of the run."""
    with contextlib.ExitStack() as locks:
        for folder in sorted({run_layout.run_of(Path(folder).resolve()) for folder in folders}):
            if os.path.isfile(folder / RECORD):
                locks.enter_context(writing(folder, instead="name an output in another folder"))
        yield


def refuse_lost(folder: str | os.PathLike[str]) -> None:
    """Raises OutputError if a folder that this process writes to was deleted or renamed: another run may be in its place."""
    if lock.is_lost(folder):
        raise OutputError(
            f"{folder}: was deleted or renamed during the run; the same command starts over, and --output_dir=NEW continues a"
            " renamed one"
        )


def delete_unfinished(folder: Path) -> None:
    """Deletes half-written files of killed processes or failed saves; the caller must be the folder's only writer."""
    for rest in [path for path in folder.glob("*") if run_layout.UNFINISHED.fullmatch(path.name)]:
        shutil.rmtree(rest) if rest.is_dir() else rest.unlink()


def refuse_run(folder: Path, series: str) -> None:
    """Raises OutputError if a folder for several runs is that of one, which all commands would take for them."""
    if (folder / RECORD).exists():
        raise OutputError(f"--output_dir={folder}: holds a run; name another folder for {series}")


def load_record(output_dir: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Returns the folder's record, None without one; raises OutputError if it is damaged."""
    path = Path(output_dir) / RECORD
    try:
        record: dict[str, Any] = documents.parse_json(files.read_text(path), has_paths=True)
        values = {**record.get(COLUMNS, {}), **record[DETERMINING]}
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OutputError(f"{path}: cannot read the record of a run: {files.reason(error)}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise OutputError(f"{path}: unreadable record of a run; {_REMEDY}") from error
    refuse_damaged(path, values, record.get(LEARNED), remedy=_REMEDY)
    counts = record.get(SCHEDULE, {})
    if not (isinstance(counts, dict) and all(map(_is_count, counts.values()))):
        raise OutputError(f"{path}: damaged record of a run: {SCHEDULE} is {str(counts)[:100]!r}; {_REMEDY}")
    return record


def refuse_damaged(path: Path, values: Mapping[str, Any], learned_sha256: object, *, remedy: str) -> None:
    """Raises OutputError if settings from a file that describes a trained model are unusable; `remedy` says what to do."""
    missing = [name for name in _TOGETHER if name not in values]
    if missing and "kind" in values:
        raise OutputError(f"{path}: damaged record of a run: {', '.join(missing)} missing; {remedy}")
    for name, is_usable in read_by_others().items():
        if name in values and not is_usable(values[name]):
            raise OutputError(f"{path}: damaged record of a run: {name} is {str(values[name])[:100]!r}; {remedy}")
    if learned_sha256 not in (None, learned_digest(values)):
        raise OutputError(f"{path}: kind, labels or do_lower_case differ from the training; {remedy}")
    if "kind" not in values:
        return
    if not families.is_known(values["kind"]):
        kind = str(values["kind"])[:100]
        raise OutputError(f"{path}: no family of the kind {kind!r} is known here; register it (tasks.families.register) first")
    try:
        families.of_record({**values, DECISION: {}})  # decisions are checked by their readers
    except KeyError as error:
        raise OutputError(f"{path}: damaged record of a run: {error} missing; {remedy}") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise OutputError(f"{path}: damaged record of a run: {error!r:.100}; {remedy}") from error


def learned_digest(values: Mapping[str, Any]) -> str:
    """Returns the sha256 of the meaning of outputs, which weights do not record: labels in their order, and others."""
    return hashlib.sha256(documents.to_json([values.get(name) for name in _MEANING]).encode()).hexdigest()


def trained(output_dir: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns the settings and columns that the folder's run was trained with; empty without a record."""
    record = load_record(output_dir) or {DETERMINING: {}}
    return {**record.get(COLUMNS, {}), **record[DETERMINING]}


def own_files(output_dir: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns the files of one's own, as dev_file, that the folder's run was trained and evaluated with, and how."""
    flags = run_layout.recorded_flags(load_record(output_dir) or {})
    paths = {name: flags[name] for name in FILES if name in flags}
    return {**paths, SKIP: flags.get(SKIP) == str(True)} if paths else {}


def misfits(output_dir: str | os.PathLike[str], requested: Mapping[str, Any]) -> list[str]:
    """Returns one line for each setting in `requested`, by record keys, that differs from the run's record."""
    record = load_record(output_dir)
    if record is None:
        return []
    earlier = {key: record[DETERMINING].get(key) for key in requested}
    if "kind" in requested and earlier["kind"] not in (None, requested["kind"]):
        task = record[DETERMINING]["task_name"]
        return [
            f"{output_dir}: trained on {task} ({earlier['kind']}), not on a task of the kind {requested['kind']};"
            " name that task"
        ]
    return [f"{output_dir}: {difference}; use the run as it was trained" for difference in _differences(earlier, requested)]


def misfits_of_parts(folder: str | os.PathLike[str], config: BertConfig, vocabulary: Vocabulary) -> list[str]:
    """Returns one line for each part that the folder's run was not trained with; empty without a record."""
    record = trained(folder)
    mismatch = f"differs from the one recorded in {RECORD}; restore the file used in training"
    problems = []
    if record.get("vocabulary_sha256", vocabulary.fingerprint) != vocabulary.fingerprint:
        problems.append(f"{folder}: the vocabulary ({len(vocabulary)} pieces) {mismatch}")
    current, recorded = (
        {name: value for name, value in values.items() if name not in OF_TRAINING_ONLY}
        for values in (config.as_dict(), record.get("bert_config", {}))
    )
    differences = _differences({**current, **recorded}, current)
    if differences:
        problems.append(f"{folder}: the configuration ({'; '.join(differences)}) {mismatch}")
    return problems


def claim(output_dir: str | os.PathLike[str], record: Mapping[str, Any], *, overwrite: bool) -> None:
    """Makes the folder this run's: new, or the same run again, which continues even with `overwrite`.

    The record holds under `training` what determines the run. Raises OutputError, naming all differences, if the folder
    holds another run and `overwrite` is false; of another task it names only the task.
    """
    folder, earlier = atomic.make_folder(output_dir), None
    for name in (*run_layout.folders(), run_layout.CORPUS, run_layout.METRICS):
        atomic.refuse_link_out(folder / name)
    try:
        earlier = load_record(folder)
        _refuse_another_run(folder, earlier, record)
        kept = {key: earlier[key] for key in (REPLACED, SCHEDULE) if earlier and key in earlier}
        record = {**_continued(folder, earlier, record), **kept}
    except OutputError:
        if not overwrite:
            raise
        record = {**record, **_replaced(folder, earlier)}
        with atomic.readable_errors(folder):
            _delete_run(folder)
    atomic.write_text(folder / RECORD, documents.to_json(record, indent=2, sort_keys=True) + "\n")


def add_to_record(output_dir: str | os.PathLike[str], values: Mapping[str, Any]) -> None:
    """Adds values that do not determine the run to the record of a claimed folder."""
    record = {**(load_record(output_dir) or {}), **values}
    atomic.write_text(Path(output_dir) / RECORD, documents.to_json(record, indent=2, sort_keys=True) + "\n")


def await_claim(output_dir: str | os.PathLike[str], record: Mapping[str, Any], *, patience_s: float = 600.0) -> None:
    """Waits, on a machine that does not write, until the chief has claimed the folder for the same run.

    Until then the folder may hold another run, whose checkpoints are about to be deleted. Raises OutputError if the
    chief does not come, has other settings or another number of GPUs, or writes to a folder that this machine does not see.
    """
    limit = time.monotonic() + patience_s
    requested = _of_all_machines(documents.json_value(documents.to_json(record)))
    for tries in itertools.count(1):
        earlier = load_record(output_dir)
        differences = [] if earlier is None else _differences(_of_all_machines(earlier), requested)
        if earlier is not None and not differences:
            return
        if time.monotonic() > limit:
            held = "no run" if earlier is None else f"another run ({'; '.join(differences)})"
            raise OutputError(
                f"{output_dir}: holds {held}, and the chief has not started this one within {patience_s:.0f} s;"
                " give all machines the same flags, the same number of GPUs, and a folder that they share"
            )
        if tries == 2:
            log.info("waiting for the chief to start this run in %s", output_dir)
        time.sleep(0.2)


def _of_all_machines(record: Mapping[str, Any]) -> dict[str, Any]:
    """What machines that train together record alike: each counts replicas as if all had as many as itself."""
    machine = record.get(MACHINE)
    return {**record[DETERMINING], "replicas": machine.get("replicas") if isinstance(machine, Mapping) else None}


def _replaced(folder: Path, earlier: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns the task and results of a run that is about to be deleted, to compare with; empty if it has none."""
    try:
        results = documents.parse_json(files.read_text(folder / run_layout.RESULTS))
    except (OSError, ValueError):  # there is none, or it is damaged
        return {}
    splits = results.get("splits") if isinstance(results, dict) else None
    task = earlier[DETERMINING].get("task_name") if earlier else None
    if not isinstance(splits, dict) or task is None:
        return {}
    numbers = {
        split: {name: value for name, value in details.items() if isinstance(value, (int, float)) or name == run_layout.ROWS}
        for split, details in splits.items()
        if isinstance(details, dict)
    }
    return {REPLACED: {"task_name": task, "splits": numbers}}


def _refuse_another_run(folder: Path, earlier: Mapping[str, Any] | None, record: Mapping[str, Any]) -> None:
    if earlier is None:
        if any(folder.glob(CHECKPOINTS)):
            raise OutputError(
                f"{folder}: holds checkpoints of an unknown run; name another folder or add --overwrite_output_dir"
            )
        return
    requested = documents.json_value(documents.to_json(record[DETERMINING]))
    differences = _differences(earlier[DETERMINING], requested)
    changed = {key for key in {*earlier[DETERMINING], *requested} if earlier[DETERMINING].get(key) != requested.get(key)}
    extends = len(requested.get(EXTENDED, [])) > len(earlier[DETERMINING].get(EXTENDED, [])) and changed <= {
        EXTENDED,
        *DURATION,
    }
    if differences and not extends:
        shorter = " a run can be trained longer, not shorter;" if changed <= DURATION else ""
        raise OutputError(
            f"{folder}: holds {_another(earlier[DETERMINING], record[DETERMINING], differences)};{shorter}"
            " name another --output_dir, or add --overwrite_output_dir to delete it"
        )


def _continued(folder: Path, earlier: Mapping[str, Any] | None, record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns a record with the earlier TensorFlow versions; logs changes that may affect rounding from here on."""
    if earlier is None or not any(folder.glob(CHECKPOINTS)):
        return record
    native_before, native = (_is_native(run_record.get(MACHINE)) for run_record in (earlier, record))
    if native_before != native:
        kinds = {True: "native kernels", False: "TensorFlow's own"}
        text = "%s: started with %s, continues with %s: results differ in the last bits"
        log.info(text, folder, kinds[native_before], kinds[native])
    (before, past), (now, _) = (_tensorflows(run_record.get(VERSIONS)) for run_record in (earlier, record))
    if before and before != now:
        log.info("%s: last opened with TensorFlow %s, now with %s: later steps may round differently", folder, before, now)
        past = [*past, before]
    return {**record, VERSIONS: {**record[VERSIONS], EARLIER: past}} if past else record


def _tensorflows(versions: object) -> tuple[str | None, list[str]]:
    """The last version and earlier ones: for a message, so that damaged ones are unknown."""
    if not isinstance(versions, Mapping):
        return None, []
    past = versions.get(EARLIER)
    return versions.get("tensorflow"), past if isinstance(past, list) else []


def _is_native(machine: object) -> bool:
    """Whether a record's machine had native kernels; earlier package versions had none."""
    return isinstance(machine, Mapping) and bool(machine.get(NATIVE))


def _another(earlier: Mapping[str, Any], requested: Mapping[str, Any], differences: Sequence[str]) -> str:
    """Describes the other run; for another task only the task, since hardly any setting is the same."""
    for name in _TASK:
        if earlier.get(name) != requested.get(name):
            return f"a run of another {name.partition('_')[0]} ({earlier.get(name)}, not {requested.get(name)})"
    return f"another run ({'; '.join(differences)})"


def _differences(earlier: Mapping[str, Any], requested: Mapping[str, Any]) -> list[str]:
    keys = [key for key in sorted(earlier.keys() | requested.keys()) if earlier.get(key) != requested.get(key)]
    return [_DIFFER.get(key) or _difference(key, earlier.get(key), requested.get(key)) for key in keys]


def _difference(key: str, was: object, now: object) -> str:
    """A digest says nothing to a reader."""
    digested = key.removesuffix("_sha256")
    return f"{key} was {was}, now {now}" if digested == key else f"another {digested}"


def _delete_run(folder: Path) -> None:
    """Deletes only files that a run of this package writes: a folder may have a name of ours and hold other files."""
    of_other_tasks = [path for path in folder.iterdir() if path.is_dir() and _is_task(path.name)]
    models = [folder / name for name in run_layout.MODELS if (folder / name / RECORD).is_file()]
    results = (*run_layout.names(run_layout.OF_RESULTS), *families.file_patterns())
    for directory in (*models, *of_other_tasks, folder):
        _delete(directory, results)
    for directory in (*models, folder):
        _delete(directory, run_layout.names(run_layout.of_training()))
    for directory in of_other_tasks:
        _delete_empty(directory)


def _delete(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        for path in folder.glob(name.rstrip("/")):
            if path.is_dir() != name.endswith("/"):  # another's, under a name of ours
                continue
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()
        _delete_empty(folder / name.partition("/")[0])


def _delete_empty(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def _is_task(name: str) -> bool:
    try:
        return canonical_name(name) == name
    except FlagError:
        return False

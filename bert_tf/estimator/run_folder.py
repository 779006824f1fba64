"""The record of a run in its output folder: what determined it, and whether a new command means the same run."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bert_tf import atomic
from bert_tf.errors import FlagError, OutputError
from bert_tf.tasks.registry import canonical_name

RECORD = "run_config.json"
DETERMINING = "training"  # the part of the record that decides what is learned
COLUMNS = "columns"  # where texts and labels stand in one's own tables


def load_record(output_dir: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Returns the record of an earlier run in the folder, None where there is none.

    Raises:
      OutputError: the record is damaged.
    """
    path = Path(output_dir) / RECORD
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        record[DETERMINING].items()
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise OutputError(f"{path}: unreadable record of a run; restore it, or train with --overwrite_output_dir") from error
    return record  # type: ignore[no-any-return]


def trained(output_dir: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns what the run of a folder was trained by: its settings and columns; nothing where there is no record.

    Raises:
      OutputError: as `load_record`.
    """
    record = load_record(output_dir) or {DETERMINING: {}}
    return {**record.get(COLUMNS, {}), **record[DETERMINING]}


def misfits(output_dir: str | os.PathLike[str], now: Mapping[str, Any]) -> list[str]:
    """Returns one line for each part in which the run of a folder was trained otherwise than it is used now.

    Raises:
      OutputError: as `load_record`.
    """
    record = load_record(output_dir)
    if record is None:
        return []
    earlier = {key: record[DETERMINING].get(key) for key in now}
    return [f"{output_dir}: {difference}; use the run as it was trained" for difference in _differences(earlier, now)]


def claim(output_dir: str | os.PathLike[str], record: Mapping[str, Any], *, overwrite: bool) -> None:
    """Makes the folder that of this run: new, or the same run again.

    Args:
      output_dir: the folder.
      record: what determines the run, below the key `training`, and what else is worth knowing.
      overwrite: whether another run that the folder holds is deleted; the same run is continued all the same.

    Raises:
      OutputError: the folder holds another run, and all differences are named; or it cannot be written.
    """
    folder = atomic.make_folder(output_dir)
    try:
        _refuse_another_run(folder, record)
    except OutputError:
        if not overwrite:
            raise
        with atomic.readable_errors(folder):
            _delete_run(folder)
    atomic.write_text(folder / RECORD, json.dumps(record, indent=2, sort_keys=True) + "\n")


def await_claim(output_dir: str | os.PathLike[str], record: Mapping[str, Any], *, patience_s: float = 600.0) -> None:
    """Waits on a machine that does not write until the chief has made the folder that of the same run.

    Before that the folder may hold another run, whose checkpoints are about to be deleted.

    Raises:
      OutputError: the chief does not come, has other settings, or writes to a folder that this machine does not see.
    """
    limit = time.monotonic() + patience_s
    while True:
        earlier = load_record(output_dir)
        wanted = json.loads(json.dumps(record[DETERMINING]))
        if earlier is not None and not _differences(earlier[DETERMINING], wanted):
            return
        if time.monotonic() > limit:
            found = "no run" if earlier is None else f"another run ({'; '.join(_differences(earlier[DETERMINING], wanted))})"
            raise OutputError(
                f"{output_dir}: holds {found}, and the chief has not begun this one within {patience_s:.0f} s;"
                " give all machines the same flags and a folder that they share"
            )
        time.sleep(0.2)


def _refuse_another_run(folder: Path, record: Mapping[str, Any]) -> None:
    earlier = load_record(folder)
    if earlier is None:
        if any(folder.glob("model.ckpt-*")):
            raise OutputError(
                f"{folder}: holds checkpoints of an unknown run; name another folder or add --overwrite_output_dir"
            )
        return
    differences = _differences(earlier[DETERMINING], json.loads(json.dumps(record[DETERMINING])))
    if differences:
        raise OutputError(
            f"{folder}: holds another run ({'; '.join(differences)});"
            " name another --output_dir, or add --overwrite_output_dir to delete it"
        )


def _differences(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    keys = sorted(earlier.keys() | now.keys())
    return [f"{key} was {earlier.get(key)}, now {now.get(key)}" for key in keys if earlier.get(key) != now.get(key)]


def _delete_run(folder: Path) -> None:
    """Deletes what a run of this package writes, and nothing else."""
    for pattern in (
        "model.ckpt-*", "checkpoint", RECORD, "graph.pbtxt", "events.out.tfevents.*", "metrics.jsonl", "evaluations.jsonl",
        "vocab.txt", "bert_config.json", "device_placement.tsv", "report.html",
        "memory_trace_step*.txt", "live_memory_step*.tsv", "timing.json", "clock.jsonl",
    ):  # fmt: skip
        for path in folder.glob(pattern):
            path.unlink()
    for name in ("best", "eval", "features", "profile"):
        shutil.rmtree(folder / name, ignore_errors=True)
    of_other_tasks = [path for path in folder.iterdir() if path.is_dir() and _is_task(path.name)]
    for place in (folder, *of_other_tasks):
        _delete_results(place)
    for place in of_other_tasks:
        if not any(place.iterdir()):
            place.rmdir()


def _is_task(name: str) -> bool:
    try:
        return canonical_name(name) == name
    except FlagError:
        return False


def _delete_results(folder: Path) -> None:
    """Deletes what evaluation and prediction write."""
    for pattern in (
        "eval_results.*", "wrong_examples.jsonl", "predictions*.tsv", "test_results*.tsv", "submission/*.tsv", "submission.zip",
    ):  # fmt: skip
        for path in folder.glob(pattern):
            path.unlink()
    if (folder / "submission").is_dir() and not any((folder / "submission").iterdir()):
        (folder / "submission").rmdir()

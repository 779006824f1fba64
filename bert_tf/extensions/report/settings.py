"""Tables of the configuration and environment of runs, and their differences."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from bert_tf.extensions.report.run_files import Run, mapping
from bert_tf.io import documents

_OF_MODEL = "bert_config"
_DIGEST = "_sha256"
_NONE = "-"

Rows = Mapping[str, str]  # values by name


def flags(run: Run) -> dict[str, str]:
    pairs = (word[2:].partition("=") for word in shlex.split(run.command) if word.startswith("--"))
    return {name: value if equals else "true" for name, equals, value in pairs}


def tables(run: Run) -> dict[str, dict[str, str]]:
    training = run.training
    by_flag = flags(run)
    rest = {key: value for key, value in training.items() if key != _OF_MODEL and not key.endswith(_DIGEST)}
    by_title = {
        "Flags": by_flag,
        "Training": {key: value for key, value in rest.items() if key not in by_flag},
        "Model": mapping(training, _OF_MODEL),
        "Schedule": mapping(run.record, "schedule"),
        "Own data": mapping(run.record, "columns"),
        "Fingerprints (sha256)": {k[: -len(_DIGEST)]: v for k, v in training.items() if k.endswith(_DIGEST)},
    }
    return {title: {name: text(value) for name, value in rows.items()} for title, rows in by_title.items() if rows}


def environment(run: Run) -> dict[str, str]:
    rows = {**mapping(run.record, "machine"), **mapping(run.record, "versions")}
    return {name: text(value) for name, value in rows.items()}


def differences(runs: Sequence[Run]) -> dict[str, list[str]]:
    """Values of each run by name, only where they differ."""
    flat = [{key: row for rows in (*tables(run).values(), environment(run)) for key, row in rows.items()} for run in runs]
    names = dict.fromkeys(name for rows in flat for name in rows)
    values = {name: [rows.get(name, _NONE) for rows in flat] for name in names}
    return {name: of_runs for name, of_runs in values.items() if len(set(of_runs)) > 1}


def text(value: Any) -> str:
    if value is None or value in ("", []):
        return _NONE
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list) and not any(isinstance(part, (dict, list)) for part in value):
        return ", ".join(map(text, value))
    return value if isinstance(value, str) else documents.to_json(value)

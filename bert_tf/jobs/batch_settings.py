"""Settings shared by batch jobs; combines settings and a job file into one job."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from bert_tf.batch import job as jobs
from bert_tf.errors import FlagError
from bert_tf.jobs import machine_settings
from bert_tf.jobs.settings import LONG_TEXTS
from bert_tf.settings import Setting, settings_of
from bert_tf.tasks.settings import GROUPS

# Keys of a job that are settings too.
MODEL = (
    Setting("bert_config_file", str, None, "sizes of the model; else beside the checkpoint"),
    Setting("vocab_file", str, None, "word pieces of the model; else beside the checkpoint"),
    Setting("max_seq_length", int, None, "longest input in word pieces; else as trained", 1),
    Setting("do_lower_case", bool, None, "lower-case the text; else as trained"),
    Setting(
        "long_text", str, None, f"what is kept of longer texts: {', '.join(LONG_TEXTS)}; else as trained", None, LONG_TEXTS
    ),
)
_OF_COLUMNS = frozenset(field.name for field in dataclasses.fields(jobs.Columns))
COLUMNS = tuple(row for row in settings_of(*GROUPS.values()) if row.name in _OF_COLUMNS)
RULES = tuple(row._replace(help=f"{row.help}; else as trained") for row in jobs.RULES)
JOB = Setting("job", str, None, "YAML or JSON file of a job; flags override what it says")
MACHINE = machine_settings.SETTINGS

_OF_MACHINE = frozenset(row.name for row in MACHINE)


def divided(values: Mapping[str, Any]) -> tuple[dict[str, Any], machine_settings.MachineSettings]:
    of_job = {name: value for name, value in values.items() if name not in _OF_MACHINE}
    return of_job, machine_settings.configured(**{name: values[name] for name in values if name in _OF_MACHINE})


def make_job(kind: type[jobs.T], file: str | None, values: Mapping[str, Any]) -> jobs.T:
    stored = jobs.read(file) if file else {}
    try:
        return jobs.make(kind, {**stored, **values})
    except FlagError as error:
        raise FlagError(f"{file}: {error}" if file else f"--{error}") from error

"""Configuration of a prediction job, made from settings by name."""

from __future__ import annotations

from typing import Any, NamedTuple

from bert_tf.batch.job import PredictJob
from bert_tf.errors import FlagError
from bert_tf.jobs.batch_settings import COLUMNS, JOB, MACHINE, MODEL, RULES, divided, make_job
from bert_tf.jobs.machine_settings import MachineSettings
from bert_tf.settings import MOST_EXAMPLES, Setting, named
from bert_tf.tasks.tables import FORMATS

_ENDS = (
    Setting("input", str, None, "file to predict, as the task's test split or with the columns named below; - is a pipe"),
    Setting("output", str, None, "file of predictions: .tsv, .csv or .jsonl, each also with .gz, else TSV; - is a pipe"),
)
SETTINGS = (
    *_ENDS,
    JOB,
    Setting("checkpoint", str, None, "a checkpoint, or the folder of a run for its best, else its newest"),
    Setting("task_name", str, None, "what it was trained on, where no run_config.json is beside it"),
    Setting(
        "predict_batch_size",
        int,
        None,
        "examples at a time on each device; else by length, and a GPU's memory",
        1,
        highest=MOST_EXAMPLES,
    ),
    Setting("skip_bad_rows", bool, False, "leave out rows that cannot be used; else stop at the first"),
    Setting("keep_columns", bool, False, "write the columns of the input too, after those of the predictions"),
    Setting("output_format", str, None, f"{', '.join(FORMATS)}; else as the name of the output says", None, FORMATS),
    *COLUMNS,
    *RULES,
    *MODEL,
    *MACHINE,
)


class PredictConfig(NamedTuple):
    job: PredictJob
    machine: MachineSettings


def configured(**values: Any) -> PredictConfig:
    keys, machine = divided(named(SETTINGS, values))
    file = keys.pop(JOB.name, None)
    ends = {row.name: keys.pop(row.name) for row in _ENDS if row.name in keys}
    if len(ends) == 1:
        raise FlagError(f"--{next(iter(ends))} needs the other of --input and --output")
    if ends:
        keys["files"] = [ends]
    elif not file:
        raise FlagError("--input and --output are required, or --job=FILE")
    return PredictConfig(make_job(PredictJob, file, keys), machine)

"""Configuration of an export, made from settings by name."""

from __future__ import annotations

from typing import Any, NamedTuple

from bert_tf.batch.job import Given
from bert_tf.errors import FlagError
from bert_tf.export.formats import FORMATS, PRECISIONS
from bert_tf.jobs.batch_settings import MODEL
from bert_tf.settings import Setting, named

FORMAT = Setting("format", str, None, f"what to write: {', '.join(FORMATS)}", None, tuple(FORMATS))
OUTPUT = Setting("output", str, None, "folder to write; an export of the same format that is there is replaced")
OVERWRITE = Setting("overwrite", bool, False, "replace whatever the folder holds, but for a run")
# Of a model that a program has already; the others say which it is.
OPTIONS = (
    OVERWRITE,
    Setting("precision", str, "float32", f"of onnx and openvino: {', '.join(PRECISIONS)}", None, PRECISIONS),
    Setting("pairs", bool, None, "sentences come in pairs, text_a and text_b; by default as in training"),
    Setting(
        "gate_data", str, None, "labelled examples that measure reduced precision or long texts; else the task's dev split"
    ),
    Setting("max_loss_of_metric", float, 0.5, "points of a metric that reduced precision may cost", 0.0),
)
SETTINGS = (
    FORMAT,
    OUTPUT,
    *OPTIONS,
    Setting("task_name", str, None, "what the model was trained on, where no run_config.json is beside it"),
    *MODEL,
)

_OF_MODEL = frozenset(row.name for row in MODEL)


class Target(NamedTuple):
    format: str  # key of `FORMATS`
    output: str  # folder
    overwrite: bool  # also replaces other content than this format's export
    options: dict[str, Any]  # given fields of `export.exported.ExportOptions`


class ExportConfig(NamedTuple):
    run: str  # checkpoint, or run for its best, else newest
    task_name: str | None  # if no run record names the task
    model: Given  # overrides of recorded settings
    target: Target


def configured(run: str, **values: Any) -> ExportConfig:
    given = named(SETTINGS, values)
    model = Given(**{name: given.pop(name) for name in _OF_MODEL & given.keys()})
    task_name = given.pop("task_name", None)
    return ExportConfig(run, task_name, model, target(**given))


def target(**values: Any) -> Target:
    """Makes a target from settings `FORMAT`, `OUTPUT` and `OPTIONS`."""
    given = named((FORMAT, OUTPUT, *OPTIONS), values)
    for row in (FORMAT, OUTPUT):
        if row.name not in given:
            raise FlagError(f"--{row.name} is required")
    return Target(given.pop("format"), given.pop("output"), given.pop("overwrite", False), given)

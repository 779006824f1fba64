"""The configuration of an export, made of settings by name."""

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
    """What to write, and where.

    Attributes:
      format: key of `FORMATS`.
      output: the folder.
      overwrite: replaces other things than an export of this format, too.
      options: fields of `export.exported.ExportOptions`, by name; those that are given.
    """

    format: str
    output: str
    overwrite: bool
    options: dict[str, Any]


class ExportConfig(NamedTuple):
    """What to export.

    Attributes:
      run: a checkpoint, or the folder of a run for its best, else its newest.
      task_name: what it has learned, where no record of a run says it.
      model: what goes before that which its folder says.
      target: what to write, and where.
    """

    run: str
    task_name: str | None
    model: Given
    target: Target


def configured(run: str, **values: Any) -> ExportConfig:
    """Makes a configuration of settings by name.

    Args:
      run: a checkpoint, or the folder of a run.
      **values: the settings that are given, None for those that are not.

    Raises:
      FlagError: a setting is unknown, missing or has an unusable value.
    """
    given = named(SETTINGS, values)
    model = Given(**{name: given.pop(name) for name in _OF_MODEL & given.keys()})
    task_name = given.pop("task_name", None)
    return ExportConfig(run, task_name, model, target(**given))


def target(**values: Any) -> Target:
    """Returns what to write, and where.

    Args:
      **values: `FORMAT`, `OUTPUT` and `OPTIONS` by name.

    Raises:
      FlagError: a setting is unknown, missing or has an unusable value.
    """
    given = named((FORMAT, OUTPUT, *OPTIONS), values)
    for row in (FORMAT, OUTPUT):
        if row.name not in given:
            raise FlagError(f"--{row.name} is required")
    return Target(given.pop("format"), given.pop("output"), given.pop("overwrite", False), given)

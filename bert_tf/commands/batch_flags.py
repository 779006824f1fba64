"""Flags that the commands of batch jobs share, and how flags and a job file become one job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from absl import flags

from bert_tf.batch import job as jobs
from bert_tf.commands.classifier_flags import CUSTOM, DEVICES
from bert_tf.commands.flags import Flag
from bert_tf.errors import FlagError
from bert_tf.jobs.machine_settings import OF_TRAINING, MachineSettings
from bert_tf.jobs.settings import LONG_TEXTS, PRECISIONS
from bert_tf.runtime.settings import ONE_DEVICE, DeviceSettings

# Keys of a job that are flags too.
MODEL = (
    Flag("bert_config_file", str, None, "sizes of the model; else beside the checkpoint"),
    Flag("vocab_file", str, None, "word pieces of the model; else beside the checkpoint"),
    Flag("max_seq_length", int, None, "longest input in word pieces; else as trained", 1),
    Flag("do_lower_case", bool, None, "lower-case the text; else as trained"),
    Flag("long_text", str, None, f"what is kept of longer texts: {', '.join(LONG_TEXTS)}; else as trained", None, LONG_TEXTS),
)
COLUMNS = tuple(row for row in CUSTOM if row.name in ("text_a", "text_b", "id_column", "file_format", "has_header"))

JOB = Flag("job", str, None, "YAML or JSON file of a job; flags override what it says")

MACHINE = (
    Flag("precision", str, "default", f"of matrix products: {', '.join(PRECISIONS)}", None, PRECISIONS),
    Flag("verbosity", int, 0, "-1 warnings only, 0 the log, 1 TensorFlow's own messages too"),
    *(row for row in DEVICES if row.name not in OF_TRAINING),
)


def machine_settings(parsed: flags.FlagValues) -> tuple[MachineSettings, int]:
    """Returns the values of `MACHINE`; one device computes, and how much is said of it."""
    values = {row.name: parsed[row.name].value for row in MACHINE}
    precision, verbosity = values.pop("precision"), values.pop("verbosity")
    return MachineSettings(DeviceSettings(**values, strategy=ONE_DEVICE), precision), verbosity


def given(parsed: flags.FlagValues, rows: Sequence[Flag]) -> dict[str, Any]:
    """Returns the flags that stand on the command line, by name.

    Args:
      parsed: the command line.
      rows: flags to look for.
    """
    return {row.name: parsed[row.name].value for row in rows if parsed[row.name].present}


def make_job(kind: type[jobs.T], file: str | None, values: Mapping[str, Any]) -> jobs.T:
    """Returns a job.

    Args:
      kind: class of `bert_tf.batch.job`.
      file: of a job; None where there is none.
      values: what goes before the file's.

    Raises:
      FlagError: the file cannot be read, or a key is unknown, missing or has an unusable value.
    """
    stored = jobs.read(file) if file else {}
    try:
        return jobs.make(kind, {**stored, **values})
    except FlagError as error:
        raise FlagError(f"{file}: {error}" if file else f"--{error}") from error

"""The flags of the classifier, as one table, and the frozen settings that they become.

Names, types and defaults of the published script's flags are the published ones (google-research/bert run_classifier.py).
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from absl import flags

from bert_tf.errors import FlagError, unknown_name
from bert_tf.runtime.settings import ALL_REDUCE_ALGS, CROSS_DEVICE_OPS, STRATEGIES, DeviceSettings
from bert_tf.tasks.glue import get_task

PRECISIONS = ("float32", "tf32", "bfloat16", "float16")
EXACT = ("pack_tokens", "skip_unread", "lean_gradients", "fused_adam", "defer_embeddings", "pad_to_longest")

_LARGEST = 2**31 - 1  # the seeds of replicas lie 2**32 apart


class Flag(NamedTuple):
    """One row of the table."""

    name: str
    kind: type
    default: Any
    help: str
    lowest: float | None = None
    choices: tuple[str, ...] = ()


DEVICES = (
    Flag("visible_gpus", str, None, "numbers of the GPUs to see, with commas, or none; else all"),
    Flag("gpu_memory_growth", bool, False, "take GPU memory as it is needed, not all at once"),
    Flag("gpu_memory_limit_mb", int, None, "most memory for tensors on each GPU, in MiB; CUDA takes more", 1),
    Flag("virtual_devices", int, 1, "split each GPU, or the CPU where there is none, into so many devices", 1),
    Flag("device", str, None, "the whole model on one device: /GPU:1, /CPU:0"),
    Flag("place", str, None, "parts on devices: embeddings:/CPU:0,encoder/layer_0-5:/GPU:0,encoder/layer_6-11:/GPU:1"),
    Flag("soft_placement", bool, True, "run elsewhere what a device has no kernel for; else fail"),
    Flag("log_device_placement", bool, False, "write where each operation of training runs to device_placement.tsv"),
    Flag("strategy", str, None, f"{', '.join(STRATEGIES)}; else by what is visible", None, STRATEGIES),
    Flag("num_gpus", int, None, "GPUs to use, of those that are visible; 0 for the CPU", 0),
    Flag("cross_device_ops", str, None, f"how GPUs add up: {', '.join(CROSS_DEVICE_OPS)}", None, CROSS_DEVICE_OPS),
    Flag("all_reduce_alg", str, None, f"how machines add up: {', '.join(ALL_REDUCE_ALGS)}", None, ALL_REDUCE_ALGS),
    Flag("deterministic", bool, False, "the same bits in every run on a GPU too; slower"),
    Flag("intra_op_threads", int, None, "CPU threads of one operation; else the cores that the machine grants", 1),
    Flag("inter_op_threads", int, None, "operations at a time on the CPU; else the same", 1),
    Flag("check_replicas_every_n_steps", int, 0, "stop if the weights of the replicas differ; 0 does not look", 0),
)

GROUPS: dict[str, tuple[Flag, ...]] = {
    "Task and data": (
        Flag("task_name", str, None, "task to train: MRPC, RTE, SST-2, CoLA (required)"),
        Flag("data_dir", str, None, "folder of train.tsv, dev.tsv, test.tsv; else $GLUE_DIR/TASK, data/TASK, the sample"),
        Flag("max_seq_length", int, 128, "longest input in word pieces; longer ones are truncated"),
        Flag("do_lower_case", bool, True, "lower-case the text, as uncased models want it"),
    ),
    "Model": (
        Flag("init_checkpoint", str, None, "checkpoint, or a folder (Hugging Face's too); else $BERT_BASE_DIR, the default"),
        Flag("bert_config_file", str, None, "sizes of the model; else beside the checkpoint"),
        Flag("vocab_file", str, None, "word pieces of the model; else beside the checkpoint"),
    ),
    "What to do (train and evaluate where none is given)": (
        Flag("do_train", bool, False, "train"),
        Flag("do_eval", bool, False, "evaluate on the dev split"),
        Flag("do_predict", bool, False, "predict the test split"),
    ),
    "Training": (
        Flag("train_batch_size", int, 32, "examples of one step", 1),
        Flag("learning_rate", float, 5e-5, "peak learning rate", 0.0),
        Flag("num_train_epochs", float, 3.0, "how often to see every example", 0.0),
        Flag("warmup_proportion", float, 0.1, "share of the steps in which the learning rate rises", 0.0),
        Flag("adam_bias_correction", bool, False, "correct Adam's moments for their start at zero; off in the published BERT"),
        Flag("seed", int, 1, "decides order, dropout and the weights of the head", 0),
        Flag("save_checkpoints_steps", int, 1000, "how often to save; where not given, five times a run at least", 1),
        Flag("keep_optimizer_slots", bool, False, "keep the optimizer's moments in the last checkpoint"),
        Flag("log_every_n_steps", int, 50, "how often to report loss, learning rate and examples/s", 1),
    ),
    "Evaluation and prediction": (
        Flag("eval_batch_size", int, None, "examples at a time; else as many as suit their lengths", 1),
        Flag("predict_batch_size", int, None, "examples at a time; else as many as suit their lengths", 1),
    ),
    "Speed (exact, so on; the last four change order or numbers)": (
        Flag("pack_tokens", bool, True, "compute real tokens only, no padding"),
        Flag("skip_unread", bool, True, "compute of the last layer only [CLS], which the classifier reads"),
        Flag("lean_gradients", bool, True, "gradients by hand for attention, GELU and LayerNorm"),
        Flag("fused_adam", bool, True, "one kernel a variable for the update"),
        Flag("defer_embeddings", bool, True, "make up for the updates of unused word vectors when they are next read"),
        Flag("pad_to_longest", bool, True, "pad a batch to its longest example, not to --max_seq_length"),
        Flag("published_layout", bool, False, "all of the above off, as the published script computes; to compare with"),
        Flag("group_by_length", bool, False, "train on examples of similar length together"),
        Flag("xla", bool, False, "compile the graph; worth it on a GPU; computes padding"),
        Flag("precision", str, "float32", "of matrix products: float32, tf32, bfloat16, float16", None, PRECISIONS),
    ),
    "Devices and distribution (README: which flags for my machine)": DEVICES,
    "Output": (
        Flag("output_dir", str, None, "folder of checkpoints and results; else out/task"),
        Flag("overwrite_output_dir", bool, False, "delete another run that the folder holds; the same run continues"),
        Flag("verbosity", int, 0, "-1 warnings only, 0 the log, 1 TensorFlow's own messages too"),
    ),
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class DataSettings:
    """Task and data."""

    task_name: str
    data_dir: str | None
    max_seq_length: int
    do_lower_case: bool


@dataclasses.dataclass(frozen=True)
class ModelSettings:
    """Pretrained weights."""

    init_checkpoint: str | None
    bert_config_file: str | None
    vocab_file: str | None


@dataclasses.dataclass(frozen=True)
class TrainSettings:
    """Optimization."""

    train_batch_size: int
    learning_rate: float
    num_train_epochs: float
    warmup_proportion: float
    adam_bias_correction: bool
    seed: int
    save_checkpoints_steps: int
    keep_optimizer_slots: bool
    log_every_n_steps: int


@dataclasses.dataclass(frozen=True)
class SpeedSettings:
    """Ways of computing."""

    pack_tokens: bool
    skip_unread: bool
    lean_gradients: bool
    fused_adam: bool
    defer_embeddings: bool
    pad_to_longest: bool
    group_by_length: bool
    xla: bool
    precision: str


@dataclasses.dataclass(frozen=True)
class JobSettings:
    """What to do and where to write."""

    do_train: bool
    do_eval: bool
    do_predict: bool
    eval_batch_size: int | None
    predict_batch_size: int | None
    output_dir: str
    overwrite_output_dir: bool
    verbosity: int


@dataclasses.dataclass(frozen=True)
class Settings:
    """All flags, by concern.

    Attributes:
      given: names of the flags that stand on the command line.
    """

    data: DataSettings
    model: ModelSettings
    train: TrainSettings
    speed: SpeedSettings
    devices: DeviceSettings
    job: JobSettings
    given: frozenset[str]


def parse(argv: Sequence[str]) -> Settings | None:
    """Reads a command line.

    Args:
      argv: program name and arguments.

    Returns:
      The settings; None where help was asked for and printed.

    Raises:
      FlagError: a flag is unknown or has an unusable value.
    """
    values = read(argv, [row for rows in GROUPS.values() for row in rows])
    if values["help"].value:
        sys.stdout.write(help_text())
        return None
    for name, value in values.flag_values_dict().items():
        if isinstance(value, (int, float)) and not abs(value) <= _LARGEST:  # nan compares as false
            raise FlagError(f"flag --{name}={value}: not a number up to {_LARGEST}")
    if not values["task_name"].value:
        raise FlagError("--task_name is required: MRPC, RTE, SST-2, CoLA")
    return _settings({row.name: values[row.name].value for rows in GROUPS.values() for row in rows}, values)


def help_text() -> str:
    """Returns what --help prints."""
    lines = ["Fine-tunes BERT on a sentence task: python run_classifier.py --task_name=MRPC", ""]
    for group, rows in GROUPS.items():
        lines += [f"{group}:", *map(help_line, rows), ""]
    return "\n".join(lines)


def help_line(row: Flag) -> str:
    """Returns what --help says of a flag."""
    default = "" if row.default is None else f" (default {str(row.default).lower()})"
    spelling = f"--[no]{row.name}" if row.kind is bool else f"--{row.name}"
    return f"  {spelling:<26} {row.help}{default}"


def read(argv: Sequence[str], rows: Sequence[Flag]) -> flags.FlagValues:
    """Reads a command line by a table of flags, and --help.

    Raises:
      FlagError: a flag is unknown or has a value of another kind, or there is an argument that is no flag.
    """
    values = _define(rows)
    try:
        rest = values(list(argv))[1:]
    except (flags.Error, ValueError) as error:  # ValueError: --nodo_train=1
        raise FlagError(str(error).splitlines()[0] + " (--help lists all flags)") from error
    if rest and not values["help"].value:
        raise FlagError(f"unexpected argument {rest[0]!r}; flags are written --name=value")
    for row in rows:
        if row.choices and values[row.name].value not in (None, *row.choices):
            raise FlagError(f"--{row.name}: {unknown_name('value', values[row.name].value, row.choices)}")
    return values


def _define(rows: Iterable[Flag]) -> flags.FlagValues:
    values = flags.FlagValues()
    for row in rows:
        if row.kind is bool:
            flags.DEFINE_boolean(row.name, row.default, row.help, flag_values=values)
        elif row.kind is str:
            flags.DEFINE_string(row.name, row.default, row.help, flag_values=values)
        else:
            define = flags.DEFINE_integer if row.kind is int else flags.DEFINE_float
            define(row.name, row.default, row.help, lower_bound=row.lowest, flag_values=values)
    flags.DEFINE_boolean("help", False, "show this help", short_name="h", flag_values=values)
    return values


def _settings(values: dict[str, Any], parsed: flags.FlagValues) -> Settings:
    if not any(values[name] for name in ("do_train", "do_eval", "do_predict")):
        values["do_train"] = values["do_eval"] = True
    if values.pop("published_layout"):
        exact = [name for name in EXACT if not parsed[name].present]
        values.update(dict.fromkeys(exact, False))
    if values["xla"]:  # it compiles once for each shape, and packing makes as many shapes as batches
        values["pack_tokens"] = False
    values["output_dir"] = values["output_dir"] or f"out/{get_task(values['task_name']).name.lower()}"
    parts = (
        kind(**{field.name: values[field.name] for field in dataclasses.fields(kind)})
        for kind in (DataSettings, ModelSettings, TrainSettings, SpeedSettings, DeviceSettings, JobSettings)
    )
    return Settings(*parts, given=frozenset(name for name in values if parsed[name].present))

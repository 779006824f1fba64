"""The flags of the classifier, as one table, and the frozen settings that they become.

Names, types and defaults of the published script's flags are the published ones (google-research/bert run_classifier.py).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from absl import flags

from bert_tf.commands.flags import Flag, help_line, read
from bert_tf.documents import LARGEST_SETTING
from bert_tf.errors import FlagError
from bert_tf.head_spec import CLASSIFICATION
from bert_tf.log_form import FORMS, SHORT
from bert_tf.optimization.parts import parse_frozen
from bert_tf.profiling.timing.step_range import StepRange
from bert_tf.runtime.settings import ALL_REDUCE_ALGS, CROSS_DEVICE_OPS, STRATEGIES, DeviceSettings
from bert_tf.tasks.custom import NAME as CUSTOM_NAME
from bert_tf.tasks.custom import CustomSettings
from bert_tf.tasks.registry import canonical_name, known_names
from bert_tf.tasks.sentence.example import KINDS
from bert_tf.tasks.tables import FORMATS

POLYNOMIAL = "polynomial"
SCHEDULES = ("linear", "cosine", "constant", POLYNOMIAL)
PRECISIONS = ("default", "float32", "tf32", "bfloat16", "float16")
AUTO = "auto"
LONG_TEXTS = ("truncate", "head_tail", "windows")
EXACT = ("pack_tokens", "skip_unread", "lean_gradients", "fused_adam", "defer_embeddings", "pad_to_longest")

_ABBREVIATED = re.compile(r"^(--?(?:no)?)do_lower(?==|$)")
_MOST_THREADS = 1024  # so many are started, whether they find work or not
_MOST_DEVICES = 128
_MOST_EXAMPLES = 1 << 17  # examples; twice the largest that BERT was pretrained with (You et al., 2019)
_MOST_SEEDS = 1000


DEVICES = (
    Flag("visible_gpus", str, None, "numbers of the GPUs to see, with commas, or none; else all"),
    Flag("gpu_memory_growth", bool, False, "take GPU memory as it is needed, not all at once"),
    Flag("gpu_memory_limit_mb", int, None, "most memory for tensors on each GPU, in MiB; CUDA takes more", 1),
    Flag(
        "virtual_devices",
        int,
        1,
        "split each GPU, or the CPU where there is none, into so many devices",
        1,
        highest=_MOST_DEVICES,
    ),
    Flag("device", str, None, "the whole model on one device: /GPU:1, /CPU:0"),
    Flag("place", str, None, "parts on devices: embeddings:/CPU:0,encoder/layer_0-5:/GPU:0,encoder/layer_6-11:/GPU:1"),
    Flag("soft_placement", bool, True, "run elsewhere what a device has no kernel for; else fail"),
    Flag("log_device_placement", bool, False, "write where each operation of training runs to device_placement.tsv"),
    Flag("strategy", str, None, f"{', '.join(STRATEGIES)}; else by what is visible", None, STRATEGIES),
    Flag("num_gpus", int, None, "GPUs to use, of those that are visible; 0 for the CPU", 0),
    Flag("cross_device_ops", str, None, f"how GPUs add up: {', '.join(CROSS_DEVICE_OPS)}", None, CROSS_DEVICE_OPS),
    Flag("all_reduce_alg", str, None, f"how machines add up: {', '.join(ALL_REDUCE_ALGS)}", None, ALL_REDUCE_ALGS),
    Flag("deterministic", bool, False, "the same bits in every run on a GPU too; slower"),
    Flag(
        "intra_op_threads",
        int,
        None,
        "CPU threads of one operation; else the cores that the machine grants",
        1,
        highest=_MOST_THREADS,
    ),
    Flag("inter_op_threads", int, None, "operations at a time on the CPU; else the same", 1, highest=_MOST_THREADS),
    Flag("check_replicas_every_n_steps", int, 0, "stop if the weights of the replicas differ; 0 does not look", 0),
)

CUSTOM = (
    Flag("train_file", str, None, "TSV (no quoting), CSV or JSON lines; the suffix says which, .gz may follow"),
    Flag("dev_file", str, None, "the same for evaluation"),
    Flag("test_file", str, None, "the same for prediction; needs no labels"),
    Flag(
        "text_a",
        str,
        None,
        "column, or several joined by a space: title,body or 1,3; else text, sentence, text_a + b, sentence1 + 2",
    ),
    Flag("text_b", str, None, "the same of the second text, where --text_a is given and there are two"),
    Flag("label_column", str, "label", "column of the label"),
    Flag("id_column", str, None, "column of the ids that predictions carry; else split and line"),
    Flag("file_format", str, None, "tsv, csv or jsonl, where the suffix does not say it", None, FORMATS),
    Flag("has_header", bool, None, "whether the first line names the columns; else yes, unless --text_a is a number"),
    Flag("problem", str, CLASSIFICATION, f"what the label is: {', '.join(KINDS)}", None, KINDS),
    Flag(
        "labels",
        str,
        None,
        "their names with commas, the position is the class (F1: of the second of two); else those of training",
    ),
    Flag("label_separator", str, ",", "what stands between the labels of a cell with multi_label; JSON may have a list"),
)

# Of the published script, for command lines that were written for it.
TPU = (
    Flag("use_tpu", bool, False, ""),
    Flag("tpu_name", str, None, "", may_be_empty=True),
    Flag("tpu_zone", str, None, "", may_be_empty=True),
    Flag("gcp_project", str, None, "", may_be_empty=True),
    Flag("master", str, None, "", may_be_empty=True),
    Flag("num_tpu_cores", int, 8, ""),
    Flag("iterations_per_loop", int, 1000, ""),
)
_ELSEWHERE = ("use_tpu", "master")  # what would compute somewhere else than here; --tpu_name is read with the first alone

GROUPS: dict[str, tuple[Flag, ...]] = {
    "Task and data": (
        Flag("task_name", str, None, f"task (required): {', '.join(known_names())}"),
        Flag("data_dir", str, None, "folder of train.tsv, dev.tsv, test.tsv; else $GLUE_DIR/TASK, data/TASK, the sample"),
        Flag("max_seq_length", int, 128, "longest input in word pieces"),
        Flag("long_text", str, "truncate", f"of longer ones: {', '.join(LONG_TEXTS)} (not in training)", None, LONG_TEXTS),
        Flag("do_lower_case", bool, True, "lower-case the text, as uncased models want it"),
    ),
    f"Your own data (--task_name={CUSTOM_NAME})": CUSTOM,
    "Model": (
        Flag("init_checkpoint", str, None, "checkpoint or folder to start from or evaluate; else $BERT_BASE_DIR, the default"),
        Flag("bert_config_file", str, None, "sizes of the model; else beside the checkpoint"),
        Flag("vocab_file", str, None, "word pieces of the model; else beside the checkpoint"),
    ),
    "What to do (train and evaluate where none is given)": (
        Flag("do_train", bool, False, "train"),
        Flag("do_eval", bool, False, "evaluate on the dev split"),
        Flag("do_predict", bool, False, "predict the test split"),
    ),
    "Training": (
        Flag("train_batch_size", int, 32, "examples of one step", 1, highest=_MOST_EXAMPLES),
        Flag("learning_rate", float, 5e-5, "peak learning rate", 0.0),
        Flag("num_train_epochs", float, 3.0, "how often to see every example", 0.0),
        Flag("num_train_steps", int, None, "updates to take, in the place of epochs", 1),
        Flag("warmup_proportion", float, 0.1, "share of the steps in which the learning rate rises", 0.0),
        Flag("learning_rate_schedule", str, "linear", f"how it falls then: {', '.join(SCHEDULES)}", None, SCHEDULES),
        Flag("polynomial_power", float, 2.0, "power of the polynomial", 0.0),
        Flag("layer_decay", float, 1.0, "rate of each layer in terms of the one above, up to 1; head and pooler have it all"),
        Flag("freeze", str, None, "parts that keep their weights: embeddings,0-5,pooler (layers by number)"),
        Flag("gradient_accumulation_steps", int, 1, "parts that a batch is computed in, to need the memory of one", 1),
        Flag("fit_memory", bool, False, "in as many parts as fit into the memory of the GPU; or --train_batch_size=auto"),
        Flag("check_memory", bool, True, "on a GPU, refuse what will not fit into its memory, before the graph is built"),
        Flag("recompute", bool, False, "compute activations again for the gradient, to keep one layer's at a time; slower"),
        Flag("adam_bias_correction", bool, False, "correct Adam's moments for their start at zero; off in the published BERT"),
        Flag("class_weights", str, None, "factors of the loss of each class: balanced, or one for each label with commas"),
        Flag("label_smoothing", float, 0.0, "share of the target that is spread over all classes", 0.0),
        Flag("seed", int, 1, "decides order, dropout and the weights of the head", 0),
        Flag("seeds", str, None, "several, one after the other: 1-5, or 1,3,7-9; each in OUTPUT_DIR/seed-N; seeds.tsv"),
        Flag("save_checkpoints_steps", int, 1000, "how often to save; where not given, every ten minutes as well", 1),
        Flag("keep_checkpoint_max", int, 5, "how many checkpoints to keep; 0 for all", 0),
        Flag("keep_optimizer_slots", bool, False, "keep the optimizer's moments in every checkpoint, the last included"),
        Flag("log_every_n_steps", int, None, "how often to report loss, rate and speed; else every 50 steps or 20 times", 1),
        Flag("eval_every_n_steps", int, 0, "how often to evaluate on the dev split; the best checkpoint is kept; 0 never", 0),
        Flag("best_metric", str, None, "what tells the best checkpoint: a metric (ties: less loss) or loss; else the first"),
        Flag("target_metric", str, None, "note when the dev split first reaches this: accuracy:0.8, or loss:0.4 (at most)"),
        Flag("stop_at_target", bool, False, "end training there"),
        Flag("early_stopping_patience", int, 0, "evaluations in a row without a better one that end training; 0 never", 0),
    ),
    "Evaluation and prediction": (
        Flag("eval_batch_size", int, None, "examples at a time; else by length, and a GPU's memory", 1, highest=_MOST_EXAMPLES),
        Flag("predict_batch_size", int, None, "the same for prediction", 1, highest=_MOST_EXAMPLES),
        Flag("submission_zip", bool, False, "pack the predictions for GLUE's server into submission.zip"),
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
        Flag("xla", bool, False, "compile the graph; worth it on a GPU; computes padding, updates all word vectors"),
        Flag("precision", str, "default", "of matrix products: float32 (strict), tf32, bfloat16, float16", None, PRECISIONS),
    ),
    "Devices and distribution (README: which flags for my machine)": DEVICES,
    "Output": (
        Flag("output_dir", str, None, "folder of checkpoints and results; else out/task"),
        Flag("overwrite_output_dir", bool, False, "delete another run that the folder holds; the same run continues"),
        Flag("profile_steps", str, None, "steps to record for profilers, 20-30: profile/, NVTX ranges (docs/profiling.md)"),
        Flag("memory_trace_step", int, None, "step whose memory to write: memory_trace_stepN.txt, live_memory_stepN.tsv", 1),
        Flag("verbosity", int, 0, "-1 warnings only, 0 the log, 1 TensorFlow's too (examples.txt and variables.tsv: always)"),
        Flag("log_form", str, SHORT, "short, or published: the lines of the published script", None, FORMS),
    ),
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class DataSettings:
    """Task and data."""

    task_name: str
    data_dir: str | None
    max_seq_length: int
    do_lower_case: bool
    long_text: str


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
    num_train_steps: int | None
    warmup_proportion: float
    learning_rate_schedule: str
    polynomial_power: float
    layer_decay: float
    freeze: str | None
    gradient_accumulation_steps: int
    adam_bias_correction: bool
    class_weights: str | None
    label_smoothing: float
    seed: int
    save_checkpoints_steps: int
    keep_checkpoint_max: int
    keep_optimizer_slots: bool
    log_every_n_steps: int | None
    eval_every_n_steps: int
    best_metric: str | None
    early_stopping_patience: int
    target_metric: str | None
    stop_at_target: bool


@dataclasses.dataclass(frozen=True)
class SpeedSettings:
    """Ways of computing."""

    pack_tokens: bool
    skip_unread: bool
    lean_gradients: bool
    fused_adam: bool
    defer_embeddings: bool
    recompute: bool
    pad_to_longest: bool
    group_by_length: bool
    xla: bool
    precision: str


@dataclasses.dataclass(frozen=True)
class JobSettings:
    """What to do and where to write; with `seeds` once for each of them."""

    seeds: tuple[int, ...]
    do_train: bool
    do_eval: bool
    do_predict: bool
    eval_batch_size: int | None
    predict_batch_size: int | None
    submission_zip: bool
    output_dir: str
    overwrite_output_dir: bool
    memory_trace_step: int | None
    profile_steps: str | None
    fit_memory: bool
    check_memory: bool
    verbosity: int
    log_form: str


@dataclasses.dataclass(frozen=True)
class Settings:
    """All flags, by concern.

    Attributes:
      given: names of the flags that stand on the command line.
    """

    data: DataSettings
    custom: CustomSettings
    model: ModelSettings
    train: TrainSettings
    speed: SpeedSettings
    devices: DeviceSettings
    job: JobSettings
    given: frozenset[str]


def parse(argv: Sequence[str]) -> Settings:
    """Reads a command line.

    Args:
      argv: program name and arguments.

    Raises:
      FlagError: a flag is unknown or has an unusable value.
      HelpAsked: instead of settings.
    """
    values = read(_spelled_out(argv), [*(row for rows in GROUPS.values() for row in rows), *TPU])
    for name in _ELSEWHERE:
        if values[name].value:
            raise FlagError(f"--{name}: there is no TPU here, only GPUs and the CPU of this machine; leave the flag out")
    if not values["task_name"].value:
        raise FlagError(f"--task_name is required: {', '.join(known_names())}")
    check_custom(values["task_name"].value, values)
    _check_training(values)
    return _settings({row.name: values[row.name].value for rows in GROUPS.values() for row in rows}, values)


def _spelled_out(argv: Sequence[str]) -> list[str]:
    """Returns a command line with --fit_memory in the place of --train_batch_size=auto: the batch keeps its size.

    The published README writes --do_lower; other beginnings of names are not read, since they may be mistakes.
    """
    words = [_ABBREVIATED.sub(r"\1do_lower_case", word) for word in argv]
    for place, word in enumerate(words):
        name, equals, value = word.lstrip("-").partition("=")
        if name != "train_batch_size" or not word.startswith("-"):
            continue
        if equals and value == AUTO:
            words[place] = "--fit_memory"
        elif not equals and words[place + 1 : place + 2] == [AUTO]:
            words[place : place + 2] = ["--fit_memory"]
    return words


def check_custom(task_name: str, values: flags.FlagValues) -> None:
    """Checks that flags of one's own data go with its task.

    Raises:
      FlagError: they go with another one, or the name of the task is unknown.
    """
    task = canonical_name(task_name)
    given = [row.name for row in CUSTOM if values[row.name].present]
    if given and task != CUSTOM_NAME:
        raise FlagError(f"--{given[0]} belongs to --task_name={CUSTOM_NAME}; {task} has columns and files of its own")


def _check_training(values: flags.FlagValues) -> None:
    """Refuses values that no table of flags can tell."""
    parse_frozen(values["freeze"].value)
    if values["profile_steps"].value:
        StepRange.parse("profile_steps", values["profile_steps"].value)
    decay, parts, examples = (values[name].value for name in ("layer_decay", "gradient_accumulation_steps", "train_batch_size"))
    if not 0.0 < decay <= 1.0:
        raise FlagError(f"--layer_decay={decay}: must be above 0 and at most 1; --freeze keeps the weights of layers")
    if values["num_train_steps"].present and values["num_train_epochs"].present:
        raise FlagError("--num_train_steps and --num_train_epochs both say how long to train: give one of them")
    if values["polynomial_power"].present and values["learning_rate_schedule"].value != POLYNOMIAL:
        raise FlagError(f"--polynomial_power belongs to --learning_rate_schedule={POLYNOMIAL}")
    warmup = values["warmup_proportion"].value
    if warmup > 1.0:
        raise FlagError(f"--warmup_proportion={warmup:g}: is a share of the steps, at most 1")
    if parts > examples:
        raise FlagError(f"--gradient_accumulation_steps={parts}: the batch has fewer examples, --train_batch_size={examples}")


def help_text() -> str:
    """Returns what --help prints."""
    lines = ["Fine-tunes BERT on a sentence task: python run_classifier.py --task_name=MRPC", ""]
    for group, rows in GROUPS.items():
        lines += [f"{group}:", *map(help_line, rows), ""]
    published = ", ".join(f"--{row.name}" for row in TPU)
    lines += ["--task_name=XNLI measures each language and their mean; the published script's XNLI is XNLI-zh here.", ""]
    return "\n".join([*lines, "Of the published script, without effect, since there is no TPU here:", f"  {published}", ""])


def seed_numbers(text: str) -> tuple[int, ...]:
    """Returns the numbers that --seeds names: 1,3,7-9.

    Raises:
      FlagError: it is written otherwise, or names too many, a number twice, or one that is too large.
    """
    seeds: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"\s*(\d{1,10})(?:-(\d{1,10}))?\s*", part, re.ASCII)
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
        if not first <= last <= LARGEST_SETTING:
            known = f"numbers up to {LARGEST_SETTING} with commas, or 1-5"
            raise FlagError(f"--seeds={text}: {part!r} is not a seed; write {known}")
        if len(seeds) + last - first >= _MOST_SEEDS:
            raise FlagError(f"--seeds={text}: more than {_MOST_SEEDS} seeds")
        seeds += range(first, last + 1)
    if len(set(seeds)) < len(seeds):
        raise FlagError(f"--seeds={text}: a seed is named twice")
    return tuple(seeds)


def _settings(values: dict[str, Any], parsed: flags.FlagValues) -> Settings:
    if values["seeds"] is not None and parsed["seed"].present:
        raise FlagError("--seed and --seeds exclude each other: name all of them with --seeds")
    values["seeds"] = () if values["seeds"] is None else seed_numbers(values["seeds"])
    actions = ("do_train", "do_eval", "do_predict")
    if not any(values[name] for name in actions):
        if any(parsed[name].present for name in actions):
            raise FlagError("nothing to do: at least one of --do_train, --do_eval and --do_predict must be true")
        values["do_train"] = values["do_eval"] = True
    if values.pop("published_layout"):
        exact = [name for name in EXACT if not parsed[name].present]
        values.update(dict.fromkeys(exact, False))
    if values["xla"]:  # it compiles once for each shape, and these make as many shapes as batches
        values.update(pack_tokens=False, defer_embeddings=False)
    if re.search(r"[*?[]", values["output_dir"] or ""):
        raise FlagError(f"--output_dir={values['output_dir']}: TensorFlow takes * ? [ in a name for a pattern; name another")
    values["output_dir"] = values["output_dir"] or f"out/{canonical_name(values['task_name']).lower()}"
    parts = (
        kind(**{field.name: values[field.name] for field in dataclasses.fields(kind)})
        for kind in (DataSettings, CustomSettings, ModelSettings, TrainSettings, SpeedSettings, DeviceSettings, JobSettings)
    )
    return Settings(*parts, given=frozenset(name for name in (*values, *(row.name for row in TPU)) if parsed[name].present))

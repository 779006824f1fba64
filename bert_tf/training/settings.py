"""Settings of fine-tuning in groups; imports no TensorFlow.

Flags of the published script keep its names, types and defaults (google-research/bert run_classifier.py).
"""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import ClassVar

from bert_tf import extension
from bert_tf.checkpoints.prefixes import refuse_missing_model
from bert_tf.config import MOST_LAYERS
from bert_tf.io import files
from bert_tf.io.log_form import FORMS, SHORT
from bert_tf.optimization import parts
from bert_tf.runtime.settings import DeviceSettings
from bert_tf.settings import MOST_EXAMPLES, group, learned_setting, same, setting, setting_names, training_setting
from bert_tf.tasks.registry import names_with_labels

POLYNOMIAL = "polynomial"
OPTIMIZERS = ADAMW, LAMB = "adamw", "lamb"
SCHEDULES = ("linear", "cosine", "constant", POLYNOMIAL)
TENSORFLOW, INT8 = "tensorflow", "int8"  # an engine; a precision of others, not for training
PRECISIONS = ("default", "float32", "tf32", "bfloat16", "float16")
_PRECISION = "number format of matrix products: default (tf32 on a GPU that has it), float32 (strict), tf32, bfloat16, float16"
LONG_TEXTS = ("truncate", "head_tail", "windows")


def _engines() -> tuple[str, ...]:
    return (TENSORFLOW, *extension.named("engines"))


def _precisions() -> tuple[str, ...]:
    return (*PRECISIONS, INT8) if extension.named("engines") else PRECISIONS


@dataclasses.dataclass(frozen=True)
class TaskAndFolder:
    # Extensions and programs add tasks.
    task_name: str | None = setting(None, lambda: f"required: {', '.join(names_with_labels())}", of_labels=True)
    data_dir: str | None = setting(
        None,
        "folder with train.tsv, dev.tsv, test.tsv; default: $GLUE_DIR/TASK, data/TASK or the sample",
        refuse_missing=files.refuse_missing_folder,
    )


@dataclasses.dataclass(frozen=True)
class TextSettings:
    """How a model reads texts, in training and afterwards."""

    max_seq_length: int = setting(128, "maximum input length in word pieces", of_recipes=True)
    long_text: str = setting(
        "truncate",
        f"longer inputs: {', '.join(LONG_TEXTS)} (the mean of their logits)",
        choices=LONG_TEXTS,
        of_labels=True,
    )
    do_lower_case: bool = setting(True, "lower-case the text, as uncased models require")


@dataclasses.dataclass(frozen=True)
class DataSettings(TextSettings, TaskAndFolder):
    """Task, data, texts and rows."""

    max_train_examples: int | None = training_setting(
        None, "train on the first N examples", lowest=1, of_labels=True, of_rows=True
    )


@dataclasses.dataclass(frozen=True)
class ModelSettings:
    init_checkpoint: str | None = setting(
        None,
        "checkpoint, folder or model of the Hugging Face hub (ORGANISATION/NAME, hub:NAME@REVISION) to start from or evaluate;"
        " default: $BERT_BASE_DIR or the default checkpoint",
        refuse_missing=refuse_missing_model,
    )
    bert_config_file: str | None = setting(
        None, "model configuration; default: beside the checkpoint", refuse_missing=files.refuse_missing
    )
    vocab_file: str | None = setting(
        None, "vocabulary of the model; default: beside the checkpoint", refuse_missing=files.refuse_missing
    )


@dataclasses.dataclass(frozen=True)
class ActionSettings:
    do_train: bool = setting(False, "train")
    do_eval: bool = setting(False, "evaluate on the dev split")
    do_predict: bool = setting(False, "predict the test split", of_labels=True)


@dataclasses.dataclass(frozen=True)
class UpdateSettings:
    """Steps, batches, learning rates and loss."""

    train_batch_size: int = learned_setting(32, "examples per step", lowest=1, highest=MOST_EXAMPLES, of_recipes=True)
    learning_rate: float = learned_setting(5e-5, "peak learning rate", lowest=0.0, of_recipes=True)
    num_train_epochs: float = learned_setting(3.0, "passes over the training data", lowest=0.0, of_recipes=True)
    num_train_steps: int | None = learned_setting(None, "training steps, instead of epochs", lowest=1)
    warmup_proportion: float = learned_setting(0.1, "fraction of steps with linear warm-up", lowest=0.0, highest=1.0)
    num_warmup_steps: int | None = learned_setting(None, "warm-up steps, instead of a fraction", lowest=0)
    learning_rate_schedule: str = learned_setting("linear", f"decay after warm-up: {', '.join(SCHEDULES)}", choices=SCHEDULES)
    polynomial_power: float = learned_setting(2.0, "power of the polynomial schedule", lowest=0.0)
    layer_decay: float = learned_setting(
        1.0,
        "learning rate of a layer relative to the layer above, at most 1; head and pooler use the full rate",
        above=0.0,
        highest=1.0,
    )
    freeze: str | None = learned_setting(
        None, "parts not to train: embeddings,0-5,pooler (layers by number)", check=parts.parse_frozen, of_recipes=True
    )
    reinit_layers: int = learned_setting(
        0,
        "top layers to reinitialize, together with the pooler; helps large models with few examples",
        lowest=0,
        highest=MOST_LAYERS,
        added_later=True,
    )
    gradient_accumulation_steps: int = training_setting(
        1, "micro-batches per step; memory use is that of one micro-batch", lowest=1
    )
    fit_memory: bool = training_setting(
        False, "choose micro-batches that fit into GPU memory; same as --train_batch_size=auto", resolved=True
    )
    check_memory: bool = training_setting(
        True, "reject a run that will not fit into GPU memory before the graph is built", resolved=True
    )
    recompute: bool = training_setting(
        False, "recompute activations in the backward pass (gradient checkpointing); less memory, slower"
    )
    optimizer: str = learned_setting(
        ADAMW, "adamw, or lamb for large batches (update scaled by the weight norm)", choices=OPTIMIZERS, added_later=True
    )
    adam_bias_correction: bool = learned_setting(False, "bias correction of Adam; off in published BERT")
    class_weights: str | None = learned_setting(
        None, "per-class loss weights: balanced, or one number per label, comma-separated", of_labels=True
    )
    label_smoothing: float = learned_setting(
        0.0,
        "share of a target that is spread evenly over all labels (docs/tasks.md)",
        lowest=0.0,
        of_labels=True,
        below=1.0,
        of_recipes=True,
    )
    seed: int = learned_setting(1, "random seed for the order of examples, dropout and new weights", lowest=0)

    @functools.cached_property
    def frozen(self) -> frozenset[parts.Part]:
        return parts.parse_frozen(self.freeze)


@dataclasses.dataclass(frozen=True)
class SavingSettings:
    """What is saved and logged; changes nothing that is learned."""

    save_checkpoints_steps: int = training_setting(
        1000, "steps between checkpoints; by default also every ten minutes", lowest=1
    )
    keep_checkpoint_max: int = training_setting(5, "checkpoints to keep; 0 for all", lowest=0)
    keep_optimizer_slots: bool = training_setting(False, "keep optimizer state in every checkpoint, including the last")
    log_every_n_steps: int | None = training_setting(
        None, "steps between log lines (loss, rate, speed); default: 50, or 20 lines in total", lowest=1
    )


@dataclasses.dataclass(frozen=True)
class MovingAverageSettings:
    ema: float | None = learned_setting(
        None,
        "decay of an exponential moving average of the weights, such as 0.999; saved in OUTPUT_DIR/ema and evaluated too",
        above=0.0,
        below=1.0,
    )


@dataclasses.dataclass(frozen=True)
class SelectionSettings:
    """Evaluations during training, and what they decide."""

    eval_every_n_steps: int = learned_setting(
        0, "steps between evaluations on the dev split; the best checkpoint is kept; 0: off", lowest=0
    )
    best_metric: str | None = learned_setting(
        None,
        "metric that selects the best checkpoint (ties: lower loss), or loss; default: the first metric",
        needs_evaluations=True,
    )
    target_metric: str | None = setting(
        None,
        "record when the dev split first reaches a value: accuracy:0.8, or loss:0.4 (at most)",
        needs_evaluations=True,
    )
    stop_at_target: bool = training_setting(False, "stop training at the target")
    early_stopping_patience: int = training_setting(
        0, "stop after N evaluations without improvement; 0: off", lowest=0, needs_evaluations=True
    )


@dataclasses.dataclass(frozen=True)
class TrainSettings(SelectionSettings, MovingAverageSettings, SavingSettings, UpdateSettings):
    """All of a training; the fields are in the order of the bases, last first."""


@dataclasses.dataclass(frozen=True)
class InferenceSettings:
    """Of evaluation and prediction."""

    eval_batch_size: int | None = setting(
        None, "batch size per device; default: by length and GPU memory", lowest=1, highest=MOST_EXAMPLES
    )
    predict_batch_size: int | None = setting(
        None, "batch size per device for prediction", lowest=1, highest=MOST_EXAMPLES, of_labels=True
    )
    submission_zip: bool = setting(False, "write submission.zip for the GLUE server", of_labels=True)


@dataclasses.dataclass(frozen=True)
class SpeedSettings:
    pack_tokens: bool = setting(True, "skip padding tokens", exact=True)
    last_layer_cls_only: bool = setting(True, "compute only [CLS] in the last layer if the head reads nothing else", exact=True)
    custom_gradients: bool = setting(True, "hand-written gradients for attention, GELU and LayerNorm", exact=True)
    native_kernels: bool = setting(True, "on CPUs with a C++ compiler: kernels compiled for this machine", exact=True)
    fused_adam: bool = setting(True, "one kernel per variable for the Adam update", exact=True)
    defer_embeddings: bool = setting(True, "defer updates of unused word embeddings until they are read", exact=True)
    pad_to_longest: bool = setting(True, "pad each batch to its longest example instead of --max_seq_length", exact=True)
    published_layout: bool = setting(False, "all of the above off, as in the published script; for comparison", resolved=True)
    group_by_length: bool = setting(False, "batch training examples of similar length", determines=True)
    xla: bool = setting(False, "compile with XLA; useful on GPUs; computes padding and updates all word embeddings")
    precision: str = setting("default", _PRECISION, choices=PRECISIONS, determines=True)


EXACT = setting_names(SpeedSettings, exact=True)


@dataclasses.dataclass(frozen=True)
class MachineSettings:
    """Machine settings of a batch job."""

    TITLE: ClassVar[str] = "Engine and precision"

    precision: str = same(SpeedSettings, "precision", more=f"; {INT8} with an --engine", choices=_precisions)
    engine: str = setting(
        TENSORFLOW, lambda: f"inference engine: {', '.join(_engines())} (auto: the fastest one installed)", choices=_engines
    )
    native_kernels: bool = same(SpeedSettings, "native_kernels")  # for CPUs with TensorFlow
    devices: DeviceSettings = group(
        DeviceSettings, without=setting_names(DeviceSettings, of_training=True)
    )  # all visible devices compute


@dataclasses.dataclass(frozen=True)
class OutputSettings:
    output_dir: str | None = setting(None, "folder for checkpoints and results; default: out/TASK", written=True)
    overwrite_output_dir: bool = setting(False, "replace a different run in the folder; the same run resumes")
    verbosity: int = setting(0, "-1: warnings, 0: log, 1: TensorFlow's messages too")
    log_form: str = setting(SHORT, "short, or published (the log lines of the published script)", choices=FORMS)

    @property
    def folder(self) -> Path:
        """`output_dir`, which `configured` always sets."""
        return Path(self.output_dir or "")


def with_threads(machine: MachineSettings, threads: int | None) -> MachineSettings:
    """Sets the threads of each process on a shared machine, unless given; None if unknown."""
    current = machine.devices
    devices = dataclasses.replace(
        current, intra_op_threads=current.intra_op_threads or threads, inter_op_threads=current.inter_op_threads or threads
    )
    return dataclasses.replace(machine, devices=devices)

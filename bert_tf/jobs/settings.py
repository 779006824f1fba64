"""Settings of fine-tuning in groups; imports no TensorFlow.

Flags of the published script keep its names, types and defaults (google-research/bert run_classifier.py).
"""

from __future__ import annotations

import dataclasses
import functools
import re
from pathlib import Path

from bert_tf.documents import LARGEST_SETTING
from bert_tf.errors import FlagError
from bert_tf.log_form import FORMS, SHORT
from bert_tf.optimization import parts
from bert_tf.profiling.timing.step_range import StepRange
from bert_tf.settings import MOST_EXAMPLES, setting
from bert_tf.tasks.registry import known_names

POLYNOMIAL = "polynomial"
OPTIMIZERS = ADAMW, LAMB = "adamw", "lamb"
SCHEDULES = ("linear", "cosine", "constant", POLYNOMIAL)
PRECISIONS = ("default", "float32", "tf32", "bfloat16", "float16")
LONG_TEXTS = ("truncate", "head_tail", "windows")
EXACT = (
    *("pack_tokens", "last_layer_cls_only", "custom_gradients", "native_kernels", "fused_adam", "defer_embeddings"),
    "pad_to_longest",
)

_MOST_SEEDS = 1000


@dataclasses.dataclass(frozen=True)
class DataSettings:
    task_name: str | None = setting(None, f"required: {', '.join(known_names())}")
    data_dir: str | None = setting(None, "folder of train.tsv, dev.tsv, test.tsv; else $GLUE_DIR/TASK, data/TASK, the sample")
    max_seq_length: int = setting(128, "longest input in word pieces")
    long_text: str = setting("truncate", f"of longer ones: {', '.join(LONG_TEXTS)} (not in training)", choices=LONG_TEXTS)
    do_lower_case: bool = setting(True, "lower-case the text, as uncased models want it")


@dataclasses.dataclass(frozen=True)
class ModelSettings:
    init_checkpoint: str | None = setting(
        None, "checkpoint or folder to start from or evaluate; else $BERT_BASE_DIR, the default"
    )
    bert_config_file: str | None = setting(None, "sizes of the model; else beside the checkpoint")
    vocab_file: str | None = setting(None, "word pieces of the model; else beside the checkpoint")


@dataclasses.dataclass(frozen=True)
class ActionSettings:
    do_train: bool = setting(False, "train")
    do_eval: bool = setting(False, "evaluate on the dev split")
    do_predict: bool = setting(False, "predict the test split")


@dataclasses.dataclass(frozen=True)
class TrainSettings:
    train_batch_size: int = setting(32, "examples of one step", lowest=1, highest=MOST_EXAMPLES)
    learning_rate: float = setting(5e-5, "peak learning rate", lowest=0.0)
    num_train_epochs: float = setting(3.0, "how often to see every example", lowest=0.0)
    num_train_steps: int | None = setting(None, "updates to take, in the place of epochs", lowest=1)
    warmup_proportion: float = setting(0.1, "share of the steps in which the learning rate rises", lowest=0.0)
    num_warmup_steps: int | None = setting(None, "how many steps these are, in the place of a share", lowest=0)
    learning_rate_schedule: str = setting("linear", f"how it falls then: {', '.join(SCHEDULES)}", choices=SCHEDULES)
    polynomial_power: float = setting(2.0, "power of the polynomial", lowest=0.0)
    layer_decay: float = setting(1.0, "rate of each layer in terms of the one above, up to 1; head and pooler have it all")
    freeze: str | None = setting(None, "parts that keep their weights: embeddings,0-5,pooler (layers by number)")
    gradient_accumulation_steps: int = setting(1, "micro-batches of a batch, to need the memory of one", lowest=1)
    fit_memory: bool = setting(False, "in micro-batches that fit into the memory of the GPU; or --train_batch_size=auto")
    check_memory: bool = setting(True, "on a GPU, refuse what will not fit into its memory, before the graph is built")
    recompute: bool = setting(False, "compute activations again for the gradient, to keep one layer's at a time; slower")
    optimizer: str = setting(ADAMW, "adamw, or lamb for large batches (update scaled by the weight norm)", choices=OPTIMIZERS)
    adam_bias_correction: bool = setting(False, "correct Adam's moments for their start at zero; off in the published BERT")
    class_weights: str | None = setting(None, "per-class loss weights: balanced, or one for each label with commas")
    label_smoothing: float = setting(0.0, "share of the target that is spread over all classes", lowest=0.0)
    seed: int = setting(1, "random seed for the order of examples, dropout and new weights", lowest=0)
    seeds: str | None = setting(None, "several, one after the other: 1-5, or 1,3,7-9; each in OUTPUT_DIR/seed-N; seeds.tsv")
    save_checkpoints_steps: int = setting(1000, "how often to save; where not given, every ten minutes as well", lowest=1)
    keep_checkpoint_max: int = setting(5, "how many checkpoints to keep; 0 for all", lowest=0)
    keep_optimizer_slots: bool = setting(False, "keep the optimizer's moments in every checkpoint, the last included")
    log_every_n_steps: int | None = setting(
        None, "how often to report loss, rate and speed; else every 50 steps or 20 times", lowest=1
    )
    ema: float | None = setting(
        None, "decay of a moving average of the weights, as 0.999; kept in OUTPUT_DIR/ema, evaluated beside them", lowest=0.0
    )
    average_last: int = setting(
        0, "mean of so many last checkpoints; in OUTPUT_DIR/average, evaluated beside the last; 0 never", lowest=0
    )
    eval_every_n_steps: int = setting(
        0, "how often to evaluate on the dev split; the best checkpoint is kept; 0 never", lowest=0
    )
    best_metric: str | None = setting(
        None, "what tells the best checkpoint: a metric (ties: less loss) or loss; else the first"
    )
    target_metric: str | None = setting(None, "note when the dev split first reaches this: accuracy:0.8, or loss:0.4 (at most)")
    stop_at_target: bool = setting(False, "end training there")
    early_stopping_patience: int = setting(0, "evaluations in a row without a better one that end training; 0 never", lowest=0)

    @functools.cached_property
    def frozen(self) -> frozenset[parts.Part]:
        return parts.parse_frozen(self.freeze)

    @functools.cached_property
    def seed_numbers(self) -> tuple[int, ...]:
        """Parsed `seeds`; empty for a single seed."""
        return () if self.seeds is None else seed_numbers(self.seeds)


@dataclasses.dataclass(frozen=True)
class InferenceSettings:
    eval_batch_size: int | None = setting(
        None, "examples at a time on each device; else by length, and a GPU's memory", lowest=1, highest=MOST_EXAMPLES
    )
    predict_batch_size: int | None = setting(None, "the same for prediction", lowest=1, highest=MOST_EXAMPLES)
    submission_zip: bool = setting(False, "pack the predictions for GLUE's server into submission.zip")


@dataclasses.dataclass(frozen=True)
class SpeedSettings:
    pack_tokens: bool = setting(True, "compute real tokens only, no padding")
    last_layer_cls_only: bool = setting(True, "compute of the last layer only [CLS], which the classifier reads")
    custom_gradients: bool = setting(True, "gradients by hand for attention, GELU and LayerNorm")
    native_kernels: bool = setting(True, "on CPUs with a C++ compiler: layers and update by kernels built for the machine")
    fused_adam: bool = setting(True, "one kernel a variable for the update")
    defer_embeddings: bool = setting(True, "make up for the updates of unused word vectors when they are next read")
    pad_to_longest: bool = setting(True, "pad a batch to its longest example, not to --max_seq_length")
    published_layout: bool = setting(False, "all of the above off, as the published script computes; to compare with")
    group_by_length: bool = setting(False, "train on examples of similar length together")
    xla: bool = setting(False, "compile the graph; worth it on a GPU; computes padding, updates all word vectors")
    precision: str = setting("default", "of matrix products: float32 (strict), tf32, bfloat16, float16", choices=PRECISIONS)


@dataclasses.dataclass(frozen=True)
class OutputSettings:
    output_dir: str | None = setting(None, "folder of checkpoints and results; else out/task")
    overwrite_output_dir: bool = setting(False, "delete another run that the folder holds; the same run continues")
    profile_steps: str | None = setting(None, "steps to record for profilers, 20-30: profile/, NVTX ranges (docs/profiling.md)")
    memory_trace_step: int | None = setting(
        None, "step whose memory to write: memory_trace_stepN.txt, live_memory_stepN.tsv", lowest=1
    )
    verbosity: int = setting(0, "-1 warnings only, 0 the log, 1 TensorFlow's too (examples.txt and variables.tsv: always)")
    log_form: str = setting(SHORT, "short, or published: the lines of the published script", choices=FORMS)

    @property
    def folder(self) -> Path:
        """`output_dir`, which `configured` always sets."""
        return Path(self.output_dir or "")

    @functools.cached_property
    def profiled(self) -> StepRange | None:
        return StepRange.parse("profile_steps", self.profile_steps) if self.profile_steps else None


def seed_numbers(text: str) -> tuple[int, ...]:
    """Parses --seeds, such as 1,3,7-9; FlagError for duplicates, too many or too large numbers."""
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

"""Memory forecast: whether a training step fits, what takes the memory, and what would help."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bert_tf import extension
from bert_tf.config import BertConfig
from bert_tf.errors import FlagError
from bert_tf.extensions.memory_plan import levers, search
from bert_tf.extensions.memory_plan.levers import Bought
from bert_tf.extensions.memory_plan.search import Combination
from bert_tf.head_spec import PRETRAINING, HeadSpec
from bert_tf.io import documents
from bert_tf.io.text_table import Printed, table
from bert_tf.library.keywords import takes
from bert_tf.operations.command import Actions, Call, Command
from bert_tf.optimization import parts
from bert_tf.profiling.forecast import fitting
from bert_tf.profiling.forecast.compute_options import ComputeOptions, Step, with_adapted
from bert_tf.profiling.forecast.fitting import MEBIBYTE
from bert_tf.profiling.forecast.step_peak import Forecast, forecast
from bert_tf.runtime.settings import DeviceSettings
from bert_tf.settings import Setting, changed, group, read_settings, same, setting
from bert_tf.tasks.registry import canonical_name, get_task
from bert_tf.tasks.settings import CUSTOM
from bert_tf.training.settings import EXACT, LAMB, DataSettings, SpeedSettings, TrainSettings

_LENGTHS = (64, 128, 256, 320, 384, 512)
_PARTS = ("weights", "slots", "gradients", "activations", "workspace")
_PLACES = 20  # default masked words per sequence in `pretrain`


# Extensions that train something else than the encoder's weights, and their settings.
_ADAPTS = {name: one for name, one in extension.installed().items() if one.adapts}
_Adapting = dataclasses.make_dataclass(
    "_Adapting", [(name, Any, group(one.settings)) for name, one in _ADAPTS.items()], frozen=True
)
_Adapting.__module__ = __name__  # for pickles; Python 3.11 and older name another


@dataclasses.dataclass(frozen=True)
class PlanSettings:
    bert_config_file: str = setting(None, "model configuration", required=True)
    gpu_memory_mb: int = setting(None, "memory for tensors per device in MiB, as logged by training", lowest=1, required=True)
    max_seq_length: int = same(DataSettings, "max_seq_length")
    train_batch_size: int = same(TrainSettings, "train_batch_size")
    gradient_accumulation_steps: int = same(TrainSettings, "gradient_accumulation_steps")
    recompute: bool = same(TrainSettings, "recompute")
    precision: str = same(SpeedSettings, "precision")
    freeze: str | None = same(TrainSettings, "freeze")
    pack_tokens: bool = same(SpeedSettings, "pack_tokens")
    last_layer_cls_only: bool = same(SpeedSettings, "last_layer_cls_only")
    custom_gradients: bool = same(SpeedSettings, "custom_gradients")
    fused_adam: bool = same(SpeedSettings, "fused_adam")
    optimizer: str = same(TrainSettings, "optimizer")
    defer_embeddings: bool = same(SpeedSettings, "defer_embeddings")
    published_layout: bool = same(SpeedSettings, "published_layout")
    ema: float | None = same(TrainSettings, "ema")
    eval_every_n_steps: int = same(TrainSettings, "eval_every_n_steps")
    gpu_memory_growth: bool = same(DeviceSettings, "gpu_memory_growth")
    task_name: str | None = setting(None, "task, such as SQuAD, whose head reads all tokens; default: two sentence classes")
    max_predictions_per_seq: int = setting(
        0, "masked words per row, with the pre-training head; default: 20 for that task", lowest=0
    )
    rows_per_example: float = setting(
        1.0,
        "mean rows of an example, at least 1: windows of a long text (--long_text=windows), options of a question",
        lowest=0,
    )
    padding: float = setting(0.0, "share of padding, 0 to 1; saved by --pack_tokens", lowest=0)
    extensions: Any = group(_Adapting)
    host_embeddings: bool = setting(False, "embeddings in host memory, as with --place=embeddings:/CPU:0")
    num_gpus: int = setting(1, "number of devices that share a batch", lowest=1)
    given: frozenset[str] = frozenset()  # names of explicitly given settings

    def __post_init__(self) -> None:
        if self.host_embeddings and self.num_gpus > 1:
            raise FlagError("--host_embeddings is for one device, as --place: leave out --num_gpus")
        if not 0.0 <= self.padding < 1.0:  # nan is neither
            raise FlagError(f"--padding={self.padding:g}: must be at least 0 and less than 1")
        if not 1.0 <= self.rows_per_example < math.inf:
            raise FlagError(f"--rows_per_example={self.rows_per_example:g}: must be at least 1")
        if self.gradient_accumulation_steps * self.num_gpus > self.train_batch_size:
            raise FlagError(f"--train_batch_size={self.train_batch_size}: fewer examples than micro-batches on all devices")


@dataclasses.dataclass(frozen=True)
class Plan(Printed):
    step: Step
    memory: int  # bytes
    found: Forecast
    fits: bool
    largest: Mapping[int, int]  # batch by length
    levers: Sequence[Bought]
    combinations: Sequence[Combination]  # if it does not fit

    def __str__(self) -> str:
        return "\n".join(_lines(self)) + "\n"


@takes(PlanSettings)
def memory_plan(**settings: Any) -> Plan:
    """Forecasts whether a training step fits into memory, and what helps; as `python -m bert_tf memory plan`.

        bert_tf.memory_plan(bert_config_file="bert_config.json", gpu_memory_mb=5175, train_batch_size=12).fits

    Args:
      **settings: the command's flags, by name.

    Raises:
      BertError: a setting is invalid, or the model's file cannot be read.
    """
    return make_plan(read_settings(PlanSettings, settings))


def make_plan(settings: PlanSettings) -> Plan:
    step, memory = _step(settings), settings.gpu_memory_mb * MEBIBYTE
    fits = fitting.fits(step, memory)
    lengths = sorted({*(length for length in _LENGTHS if length <= step.config.max_position_embeddings), step.tokens})
    return Plan(
        step,
        memory,
        forecast(*step),
        fits,
        {length: fitting.largest_batch(step._replace(tokens=length), memory) for length in lengths},
        levers.bought(step, memory),
        [] if fits else search.cheapest(step, memory),
    )


def as_json(plan: Plan) -> str:
    step, adapted = plan.step, plan.step.options.adapted
    return documents.to_json(
        {
            "fits": plan.fits,
            "peak_bytes": plan.found.peak,
            "memory_bytes": plan.memory,
            "fragmentation_bytes": plan.found.gaps,
            "needed_bytes": plan.found.needed,
            "by_part": {part: getattr(plan.found, part) for part in _PARTS},
            "moment": plan.found.moment,
            "max_seq_length": step.tokens,
            "train_batch_size": step.batch_size,
            "options": {
                **dataclasses.asdict(step.options),
                "frozen": sorted(map(str, step.options.frozen)),
                "adapted": adapted and {**adapted._asdict(), "reads": sorted(adapted.reads)},
            },
            "largest_batch": {str(length): batch for length, batch in plan.largest.items()},
            "levers": [bought._asdict() for bought in plan.levers],
            "combinations": [combination._asdict() for combination in plan.combinations],
        },
        indent=2,
    )


def _lines(plan: Plan) -> Iterator[str]:
    config, tokens, batch_size, options = plan.step
    usage, memory = plan.found, plan.memory
    heads, words = config.num_attention_heads, config.vocab_size
    yield f"{config.num_hidden_layers} layers, hidden {config.hidden_size}, {heads} heads, vocabulary {words}"
    rows = f" with {options.rows_per_example:g} rows each" if options.rows_per_example > 1.0 else ""
    yield f"sequence {tokens}, batch {batch_size}{rows}; memory {_mb(memory)} MiB"
    yield ""
    yield f"{'part':<12}{'MiB':>10}"
    for part in _PARTS:
        yield f"{part:<12}{_mb(getattr(usage, part)):>10}"
    yield f"{'peak':<12}{_mb(usage.peak):>10}   {usage.moment}"
    yield f"{'needed':<12}{_mb(usage.needed):>10}   of which {_mb(usage.gaps)} MiB are for rounding and fragmentation"
    yield ""
    room = memory - usage.needed
    yield f"fits, {_mb(room)} MiB to spare" if plan.fits else f"does not fit: {_mb(-room)} MiB too much"
    yield ""
    yield f"{'sequence':<15}" + "".join(f"{length:>8}" for length in plan.largest)
    yield f"{'largest batch':<15}" + "".join(f"{batch:>8}" for batch in plan.largest.values())
    yield ""
    width = max((len(bought.flag) for bought in plan.levers), default=0)
    if plan.levers:
        yield f"{f'one more at sequence {tokens}':<{width}}{'peak, MiB':>11}{'saved':>9}{'largest batch':>15}"
    for bought in plan.levers:
        saved = _mb(usage.peak - bought.peak)
        yield f"{bought.flag:<{width}}{_mb(bought.peak):>11}{saved:>9}{bought.largest_batch:>15}"
    if not plan.fits:
        yield ""
        yield from _combinations(plan.combinations)


def _combinations(combinations: Sequence[Combination]) -> Iterator[str]:
    if not combinations:
        yield "no combination of flags makes it fit: use a smaller model"
        return
    rows = [(" ".join(c.flags), _mb(c.peak), f"{c.slowdown:.2f} x", "; ".join(c.changes) or "the same") for c in combinations]
    yield from table(("what fits, the cheapest first", "peak, MiB", "time, estimate", "result"), rows, left=(0, 3))


def _step(settings: PlanSettings) -> Step:
    config = BertConfig.from_json_file(settings.bert_config_file)
    tokens = settings.max_seq_length
    if "max_seq_length" not in settings.given:
        tokens = min(tokens, config.max_position_embeddings)
    if not 1 <= tokens <= config.max_position_embeddings:
        raise FlagError(f"--max_seq_length={tokens}: must be 1 to {config.max_position_embeddings}, the positions of the model")
    head, places = _head(settings)
    frozen = TrainSettings(freeze=settings.freeze).frozen
    parts.check_layers(frozen, config.weighted_layers, shared=config.weighted_layers < config.num_hidden_layers)
    options = ComputeOptions(
        micro_batches=settings.gradient_accumulation_steps,
        most_rows=math.ceil(settings.rows_per_example),
        frozen=frozen,
        replicas=settings.num_gpus,
        lamb=settings.optimizer == LAMB,
        averages=settings.ema is not None,
        evaluates=settings.eval_every_n_steps > 0,
        growth=settings.gpu_memory_growth,
        **{
            name: getattr(settings, name)
            for name in ("recompute", "precision", "padding", "rows_per_example", "host_embeddings")
        },
        **_exact(settings),
    )
    if head is not None:
        options = _with_head(head, dataclasses.replace(options, places=places), config)
    return Step(config, tokens, settings.train_batch_size, _adapted(options, settings, config))


def _adapted(options: ComputeOptions, settings: PlanSettings, config: BertConfig) -> ComputeOptions:
    every = {name: getattr(settings.extensions, name) for name in _ADAPTS}
    asked = {name: adaptation for name, adaptation in every.items() if changed(adaptation)}
    for adaptation in asked.values():
        adaptation.check(None)
    return with_adapted(options, asked, config)


def _head(settings: PlanSettings) -> tuple[HeadSpec | None, int]:
    """Returns the head (None for two classes), and the number of masked words per sequence."""
    name, places = settings.task_name, settings.max_predictions_per_seq
    if name is None:
        return (HeadSpec(2, PRETRAINING), places) if places else (None, 0)
    if canonical_name(name) == CUSTOM:
        raise FlagError(f"--task_name={name}: leave it out for classes of texts; else name a task of that kind, such as SQuAD")
    head = get_task(name).family.head
    if head.kind == PRETRAINING:
        return head, places or _PLACES
    if places:
        raise FlagError(f"--max_predictions_per_seq is for pre-training, --task_name={name} for another task: give one of them")
    return head, 0


def _with_head(head: HeadSpec, options: ComputeOptions, config: BertConfig) -> ComputeOptions:
    from bert_tf.modeling.heads import registry as heads
    from bert_tf.training.memory_preflight import with_head  # these import TensorFlow

    return with_head(options, heads.make_head(head), config)


def _exact(settings: PlanSettings) -> dict[str, Any]:
    """Options that change no result; off by default in the published layout."""
    names = {field.name for field in dataclasses.fields(ComputeOptions)}.intersection(EXACT)
    off = settings.published_layout
    return {name: getattr(settings, name) and not (off and name not in settings.given) for name in names}


def _mb(size: float) -> str:
    return f"{size / MEBIBYTE:.0f}"


def _print(call: Call) -> int:
    plan = make_plan(call.settings)
    print(as_json(plan) + "\n" if call.own["json"] else plan, end="")
    return 0 if plan.fits else 1


MEMORY = Actions("Shows or forecasts what uses the memory of a training step (docs/memory.md).", {})  # what extensions add
PLAN = Command(
    "forecasts whether training fits; exit status 0 if it fits, 1 if not",
    PlanSettings,
    _print,
    example="python -m bert_tf memory plan --bert_config_file=bert_config.json --gpu_memory_mb=5175 --train_batch_size=12",
    first=("bert_config_file", "gpu_memory_mb", "max_seq_length", "train_batch_size", "precision"),
    own=(Setting("json", bool, False, "print one JSON object instead, sizes in bytes"),),
    log=False,
)

"""Memory forecast: whether a training step fits, what takes the memory, and what would help."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bert_tf import documents
from bert_tf.config import BertConfig
from bert_tf.errors import FlagError
from bert_tf.head_spec import PRETRAINING, HeadSpec
from bert_tf.jobs.fine_tune_config import SETTINGS as FINE_TUNING
from bert_tf.jobs.settings import EXACT, LAMB, TrainSettings
from bert_tf.optimization import parts
from bert_tf.profiling.forecast import fitting, search
from bert_tf.profiling.forecast.compute_options import ComputeOptions, Step
from bert_tf.profiling.forecast.fitting import MEBIBYTE, Bought
from bert_tf.profiling.forecast.search import Combination
from bert_tf.profiling.forecast.step_peak import Forecast, forecast
from bert_tf.settings import Setting, named
from bert_tf.tasks.registry import get_task
from bert_tf.text_table import table

_PARTS = ("weights", "slots", "gradients", "activations", "workspace")
_AS_IN_TRAINING = (
    "max_seq_length",
    "train_batch_size",
    "gradient_accumulation_steps",
    "recompute",
    "precision",
    "freeze",
    "pack_tokens",
    "last_layer_cls_only",
    "custom_gradients",
    "fused_adam",
    "optimizer",
    "defer_embeddings",
    "published_layout",
    "ema",
    "eval_every_n_steps",
    "gpu_memory_growth",
)
_PLACES = 20  # hidden words of a sequence that `pretrain` takes, where none are said
_TRAINING = {row.name: row for row in FINE_TUNING}
SETTINGS = (
    Setting("bert_config_file", str, None, "sizes of the model (required)"),
    Setting("gpu_memory_mb", int, None, "memory for tensors on each device, in MiB (required); the log of training has it", 1),
    *(_TRAINING[name] for name in _AS_IN_TRAINING),
    Setting("task_name", str, None, "what is learned, as SQuAD, whose head reads all tokens; else two classes of sentences"),
    Setting("max_predictions_per_seq", int, 0, "masked words of a row, with the head of pre-training; else 20 of that task", 0),
    Setting("padding", float, 0.0, "share of all positions that is padding, 0 to 1; --pack_tokens saves it", 0),
    Setting("host_embeddings", bool, False, "embeddings in the memory of the host, as --place=embeddings:/CPU:0"),
    Setting("num_gpus", int, 1, "devices that share a batch", 1),
)  # fmt: skip


class Request(NamedTuple):
    config: BertConfig
    tokens: int
    batch_size: int
    memory: int  # bytes
    options: ComputeOptions


@dataclasses.dataclass(frozen=True)
class Plan:
    request: Request
    found: Forecast
    fits: bool
    largest: Mapping[int, int]  # batch by length
    levers: Sequence[Bought]
    combinations: Sequence[Combination]  # where it does not fit

    def __str__(self) -> str:
        return describe(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(describe(self))}</pre>"


def make_plan(request: Request) -> Plan:
    config, tokens, batch_size, memory, options = request
    step = Step(config, tokens, batch_size, options)
    fits = fitting.fits(step, memory)
    lengths = [length for length in fitting.LENGTHS if length <= config.max_position_embeddings]
    return Plan(
        request,
        forecast(*step),
        fits,
        {length: fitting.largest_batch(step._replace(tokens=length), memory) for length in lengths},
        fitting.bought(step, memory),
        [] if fits else search.cheapest(step, memory),
    )


def as_json(plan: Plan) -> str:
    request = plan.request
    return documents.to_json(
        {
            "fits": plan.fits,
            "peak_bytes": plan.found.peak,
            "memory_bytes": request.memory,
            "fragmentation_bytes": plan.found.gaps,
            "needed_bytes": plan.found.needed,
            "by_part": {part: getattr(plan.found, part) for part in _PARTS},
            "moment": plan.found.moment,
            "max_seq_length": request.tokens,
            "train_batch_size": request.batch_size,
            "options": {**dataclasses.asdict(request.options), "frozen": sorted(map(str, request.options.frozen))},
            "largest_batch": {str(length): batch for length, batch in plan.largest.items()},
            "levers": [bought._asdict() for bought in plan.levers],
            "combinations": [combination._asdict() for combination in plan.combinations],
        },
        indent=2,
    )


def describe(plan: Plan) -> str:
    return "\n".join(_lines(plan)) + "\n"


def _lines(plan: Plan) -> Iterator[str]:
    config, tokens, batch_size, memory, _ = plan.request
    found = plan.found
    heads, words = config.num_attention_heads, config.vocab_size
    yield f"{config.num_hidden_layers} layers, hidden {config.hidden_size}, {heads} heads, vocabulary {words}"
    yield f"sequence {tokens}, batch {batch_size}; memory {_mb(memory)} MiB"
    yield ""
    yield f"{'part':<12}{'MiB':>10}"
    for part in _PARTS:
        yield f"{part:<12}{_mb(getattr(found, part)):>10}"
    yield f"{'peak':<12}{_mb(found.peak):>10}   {found.moment}"
    yield f"{'needed':<12}{_mb(found.needed):>10}   of which {_mb(found.gaps)} MiB are for rounding and fragmentation"
    yield ""
    room = memory - found.needed
    yield f"fits, {_mb(room)} MiB to spare" if plan.fits else f"does not fit: {_mb(-room)} MiB too much"
    yield ""
    yield f"{'sequence':<15}" + "".join(f"{length:>8}" for length in plan.largest)
    yield f"{'largest batch':<15}" + "".join(f"{batch:>8}" for batch in plan.largest.values())
    yield ""
    width = max((len(bought.flag) for bought in plan.levers), default=0)
    if plan.levers:
        yield f"{f'one more at sequence {tokens}':<{width}}{'peak, MiB':>11}{'saved':>9}{'largest batch':>15}"
    for bought in plan.levers:
        saved = _mb(found.peak - bought.peak)
        yield f"{bought.flag:<{width}}{_mb(bought.peak):>11}{saved:>9}{bought.largest_batch:>15}"
    if not plan.fits:
        yield ""
        yield from _combinations(plan.combinations)


def _combinations(found: Sequence[Combination]) -> Iterator[str]:
    if not found:
        yield "no combination of flags makes it fit: take a smaller model"
        return
    rows = [(" ".join(c.flags), _mb(c.peak), f"{c.slowdown:.2f} x", "; ".join(c.changes) or "the same") for c in found]
    yield from table(("what fits, the cheapest first", "peak, MiB", "time, estimate", "result"), rows, left=(0, 3))


def configured(**values: Any) -> Request:
    """Makes a request from settings; options that change no number default to off in the published layout."""
    given = named(SETTINGS, values)
    chosen = {**{row.name: row.default for row in SETTINGS}, **given}
    for row in SETTINGS[:2]:
        if chosen[row.name] is None:
            raise FlagError(f"--{row.name} is required: {row.help}")
    config = BertConfig.from_json_file(chosen["bert_config_file"])
    tokens, batch_size = chosen["max_seq_length"], chosen["train_batch_size"]
    if "max_seq_length" not in given:
        tokens = min(tokens, config.max_position_embeddings)
    if not 1 <= tokens <= config.max_position_embeddings:
        raise FlagError(f"--max_seq_length={tokens}: the model knows 1 to {config.max_position_embeddings} positions")
    head, places = _head_of(chosen)
    if not 0.0 <= chosen["padding"] < 1.0:  # nan is neither
        raise FlagError(f"--padding={chosen['padding']:g}: is a share of all positions, at least 0 and less than 1")
    frozen = TrainSettings(freeze=chosen["freeze"]).frozen
    parts.check_layers(frozen, config.num_hidden_layers)
    pieces = chosen["gradient_accumulation_steps"]
    if pieces * chosen["num_gpus"] > batch_size:
        raise FlagError(f"--train_batch_size={batch_size}: fewer examples than micro-batches on all devices")
    options = ComputeOptions(
        micro_batches=pieces,
        frozen=frozen,
        replicas=chosen["num_gpus"],
        lamb=chosen["optimizer"] == LAMB,
        averages=chosen["ema"] is not None,
        evaluates=chosen["eval_every_n_steps"] > 0,
        growth=chosen["gpu_memory_growth"],
        **{name: chosen[name] for name in ("recompute", "precision", "padding", "host_embeddings")},
        **_exact(chosen, given),
    )
    if head is not None:
        options = _with_head_of(head, dataclasses.replace(options, places=places), config)
    return Request(config, tokens, batch_size, chosen["gpu_memory_mb"] * MEBIBYTE, options)


def _head_of(chosen: Mapping[str, Any]) -> tuple[HeadSpec | None, int]:
    """Returns the head (None for two classes), and the number of hidden words of a sequence that it reads."""
    name, places = chosen["task_name"], chosen["max_predictions_per_seq"]
    if name is None:
        return (HeadSpec(2, PRETRAINING), places) if places else (None, 0)
    head = get_task(name).family.head
    if head.kind == PRETRAINING:
        return head, places or _PLACES
    if places:
        raise FlagError(f"--max_predictions_per_seq is of pre-training, --task_name={name} of a task: give one of them")
    return head, 0


def _with_head_of(head: HeadSpec, options: ComputeOptions, config: BertConfig) -> ComputeOptions:
    from bert_tf.jobs.head_memory import with_head  # these import TensorFlow
    from bert_tf.modeling.heads import registry as heads

    return with_head(options, heads.of(head), config)


def _exact(chosen: Mapping[str, Any], given: Container[str]) -> dict[str, Any]:
    """Options that change no number; off by default in the published layout."""
    known = {field.name for field in dataclasses.fields(ComputeOptions)}
    names = [name for name in EXACT if name in known]
    published = chosen["published_layout"]
    return {name: chosen[name] and not (published and name not in given) for name in names}


def _mb(size: float) -> str:
    return f"{size / MEBIBYTE:.0f}"

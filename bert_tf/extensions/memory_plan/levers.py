"""The saving of each lever: a flag of the training command that reduces memory."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from bert_tf.profiling.forecast.activations import FLOAT
from bert_tf.profiling.forecast.compute_options import BYTES, EMBEDDINGS, POOLER, Part, Step
from bert_tf.profiling.forecast.fitting import largest_batch, most_parts
from bert_tf.profiling.forecast.step_peak import can_spare, forecast

HOSTED = "--place=embeddings:/CPU:0"


class Bought(NamedTuple):
    """Effect of a lever on a step."""

    flag: str
    peak: int  # bytes
    largest_batch: int


def levers(step: Step) -> dict[str, Step]:
    """Returns ways to reduce memory: flags of the training command, and the step with each."""
    options = step.options
    half_frozen = options.frozen | {EMBEDDINGS, *range(step.config.weighted_layers // 2)}
    parts = (count for count in (2 * options.micro_batches, 4 * options.micro_batches) if count <= most_parts(step))
    changes: dict[str, dict[str, Any]] = {
        **{f"--gradient_accumulation_steps={count}": {"micro_batches": count} for count in parts},
        "--recompute": {"recompute": True},
        "--precision=bfloat16": {"precision": "bfloat16" if BYTES[options.precision] == FLOAT else options.precision},
        f"--freeze={written(half_frozen)}": {"frozen": half_frozen} if can_freeze(step, half_frozen) else {},
        HOSTED: {"host_embeddings": True} if options.replicas == 1 else {},
        "--pack_tokens": {"pack_tokens": True},
        "--custom_gradients": {"custom_gradients": True},
        "--last_layer_cls_only": {"last_layer_cls_only": True} if can_spare(step.config, options) else {},
        "--fused_adam": {"fused_adam": True},
    }
    changed = {flag: step.having(**change) for flag, change in changes.items()}
    return {flag: other for flag, other in changed.items() if other != step}


def can_freeze(step: Step, frozen: Collection[Part]) -> bool:
    """Whether something of an adapted encoder is still trained."""
    adapted = step.options.adapted
    return adapted is None or any(part not in frozen for part, _ in adapted.added)


def written(frozen: Collection[Part]) -> str:
    """Formats parts for --freeze: embeddings,0-5,pooler."""
    layers = sorted(part for part in frozen if isinstance(part, int))
    first = [layer for layer in layers if layer - 1 not in layers]
    last = [layer for layer in layers if layer + 1 not in layers]
    spans = [str(a) if a == b else f"{a}-{b}" for a, b in zip(first, last)]
    return ",".join([*[EMBEDDINGS] * (EMBEDDINGS in frozen), *spans, *[POOLER] * (POOLER in frozen)])


def bought(step: Step, memory: int) -> list[Bought]:
    """Returns the effect of each lever."""
    return [Bought(flag, forecast(*other).peak, largest_batch(other, memory)) for flag, other in levers(step).items()]

"""The cheapest combinations of flags with which a training step fits into a device's memory.

Combinations that keep the result (except rounding, and dropout, which is drawn per micro-batch) come first, then
those with the fewest changes, each in order of time. Imports no TensorFlow.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from bert_tf.extensions.memory_plan import levers
from bert_tf.profiling.forecast import fitting
from bert_tf.profiling.forecast.activations import FLOAT
from bert_tf.profiling.forecast.compute_options import BYTES, EMBEDDINGS, Step
from bert_tf.profiling.forecast.fitting import fits
from bert_tf.profiling.forecast.step_peak import forecast

_LAYOUT = ("pack_tokens", "last_layer_cls_only", "custom_gradients", "fused_adam")  # faster and smaller, and the same result
_LENGTHS_APART = 32
_SHARES = 32  # steps from the mildest changes to the harshest
_FEWER = "each example is compared with fewer others"  # those of its part of the batch
# Assumed cost of each part of a batch after the first: gradients are summed, and small batches use a device less well.
# A GPU that small parts leave idle loses more.
_PER_PART = 0.01


class Combination(NamedTuple):
    """A way to make a step fit."""

    flags: tuple[str, ...]  # of the training command, added or replaced
    changes: tuple[str, ...]  # effects on the result; empty if it stays the same
    peak: int  # forecast, in bytes
    slowdown: float  # estimated time per example relative to the request


# Levels of one kind of change, the mildest first: the flag, and its effect on a step.
_Levels = Sequence[tuple[str, Callable[[Step], Step]]]


def cheapest(asked: Step, memory: int) -> list[Combination]:
    """Returns combinations that fit into `memory` bytes, the cheapest first; each needs all of its flags."""
    return _exact(asked, memory) or _changed(asked, memory) or _hosted(asked, memory)


def remedies(asked: Step, memory: int) -> list[str]:
    """Flags of each of these combinations, and their effects on the result."""
    return [
        " ".join(combination.flags) + (f" ({'; '.join(combination.changes)})" if combination.changes else "")
        for combination in cheapest(asked, memory)
    ]


def _exact(asked: Step, memory: int) -> list[Combination]:
    """Combinations that keep the result, without those whose kinds of flags include all of another's."""
    minimal: list[Combination] = []
    for combination in sorted(_exact_for(asked, asked, memory), key=lambda c: (len(c.flags), c.slowdown)):
        if not any(_kinds(other) <= _kinds(combination) for other in minimal):
            minimal.append(combination)
    return sorted(minimal, key=_cost)


def _changed(asked: Step, memory: int) -> list[Combination]:
    """The cheapest combination for each minimal set of changes that fits."""
    kinds: dict[str, _Levels] = {  # the mildest first: fully training the same model on whole texts is preferred
        "activations are rounded to half precision": list(_precisions(asked)),
        "smaller batches, so more steps an epoch": list(_batches(asked)),
        "frozen parts keep their weights": list(_frozen(asked)),
        "longer texts are cut off": list(_lengths(asked)),
    }
    best_by_changes: dict[frozenset[str], Combination] = {}
    for count in range(1, len(kinds) + 1):
        for names in itertools.combinations(kinds, count):
            if not any(known < set(names) for known in best_by_changes):
                best = _mildest(asked, [kinds[name] for name in names], memory)
                if best is not None:
                    best_by_changes[frozenset(names)] = best._replace(changes=(*names, *best.changes))
    return list(best_by_changes.values())


def _hosted(asked: Step, memory: int) -> list[Combination]:
    """Combinations that move the embeddings to host memory, if possible and not yet done."""
    if asked.options.host_embeddings or asked.options.replicas > 1:
        return []
    combinations = cheapest(asked.having(host_embeddings=True), memory)
    return [combination._replace(flags=(levers.HOSTED, *combination.flags)) for combination in combinations]


def _exact_for(step: Step, asked: Step, memory: int) -> Iterator[Combination]:
    """Yields, for each way to compute a step, the fewest micro-batches that fit."""
    off = [name for name in _LAYOUT if not getattr(step.options, name)]
    recomputes = [[], ["recompute"]] if not step.options.recompute else [[]]
    for layout, recompute in itertools.product([[], off] if off else [[]], recomputes):
        fit = fitting.in_fewest_parts(step.having(**dict.fromkeys([*layout, *recompute], True)), memory)
        if fit is not None:
            parts = fit.options.micro_batches
            again = [f"--gradient_accumulation_steps={parts}"] if parts != asked.options.micro_batches else []
            done = _without_needless(fit, layout, memory)
            on = [name for name in layout if getattr(done.options, name)]
            flags = (*(f"--{name}" for name in [*on, *recompute]), *again)
            changes = (_FEWER,) if again and asked.options.fewest_examples > 1 else ()
            yield Combination(flags, changes, forecast(*done).peak, slowdown(asked, done))


def _without_needless(step: Step, layout: Sequence[str], memory: int) -> Step:
    for name in layout:
        without = step.having(**{name: False})
        step = without if fits(without, memory) else step
    return step


def _mildest(asked: Step, kinds: Sequence[_Levels], memory: int) -> Combination | None:
    """Returns the cheapest combination with the mildest levels of all these changes; None if the harshest do not fit."""
    if not all(kinds):
        return None

    def at(share: int) -> list[int]:
        return [(len(levels) - 1) * share // _SHARES for levels in kinds]

    def changed(places: Sequence[int]) -> Step:
        return functools.reduce(lambda step, level: level[1](step), _levels_at(kinds, places), asked)

    def can_fit(places: Sequence[int]) -> bool:
        """Whether the step fits with everything else done: recomputed, in one or the most micro-batches."""
        step = changed(places)
        least = step.having(recompute=True, **dict.fromkeys(_LAYOUT, True))
        most = max(1, fitting.most_parts(step))
        return any(fits(least.having(micro_batches=parts), memory) for parts in {step.options.micro_batches, most})

    share = fitting.first(0, _SHARES, lambda share: can_fit(at(share)))
    if share is None:
        return None
    places = at(share)
    for number in reversed(range(len(kinds))):  # makes each kind milder by itself if possible, the harshest (last) first
        places[number] = _mildest_of_one(places, number, can_fit)
    best = min(_exact_for(changed(places), asked, memory), key=_cost)
    return best._replace(flags=(*(flag for flag, _ in _levels_at(kinds, places)), *best.flags))


def _mildest_of_one(places: Sequence[int], number: int, can_fit: Callable[[Sequence[int]], bool]) -> int:
    return fitting.first(0, places[number], lambda index: can_fit([*places[:number], index, *places[number + 1 :]])) or 0


def _levels_at(kinds: Sequence[_Levels], places: Sequence[int]) -> _Levels:
    return [levels[index] for levels, index in zip(kinds, places)]


def _precisions(asked: Step) -> Iterator[tuple[str, Callable[[Step], Step]]]:
    if BYTES[asked.options.precision] == FLOAT:
        yield "--precision=bfloat16", lambda step: step.having(precision="bfloat16")


def _batches(asked: Step) -> Iterator[tuple[str, Callable[[Step], Step]]]:
    size = asked.batch_size // 2
    while size >= asked.options.replicas * asked.options.fewest_examples:
        yield f"--train_batch_size={size}", functools.partial(_smaller, batch_size=size)
        size //= 2


def _frozen(asked: Step) -> Iterator[tuple[str, Callable[[Step], Step]]]:
    before = asked.options.frozen
    for count in range(asked.config.weighted_layers + 1):
        parts = before | {EMBEDDINGS, *range(count)}
        if parts != before and levers.can_freeze(asked, parts):
            yield f"--freeze={levers.written(parts)}", functools.partial(Step.having, frozen=parts)


def _lengths(asked: Step) -> Iterator[tuple[str, Callable[[Step], Step]]]:
    if asked.options.rows_per_example > 1.0 or asked.options.most_rows > 1:  # shorter windows are more
        return
    for tokens in range((asked.tokens - 1) // _LENGTHS_APART * _LENGTHS_APART, 0, -_LENGTHS_APART):
        yield f"--max_seq_length={tokens}", functools.partial(_cut, tokens=tokens)


def _smaller(step: Step, batch_size: int) -> Step:
    smaller = step._replace(batch_size=batch_size)
    return smaller.having(micro_batches=min(step.options.micro_batches, max(1, fitting.most_parts(smaller))))


def _cut(step: Step, tokens: int) -> Step:
    """Shortens the sequences; they keep as many real tokens as fit."""
    real = step.tokens * (1.0 - step.options.padding)
    return step.having(padding=max(0.0, 1.0 - real / tokens))._replace(tokens=tokens)


def _kinds(combination: Combination) -> frozenset[str]:
    return frozenset(flag.partition("=")[0] for flag in combination.flags)


def _cost(combination: Combination) -> tuple[float, int]:
    return combination.slowdown, len(combination.flags)


def slowdown(asked: Step, other: Step) -> float:
    """Time per example of `other` relative to `asked`; half precision counts as no faster (device-dependent)."""
    return _multiplications(other) / _multiplications(asked)


def _multiplications(step: Step) -> float:
    """Returns the encoder's multiplications per example: one pass for the output, one more for each gradient."""
    last = step.config.num_hidden_layers - 1
    frozen = {number for number in range(last + 1) if step.config.weights_of_layer(number) in step.options.frozen}
    trained = [number for number in range(last + 1) if number not in frozen]
    lowest = 0 if EMBEDDINGS not in step.options.frozen else min(trained, default=last + 1)  # gradients are needed down to it
    passes = 0
    for number in range(last + 1):
        again = step.options.recompute and lowest <= number < last
        passes += 1 + (number >= lowest) + (number not in frozen) + again
    hidden, tokens = step.config.hidden_size, step.tokens
    dense = 4 * hidden**2 + 2 * hidden * step.config.intermediate_size
    of_layer = tokens * (dense + 2 * tokens * hidden)
    return passes * of_layer * (1.0 + _PER_PART * (step.options.micro_batches - 1))

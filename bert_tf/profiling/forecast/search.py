"""The cheapest combinations of flags with which a training step fits into a device's memory.

Combinations that keep the result (except rounding, and dropout, which is drawn per micro-batch) come first, then
those with the fewest changes, each in order of time. Imports no TensorFlow.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from bert_tf.config import BertConfig
from bert_tf.profiling.forecast import fitting
from bert_tf.profiling.forecast.activations import FLOAT
from bert_tf.profiling.forecast.compute_options import BYTES, EMBEDDINGS
from bert_tf.profiling.forecast.effort import Step, slowdown
from bert_tf.profiling.forecast.step_peak import Forecast, forecast

_LAYOUT = ("pack_tokens", "last_layer_cls_only", "custom_gradients", "fused_adam")  # faster and smaller, and the same result
_LENGTHS_APART = 32
_SHARES = 32  # steps of the way from the mildest changes to the harshest


class Combination(NamedTuple):
    """A way to make a step fit."""

    flags: tuple[str, ...]  # of the training command, added or replaced
    changes: tuple[str, ...]  # effects on the result; empty if it stays the same
    peak: int  # forecast, in bytes
    slowdown: float  # estimated time per example relative to the request


class _Level(NamedTuple):
    """One degree of a change of the result."""

    flag: str
    apply: Callable[[Step], Step]


class _Change(NamedTuple):
    """A kind of change of the result."""

    name: str
    levels: Sequence[_Level]  # from the mildest to the harshest


def cheapest(config: BertConfig, asked: Step, *, memory: int) -> list[Combination]:
    """Returns combinations that fit, the cheapest first; each needs all of its flags. `memory` is in bytes."""
    search = _Search(config, asked, memory)
    return search.exact() or search.changed() or search.hosted()


class _Search:
    def __init__(self, config: BertConfig, asked: Step, memory: int) -> None:
        self._config, self._asked, self._memory = config, asked, memory

    def exact(self) -> list[Combination]:
        """Combinations that keep the result, without those whose kinds of flags include all of another's."""
        found: list[Combination] = []
        for combination in sorted(self._exact_for(self._asked, ()), key=lambda it: (len(it.flags), it.slowdown)):
            if not any(_kinds(other) <= _kinds(combination) for other in found):
                found.append(combination)
        return sorted(found, key=_cost)

    def changed(self) -> list[Combination]:
        """The cheapest combination for each minimal set of changes that fits."""
        kinds = _changes(self._config, self._asked)
        found: dict[frozenset[str], Combination] = {}
        for count in range(1, len(kinds) + 1):
            for some in itertools.combinations(kinds, count):
                names = frozenset(kind.name for kind in some)
                levels = None if any(known < names for known in found) else self._mildest(some)
                if levels is not None:
                    step = _apply(self._asked, levels)
                    changed = tuple(level.flag for level in levels)
                    best = min(self._exact_for(step, changed), key=_cost)
                    found[names] = best._replace(changes=tuple(kind.name for kind in some))
        return list(found.values())

    def hosted(self) -> list[Combination]:
        """Combinations that move the embeddings to host memory, if possible and not yet done."""
        if self._asked.options.host_embeddings or self._asked.options.replicas > 1:
            return []
        found = cheapest(self._config, _with(self._asked, host_embeddings=True), memory=self._memory)
        return [combination._replace(flags=(fitting.HOSTED, *combination.flags)) for combination in found]

    def _exact_for(self, step: Step, flags: tuple[str, ...]) -> Iterator[Combination]:
        """Yields, for each way to compute a step, the fewest micro-batches that fit."""
        off = [name for name in _LAYOUT if not getattr(step.options, name)]
        recomputes = [[], ["recompute"]] if not step.options.recompute else [[]]
        for layout, recompute in itertools.product([[], off] if off else [[]], recomputes):
            chosen = _with(step, **dict.fromkeys([*layout, *recompute], True))
            options = fitting.fewest_parts(
                self._config,
                tokens=step.tokens,
                batch_size=step.batch_size,
                memory=self._memory,
                options=chosen.options,
            )
            if options is not None:
                parts = options.micro_batches
                again = [f"--gradient_accumulation_steps={parts}"] if parts != self._asked.options.micro_batches else []
                done = self._without_needless(Step(step.tokens, step.batch_size, options), layout)
                on = [name for name in layout if getattr(done.options, name)]
                yield Combination(
                    (*flags, *(f"--{name}" for name in [*on, *recompute]), *again),
                    (),
                    self._forecast(done).peak,
                    slowdown(self._config, self._asked, done),
                )

    def _without_needless(self, step: Step, layout: Sequence[str]) -> Step:
        for name in layout:
            without = _with(step, **{name: False})
            step = without if self._fits(without) else step
        return step

    def _mildest(self, kinds: Sequence[_Change]) -> list[_Level] | None:
        """Returns the mildest levels of all these changes that fit; None if the harshest do not."""
        if not all(kind.levels for kind in kinds):
            return None

        def at(share: int) -> list[int]:
            return [(len(kind.levels) - 1) * share // _SHARES for kind in kinds]

        share = fitting.first(0, _SHARES, lambda share: self._can_fit(kinds, at(share)))
        if share is None:
            return None
        places = at(share)
        for number in reversed(range(len(kinds))):  # what still can be milder, by itself; the last kind is the harshest

            def milder(place: int, number: int = number, places: list[int] = places) -> list[int]:
                return [*places[:number], place, *places[number + 1 :]]

            def fits(place: int, milder: Callable[[int], list[int]] = milder) -> bool:
                return self._can_fit(kinds, milder(place))

            places = milder(fitting.first(0, places[number], fits) or 0)
        return [kind.levels[place] for kind, place in zip(kinds, places)]

    def _can_fit(self, kinds: Sequence[_Change], places: Sequence[int]) -> bool:
        """Whether these levels fit with everything else done: recomputed, in one or the most micro-batches."""
        step = _apply(self._asked, [kind.levels[place] for kind, place in zip(kinds, places)])
        options = _with(step, recompute=True, **dict.fromkeys(_LAYOUT, True)).options
        most = max(1, step.batch_size // options.replicas)
        tried = (dataclasses.replace(options, micro_batches=parts) for parts in {options.micro_batches, most})
        return any(self._fits(step._replace(options=one)) for one in tried)

    def _fits(self, step: Step) -> bool:
        return fitting.fits(self._forecast(step), self._memory)

    def _forecast(self, step: Step) -> Forecast:
        return forecast(self._config, tokens=step.tokens, batch_size=step.batch_size, options=step.options)


def _changes(config: BertConfig, asked: Step) -> list[_Change]:
    """Returns the kinds of changes, the mildest first: fully training the same model on whole texts is preferred."""
    return [
        _Change("activations are rounded to half precision", list(_precisions(asked))),
        _Change("smaller batches, so more steps an epoch", list(_batches(asked))),
        _Change("frozen parts keep their weights", list(_frozen(config, asked))),
        _Change("longer texts are cut off", list(_lengths(asked))),
    ]


def _precisions(asked: Step) -> Iterator[_Level]:
    if BYTES[asked.options.precision] == FLOAT:
        yield _Level("--precision=bfloat16", lambda step: _with(step, precision="bfloat16"))


def _batches(asked: Step) -> Iterator[_Level]:
    size = asked.batch_size // 2
    while size >= asked.options.replicas:
        yield _Level(f"--train_batch_size={size}", functools.partial(_smaller, batch_size=size))
        size //= 2


def _frozen(config: BertConfig, asked: Step) -> Iterator[_Level]:
    given = asked.options.frozen
    for count in range(config.num_hidden_layers + 1):
        parts = given | {EMBEDDINGS, *range(count)}
        if parts != given:
            yield _Level(f"--freeze={fitting.written(parts)}", functools.partial(_with, frozen=parts))


def _lengths(asked: Step) -> Iterator[_Level]:
    for tokens in range((asked.tokens - 1) // _LENGTHS_APART * _LENGTHS_APART, 0, -_LENGTHS_APART):
        yield _Level(f"--max_seq_length={tokens}", functools.partial(_cut, tokens=tokens))


def _with(step: Step, **changes: Any) -> Step:
    return step._replace(options=dataclasses.replace(step.options, **changes))


def _smaller(step: Step, batch_size: int) -> Step:
    parts = min(step.options.micro_batches, max(1, batch_size // step.options.replicas))
    return _with(step, micro_batches=parts)._replace(batch_size=batch_size)


def _cut(step: Step, tokens: int) -> Step:
    """Shortens the sequences; they keep as many real tokens as fit."""
    real = step.tokens * (1.0 - step.options.padding)
    return _with(step, padding=max(0.0, 1.0 - real / tokens))._replace(tokens=tokens)


def _apply(step: Step, levels: Sequence[_Level]) -> Step:
    for level in levels:
        step = level.apply(step)
    return step


def _kinds(combination: Combination) -> frozenset[str]:
    return frozenset(flag.partition("=")[0] for flag in combination.flags)


def _cost(combination: Combination) -> tuple[float, int]:
    return combination.slowdown, len(combination.flags)

"""What fits into the memory of a device, by the forecast: batches, parts of a batch, and what each lever buys."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import NamedTuple

from bert_tf.config import BertConfig
from bert_tf.profiling.forecast.activations import FLOAT
from bert_tf.profiling.forecast.step_peak import Forecast, forecast
from bert_tf.profiling.forecast.ways import BYTES, EMBEDDINGS, POOLER, Part, Ways

LENGTHS = (64, 128, 256, 320, 384, 512)
MEBIBYTE = 1 << 20
# Of the memory of a GPU that tensors of other sizes have cut into pieces that nobody can use.
FRAGMENTED = 0.05

_LARGEST_BATCH = 1 << 16


class Lever(NamedTuple):
    """A way to need less.

    Attributes:
      flag: of the training command.
      ways: with it.
    """

    flag: str
    ways: Ways


class Bought(NamedTuple):
    """What a lever does to a step."""

    flag: str
    peak: int
    largest_batch: int


def usable(memory: int) -> int:
    """Returns how many bytes of the memory of a device tensors can use."""
    return int(memory * (1.0 - FRAGMENTED))


def fits(found: Forecast, memory: int) -> bool:
    """Whether a step fits into the memory of a device, in bytes."""
    return found.peak <= usable(memory)


def largest_batch(config: BertConfig, *, tokens: int, memory: int, ways: Ways = Ways()) -> int:  # noqa: B008
    """Returns how many examples fit into so many bytes; 0 where one does not.

    Args:
      config: sizes of the model.
      tokens: length of the sequences.
      memory: of the device, in bytes.
      ways: how it is computed.
    """
    low, high = 0, 1
    while high <= _LARGEST_BATCH and fits(forecast(config, tokens=tokens, batch_size=high, ways=ways), memory):
        low, high = high, 2 * high
    high = min(high, _LARGEST_BATCH + 1)
    while high - low > 1:
        middle = (low + high) // 2
        fit = fits(forecast(config, tokens=tokens, batch_size=middle, ways=ways), memory)
        low, high = (middle, high) if fit else (low, middle)
    return low


def fewest_parts(config: BertConfig, *, tokens: int, batch_size: int, memory: int, ways: Ways) -> Ways | None:
    """Returns the ways with the fewest micro-batches, no fewer than they have, with which a batch fits; None where none does.

    Arguments as for `forecast` and `largest_batch`.
    """
    most = max(1, batch_size // ways.replicas)  # so that every part of every replica has an example
    for count in range(ways.micro_batches, most + 1):
        changed = dataclasses.replace(ways, micro_batches=count)
        if fits(forecast(config, tokens=tokens, batch_size=batch_size, ways=changed), memory):
            return changed
    return None


def levers(config: BertConfig, ways: Ways) -> list[Lever]:
    """Returns what could still be done to need less, each alone."""
    half_frozen = ways.frozen | {EMBEDDINGS, *range(config.num_hidden_layers // 2)}
    changes = (
        (f"--gradient_accumulation_steps={2 * ways.micro_batches}", {"micro_batches": 2 * ways.micro_batches}),
        (f"--gradient_accumulation_steps={4 * ways.micro_batches}", {"micro_batches": 4 * ways.micro_batches}),
        ("--recompute", {"recompute": True}),
        ("--precision=bfloat16", {"precision": "bfloat16" if BYTES[ways.precision] == FLOAT else ways.precision}),
        (f"--freeze={_written(half_frozen)}", {"frozen": half_frozen}),
        ("--place=embeddings:/CPU:0", {"host_embeddings": True}),
        ("--pack_tokens", {"pack_tokens": True}),
        ("--lean_gradients", {"lean_gradients": True}),
        ("--skip_unread", {"skip_unread": True}),
        ("--fused_adam", {"fused_adam": True}),
    )
    changed = (Lever(flag, dataclasses.replace(ways, **change)) for flag, change in changes)
    return [lever for lever in changed if lever.ways != ways]


def _written(frozen: Collection[Part]) -> str:
    """Returns parts as --freeze reads them: embeddings,0-5,pooler."""
    layers = sorted(part for part in frozen if isinstance(part, int))
    first = [layer for layer in layers if layer - 1 not in layers]
    last = [layer for layer in layers if layer + 1 not in layers]
    spans = [str(a) if a == b else f"{a}-{b}" for a, b in zip(first, last)]
    return ",".join([*[EMBEDDINGS] * (EMBEDDINGS in frozen), *spans, *[POOLER] * (POOLER in frozen)])


def bought(config: BertConfig, lever: Lever, *, tokens: int, batch_size: int, memory: int) -> Bought:
    """Returns peak and largest batch with a lever; arguments as for `largest_batch`."""
    peak = forecast(config, tokens=tokens, batch_size=batch_size, ways=lever.ways).peak
    return Bought(lever.flag, peak, largest_batch(config, tokens=tokens, memory=memory, ways=lever.ways))

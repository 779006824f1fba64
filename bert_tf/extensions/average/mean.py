"""Means of the weights of several checkpoints of one model, computed in float64 (Izmailov et al., 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bert_tf.checkpoints.names import is_training_only
from bert_tf.checkpoints.reader import CheckpointReader, model_reader, problem_of_types, refuse_not_finite, refuse_problem
from bert_tf.errors import CheckpointError
from bert_tf.io import progress

_STEP = "global_step"

Array = npt.NDArray[Any]
Entries = dict[str, Array]


def mean_weights(checkpoints: Sequence[str], shares: Sequence[float] | None = None) -> Entries:
    """Returns the mean weights, float32 by name, and the last checkpoint's step; one entry at a time is in memory.

    Training state is dropped; without shares all checkpoints count the same. Raises CheckpointError if the weights of
    one are damaged, not finite or other than those of the first.
    """
    readers = [model_reader(checkpoint) for checkpoint in checkpoints]
    names = _weights(readers[0])
    for reader in readers[1:]:
        _refuse_another_model(readers[0], reader, names)
    wanted = np.array(shares or [1.0] * len(readers), np.float64)
    wanted /= wanted.max()  # the sum of large ones would be infinite
    factors = wanted / wanted.sum()
    means = {name: _mean(readers, name, factors) for name in progress.bar(names, desc="averaging", unit="variables")}
    step = {_STEP: readers[-1][_STEP]} if _STEP in readers[-1].shapes else {}
    return {**means, **step}


def _weights(reader: CheckpointReader) -> list[str]:
    names = sorted(name for name in reader.shapes if name != _STEP and not is_training_only(name))
    refuse_problem(problem_of_types(reader, names))
    return names


def _refuse_another_model(first: CheckpointReader, other: CheckpointReader, names: Sequence[str]) -> None:
    weights = _weights(other)
    lacking = sorted({*names} ^ {*weights})
    if lacking:
        where = first if lacking[0] in first.shapes else other
        more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        raise CheckpointError(
            f"{other.prefix}: has other weights than {first.prefix}: {lacking[0]}{more} only in {where.prefix}"
        )
    misshaped = [name for name in names if first.shapes[name] != other.shapes[name]]
    if misshaped:
        name = misshaped[0]
        shapes = f"{list(other.shapes[name])}, in {first.prefix} {list(first.shapes[name])}"
        raise CheckpointError(f"{other.prefix}: {name} is {shapes}: models of different sizes have no mean")


def _mean(readers: Sequence[CheckpointReader], name: str, factors: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    total: npt.NDArray[np.float64] = np.full(readers[0].shapes[name], -0.0)  # 0.0 + -0.0 would lose the sign
    for reader, factor in zip(readers, factors):
        value = reader[name]
        refuse_not_finite(reader.prefix, {name: value})
        total += factor * value.astype(np.float64)
    return total.astype(np.float32)

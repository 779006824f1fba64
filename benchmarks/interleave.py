"""Takes turns: every round measures every contender, so that a slow minute of the machine affects all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from absl import logging

from benchmarks.workers import WorkerError


class Outcome(NamedTuple):
    samples: dict[str, list[float]]  # one per round, of contenders that finished all rounds
    failures: dict[str, str]  # why the others did not


def take_turns(contenders: Mapping[str, Callable[[], float]], *, rounds: int, warm_up: bool = True) -> Outcome:
    """Warms up every contender by one turn, then measures `rounds` turns of each; a `WorkerError` ends its part.

    Every other round is in reverse order, so that none always follows the same neighbour.
    """
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    failures: dict[str, str] = {}
    for number in range(0 if warm_up else 1, rounds + 1):
        order = list(samples) if number % 2 else list(reversed(samples))
        for name in order:
            try:
                value = contenders[name]()
            except WorkerError as error:
                failures[name] = str(error)
                del samples[name]
                logging.warning("%s: %s", name, error)
                continue
            if number:  # round 0 is the warm-up
                samples[name].append(value)
        if number and samples:
            logging.info("round %d: %s", number, ", ".join(f"{name} {values[-1]:.4g}" for name, values in samples.items()))
    return Outcome(samples, failures)

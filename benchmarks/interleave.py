"""Taking turns: every contender is measured in every round, so that a slow minute of the machine hits them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from absl import logging

from benchmarks.workers import WorkerError


class Outcome(NamedTuple):
    """What came of the rounds.

    Attributes:
      samples: one number a round, of every contender that went through all rounds.
      failures: why the others did not.
    """

    samples: dict[str, list[float]]
    failures: dict[str, str]


def take_turns(contenders: Mapping[str, Callable[[], float]], *, rounds: int, warm_up: bool = True) -> Outcome:
    """Warms every contender up by one turn, then measures `rounds` turns of each.

    Every other round goes in reversed order, so that no one always follows the same neighbour.

    Args:
      contenders: takes one turn and returns what was measured; a `WorkerError` ends its part.
      rounds: how many turns count.
      warm_up: whether a turn comes before them that does not count.
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

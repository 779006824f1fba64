"""Protocol of benchmark workers and their orchestrator: lines of JSON on standard output and input.

A worker is started as `PYTHON WORKER.py WORKLOAD.json` by the Python of its own environment. The scripts of this
folder find this module beside them, in sys.path[0]: `from protocol import ...`. It needs only the standard library.

    def work(workload, channel):
        ...load...
        channel.ready({"library": "1.0"})
        channel.serve({"check": check, "run": run})

    if __name__ == "__main__":
        run_worker(work)
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, NoReturn

Reply = dict[str, Any]
Handlers = Mapping[str, Callable[[int], "Reply | None"]]


class WorkerError(SystemExit):
    """The worker cannot do what is requested; the message is one line, with which other scripts end."""


class Texts(NamedTuple):
    """The examples of a file, in order; `second` is None for single sentences."""

    first: list[str]
    second: list[str] | None
    labels: list[int]


class Channel:
    """The worker's end of the conversation."""

    def __init__(self) -> None:
        """Reserves standard output for replies; other prints go to standard error."""
        sys.stdout.flush()
        self._replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)

    def send(self, reply: Reply) -> None:
        self._replies.write(json.dumps(reply) + "\n")
        self._replies.flush()

    def ready(self, versions: Mapping[str, str]) -> None:
        self.send({"ready": True, "versions": dict(versions)})

    def serve(self, handlers: Handlers) -> None:
        """Answers requests with handlers by key, until one returns None, which sends nothing.

        Raises SystemExit with status 0 on "quit" or at the end of standard input.
        """
        while True:
            line = sys.stdin.readline()
            if not line:
                sys.exit(0)
            ((name, value),) = json.loads(line).items()
            if name == "quit":
                sys.exit(0)
            if name not in handlers:
                raise WorkerError(f"{name!r} is not asked of this suite, or not yet")
            reply = handlers[name](value)
            if reply is None:
                return
            self.send(reply)


class Pieces:
    """A training that waits between requested pieces, for libraries that own the loop and call back.

    In the suite "start" it does not wait: after one step it replies and ends the process.
    """

    def __init__(self, channel: Channel, workload: SimpleNamespace, check: Callable[[int], Reply]) -> None:
        self._channel = channel
        self._is_start = workload.suite == "start"
        self._check = check
        self._left = self._examples = 0
        self._began = 0.0

    def wait(self) -> None:
        """Returns, with the clock running, when a piece is requested."""
        if self._is_start:
            self._left = 1
        else:
            self._channel.serve({"check": self._check, "run": self._begin})
        self._examples = 0
        self._began = time.perf_counter()

    def stepped(self, examples: int, loss: Callable[[], float]) -> None:
        """Counts a step; after a piece's last one it replies and waits.

        `loss` reads the step's loss; it is called once per piece, before the clock stops.
        """
        self._left -= 1
        self._examples += examples
        if self._left:
            return
        last_loss = loss()
        seconds = time.perf_counter() - self._began
        if self._is_start:
            self._channel.send({"first_step": True, "peak_rss_mb": peak_rss_mb()})
            sys.exit(0)
        self._channel.send(measured(seconds, self._examples, last_loss))
        self.wait()

    def _begin(self, steps: int) -> None:
        self._left = steps


def run_worker(work: Callable[[SimpleNamespace, Channel], None]) -> NoReturn:
    """Runs a worker on the workload that the command line names; an exception becomes the error line and status 1."""
    channel = Channel()
    try:
        work(SimpleNamespace(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))), channel)
    except (Exception, WorkerError) as error:
        traceback.print_exc()
        kind = "" if isinstance(error, WorkerError) else f"{type(error).__name__}: "
        channel.send({"error": kind + " ".join(str(error).split())})
        sys.exit(1)
    sys.exit(0)


def read_texts(path: str | os.PathLike[str]) -> Texts:
    rows = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").split("\n") if line]
    second = [row["text_b"] for row in rows]
    if None in second and any(text is not None for text in second):
        raise WorkerError(f"{path} mixes pairs and single sentences")
    return Texts([row["text_a"] for row in rows], None if None in second else second, [row["label"] for row in rows])


def require_known(ids: Sequence[Sequence[int]], unknown_id: int) -> None:
    """Rejects ids with more than 1 % [UNK]: a wrongly loaded tokenizer would train all the same."""
    count = sum(map(len, ids))
    unknown = sum(example.count(unknown_id) for example in ids)
    if unknown > 0.01 * count:
        raise WorkerError(f"{unknown} of {count} tokens are unknown: the tokenizer is not the model's")


def measured(seconds: float, examples: int, loss: float | None = None) -> Reply:
    reply: Reply = {"seconds": seconds, "examples": examples, "peak_rss_mb": peak_rss_mb()}
    return reply if loss is None else {**reply, "loss": loss}


def timed(times: int, work: Callable[[], object], examples: int) -> Reply:
    """Does work several times, each with as many examples, and returns the reply on all of it."""
    began = time.perf_counter()
    for _ in range(times):
        work()
    return measured(time.perf_counter() - began, times * examples)


def peak_rss_mb() -> float:
    """Returns this process's peak memory in MB of 2**20 bytes."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM:"))

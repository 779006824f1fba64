"""Worker processes that speak JSON lines, with time limits; any failure becomes one line.

A worker is started with a workload file. It answers each line with one line, and waits in between without using the
machine.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, cast

from benchmarks import PROJECT
from benchmarks.comparisons import OTHER, OWN, PEAK, PEERS
from bert_tf.errors import BertError
from bert_tf.io import documents

PEER_FOLDER = Path(__file__).resolve().parent / "peers"

PEER_SCRIPTS = {
    "transformers": "transformers_trainer.py",
    "keras_hub": "keras_hub_classifier.py",
    "model_garden": "model_garden.py",
}

_OWN_WORKER = ("-m", "benchmarks.worker")
_THREADS = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")


@dataclasses.dataclass(frozen=True)
class Environments:
    commands: Mapping[str, tuple[str, ...]]  # that start a worker, without the path of its workload
    missing: Mapping[str, str]  # why a library has none

    @classmethod
    def found(
        cls, pythons: Mapping[str, str], *, peers: bool, other: str | None = None, project: Path = PROJECT
    ) -> Environments:
        """Finds interpreters of peers, by default `.peers/NAME/bin/python`, and of another environment of this package."""
        commands: dict[str, tuple[str, ...]] = dict.fromkeys((OWN, PEAK), (sys.executable, *_OWN_WORKER))
        missing = {}
        if other is None:
            missing[OTHER] = "--other_python was not given"
        else:
            commands[OTHER] = (other, *_OWN_WORKER)
        for name, script in PEER_SCRIPTS.items():
            python = Path(pythons.get(name, project / ".peers" / name / "bin" / "python"))
            if not peers:
                missing[name] = "--peers was not given"
            elif not os.access(python, os.X_OK):
                shown = python.relative_to(project) if python.is_relative_to(project) else python
                missing[name] = f"no {shown}; `make benchmark-env` makes it"
            else:
                commands[name] = (str(python), str(PEER_FOLDER / script))
        return cls(commands, missing)


def variables(library: str, threads: int) -> dict[str, str]:
    """Returns a worker's environment: ours, quiet, limited to `threads`; only our worker finds this package.

    Bytecode is kept, as pip has kept the peers': the first worker compiles a clone, not each one.
    """
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", **os.environ, **dict.fromkeys(_THREADS, str(threads))}
    quiet.pop("PYTHONDONTWRITEBYTECODE", None)
    if library in PEERS:
        return quiet
    return {**quiet, "PYTHONPATH": os.pathsep.join(filter(None, (str(PROJECT), os.environ.get("PYTHONPATH"))))}


_BLOCK = 1 << 16
_LAST_WORDS = 8192  # bytes of a log in which the reason of a death is looked for
_LONGEST_REASON = 200  # characters


@dataclasses.dataclass(frozen=True)
class Limits:
    """Seconds to wait for an answer."""

    ready: float = 900.0
    answer: float = 3600.0
    quit: float = 15.0


class WorkerError(BertError):
    """A worker died, timed out or reported an error."""


class Worker:
    """One process, which ends with its `with` block; `started` is `time.perf_counter` just before it was made."""

    def __init__(self, command: Sequence[str], log: Path, *, limits: Limits, environment: Mapping[str, str] | None = None):
        """Starts the process, its standard error going to `log`; None inherits our environment."""
        self._log = log
        self._limits = limits
        self._unread = b""
        self._ended = ""  # why nothing more is to be expected
        self.started = time.perf_counter()
        try:
            self._process = start_process(command, log, environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except OSError as error:
            raise WorkerError(f"{command[0]} cannot be started: {error.strerror}") from error

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Asks the worker to end after a complete block; kills it and its children if it does not, or after an exception."""
        if kind is None and not self._ended:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                self._send({"quit": 1})
                self._process.wait(self._limits.quit)
        self._kill("ended")

    def ready(self) -> dict[str, Any]:
        return self._receive(self._limits.ready)

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Sends a line and returns the answer; WorkerError if the worker is dead, silent, garbled or reports an error."""
        if self._ended:
            raise WorkerError(self._ended)
        with contextlib.suppress(OSError):  # a dead worker is reported by what is read
            self._send(request)
        return self._receive(self._limits.answer)

    def _send(self, request: Mapping[str, Any]) -> None:
        pipe = cast(BinaryIO, self._process.stdin)
        pipe.write(documents.to_json(request).encode() + b"\n")
        pipe.flush()

    def _kill(self, reason: str) -> None:
        if not self._ended:
            self._ended = reason
            end_process(self._process)
            for pipe in (self._process.stdin, self._process.stdout):
                with contextlib.suppress(OSError):
                    cast(BinaryIO, pipe).close()

    def _receive(self, limit: float) -> dict[str, Any]:
        """Returns the next answer; kills a worker without one, since its later answers would be out of order."""
        try:
            return _understood(self._read_line(limit))
        except WorkerError as error:
            self._kill(str(error))
            raise

    def _read_line(self, limit: float) -> bytes:
        descriptor = cast(BinaryIO, self._process.stdout).fileno()
        end = time.perf_counter() + limit
        while b"\n" not in self._unread:
            readable, _, _ = select.select([descriptor], [], [], max(0.0, end - time.perf_counter()))
            if not readable:
                raise WorkerError(f"no answer within {limit:g} s")
            block = os.read(descriptor, _BLOCK)
            if not block:
                raise WorkerError(self._how_it_ended())
            self._unread += block
        line, self._unread = self._unread.split(b"\n", 1)
        return line

    def _how_it_ended(self) -> str:
        try:
            return how_it_ended(self._process.wait(self._limits.quit), self._log)
        except subprocess.TimeoutExpired:
            return "closed its output without an answer"


def start_process(
    command: Sequence[str], log: Path, environment: Mapping[str, str] | None, **pipes: Any
) -> subprocess.Popen[bytes]:
    """Starts a process in a session of its own: Ctrl-C reaches us alone, and what it starts can be ended with it."""
    with log.open("wb") as errors:
        return subprocess.Popen(command, stderr=errors, env=environment, start_new_session=True, **pipes)


def end_process(process: subprocess.Popen[bytes]) -> None:
    """Kills a process and its children, if there are any left."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def how_it_ended(status: int, log: Path) -> str:
    how = f"ended with status {status}" if status >= 0 else f"killed by {signal.Signals(-status).name}"
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _LAST_WORDS))
        lines = [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    return f"{how}: {lines[-1][:_LONGEST_REASON]}" if lines else how


def _understood(line: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(line)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        said = line[:_LONGEST_REASON].decode(errors="replace")
        raise WorkerError(f"answered with something that is not a JSON object: {said!r}")
    if "error" in answer:
        raise WorkerError(" ".join(str(answer["error"]).split())[:_LONGEST_REASON])
    return answer

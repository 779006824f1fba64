"""Processes that start in a tenth of the time: forked from one that has imported TensorFlow and the package, no more.

What such a process runs is what Python would run in a new one: a file or a module as `__main__`, with arguments,
environment and streams of its own. What is left out is the import itself; tests of that start Python.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.forkserver
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Optional

ROOT = Path(__file__).resolve().parents[1]
Before = Optional[Callable[[], Any]]
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.preloaded"])


class Forked:
    """A process, in the words of `subprocess.Popen`; its output goes to files."""

    def __init__(self, args: Sequence[Any], environment: Mapping[str, str], before: Before) -> None:
        """Starts it, see `start`."""
        self.args = [os.fspath(argument) for argument in args]
        self._folder = tempfile.TemporaryDirectory(prefix="forked-")
        self._streams = [Path(self._folder.name) / name for name in ("stdout", "stderr")]
        for path in self._streams:
            path.touch()
        self._process = _CONTEXT.Process(target=_run, args=(self.args, dict(environment), self._streams, before))
        self._process.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        os.kill(self._process.pid, number)

    def kill(self) -> None:
        self._process.kill()

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Waits for the end; returns what went to standard output and standard error."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self.args, timeout)
        output, errors = (path.read_text() for path in self._streams)
        return output, errors

    def wait_for(self, text: str, limit: float = 120) -> None:
        """Returns when a text is in its standard error; fails if the process ends without it, or after `limit` seconds."""
        end = time.monotonic() + limit
        while text not in self._streams[1].read_text():
            assert self.poll() is None, self.communicate()[1]
            assert time.monotonic() < end, f"no line with {text}"
            time.sleep(0.01)

    def __enter__(self) -> Forked:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.join()


def start(args: Sequence[Any], *, environment: Mapping[str, str] | None = None, before: Before = None) -> Forked:
    """Starts a process in the project's folder.

    `args` are what follows "python" in a command line; `environment` has all variables, by default those of this process;
    `before` is called in the process first.
    """
    _ensure_server()
    return Forked(args, os.environ if environment is None else environment, before)


def run(args: Sequence[Any], *, limit: float = 900, **settings: Any) -> subprocess.CompletedProcess[str]:
    """Runs a process to its end; one that takes more seconds than the limit fails the test."""
    return finish(start(args, **settings), limit=limit)


def finish(process: Forked, *, limit: float = 120) -> subprocess.CompletedProcess[str]:
    """Waits for the end of a process; one that hangs fails the test."""
    with process:
        try:
            output, errors = process.communicate(timeout=limit)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def chartless(**variables: str) -> dict[str, str]:
    """The environment of a new process whose pages have no charts: to draw them takes as long as a small training."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "tests" / "chartless"), str(ROOT)]), **variables}


def _ensure_server() -> None:
    """Starts the process that forks, in a folder from which it can import the tests."""
    here = Path.cwd()
    os.chdir(ROOT)
    try:
        multiprocessing.forkserver.ensure_running()
    finally:
        os.chdir(here)


def _run(args: Sequence[str], environment: Mapping[str, str], streams: Sequence[Path], before: Before) -> None:
    for number, path in enumerate(streams, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(ROOT)
    if before is not None:
        before()
    if args[0] == "-m":
        sys.argv = [*args[1:]]
        runpy.run_module(args[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = [*args], str(ROOT)
        runpy.run_path(args[0], run_name="__main__")

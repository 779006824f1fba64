"""Finds or builds, then loads the machine's kernels; one log line reports the cost or why not.

The library is built once per key and cached in a folder; failed builds are cached too, for an hour if another
attempt may succeed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf

from bert_tf import home
from bert_tf.errors import OutputError
from bert_tf.home import PACKAGE
from bert_tf.io import atomic, documents, files, lock
from bert_tf.io.log_form import log
from bert_tf.native import compiler, ops
from bert_tf.native.compiler import Compiler, instructions, key

_one_at_a_time = threading.Lock()  # of the threads of a program

LIBRARY = "kernels.so"
RECORD = "build.json"
OUTPUT = "compiler.txt"  # what the compiler said

_WRITE_OF_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_COMPILER_SECONDS = 300.0
_CHECK_SECONDS = 120.0
_CHECK, _CHECK_OUTPUT = "bert_tf.native.check", "check.txt"
_BEGINS = "begins"  # its first line
_NO_ROOM = (
    "No space left on device",
    "Disk quota exceeded",
    "Cannot allocate memory",
    "memory exhausted",
    "ResourceExhausted",
    "MemoryError",
    "Killed",
)
_CRASHES = (signal.SIGILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE, signal.SIGBUS)
_HOUR_S = 3600.0
_ENGLISH = {"LC_ALL": "C"}  # messages are read here
# The check must not take GPU memory, and its last line must be its own.
_QUIET = {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONWARNINGS": "ignore"}


def use(environment: Mapping[str, str]) -> bool:
    """Loads the kernels, building them on the first try; returns whether they are loaded."""
    with _one_at_a_time:
        return _use(environment)


class _UnusedError(Exception):
    """Says why there are no kernels."""


def _use(environment: Mapping[str, str]) -> bool:
    if ops.is_loaded():
        return True
    try:
        _load(environment)
    except (_UnusedError, OutputError, OSError, tf.errors.OpError) as error:
        log.info("native kernels are not used (with them a CPU trains and predicts faster): %s", error)
    return ops.is_loaded()


def state(environment: Mapping[str, str]) -> str:
    try:
        chosen, _, kernels = _look(environment, creates=False)
    except (_UnusedError, OutputError) as error:
        return f"none: {error}"
    if kernels is None:
        return f"not yet built; the first run on the CPU builds them by {chosen.version}"
    return f"built by {kernels.compiler}, in {kernels.folder}"


def _load(environment: Mapping[str, str]) -> None:
    if not sys.executable:
        raise _UnusedError("the path of this Python is unknown, but the check needs a process of its own")
    chosen, folder, kernels = _look(environment, creates=True)
    if kernels is None:
        log.info("building native kernels by %s, once on this machine; it takes about half a minute", chosen.version)
        kernels, is_new = make_build(folder, chosen)
        if kernels.failure:
            raise _UnusedError(_failure(kernels))
        if is_new:
            log.info("native kernels are built and checked after %.0f s, in %s", kernels.seconds, kernels.folder)
    try:
        ops.load(kernels.library)
    except tf.errors.OpError as error:
        raise _UnusedError(f"{error.message}; delete {kernels.folder} to build them again") from error


def _look(environment: Mapping[str, str], *, creates: bool) -> tuple[compiler.Compiler, Path, Build | None]:
    """The compiler, the library's folder and what was built there; raises _UnusedError, or OutputError without a home folder.

    `creates` makes the folder that a library would be built in.
    """
    unsuited = compiler.unsuited(instructions())
    if unsuited:
        raise _UnusedError(unsuited)
    chosen = compiler.find(environment)
    if chosen is None:
        raise _UnusedError("no C++ compiler: install g++, or name one with CXX")
    folder = home.compiled(environment).resolve() / key(chosen)  # links resolved: only what was checked is loaded
    kernels = find_build(folder)
    if creates and kernels is None:
        atomic.make_folder(folder.parent, mode=files.SAFE_FOLDER)
    why = files.unsafe(folder if kernels is None else kernels.library)  # others could plant a library there
    if why:
        raise _UnusedError(f"{why}; or set {home.VARIABLE} to a folder of this user")
    if kernels is not None and kernels.failure:
        raise _UnusedError(_failure(kernels))
    return chosen, folder, kernels


def _failure(kernels: Build) -> str:
    when = "an hour later, or " if kernels.until else ""
    return f"{kernels.failure}; see {kernels.folder}; it is tried again {when}when that folder is deleted"


class Build(NamedTuple):
    """Result of a build."""

    folder: Path
    compiler: str  # first line of its version output
    failure: str = ""  # why there is no library; empty if there is one
    seconds: float = 0.0  # build time
    sha256: str = ""  # of the library
    until: float = 0.0  # seconds since the epoch from which it is tried again; 0: never

    @property
    def library(self) -> Path:
        return self.folder / LIBRARY


class _FailedError(Exception):
    """A build failed."""

    def __init__(self, problem: str, *, may_pass: bool) -> None:
        super().__init__(problem)
        self.until = time.time() + _HOUR_S if may_pass else 0.0


def find_build(folder: Path) -> Build | None:
    """The cached build of a key's folder; None if absent, due again, or if the library is not the one that was checked."""
    try:
        record = documents.parse_json(files.read_text(folder / RECORD))
        build = Build(folder, **record)
        is_due = bool(build.until) and not 0 < build.until - time.time() <= _HOUR_S
        is_usable = not is_due if build.failure else files.digest(build.library) == build.sha256
    except (OSError, ValueError, TypeError):
        return None
    return build if is_usable else None


def make_build(folder: Path, chosen: Compiler) -> tuple[Build, bool]:
    """The build of a folder, made if absent, and whether it was made; one process at a time.

    Raises OutputError if the folder cannot be written, or memory or space is short.
    """
    atomic.make_folder(folder.parent, mode=files.SAFE_FOLDER)
    with lock.claiming(folder, wait=True):
        build = find_build(folder)
        if build is not None:
            return build, False
        atomic.delete_unfinished(folder)
        with atomic.replacing(folder) as temporary:
            temporary.mkdir(mode=0o700)  # its files can be changed until the end
            new_build = _build(temporary, chosen)
            record = {name: value for name, value in new_build._asdict().items() if name != "folder"}
            (temporary / RECORD).write_text(documents.to_json(record, indent=2) + "\n", encoding="utf-8")
            for path in temporary.iterdir():
                path.chmod(path.stat().st_mode & ~_WRITE_OF_OTHERS)  # files that others can write are not loaded
            temporary.chmod(files.SAFE_FOLDER)
        return new_build._replace(folder=folder), True


def _build(folder: Path, chosen: Compiler) -> Build:
    began = time.monotonic()
    folder = folder.resolve()
    build = Build(folder, chosen.version)
    compiler_output, check_output = folder / OUTPUT, folder / _CHECK_OUTPUT
    named = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    paths = os.pathsep.join([str(PACKAGE.parent), *map(os.path.abspath, named)])  # the check has another working directory
    environment = {**os.environ, **_ENGLISH}
    try:
        # The check imports TensorFlow while the compiler works, then reads where the library is.
        with _started([sys.executable, "-m", _CHECK], check_output, {**environment, **_QUIET, "PYTHONPATH": paths}) as check:
            with _started(chosen.compiling(build.library), compiler_output, environment) as compiling:
                _finish(compiling, compiler.source(), compiler_output, limit_s=_COMPILER_SECONDS, what="the compiler")
            name = "the check against TensorFlow"
            _finish(check, f"{build.library}\n", check_output, limit_s=_CHECK_SECONDS, what=name, first=_BEGINS)
    except _FailedError as error:
        build.library.unlink(missing_ok=True)
        return build._replace(failure=str(error), until=error.until)
    return build._replace(seconds=round(time.monotonic() - began, 1), sha256=files.digest(build.library))


@contextlib.contextmanager
def _started(command: Sequence[str], output: Path, environment: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    """Starts a command that writes to a file; at the end of the block it is killed, with its child processes."""
    with output.open("w", encoding="utf-8") as log_file:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=log_file,
            stderr=log_file,
            text=True,
            env=environment,
            start_new_session=True,
            cwd=output.parent,  # Python would import modules from its working directory
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.stdin:
            with contextlib.suppress(OSError):
                process.stdin.close()


def _finish(process: subprocess.Popen[str], text: str, output: Path, *, limit_s: float, what: str, first: str = "") -> None:
    """Writes to a process and waits; raises _FailedError, or OutputError if memory or space is short.

    A process that has begun its work says `first`; before that its environment may be what fails, as a module that is missing.
    """
    try:
        process.communicate(text, timeout=limit_s)
    except subprocess.TimeoutExpired:
        raise _FailedError(f"{what} took more than {limit_s:.0f} s", may_pass=True) from None
    status = process.returncode
    if not status:
        return
    said = output.read_text(encoding="utf-8", errors="replace")
    if status == -signal.SIGKILL or any(words in said for words in _NO_ROOM):
        raise OutputError(f"{what} had too little memory or space: {_last_line(said)}; the next run tries again")
    problem = f"{what} ended by {signal.Signals(-status).name}" if status < 0 else f"{what} failed: {_last_line(said)}"
    raise _FailedError(problem, may_pass=first not in said or (status < 0 and -status not in _CRASHES))


def _last_line(said: str) -> str:
    filled = [line.strip() for line in said.split("\n") if line.strip()]
    errors = [line for line in filled if "error:" in line]  # the compiler's first error is the cause
    return (errors[:1] or filled[-1:] or ["no output"])[0]

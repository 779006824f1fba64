"""Finds or builds, then loads the machine's kernels; one log line reports the cost or why not."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import tensorflow as tf

from bert_tf import home
from bert_tf.errors import OutputError
from bert_tf.io import atomic, files
from bert_tf.io.log_form import log
from bert_tf.native import build, compiler, ops
from bert_tf.native.compiler import instructions, key

_GAIN = "with them a CPU trains and predicts faster"
_one_at_a_time = threading.Lock()  # of the threads of a program
_NO_COMPILER = "no C++ compiler: install g++, or name one with CXX"


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
        log.info("native kernels are not used (%s): %s", _GAIN, error)
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
        kernels, is_new = build.make(folder, chosen)
        if kernels.failure:
            raise _UnusedError(_failure(kernels))
        if is_new:
            log.info("native kernels are built and checked after %.0f s, in %s", kernels.seconds, kernels.folder)
    ops.load(kernels.library)


def _look(environment: Mapping[str, str], *, creates: bool) -> tuple[compiler.Compiler, Path, build.Build | None]:
    """The compiler, the library's folder and what was built there; raises _UnusedError, or OutputError without a home folder.

    `creates` makes the folder that a library would be built in.
    """
    unsuited = compiler.unsuited(instructions())
    if unsuited:
        raise _UnusedError(unsuited)
    chosen = compiler.find(environment)
    if chosen is None:
        raise _UnusedError(_NO_COMPILER)
    folder = home.compiled(environment).resolve() / key(chosen)  # links resolved: only what was checked is loaded
    kernels = build.find(folder)
    if creates and kernels is None:
        atomic.make_folder(folder.parent)
    why = files.unsafe(folder if kernels is None else kernels.library)  # others could plant a library there
    if why:
        raise _UnusedError(f"{why}; or set {home.VARIABLE} to a folder of this user")
    if kernels is not None and kernels.failure:
        raise _UnusedError(_failure(kernels))
    return chosen, folder, kernels


def _failure(kernels: build.Build) -> str:
    return f"{kernels.failure}; see {kernels.folder}; delete that folder to try again"

"""Finds or builds, then loads the machine's kernels; one log line reports the cost or why not."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import tensorflow as tf

from bert_tf import atomic, files, home
from bert_tf.errors import OutputError
from bert_tf.log_form import log
from bert_tf.native import build, compiler, ops
from bert_tf.native.key import instructions, key

_GAIN = "with them a CPU trains and predicts faster"
_one_at_a_time = threading.Lock()  # of the threads of a program
_NO_COMPILER = "no C++ compiler: install g++ or clang++, or name one with CXX"


def use(environment: Mapping[str, str]) -> bool:
    """Loads the kernels, building them on the first try; returns whether they are loaded."""
    with _one_at_a_time:
        return _use(environment)


def _use(environment: Mapping[str, str]) -> bool:
    if ops.is_loaded():
        return True
    try:
        reason = _load(environment)
    except (OutputError, OSError, tf.errors.OpError) as error:
        reason = str(error)
    if reason:
        log.info("native kernels are not used (%s): %s", _GAIN, reason)
    return ops.is_loaded()


def state(environment: Mapping[str, str]) -> str:
    unsuited = compiler.unsuited(instructions())
    if unsuited:
        return f"none: {unsuited}"
    chosen = compiler.find(environment)
    if chosen is None:
        return f"none: {_NO_COMPILER}"
    try:
        place = _place(environment, chosen)
    except OutputError as error:
        return f"none: {error}"
    found = build.find(place)
    unsafe = _unsafe(place, found)
    if unsafe:
        return f"none: {unsafe}"
    if found is None:
        return f"not yet built; the first run on the CPU builds them by {chosen.version}"
    return f"none: {_failure(found)}" if found.failure else f"built by {found.compiler}, in {found.folder}"


def _load(environment: Mapping[str, str]) -> str:
    if not sys.executable:
        return "the name of this Python is not known, which checks them in a process of its own"
    unsuited = compiler.unsuited(instructions())
    if unsuited:
        return unsuited
    chosen = compiler.find(environment)
    if chosen is None:
        return _NO_COMPILER
    place = _place(environment, chosen)
    found = build.find(place)
    if found is None:
        atomic.make_folder(place.parent)
    unsafe = _unsafe(place, found)
    if unsafe:
        return unsafe
    if found is None:
        log.info("building native kernels by %s, once on this machine; it takes about half a minute", chosen.version)
        found, is_new = build.make(place, chosen)
        if is_new and not found.failure:
            log.info("native kernels are built and checked after %.0f s, in %s", found.seconds, found.folder)
    if found.failure:
        return _failure(found)
    ops.load(found.library)
    return ""


def _place(environment: Mapping[str, str], chosen: compiler.Compiler) -> Path:
    """Folder of the library with links resolved: only what was checked is loaded."""
    return home.compiled(environment).resolve() / key(chosen)


def _unsafe(place: Path, found: build.Build | None) -> str:
    """Why a folder is unsafe to load from or build in: others could plant a library there."""
    why = files.unsafe(place if found is None else found.library)
    return f"{why}; or set {home.VARIABLE} to a folder of this user" if why else ""


def _failure(found: build.Build) -> str:
    return f"{found.failure}; its output is in {found.folder / build.OUTPUT}, and deleting that folder tries again"

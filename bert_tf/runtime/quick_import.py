"""Faster TensorFlow import for commands: skips optional packages and loads libraries in a thread.

Programs that use this package as a library import TensorFlow as usual.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from bert_tf.runtime import early_output, import_hook

# Keras and TensorBoard import these where they are installed, and work without them.
_OPTIONAL = frozenset({"PIL", "fsspec", "h5py", "pandas", "pydot", "scipy"})
_KERAS = "keras.src"  # TensorFlow imports it early to register its optimizers; nothing but tf.estimator needs it
_PACKAGES = ("tensorflow", "tensorflow_estimator")  # the first imports the second when it is used
_LIBRARIES = ("libtensorflow_framework.so.2", "libtensorflow_cc.so.2")  # the second needs the first


def install() -> None:
    """Makes the import of TensorFlow skip optional packages; they can still be imported afterwards."""
    import_hook.wrap(_PACKAGES, _quickly)


def load_ahead() -> None:
    """Loads TensorFlow's shared libraries (a quarter of a second) in a thread.

    Call after `noise.quiet_before_import`: the libraries read the environment while loading.
    """
    if "tensorflow" not in sys.modules and sys.platform == "linux":
        threading.Thread(target=_load, name="load TensorFlow").start()


def _load() -> None:
    spec = importlib.util.find_spec("tensorflow")
    if spec is None or spec.origin is None:
        return
    # ctypes.CDLL(path) holds the interpreter lock while it opens a library; a call of dlopen does not.
    dlopen = ctypes.CDLL(None).dlopen
    dlopen.restype = ctypes.c_void_p
    with early_output.held_back:
        for name in _LIBRARIES:  # the import reports what cannot be opened
            dlopen(os.fsencode(Path(spec.origin).with_name(name)), os.RTLD_LAZY | os.RTLD_LOCAL)


@contextlib.contextmanager
def _quickly() -> Iterator[None]:
    """Imports without optional packages, early standard error and garbage collection: modules leave no garbage."""
    collects = gc.isenabled()
    gc.disable()
    try:
        with early_output.held_back, _without_optional():
            yield
    finally:
        if collects:
            gc.enable()
    gc.freeze()  # modules live to the end


@contextlib.contextmanager
def _without_optional() -> Iterator[None]:
    """Hides optional packages in a block, and setuptools, which replaces distutils."""
    finder, before = _OptionalFinder(), "distutils" in sys.modules
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.partition(".")[0] == "distutils" and not before]:
            del sys.modules[name]  # setuptools warns where Python's own is loaded before it


class _OptionalFinder(importlib.abc.MetaPathFinder):
    """Reports optional packages as not installed, only to the thread that imports TensorFlow."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._hidden = _OPTIONAL if importlib.util.find_spec("tensorflow_estimator") else {*_OPTIONAL, _KERAS}

    def find_spec(self, fullname: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        if threading.get_ident() != self._thread:
            return None
        if fullname in self._hidden:
            raise ModuleNotFoundError(f"{fullname} is left out", name=fullname)
        return importlib.machinery.PathFinder.find_spec(fullname) if fullname == "distutils" else None

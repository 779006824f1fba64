"""Faster start of commands: TensorFlow's import skips optional packages, libraries load in a thread, garbage stays longer.

Programs that use this package as a library import TensorFlow as usual.
"""

from __future__ import annotations

import atexit
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
from types import ModuleType
from typing import Any

from bert_tf.runtime import noise

# Keras and TensorBoard import these if installed, and work without them.
_OPTIONAL = frozenset({"PIL", "fsspec", "h5py", "pandas", "pydot", "scipy"})
_KERAS = "keras.src"  # TensorFlow imports it early to register its optimizers; nothing but tf.estimator needs it
_PACKAGES = ("tensorflow", "tensorflow_estimator")  # the first imports the second when it is used
_LIBRARIES = ("libtensorflow_framework.so.2", "libtensorflow_cc.so.2")  # the second needs the first
_MANY_OBJECTS = 200_000


def install() -> None:
    """Makes the import of TensorFlow skip optional packages; they can still be imported afterwards."""
    if "tensorflow" not in sys.modules and not any(isinstance(finder, _QuickFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _QuickFinder())


def load_ahead() -> None:
    """Loads TensorFlow's shared libraries (a quarter of a second) in a thread.

    Call after `noise.quiet_before_import`: the libraries read the environment while loading.
    """
    if "tensorflow" not in sys.modules and sys.platform == "linux":
        threading.Thread(target=_load, name="load TensorFlow").start()


def collect_rarely() -> None:
    """Makes garbage collection rare, and skips it at exit.

    TensorFlow's modules and a graph are a million objects that live to the end: with Python's threshold of 700 new objects,
    walking over them takes a tenth of the time to the first step. At exit it takes a second, several on a busy machine.
    """
    gc.set_threshold(_MANY_OBJECTS, 50, 50)
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)


def _load() -> None:
    spec = importlib.util.find_spec("tensorflow")
    if spec is None or spec.origin is None:
        return
    # ctypes.CDLL(path) holds the interpreter lock while it opens a library; a call of dlopen does not.
    dlopen = ctypes.CDLL(None).dlopen
    dlopen.restype = ctypes.c_void_p
    with noise.held_back:
        for name in _LIBRARIES:  # the import reports what cannot be opened
            dlopen(os.fsencode(Path(spec.origin).with_name(name)), os.RTLD_LAZY | os.RTLD_LOCAL)


@contextlib.contextmanager
def _quickly() -> Iterator[None]:
    """Imports without optional packages, early standard error and garbage collection: modules leave no garbage."""
    collects = gc.isenabled()
    gc.disable()
    try:
        with noise.held_back, _without_optional():
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
            del sys.modules[name]  # setuptools warns if Python's own is loaded before it


class _QuickFinder(importlib.abc.MetaPathFinder):
    """Precedes the other finders and wraps their loaders of TensorFlow."""

    _asks_others = False

    def find_spec(self, fullname: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        if fullname not in _PACKAGES or self._asks_others:
            return None
        self._asks_others = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._asks_others = False
        if spec is not None and spec.loader is not None:
            spec.loader = _QuickLoader(spec.loader)
        return spec


class _QuickLoader(importlib.abc.Loader):
    """Delegates to another loader, which the module records as its own."""

    def __init__(self, loader: importlib.abc.Loader) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:  # resources and source, which only some loaders have
        if name == "_loader":
            raise AttributeError(name)
        return getattr(self._loader, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        with _quickly():
            self._loader.exec_module(module)


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

"""A faster import of TensorFlow for commands: it skips what is optional, and libraries are loaded in a thread meanwhile.

A program that uses this package as a library imports TensorFlow as always.
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
from types import ModuleType

# Keras and TensorBoard import these where they are installed, and work without them.
_OPTIONAL = frozenset({"PIL", "fsspec", "h5py", "pandas", "pydot", "scipy"})
_PACKAGES = ("tensorflow", "tensorflow_estimator")  # the first imports the second when it is used
_LIBRARIES = ("libtensorflow_framework.so.2", "libtensorflow_cc.so.2")  # the second needs the first


def install() -> None:
    """Makes the import of TensorFlow skip optional packages; they can still be imported afterwards."""
    if "tensorflow" not in sys.modules and not any(isinstance(finder, _TensorFlowFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _TensorFlowFinder())


def load_ahead() -> None:
    """Loads TensorFlow's shared libraries in a thread, which takes a quarter of a second; Python goes on meanwhile.

    To be called after `noise.quiet_before_import`: the libraries read the environment when they are loaded.
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
    for name in _LIBRARIES:  # the import reports what cannot be opened
        dlopen(os.fsencode(Path(spec.origin).with_name(name)), os.RTLD_LAZY | os.RTLD_LOCAL)


class _TensorFlowFinder(importlib.abc.MetaPathFinder):
    """Comes before the other finders, and wraps the loaders that they find for TensorFlow."""

    def __init__(self) -> None:
        self._asks_others = False

    def find_spec(self, fullname: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        if fullname not in _PACKAGES or self._asks_others:
            return None
        self._asks_others = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._asks_others = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(importlib.abc.Loader):
    """Loads by another loader, without optional packages and without garbage collection: modules leave no garbage."""

    def __init__(self, loader: importlib.abc.Loader) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        collects = gc.isenabled()
        gc.disable()
        try:
            with _without_optional():
                self._loader.exec_module(module)
        finally:
            if collects:
                gc.enable()
        gc.freeze()  # modules live to the end


@contextlib.contextmanager
def _without_optional() -> Iterator[None]:
    """Hides optional packages in a block; setuptools too, which replaces Python's distutils."""
    finder, before = _OptionalFinder(), "distutils" in sys.modules
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.partition(".")[0] == "distutils" and not before]:
            del sys.modules[name]  # setuptools warns where Python's own is loaded before it


class _OptionalFinder(importlib.abc.MetaPathFinder):
    """Reports optional packages as not installed, to the thread that imports TensorFlow alone."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def find_spec(self, fullname: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        if threading.get_ident() != self._thread:
            return None
        if fullname in _OPTIONAL:
            raise ModuleNotFoundError(f"{fullname} is left out", name=fullname)
        return importlib.machinery.PathFinder.find_spec(fullname) if fullname == "distutils" else None

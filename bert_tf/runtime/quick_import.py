"""TensorFlow's import in a command's own process: a third less work, part of it beside what else a command begins with.

A program that only uses this package as a library imports TensorFlow as it always does.
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

# What Keras and TensorBoard take along where it is installed, and do without where it is not.
_OPTIONAL = frozenset({"PIL", "fsspec", "h5py", "pandas", "pydot", "scipy"})
_PACKAGES = ("tensorflow", "tensorflow_estimator")  # the first imports the second when it is used
_LIBRARIES = ("libtensorflow_framework.so.2", "libtensorflow_cc.so.2")  # the second needs the first


def install() -> None:
    """Has TensorFlow imported without what is optional, which can be imported all the same."""
    if "tensorflow" not in sys.modules and not any(isinstance(finder, _First) for finder in sys.meta_path):
        sys.meta_path.insert(0, _First())


def load_ahead() -> None:
    """Starts to load TensorFlow's shared libraries in a thread: that takes a quarter of a second, in which Python can go on.

    What `noise.quiet_before_import` says has to be said before.
    """
    if "tensorflow" not in sys.modules and sys.platform == "linux":
        threading.Thread(target=_load, name="load TensorFlow").start()


def _load() -> None:
    spec = importlib.util.find_spec("tensorflow")
    if spec is None or spec.origin is None:
        return
    # Python holds its lock while it opens a library, but not while it calls a function of one.
    dlopen = ctypes.CDLL(None).dlopen
    dlopen.restype = ctypes.c_void_p
    for name in _LIBRARIES:  # what cannot be opened the import will say
        dlopen(os.fsencode(Path(spec.origin).with_name(name)), os.RTLD_LAZY | os.RTLD_LOCAL)


class _First(importlib.abc.MetaPathFinder):
    """Stands before the other finders, and has what they find of TensorFlow loaded in its way."""

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
    """Does what another loader does, without what is optional and without looking for garbage, of which there is none."""

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
            with _less():
                self._loader.exec_module(module)
        finally:
            if collects:
                gc.enable()
        gc.freeze()  # modules live to the end


@contextlib.contextmanager
def _less() -> Iterator[None]:
    """Leaves out what is optional; setuptools too, which puts itself in the place of Python's distutils."""
    finder, before = _Less(), "distutils" in sys.modules
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.partition(".")[0] == "distutils" and not before]:
            del sys.modules[name]  # setuptools complains of Python's own


class _Less(importlib.abc.MetaPathFinder):
    """Says of optional packages that they are not installed; in one thread, since others may import what they need."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def find_spec(self, fullname: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        if threading.get_ident() != self._thread:
            return None
        if fullname in _OPTIONAL:
            raise ModuleNotFoundError(f"{fullname} is left out", name=fullname)
        return importlib.machinery.PathFinder.find_spec(fullname) if fullname == "distutils" else None

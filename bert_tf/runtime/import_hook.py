"""Imports other packages inside a context manager."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any

Block = Callable[[], AbstractContextManager[None]]


def wrap(packages: tuple[str, ...], block: Block) -> None:
    """Imports packages inside a block if the first is not imported yet; `block` makes a context manager per import."""
    wrapped = any(isinstance(finder, _Finder) and finder.block is block for finder in sys.meta_path)
    if packages[0] not in sys.modules and not wrapped:
        sys.meta_path.insert(0, _Finder(packages, block))


class _Finder(importlib.abc.MetaPathFinder):
    """Precedes the other finders and wraps their loaders."""

    def __init__(self, packages: tuple[str, ...], block: Block) -> None:
        self.block = block
        self._packages = packages
        self._asks_others = False

    def find_spec(self, fullname: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self._packages or self._asks_others:
            return None
        self._asks_others = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._asks_others = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self.block)
        return spec


class _Loader(importlib.abc.Loader):
    """Delegates to another loader, which the module records as its own."""

    def __init__(self, loader: importlib.abc.Loader, block: Block) -> None:
        self._loader = loader
        self._block = block

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
        with self._block():
            self._loader.exec_module(module)

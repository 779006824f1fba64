"""Processes from a fork server, which imports a module once for all of them."""

from __future__ import annotations

import multiprocessing
import multiprocessing.util
from multiprocessing.context import ForkServerContext


def context(preloaded: str) -> ForkServerContext:
    """Returns the context whose server imports the module `preloaded`; the process has one server."""
    # With abstract sockets any user of the machine could send pickles to Python 3.9.15 and 3.10.8.
    multiprocessing.util.abstract_sockets_supported = False  # type: ignore[misc]
    server_context = multiprocessing.get_context("forkserver")
    server_context.set_forkserver_preload([preloaded])
    return server_context

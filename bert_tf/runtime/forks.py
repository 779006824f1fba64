"""Forked processes: from a server, or refused.

TensorFlow's threads do not survive a fork: the child of a process that computed waits for them forever.
"""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

from bert_tf.errors import BertError

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext

_computes: list[int] = []  # the first process that has computed
_LONGEST = 75  # bytes of a temporary folder in which the path of multiprocessing's socket has the 107 that it may have


class ForkedError(BertError):
    """A process cannot compute because it was forked from one that has."""


def is_child() -> bool:
    return bool(_computes) and _computes[0] != os.getpid()


def begin() -> None:
    """Notes that this process computes; ForkedError if it cannot."""
    if is_child():
        raise ForkedError(
            f"this process was forked from process {_computes[0]} after a computation, so TensorFlow would hang in it: start"
            " it with multiprocessing.get_context('spawn'), or fork before the first computation and load the model in the"
            " child"
        )
    _computes[:] = [os.getpid()]


def server_context(preloaded: str) -> ForkServerContext:
    """Returns the context of a fork server, which imports a module once for all processes; there is one server."""
    import multiprocessing.util

    # With abstract sockets any user of the machine could send pickles to Python 3.9.15 and 3.10.8.
    multiprocessing.util.abstract_sockets_supported = False  # type: ignore[misc]
    folder = tempfile.gettempdir()
    if len(os.fsencode(folder)) > _LONGEST:
        tempfile.tempdir = "/tmp"  # noqa: S108  (a new folder of this user in it)
        try:
            multiprocessing.util.get_temp_dir()  # multiprocessing keeps it
        finally:
            tempfile.tempdir = folder
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([preloaded])
    return context

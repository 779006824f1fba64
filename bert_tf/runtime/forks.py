"""TensorFlow's threads do not survive a fork: the child of a process that computed waits for them forever."""

from __future__ import annotations

import os

from bert_tf.errors import BertError

_computes: list[int] = []  # the first process that has computed


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

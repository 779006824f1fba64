"""Ends a command with an exit status and one line per problem."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import cast

from bert_tf.cli.failure import failure
from bert_tf.cli.flags import HelpAsked
from bert_tf.operations.command import STOPPED

_BROKEN_PIPE = 141  # a shell's status for a process killed by SIGPIPE


def run_command(work: Callable[[], int], *, help_text: Callable[[], str], stopped: str) -> int:
    """Runs a command and maps its errors to exit statuses; `stopped` is the message after Ctrl-C.

    Exit status: that of `work`; 0 help; 2 an error that the user can fix; 70 an unexpected error; 75 another machine is
    gone; 130 stopped; 141 standard output was closed.
    """
    try:
        with _threads_in_one_line() as of_threads:
            status = _done(work, help_text)
        status = status or max(of_threads, default=0)
        sys.stdout.flush()
    except KeyboardInterrupt:
        status = _said(STOPPED, [stopped])
    except BrokenPipeError:  # for example, piped into head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for Python's output at exit
        status = _BROKEN_PIPE
    except SystemExit as error:  # from a library, which has printed why
        status = error.code if isinstance(error.code, int) else _said(2, [str(error.code)]) if error.code else 0
    except BaseException as error:
        status = _said(*failure(error))
    peers = sys.modules.get("bert_tf.runtime.peers")  # of several machines, whose sessions may be closing
    return cast(int, peers.leave(status)) if peers else status


def _done(work: Callable[[], int], help_text: Callable[[], str]) -> int:
    try:
        return work()
    except HelpAsked:
        sys.stdout.write(help_text())
        return 0


def _said(status: int, lines: Sequence[str]) -> int:
    for line in lines:
        print(f"error: {line}", file=sys.stderr)
    return status


@contextlib.contextmanager
def _threads_in_one_line() -> Iterator[list[int]]:
    """Reports uncaught errors of threads in one line, too; yields the list of their exit statuses."""
    statuses: list[int] = []
    earlier = threading.excepthook

    def hook(ending: threading.ExceptHookArgs) -> None:
        if ending.exc_value is not None and not isinstance(ending.exc_value, SystemExit):
            name = ending.thread.name if ending.thread else "?"
            statuses.append(_said(*failure(ending.exc_value, where=f" in thread {name}")))

    threading.excepthook = hook
    try:
        yield statuses
    finally:
        threading.excepthook = earlier

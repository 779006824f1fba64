"""A command as a process: how its log and imports begin, and how it ends, with an exit status and one line per problem."""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import cast

from absl import flags

from bert_tf import versions
from bert_tf.errors import BadRowsError, BertError, PreflightError
from bert_tf.io import files, log_form
from bert_tf.io.log_form import redacted
from bert_tf.operations.command import STOPPED
from bert_tf.runtime import signals

_UNUSABLE = 2  # an error that the user can fix
_INTERNAL = os.EX_SOFTWARE  # 70: unexpected error
_SHOWN = 300  # maximum characters of a library's message

_OF_THE_MACHINE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EAGAIN, errno.ENOMEM, *files.OF_STORAGE}

_FOLDERS: list[Path] = []


def reports_go_to(folder: str | os.PathLike[str]) -> None:
    """Sets the folder for reports of unexpected errors, used if it is writable."""
    _FOLDERS[:] = [Path(folder)]


def failure(error: BaseException, *, where: str = "") -> tuple[int, list[str]]:
    """Returns the exit status of a failed command and the lines of its message."""
    if isinstance(error, (BadRowsError, PreflightError)):
        return error.status, [_one_line(problem) for problem in error.problems]
    if isinstance(error, BertError):
        return error.status, [_one_line(str(error))]
    explanation = next((line for line in (explain(error) for explain in _FORESEEN) if line), None)
    return (_UNUSABLE, [_one_line(explanation)]) if explanation else (_INTERNAL, [unforeseen(error, where)])


def unforeseen(error: BaseException, where: str = "") -> str:
    """Writes the report of an unexpected error and returns the message; `where` is, for example, " in thread X"."""
    message = _one_line(f"{type(error).__name__}: {error}").rstrip(": ")[:_SHOWN]
    path = _report(error)
    remedy = f"report it with {path}" if path else "report it; the traceback could not be written to any folder"
    return f"internal error{where}: {message}; this is a bug in bert_tf: {remedy}"


def _one_line(text: str) -> str:
    return redacted(" ".join(text.splitlines()))  # quoted input may contain line breaks


def _report(error: BaseException) -> Path | None:
    """Writes command line, versions and traceback to the first writable folder."""
    head = f"{time.strftime('%Y-%m-%d %H:%M:%S')}  Python {platform.python_version()}  {sys.platform}\n{sys.argv}\n\n"
    text = head + "".join(traceback.format_exception(type(error), error, error.__traceback__))
    for folder in (*_FOLDERS, None):  # the last is the temporary folder
        with contextlib.suppress(OSError):
            number, name = tempfile.mkstemp(prefix="internal_error_", suffix=".txt", dir=folder)
            with open(number, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(redacted(text))
            return Path(name)
    return None


def _link_loop(error: BaseException) -> str | None:
    if isinstance(error, RuntimeError) and str(error).startswith("Symlink loop"):  # pathlib's message
        return f"{str(error).partition(' from ')[2]}: a link leads to itself"
    return None


def _refused_by_system(error: BaseException) -> str | None:
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):  # Python's message
        return files.reason(OSError(errno.EAGAIN, str(error)))
    if not isinstance(error, OSError) or not files.is_foreseen(error):
        return None
    if isinstance(error.filename, (str, bytes)):
        return f"{os.fsdecode(error.filename)}: {files.reason(error)}"
    if error.errno != errno.ENOENT:  # error on an open file
        return files.reason(error) if error.errno in _OF_THE_MACHINE else None
    if "temporary directory" in str(error):  # tempfile's message
        return f"{error.strerror}; free some space, or set TMPDIR to a folder that can be written"
    return None if _has_working_directory() else "the working directory was deleted; change to another one (cd)"


def _has_working_directory() -> bool:
    try:
        os.getcwd()
    except OSError:
        return False
    return True


def _out_of_memory(error: BaseException) -> str | None:
    if not isinstance(error, (MemoryError, *_of_tensorflow("ResourceExhaustedError"))):
        return None
    message = _message(error)
    if "device:GPU" in str(error):
        return (
            f"out of memory on the GPU: {message}; lower the batch size or --max_seq_length, or stop other processes on the GPU"
        )
    remedy = "lower the batch size or --max_seq_length, raise the limit (ulimit -v), or free memory"
    return f"out of memory on the host{f': {message}' if message else ''}; {remedy}"


def _odd_name(error: BaseException) -> str | None:
    if not isinstance(error, UnicodeEncodeError):
        return None
    if error.encoding != "utf-8" or any("\udc80" <= letter <= "\udcff" for letter in error.object):
        return f"{error.object[:_SHOWN]!r}: cannot be written in {error.encoding}; rename the file, or set PYTHONUTF8=1"
    return None


def _not_installed(error: BaseException) -> str | None:
    if not isinstance(error, ImportError) or (error.name or "").startswith("bert_tf"):
        return None
    if versions.lacks_tensorflow(error):
        return versions.without_tensorflow(sys.version_info[:2])
    if isinstance(error, ModuleNotFoundError):
        return f"{error}: pip install -r requirements.txt"
    return f"{error}; reinstall requirements.txt, or raise the memory limit (ulimit -v) if it prevents loading a library"


def _of_gpu(error: BaseException) -> str | None:
    """Recognizes GPU errors, which TensorFlow also raises as RuntimeError when listing devices or opening sessions."""
    if not isinstance(error, (RuntimeError, *_of_tensorflow("OpError"))):
        return None
    from bert_tf.runtime import gpu_failures

    return gpu_failures.explain(str(getattr(error, "message", error)))


def _refused_by_tensorflow(error: BaseException) -> str | None:
    if isinstance(error, _of_tensorflow("PermissionDeniedError")):
        return _message(error)
    if isinstance(error, _of_tensorflow("FailedPreconditionError")) and "directory" in _message(error):
        return f"{_message(error)}; move or delete the file of that name, or name another folder"
    return None


def _of_tensorflow(name: str) -> tuple[type[BaseException], ...]:
    """An error class of TensorFlow; empty if TensorFlow is not imported, since none can have been raised then."""
    tensorflow = sys.modules.get("tensorflow")
    return (getattr(tensorflow.errors, name),) if tensorflow and hasattr(tensorflow, "errors") else ()


def _message(error: BaseException) -> str:
    return str(getattr(error, "message", error)).strip().split("\n")[0][:_SHOWN]


_FORESEEN: Sequence[Callable[[BaseException], str | None]] = (
    _refused_by_system,
    _link_loop,
    _out_of_memory,
    _odd_name,
    _not_installed,
    _of_gpu,
    _refused_by_tensorflow,
)


def setup_logging(verbosity: int, form: str = log_form.SHORT) -> None:
    """Sets up the log, and the import of TensorFlow without modules that no command uses.

    `verbosity`: -1 warnings only, 0 the log, 1 also TensorFlow's own messages. `form` is one of `log_form.FORMS`; the
    published one shows TensorFlow's messages at every verbosity.
    """
    from bert_tf.runtime import noise, quick_import

    quick_import.collect_rarely()
    quick_import.install()
    log_form.set_up(form, verbosity)
    flags.FLAGS.mark_as_parsed()  # else absl logs a warning: our flags are not the global ones
    if form == log_form.PUBLISHED:
        noise.hear_python()
    elif verbosity < 1:
        noise.quiet_before_import()
        noise.quiet_python()


_BROKEN_PIPE = 141  # a shell's status for a process killed by SIGPIPE


class HelpAsked(Exception):  # noqa: N818  (no error)
    """The command line asks for help."""


def run_command(work: Callable[[], int], *, help_text: Callable[[], str], stopped: str) -> int:
    """Runs a command and maps its errors to exit statuses; `stopped` is the message after Ctrl-C, SIGTERM or SIGHUP.

    Exit status: that of `work`; 0 help; 2 an error that the user can fix; 70 an unexpected error; 75 another machine is
    gone; 130 stopped; 141 standard output was closed.
    """
    try:
        with _signals_as_ctrl_c(), _threads_in_one_line() as of_threads:
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
def _signals_as_ctrl_c() -> Iterator[None]:
    """Lets SIGTERM and SIGHUP raise KeyboardInterrupt, so that the command deletes its temporary files.

    A program that handles them itself goes on to do so.
    """
    is_main = threading.current_thread() is threading.main_thread()
    numbers = [number for number in signals.ending() if is_main and signal.getsignal(number) is signal.SIG_DFL]

    def stop(number: int, frame: FrameType | None) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)  # schedulers send several; Ctrl-C cuts the cleaning off
        signal.default_int_handler(number, frame)

    for number in numbers:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


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

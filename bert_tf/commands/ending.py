"""How a command ends: its status, and one line for each problem."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from bert_tf.commands.flags import HelpAsked
from bert_tf.errors import BertError, PreflightError
from bert_tf.runtime.closing import leave

_BROKEN_PIPE = 141  # as a shell says of a process that ends by SIGPIPE


def ended(work: Callable[[], int], *, help_text: Callable[[], str], stopped: str) -> int:
    """Does the work of a command.

    Args:
      work: returns an exit status.
      help_text: what to print where help is asked for, with status 0.
      stopped: what to say after Ctrl-C.

    Returns:
      Exit status: that of the work, 2 a problem that the user can mend, 75 another machine is gone, 130 stopped, 141 nobody
        reads standard output any more.
    """
    try:
        status = work()
        sys.stdout.flush()
        return leave(status)
    except HelpAsked:
        sys.stdout.write(help_text())
        return leave(0)
    except BertError as error:
        for problem in error.problems if isinstance(error, PreflightError) else (str(error),):
            print(f"error: {' '.join(problem.splitlines())}", file=sys.stderr)  # a file that is quoted may hold line ends
        return leave(error.status)
    except KeyboardInterrupt:
        print(f"error: {stopped}", file=sys.stderr)
        return leave(130)
    except BrokenPipeError:  # as head does when it has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python writes at its end
        return leave(_BROKEN_PIPE)

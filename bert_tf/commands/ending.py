"""How a command ends: its status, and one line for each problem."""

from __future__ import annotations

import sys
from collections.abc import Callable

from bert_tf.commands.flags import HelpAsked
from bert_tf.errors import BertError, PreflightError
from bert_tf.runtime.closing import leave


def ended(work: Callable[[], int], *, help_text: Callable[[], str], stopped: str) -> int:
    """Does the work of a command.

    Args:
      work: returns an exit status.
      help_text: what to print where help is asked for, with status 0.
      stopped: what to say after Ctrl-C.

    Returns:
      Exit status: that of the work, 2 a problem that the user can mend, 75 another machine is gone, 130 stopped.
    """
    try:
        return leave(work())
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

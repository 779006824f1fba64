"""python -m bert_tf COMMAND"""

from __future__ import annotations

import importlib
import sys

from bert_tf.errors import unknown_name

COMMANDS = ("classifier", "evaluate", "predict", "benchmark", "devices", "memory", "profile", "reproduce", "report", "data")


def main(argv: list[str]) -> int:
    """Runs the command named first; returns its exit status."""
    if len(argv) < 2 or argv[1] in ("--help", "-h", "-help"):
        print(f"usage: python -m bert_tf COMMAND [FLAGS]; commands: {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    if argv[1] not in COMMANDS:
        print(f"error: {unknown_name('command', argv[1], COMMANDS)}", file=sys.stderr)
        return 2
    command = importlib.import_module(f"bert_tf.commands.{argv[1]}")
    return int(command.main(argv[1:]))


def run(argv: list[str]) -> int:
    """Runs a command line as all that a process does, see `main`: also what fails at an import is one line."""
    try:
        from bert_tf import streams

        streams.make_safe()
        from bert_tf.commands.ending import ended

        return ended(lambda: main(argv), help_text=str, stopped="stopped")
    except KeyboardInterrupt:
        print("error: stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(run(sys.argv))

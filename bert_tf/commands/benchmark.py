"""The benchmark is no part of the package: it stands beside it in a clone, and this command runs it there."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from bert_tf import home
from bert_tf.cli.ending import run_command
from bert_tf.errors import BertError

FOLDER = "benchmarks"


def main(argv: Sequence[str], *, project: Path = home.PACKAGE.parent) -> int:
    """Runs a command line of `benchmarks.command_line`; returns its exit status, 2 where the package is not in a clone.

    Args:
      argv: name and arguments.
      project: folder of the clone.
    """
    if not (project / FOLDER / "command_line.py").is_file():
        return run_command(_missing, help_text=str, stopped="stopped")
    sys.path.insert(0, str(project))
    return int(importlib.import_module(f"{FOLDER}.command_line").main(argv))


def _missing() -> int:
    raise BertError("the benchmark is not installed with the package: clone the project, and run this command there")

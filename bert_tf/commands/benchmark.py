"""Runs the benchmark, which is not part of the package but lies beside it in a clone."""

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
    """Runs `benchmarks.command_line`; returns its exit status, 2 outside a clone."""
    if not (project / FOLDER / "command_line.py").is_file():
        return run_command(_missing, help_text=str, stopped="stopped")
    sys.path.insert(0, str(project))
    return int(importlib.import_module(f"{FOLDER}.command_line").main(argv))


def _missing() -> int:
    raise BertError("the benchmark is not installed with the package: clone the project, and run this command there")

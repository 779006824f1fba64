"""Commands of a copy of the package, or of the package beside another one, in a process that has TensorFlow already.

    python tests/extensions/copies.py FOLDER COMMAND ... [+ COMMAND ...]

FOLDER is searched for packages first. The status is that of all commands, or 99 if they differ.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
ROOT = HERE.parents[2]


def run(folder: Path, *arguments: Any) -> subprocess.CompletedProcess[str]:
    from tests import processes

    return processes.run([HERE, folder, *arguments])


def run_all(folder: Path, *commands: str) -> subprocess.CompletedProcess[str]:
    """Runs command lines one after the other, in one process."""
    return run(folder, *" + ".join(commands).split())


def _main(folder: str, *arguments: str) -> int:
    from tensorflow.python.framework import ops

    for name in [name for name in sys.modules if name.partition(".")[0] == "bert_tf"]:
        del sys.modules[name]
    for name in [name for name in ops.gradient_registry.list() if name.startswith("BertTf")]:
        del ops.gradient_registry._registry[name]  # the copy registers its own
    sys.path[:0] = [folder, str(ROOT)]
    from bert_tf.__main__ import run

    commands: list[list[str]] = [[]]
    for word in arguments:
        if word == "+":
            commands.append([])
        else:
            commands[-1].append(word)
    statuses = {run(["bert_tf", *words]) for words in commands}
    return statuses.pop() if len(statuses) == 1 else 99


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))

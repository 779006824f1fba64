"""Commands of a copy of the package, or of the package beside another one, in a process that has TensorFlow already.

    python tests/extensions/copies.py FOLDER COMMAND ...

FOLDER is searched for packages first.
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


def _main(folder: str, *arguments: str) -> int:
    from tensorflow.python.framework import ops

    for name in [name for name in sys.modules if name.partition(".")[0] == "bert_tf"]:
        del sys.modules[name]
    for name in [name for name in ops.gradient_registry.list() if name.startswith("BertTf")]:
        del ops.gradient_registry._registry[name]  # the copy registers its own
    sys.path[:0] = [folder, str(ROOT)]
    from bert_tf.__main__ import run

    return run(["bert_tf", *arguments])


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))

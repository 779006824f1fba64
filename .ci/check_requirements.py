"""Resolves a requirements file from scratch, with each set of optional packages: .ci/check_requirements.py requirements.txt

Nothing is installed; what pip would install today is another set than yesterday's.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bert_tf import extras  # noqa: E402

GROUPS = {
    "alone": [],
    "development": ["-r", "requirements-dev.txt"],
    "GPU": ["-r", "requirements-gpu.txt"],
    **extras.by_name(),
}


def resolve(arguments: list[str]) -> str:
    """Returns what pip complains of; nothing if the requirements can be installed together."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--quiet", "--dry-run", "--ignore-installed", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    lines = done.stderr.strip().splitlines() or [f"pip ended with status {done.returncode}"]
    of_conflict = [line for line in lines if line.startswith("ERROR: Cannot install")]
    return (of_conflict or lines)[-1]


def main(file: str) -> int:
    """Prints a line for each group; returns 1 if one of them cannot be installed."""
    failed = 0
    for name, arguments in GROUPS.items():
        problem = resolve(["-r", file, *arguments])
        failed += bool(problem)
        print(f"Python {sys.version_info[0]}.{sys.version_info[1]}, {file}, {name}: {problem or 'ok'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

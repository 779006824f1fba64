"""Writes what pip would install today, to the byte: .ci/lock.py requirements.txt .ci/locks/newest-3.13.txt

One hash each, of the file that this Python takes on this platform: for CI and installations to be repeated, on Linux x86-64.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main(file: str, lock: str) -> int:
    """Resolves a requirements file with what development needs; nothing is installed."""
    options = ["--quiet", "--dry-run", "--ignore-installed", "--report", "-", "-r", file, "-r", "requirements-dev.txt"]
    command = [sys.executable, "-m", "pip", "install", *options]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    items = [(one["metadata"], one["download_info"]["archive_info"]) for one in json.loads(done.stdout)["install"]]
    lines = [f"{about['name']}=={about['version']} --hash=sha256:{file['hashes']['sha256']}" for about, file in items]
    (ROOT / lock).write_text("# make lock\n" + "\n".join(sorted(lines, key=str.lower)) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""What pip would install today, to the byte; nothing is installed.

.ci/lock.py requirements.txt .ci/locks/newest-3.13.txt   exact versions with hashes, of what development needs too
.ci/lock.py WHEEL                                        puts a list of what the wheel needs into it (CycloneDX, PEP 770)

A package has one hash, of the file that this Python takes on this platform: for CI, on Linux x86-64.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def resolved(*requirements: str) -> list[tuple[str, str, str]]:
    """Returns names, versions and sha256 of what pip would install into an empty environment."""
    options = ["--quiet", "--dry-run", "--ignore-installed", "--report", "-", *requirements]
    done = subprocess.run([sys.executable, "-m", "pip", "install", *options], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    items = [(one["metadata"], one["download_info"]["archive_info"]) for one in json.loads(done.stdout)["install"]]
    rows = [(about["name"], about["version"], archive["hashes"]["sha256"]) for about, archive in items]
    return sorted(rows, key=lambda row: row[0].lower())


def lock(requirements: str, output: str) -> None:
    """Writes a file for `pip install --require-hashes -r`."""
    rows = resolved("-r", requirements, "-r", "requirements-dev.txt")
    lines = [f"{name}=={version} --hash=sha256:{digest}\n" for name, version, digest in rows]
    (ROOT / output).write_text("# make lock\n" + "".join(lines), encoding="utf-8")


def bill(rows: list[tuple[str, str, str]]) -> dict[str, Any]:
    """Returns a software bill of materials in CycloneDX's form."""
    components = [
        {
            "type": "library",
            "name": name,
            "version": version,
            "purl": f"pkg:pypi/{name.lower().replace('_', '-')}@{version}",
            "hashes": [{"alg": "SHA-256", "content": digest}],
        }
        for name, version, digest in rows
    ]
    return {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "components": components}


def describe(wheel: Path) -> None:
    """Packs a wheel again, with the bill in `.dist-info/sboms`; the wheel itself is not in it."""
    rows = [row for row in resolved(str(wheel)) if row[0] != "bert_tf"]
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([sys.executable, "-m", "wheel", "unpack", str(wheel), "--dest", scratch], check=True)
        (folder,) = Path(scratch).iterdir()
        sboms = next(folder.glob("*.dist-info")) / "sboms"
        sboms.mkdir()
        (sboms / "bert_tf.cdx.json").write_text(json.dumps(bill(rows), indent=1) + "\n", encoding="utf-8")
        subprocess.run([sys.executable, "-m", "wheel", "pack", str(folder), "--dest-dir", str(wheel.parent)], check=True)


if __name__ == "__main__":
    lock(*sys.argv[1:]) if len(sys.argv) > 2 else describe(Path(sys.argv[1]).resolve())

"""python -m benchmarks.load: many clients at once query a running service, and every answer is checked.

wrk sends (apt-get install wrk).

    python -m bert_tf serve out/mrpc --port=8500 &
    python -m benchmarks.load --rows=rows.jsonl --clients=64 --seconds=120

Each line of the file is a row, an object. Each is first sent alone, as reference; then by one client, then by many.
Reported are good, wrong, refused and lost answers, answers per second, and latency.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

TOLERANCE = 1e-5  # of numbers in an answer

_SCRIPT = Path(__file__).with_suffix(".lua")
_ALONE_S = 20
_RESULT = "RESULT "
_COLUMNS = ("clients", "good", "wrong", "refused", "lost", "per_second", "p50_ms", "p99_ms")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=Path, required=True, help="file of rows, an object in each line")
    parser.add_argument("--url", default="http://127.0.0.1:8500/predict")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--tolerance", type=float, default=TOLERANCE, help="of numbers in an answer; more for int8, bfloat16")
    flags = parser.parse_args(arguments)
    if shutil.which("wrk") is None:
        parser.error("wrk is not installed: apt-get install wrk")
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.lua"
        rows.write_text(as_lua(answered(flags.url, flags.rows.read_text(encoding="utf-8").splitlines())), encoding="ascii")
        found = [
            {"clients": clients, **measured(flags.url, rows, flags.tolerance, clients, seconds)}
            for clients, seconds in ((1, min(_ALONE_S, flags.seconds)), (flags.clients, flags.seconds))
        ]
    sys.stdout.write(
        "".join(
            "\t".join(map(str, line)) + "\n" for line in (_COLUMNS, *([one[column] for column in _COLUMNS] for one in found))
        )
    )
    return 0 if all(one["wrong"] == one["refused"] == one["lost"] == 0 for one in found) else 1


def answered(url: str, lines: Sequence[str]) -> list[tuple[bytes, bytes]]:
    """Returns each row's request body and the service's answer to it alone; ValueError if a row is refused."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
    found = []
    for number, line in enumerate(lines):
        body = json.dumps({**json.loads(line), "id": f"row-{number}"}).encode()
        connection.request("POST", address.path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise ValueError(f"row {number}: {text.decode(errors='replace')}")
        found.append((body, text.partition(b'"predictions": ')[2]))
    return found


def as_lua(rows: Sequence[tuple[bytes, bytes]]) -> str:
    return "return {\n" + "".join(f"{{{_text(body)}, {_text(answer)}}},\n" for body, answer in rows) + "}\n"


def _text(value: bytes) -> str:
    return '"' + "".join(f"\\{byte:03}" for byte in value) + '"'


def measured(url: str, rows: Path, tolerance: float, clients: int, seconds: int) -> dict[str, Any]:
    """Lets clients send the rows of `as_lua` for a time; returns counts of answers, answers per second, and latency."""
    command = ["wrk", f"-t{min(2, clients)}", f"-c{clients}", f"-d{seconds}s", "--timeout=60s", f"--script={_SCRIPT}", url]
    environment = {**os.environ, "BERT_TF_LOAD_ROWS": str(rows), "BERT_TF_LOAD_TOLERANCE": str(tolerance)}
    said = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    (line,) = (line for line in said.splitlines() if line.startswith(_RESULT))
    found: dict[str, Any] = json.loads(line.removeprefix(_RESULT))
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

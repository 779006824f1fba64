"""What a run leaves, as values."""

import json
from pathlib import Path
from typing import Any


def results(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "eval_results.json").read_text())


def record(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "run_config.json").read_text())


def objects(path: Path) -> list[Any]:
    """Returns the objects of a file that has one in each line."""
    return [json.loads(line) for line in path.read_text().splitlines()]

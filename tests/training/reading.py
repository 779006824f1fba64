"""What a run leaves, as values."""

import json
from pathlib import Path
from typing import Any


def results(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "eval_results.json").read_text())


def text_results(folder: Path) -> dict[str, str]:
    """Returns the values of the file in the form of the published script, as text."""
    return dict(line.split(" = ") for line in (folder / "eval_results.txt").read_text().splitlines())


def record(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "run_config.json").read_text())


def objects(path: Path) -> list[Any]:
    """Returns the objects of a file that has one in each line."""
    return [json.loads(line) for line in path.read_text().splitlines()]

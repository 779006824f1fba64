"""results.json and results.md: what was measured, on what, and what was required."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf import atomic, documents
from bert_tf.profiling.timing.wall_clock import PARTS

JSON_NAME, MARKDOWN_NAME = "results.json", "results.md"
_HELD = {True: "held", False: "**missed**", None: "not measured"}


def write(folder: Path, results: Mapping[str, Any]) -> None:
    """Writes both files, each whole or not at all.

    Raises:
      OutputError: the folder cannot be written.
    """
    atomic.write_text(folder / JSON_NAME, documents.to_json(results, indent=2) + "\n")
    atomic.write_text(folder / MARKDOWN_NAME, to_markdown(results))


def read(folder: Path) -> dict[str, Any] | None:
    """Returns what an earlier run wrote into a folder, None where there is nothing that can be read."""
    try:
        results: dict[str, Any] = json.loads((folder / JSON_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return results


def to_markdown(results: Mapping[str, Any]) -> str:
    """Returns the report for people."""
    parts = [_head(results), _requirements(results["requirements"])]
    parts += [_comparison(comparison) for comparison in results["comparisons"]]
    return "\n\n".join(parts) + "\n"


def _head(results: Mapping[str, Any]) -> str:
    machine, settings = results["machine"], results["settings"]
    unfinished = "" if results["finished"] else "\n\nThe run is not finished: what is below was measured before it stopped."
    return (
        "# Benchmark\n\n"
        f"- machine: {machine['cpu']}, {machine['cores']} cores, {machine['memory_gb']} GB, {machine['system']}\n"
        f"- our side: {_versions(results['versions'])}\n"
        + "".join(f"- {name}: {_versions(found)}\n" for name, found in _peer_versions(results).items())
        + f"- {settings['threads']} threads, {settings['rounds']} rounds of {settings['steps']} steps, data: {settings['data']}"
        f"{unfinished}\n\n"
        "Contenders take turns in every round. Figures are medians over the rounds, with the lowest and the highest in\n"
        "parentheses; a ratio is the median of the ratios of each round."
    )


def _versions(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _peer_versions(results: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    rows = [row for comparison in results["comparisons"] for row in comparison["rows"]]
    return {row["library"]: row["versions"] for row in rows if row["library"] != "bert_tf" and row["versions"]}


def _requirements(verdicts: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        (verdict["what"], verdict["required"], _spread(verdict), _HELD[verdict["held"]] + _because(verdict.get("note", "")))
        for verdict in verdicts
    ]
    return "## Required\n\n" + _table(("what", "required", "measured", ""), rows)


def _because(note: str) -> str:
    return f": {note}" if note else ""


# Columns of a comparison's table: heading, and the cell of a row. A column in which nothing stands is left out.
_COLUMNS: tuple[tuple[str, Callable[[Mapping[str, Any]], str]], ...] = (
    ("contender", lambda row: row["contender"]),
    ("batch", lambda row: str(row["batch_size"])),
    ("{unit}", lambda row: _spread(row)),
    ("ratio to {baseline}", lambda row: _spread(row.get("ratio", {}))),
    ("share of peak", lambda row: _spread(row.get("share_of_peak", {}), "{:.1%}")),
    ("dev accuracy", lambda row: f"{row['accuracy']:.3f}" if "accuracy" in row else ""),
    ("note", lambda row: "" if row["status"] == "measured" else row["status"]),
)


def _comparison(comparison: Mapping[str, Any]) -> str:
    names = {"unit": comparison["unit"], "baseline": comparison["baseline"] or "baseline"}
    filled = [
        (heading.format(**names), cells)
        for heading, cell in _COLUMNS
        if any(cells := [cell(row) for row in comparison["rows"]])
    ]
    measured = comparison["measured"]
    text = f"## {comparison['title']}\n\n    {measured['command']}\n\n{measured['date']}, commit {measured['commit']}\n\n"
    if comparison["peak_gflops"]:
        text += f"Matmul peak, measured in the same rounds: {_spread(comparison['peak_gflops'])} GFLOP/s.\n\n"
    text += _table([heading for heading, _ in filled], zip(*(cells for _, cells in filled)))
    return "\n\n".join([text, *(_account(row) for row in comparison["rows"] if row.get("parts"))])


def _account(row: Mapping[str, Any]) -> str:
    """Returns where the wall time of a command went, by its own account."""
    whole = sum(row["parts"].values())
    cells = [(PARTS.get(name, name), f"{seconds:.1f}", f"{seconds / whole:.1%}") for name, seconds in row["parts"].items()]
    title = f"Where the wall time of {row['contender']} went, medians; the account of each run is within 2 % of its wall time:"
    return f"{title}\n\n{_table(('part', 's', 'share'), cells)}"


def _spread(values: Mapping[str, Any], form: str = "") -> str:
    if "median" not in values:
        return ""
    numbers = (values[key] for key in ("median", "lowest", "highest"))
    middle, low, high = ((form or ("{:.4g}" if abs(number) < 1e4 else "{:.0f}")).format(number) for number in numbers)
    return middle if low == high else f"{middle} ({low} to {high})"


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)

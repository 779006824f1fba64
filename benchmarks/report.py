"""results.md: figures on each CPU model, and the requirements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.comparisons import COMPARISONS, OWN, SUITES
from benchmarks.cpu_table import by_cpu, training_ratio
from benchmarks.markdown import spread, table
from benchmarks.records import Record, name
from bert_tf import atomic
from bert_tf.profiling.timing.wall_clock import PARTS
from bert_tf.text_table import counted

NAME = "results.md"

_ROWS = {row.name: row for row in COMPARISONS}

_ABOUT = """# Benchmark

Contenders take turns in every round. Figures are medians over the rounds, with the lowest and the highest in
parentheses; a ratio is the median of the ratios of each round. Made by `python -m bert_tf benchmark` from the records in
`results/`, one for each CPU model: a run adds to the record of the CPU that it is on, and replaces what it measures again."""


def write(output_dir: Path, found: Sequence[Record]) -> None:
    atomic.write_text(output_dir / NAME, to_markdown(found))


def to_markdown(found: Sequence[Record]) -> str:
    """Returns the report, the CPU with the least gain first."""
    found = sorted(found, key=training_ratio)
    parts = [_ABOUT, "## By CPU model", by_cpu(found), *(_record(record) for record in found if record["comparisons"])]
    return "\n\n".join(parts) + "\n"


def _record(record: Record) -> str:
    comparisons = record["comparisons"]
    parts = [f"## {name(record)}", "\n".join(_measured_with(record)), *map(_comparison, comparisons)]
    if not record["finished"]:
        parts.insert(2, "The last run is not finished: what is below was measured before it stopped.")
    return "\n\n".join(parts)


def _measured_with(record: Record) -> Iterator[str]:
    found: dict[str, dict[str, None]] = {"instructions": dict.fromkeys(record["cpu"].get("instructions", ()))}
    for comparison in record["comparisons"]:
        measured = comparison["measured"]
        found.setdefault("machine", {})[_machine(measured["machine"])] = None
        of_peers = {row["library"]: row["versions"] for row in comparison["rows"] if row["versions"]}
        for library, versions in {**of_peers, OWN: measured["versions"]}.items():
            found.setdefault(library, {})[" ".join(f"{package} {version}" for package, version in versions.items())] = None
    yield from (f"- {what}: {', '.join(texts) or 'not known'}" for what, texts in found.items())


def _machine(machine: Mapping[str, Any]) -> str:
    return f"{machine['cores']} cores of {machine['memory_gb']} GB, {machine['system']}"


def _measured(comparison: Mapping[str, Any]) -> str:
    measured, turns = comparison["measured"], _turns(comparison)
    data = measured["settings"]["data"]
    return f"    {measured['command']}\n\n{measured['date']}, commit {measured['commit']}; {turns}; {data}."


def _turns(comparison: Mapping[str, Any]) -> str:
    """Returns threads, rounds and steps: the comparison's own, else the command's."""
    settings, row, suite = comparison["measured"]["settings"], _ROWS.get(comparison["name"]), SUITES.get(comparison["suite"])
    threads = counted((row and row.threads) or settings["threads"], "thread")
    rounds = counted(1 if suite and suite.procedure == "curves" else settings["rounds"], "round")
    steps = f" of {counted(suite.steps or settings['steps'], 'step')}" if suite and suite.worker == "train" else ""
    return f"{threads}, {rounds}{steps}"


# Columns of a comparison's table: heading, and the cell of a row. An empty column is left out.
_COLUMNS: tuple[tuple[str, Callable[[Mapping[str, Any]], str]], ...] = (
    ("contender", lambda row: row["contender"]),
    ("batch", lambda row: str(row["batch_size"])),
    ("{unit}", lambda row: spread(row)),
    ("ratio to {baseline}", lambda row: spread(row.get("ratio", {}))),
    ("share of peak", lambda row: spread(row.get("share_of_peak", {}), "{:.1%}")),
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
    text = f"### {comparison['title']}\n\n{_measured(comparison)}\n\n"
    row = _ROWS.get(comparison["name"])
    if row and row.about:
        text += f"{row.about}\n\n"
    if comparison["peak_gflops"]:
        text += f"Matmul peak, measured in the same rounds: {spread(comparison['peak_gflops'])} GFLOP/s.\n\n"
    text += table([heading for heading, _ in filled], zip(*(cells for _, cells in filled)))
    return "\n\n".join([text, *(_account(row) for row in comparison["rows"] if row.get("parts"))])


def _account(row: Mapping[str, Any]) -> str:
    whole = sum(row["parts"].values())
    cells = [(PARTS.get(part, part), f"{seconds:.1f}", f"{seconds / whole:.1%}") for part, seconds in row["parts"].items()]
    title = f"Where the wall time of {row['contender']} went, medians; the account of each run is within 2 % of its wall time:"
    return f"{title}\n\n{table(('part', 's', 'share'), cells)}"

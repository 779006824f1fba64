"""The table of requirements, with a column for each CPU model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks import results
from benchmarks.markdown import spread, table
from benchmarks.records import Record, name, newest

_COMMIT = 7  # digits of one
_LEGEND = "A figure in bold misses what is required; an empty cell was not measured."

_Verdict = Mapping[str, Any]


def by_cpu(found: Sequence[Record]) -> str:
    latest = max(map(newest, found), key=lambda each: str(each["date"]), default={"commit": ""})["commit"]
    heads = [f"{name(record)}, {_when(record, latest)}" for record in found]
    verdicts = [results.judge(record["comparisons"], _told(record)) for record in found]
    rows = [_row(of_one) for of_one in zip(*verdicts)]
    notes = [f"{name(record)}: {record['told']['source']}" for record in found if "told" in record]
    return "\n\n".join([table(("what", "required", *heads), [row for row in rows if any(row[2:])]), *notes, _LEGEND])


def training_ratio(record: Record) -> float:
    """Returns training speed relative to `transformers` on a CPU, 0 if not measured."""
    verdicts = {verdict["what"]: verdict for verdict in results.judge(record["comparisons"], _told(record))}
    return float(verdicts[results.TRAINING].get("median", 0.0))


def _told(record: Record) -> Mapping[str, float]:
    figures: Mapping[str, float] = record.get("told", {}).get("figures", {})
    return figures


def _row(verdicts: Sequence[_Verdict]) -> list[str]:
    return [verdicts[0]["what"], verdicts[0]["required"], *map(_cell, verdicts)]


def _cell(verdict: _Verdict) -> str:
    figure = spread(verdict)
    return f"**{figure}**" if verdict["held"] is False else figure


def _when(record: Record, latest: str) -> str:
    """Returns a column's commits; for a CPU without figures of the latest commit, its last one."""
    last = newest(record)["commit"]
    if last != latest:
        return f"not measured since {last[:_COMMIT]}"
    return ", ".join(dict.fromkeys(comparison["measured"]["commit"][:_COMMIT] for comparison in record["comparisons"]))

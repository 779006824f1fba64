"""Where the time of a run went, from its timing.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bert_tf import run_layout
from bert_tf.extensions.report.run_files import Run, is_number, mapping, read_object
from bert_tf.profiling import wall_clock
from bert_tf.profiling.timing_file import WALL

_SMALL = 0.5  # percent of the wall time

Part = dict[str, Any]  # of a step's time: name, mean in seconds, percent of all parts


def costs_of(run: Run) -> dict[str, Any]:
    """Recorded time of a run; empty if not recorded or damaged."""
    timing = read_object(run.folder / run_layout.TIMING) or {}
    text = mapping(timing, "diagnosis").get("text")
    known = {
        "parts": _parts(timing),  # largest first
        "diagnosis": text if isinstance(text, str) else "",  # the bottleneck
        "wall": _wall(timing),
    }
    return {**known, "steps": count(timing), "is_known": any(known.values()), "spreads": _spreads(timing)}


def count(timing: Mapping[str, Any]) -> int:
    steps = timing.get("steps")
    return int(steps) if is_number(steps) else 0


def _parts(timing: Mapping[str, Any]) -> list[Part]:
    """The measured parts of a step, and the rest of batch_cost."""
    means = [mapping(timing, name).get("mean") for name in ("batch", "reader", "communication")]
    batch, reader, communication = (mean if is_number(mean) else 0.0 for mean in means)
    seconds_by_name = {
        "computing": max(batch - reader - communication, 0.0),
        "waiting for the batch (reader_cost)": reader,
        "adding up gradients of replicas": communication,
    }
    return sorted(shares(seconds_by_name), key=lambda part: -part["seconds"])


def _wall(timing: Mapping[str, Any]) -> list[Part]:
    """Parts of the wall time, from the start of the process until the page was made."""
    seconds = mapping(mapping(timing, WALL), "parts")
    parts = shares({name: seconds[key] for key, name in wall_clock.PARTS.items() if is_number(seconds.get(key))})
    large, small = ([part for part in parts if (part["percent"] >= _SMALL) is is_large] for is_large in (True, False))
    if len(small) < 2:
        return parts
    sums = {key: sum(part[key] for part in small) for key in ("seconds", "percent")}
    return [*large, {"name": f"{len(small)} smaller parts", **sums}]


def shares(seconds_by_name: Mapping[str, float]) -> list[Part]:
    total = sum(seconds for seconds in seconds_by_name.values() if seconds > 0)
    return [{"name": name, "seconds": t, "percent": 100 * t / total} for name, t in seconds_by_name.items() if t > 0]


def _spreads(timing: Mapping[str, Any]) -> list[tuple[str, list[float]]]:
    """Rows of mean, median, 90th and 99th percentile in seconds."""
    rows = {"batch_cost": "batch", "reader_cost": "reader", "communication_cost": "communication"}
    parts = ("mean", "p50", "p90", "p99")
    listed = ((name, [mapping(timing, key).get(part) for part in parts]) for name, key in rows.items())
    numbers = ((name, [value for value in values if is_number(value)]) for name, values in listed)
    return [(name, values) for name, values in numbers if len(values) == len(parts) and any(values)]

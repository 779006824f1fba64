"""The published grid of fine-tuning (Devlin et al., 2019, appendix A.3) beside a search, in the same study."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf import run_layout
from bert_tf.errors import FlagError
from bert_tf.extensions.report.run_files import is_number, mapping, read_object
from bert_tf.extensions.sweep import held_out
from bert_tf.extensions.sweep.plan import SweepFile
from bert_tf.extensions.sweep.table import Result
from bert_tf.io.log_form import log
from bert_tf.training.run_spec import SETTINGS

GRID: Mapping[str, tuple[float, ...]] = {
    "learning_rate": (2e-5, 3e-5, 5e-5),
    "train_batch_size": (16, 32),
    "num_train_epochs": (2.0, 3.0, 4.0),
}
_DEFAULTS: Mapping[str, Any] = {row.name: row.default for row in SETTINGS}  # those of the published script
_CORRELATIONS = ("matthews_correlation", "pearson", "spearman")


def points(file: SweepFile, trials: int) -> list[dict[str, Any]]:
    """Points of the grid that the file's lists and ranges contain; its other settings have their defaults."""
    if not GRID.keys() & {*file.grid, *file.ranges}:
        raise FlagError(f"--with_grid: needs a list or range of {', '.join(GRID)}")
    values = {name: _contained(file, name) for name in (*file.grid, *file.ranges)}
    if not file.ranges and all(value in values[name] for name, given in file.grid.items() for value in given):
        raise FlagError(
            "--with_grid: the file's lists have only published values, so nothing is left to search; add others, or a range"
        )
    grid_points = [dict(zip(values, point)) for point in itertools.product(*values.values())]
    if trials <= len(grid_points):
        raise FlagError(f"--with_grid: the grid has {len(grid_points)} points; --trials={trials} leaves no run to the search")
    return grid_points


def _contained(file: SweepFile, name: str) -> list[Any]:
    wanted = GRID.get(name, (_DEFAULTS[name],))
    if name in file.grid:
        contained = [value for value in wanted if value in file.grid[name]]
    else:
        low, high = file.ranges[name].low, file.ranges[name].high
        contained = [value for value in wanted if is_number(value) and low <= value <= high]
    left = ", ".join(str(value) for value in wanted if value not in contained)
    if not contained:
        raise FlagError(f"--with_grid: {name}: no published value ({left}) is in the file's list or range; add one")
    if left:
        log.info("--with_grid: %s: published values outside the file's list or range are left out: %s", name, left)
    return contained


def notes(results: Sequence[Result], folder: Path) -> Iterator[str]:
    """Yields a line for each task: the best of the grid beside the best of the search, and which is better."""
    for task in dict.fromkeys(result.task for result in results):
        runs = sorted(
            (result for result in results if result.task == task), key=lambda result: int(result.name.rpartition("-trial")[2])
        )
        sides = _sides(runs)
        first = next((result.metric for result in runs if result.metric), "eval_")[len("eval_") :]
        count = min(map(len, sides))
        grid, equal, search = (_best(group, first) for group in (sides[0], sides[1][:count], sides[1]))
        if grid and search:
            yield f"{task}: {_compared(first, grid, equal, search, [len(group) for group in sides], folder)}"


def _sides(runs: Sequence[Result]) -> tuple[list[Result], list[Result]]:
    """Runs of the grid, which are the first of each of its points, and of the search, which may draw a point again."""
    grid: list[Result] = []
    search: list[Result] = []
    for run in runs:
        is_first = _is_published(run.varying) and all(run.varying != earlier.varying for earlier in grid)
        (grid if is_first else search).append(run)
    return grid, search


def _is_published(varying: Mapping[str, Any]) -> bool:
    return all(value in GRID.get(name, (_DEFAULTS.get(name),)) for name, value in varying.items())


def _best(runs: Sequence[Result], first: str) -> Result | None:
    """The best of those that were trained to the end."""
    done = [result for result in runs if not result.error and not result.pruned and f"eval_{first}" in result.metrics]
    return max(done, key=lambda result: result.metrics[f"eval_{first}"]) if done else None


def _compared(first: str, grid: Result, equal: Result | None, search: Result, counts: Sequence[int], folder: Path) -> str:
    key, unseen = f"eval_{first}", f"held_out_{first}"
    best, every, same = grid.metrics[key], search.metrics[key], equal.metrics[key] if equal else -math.inf
    more = f" and {every:.4f} (best of all {counts[1]})" if counts[1] > counts[0] else ""
    searched = f"{same:.4f}" if equal else "-"
    compared = (
        f"{first}: published grid {best:.4f} (best of {counts[0]}), search {searched} (best of its first {min(counts)}){more}"
    )
    if unseen in grid.metrics and unseen in search.metrics:
        ours, theirs = search.metrics[unseen], grid.metrics[unseen]
        error = _standard_error(first, ours, folder / search.name)
        return (
            f"{compared}; held out {theirs:.4f} and {ours:.4f}, standard error {error:.4f}: {_verdict(ours - theirs > error)}"
        )
    return f"{compared}: {_verdict(every > best)}{', with more runs only' if same <= best < every else ''}"


def _verdict(is_better: bool) -> str:
    return "the search beat the published grid" if is_better else "the search did not beat the published grid"


def _standard_error(first: str, value: float, run: Path) -> float:
    """Of a share or a correlation, from the number of held-out examples; 0 if unknown."""
    content = read_object(run / held_out.FOLDER / run_layout.RESULTS) or {}
    splits = [split.get("examples") for split in mapping(content, "splits").values() if isinstance(split, dict)]
    count = sum(filter(is_number, splits))
    spread = 1 - value**2 if first in _CORRELATIONS else math.sqrt(max(value * (1 - value), 0.0))
    return spread / math.sqrt(count) if count else 0.0

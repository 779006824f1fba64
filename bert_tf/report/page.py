"""report.html: all of it in one file that loads nothing and runs nothing."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf import atomic
from bert_tf.report import charts, costs, curves, outcome, run_files, settings, state, wording
from bert_tf.report.run_files import Run

_EXAMPLES_SHOWN = 60  # of all runs and splits together
_LEAST_SHOWN = 3
_COMPARED = 4  # runs whose tables of labels and mistakes are shown
_TRACED = 8  # runs whose traced steps are: their pictures are large


@dataclasses.dataclass(frozen=True)
class Line:
    """A run in the key of the charts."""

    name: str
    colour: str
    dash: str


def write(path: Path, runs: Sequence[Run]) -> None:
    """Writes the page of one run, or of several beside each other.

    Raises:
      OutputError: the file cannot be written.
    """
    # A text of JSON may hold half a character, which UTF-8 has no bytes for.
    text = render(runs).encode("utf-8", "replace").decode()
    atomic.write_text(path, text)


def render(runs: Sequence[Run]) -> str:
    """Returns the page."""
    import jinja2  # with its imports only where a page is made

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(number=wording.number, duration=wording.duration, metric=wording.metric, flags=wording.flags)
    return environment.get_template("page.html.j2").render(_contents(runs))


def _contents(runs: Sequence[Run]) -> dict[str, Any]:
    drawn = runs[: charts.MOST_LINES]
    scores = outcome.scores(runs)
    figures = [{name: (wording.number(value), unit) for name, (value, unit) in curves.figures(run).items()} for run in runs]
    return {
        "runs": runs,
        "single": runs[0] if len(runs) == 1 else None,
        "title": _title(runs),
        "made": time.strftime("%Y-%m-%d %H:%M"),
        "states": [state.sentence(run) for run in runs],
        "key": [_key(place, run) for place, run in enumerate(drawn)] if len(runs) > 1 else [],
        "not_drawn": len(runs) - len(drawn),
        "scores": scores,
        "targets": [(run.name, found) for run in runs if (found := outcome.time_to_target(run))],
        "spreads": _spreads(scores),
        "losses": _losses(runs),
        "learning": [*curves.of_measures(curves.LEARNING, drawn), *curves.of_evaluations(drawn)],
        "speed": curves.of_measures((*curves.SPEED, *curves.MEMORY), drawn),
        "figures": figures,
        "columns": {name: unit for of_run in figures for name, (_, unit) in of_run.items()},
        "seconds": [curves.training_seconds(run) for run in runs],
        "costs": [costs.of(run, traced=place < _TRACED) for place, run in enumerate(runs)],
        "not_traced": max(len(runs) - _TRACED, 0),
        "details": _details(runs),
        "left_out": max(len(runs) - _COMPARED, 0) if len(runs) > 1 else 0,
        "differences": settings.differences(runs) if len(runs) > 1 else {},
        "tables": [settings.tables(run) for run in runs],
        "environments": [settings.environment(run) for run in runs],
    }


def _title(runs: Sequence[Run]) -> str:
    tasks = list(dict.fromkeys(run.task for run in runs))
    if len(runs) == 1:
        return tasks[0]
    return f"{', '.join(tasks)}: {len(runs)} runs"


def _key(place: int, run: Run) -> Line:
    return Line(run.name, charts.colour(place), charts.dash(place))


def _losses(runs: Sequence[Run]) -> list[tuple[str, str, str, float]]:
    """Returns run, task, split and loss of each evaluation."""
    return [
        (run.name, evaluated.task, split, details["loss"])
        for run in runs
        for evaluated in run.evaluated
        for split, details in evaluated.splits.items()
        if run_files.is_number(details.get("loss"))
    ]


def _spreads(scores: Mapping[tuple[str, str, str], Sequence[outcome.Score]]) -> dict[tuple[str, str, str], tuple[float, float]]:
    """Returns mean and standard deviation of the sample, of metrics that several runs have."""
    values = {key: [row.value for row in rows] for key, rows in scores.items()}
    return {key: (statistics.fmean(found), statistics.stdev(found)) for key, found in values.items() if len(found) > 1}


def _details(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Returns tables of labels and mistakes of each split of each run."""
    shown = runs[:_COMPARED]
    splits = [(run, found, split) for run in shown for found in run.evaluated for split in found.splits]
    most = max(_EXAMPLES_SHOWN // max(len(splits), 3), _LEAST_SHOWN)
    return [
        {
            "run": run.name,
            "task": found.task,
            "split": split,
            "collapsed": found.splits[split].get("collapsed"),
            "confusion": outcome.confusion(found.splits[split]),
            "classes": outcome.classes(found.splits[split])[:50],
            "wrong": outcome.wrong(found, split, most),
            "is_number": not found.splits[split].get("labels"),
        }
        for run, found, split in splits
    ]

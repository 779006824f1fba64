"""Writes report.html: a single file that loads nothing and runs only its own scripts."""

from __future__ import annotations

import contextlib
import shlex
import statistics
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf import run_layout
from bert_tf.errors import BertError, OutputError
from bert_tf.extensions.report import charts, costs, curves, outcome, panels, run_files, scripts, wording
from bert_tf.extensions.report.run_files import Group, Run, mapping
from bert_tf.io import atomic, documents, files
from bert_tf.io.log_form import log
from bert_tf.metrics.values import is_cost
from bert_tf.profiling.wall_clock import WALL

_EXAMPLES_SHOWN = 60  # of all runs and splits together
_LEAST_SHOWN = 3
_COMPARED = 4  # runs whose tables of labels and mistakes are shown
_COSTED = 12  # runs whose time tables are shown
_DASHES = ("solid", "dashed", "dotted")  # CSS names of `charts.DASHES`
_OF_MODEL = "bert_config"
_DIGEST = "_sha256"
_NONE = "-"
_HEAD, _MARK = 1 << 16, b'<meta name="generator" content="bert_tf report">'  # in the first bytes of a page


def prepare() -> None:
    """Starts Vega in a thread: the first chart of a process is the slowest."""
    threading.Thread(target=_start_vega, name="start Vega").start()


def _start_vega() -> None:
    with contextlib.suppress(Exception):  # `write_of_run` reports the same failure
        charts.svg(charts.line_chart([charts.Curve("", 0, range(2), range(2))]))
        scripts.vega()


@WALL.span("page")
def write_of_run(folder: Path) -> None:
    """Writes the page of a run or series that ends, if the folder holds more than predictions; failure is only a warning."""
    try:
        write(folder / run_layout.PAGE, run_files.read_runs([folder]))
        log.info("the report is %s", folder / run_layout.PAGE)
    except run_files.NoRunError:
        return
    except Exception as error:
        reason = str(error) if isinstance(error, (BertError, ImportError)) else repr(error)
        log.warning("no %s: %s", run_layout.PAGE, reason)


def write(path: Path, runs: Sequence[Run], *, follows: bool = False) -> None:
    """Writes the page of runs; `follows` links if the user has named the path."""
    # JSON text may hold lone surrogates, which UTF-8 cannot encode.
    text = render(runs).encode("utf-8", "replace").decode()
    atomic.write_text(path, text, follows=follows)


def refuse_other(path: Path) -> None:
    """Raises OutputError for a file that is not empty and no page of runs."""
    begin = files.read_begin(path, _HEAD)
    if begin and _MARK not in begin:
        raise OutputError(f"{path}: is not a report; name another --output, or delete it")


def render(runs: Sequence[Run]) -> str:
    return panels.environment().get_template("page.html.j2").render({**_contents(runs), **_scripts()})


def _scripts() -> dict[str, Any]:
    import markupsafe

    texts = {"vega": scripts.vega(), "live": scripts.live()}
    safe = {name: markupsafe.Markup(text) for name, text in texts.items()}  # none of it is from a run
    return {**safe, "script_sources": " ".join(map(scripts.source, texts.values())), "chart_config": charts.CONFIG}


def _contents(runs: Sequence[Run]) -> dict[str, Any]:
    groups = run_files.groups(runs)
    drawn = groups[: charts.MOST_LINES]
    scores = outcome.scores(runs)
    samples = run_files.samples(runs)
    figures = [{name: (wording.number(value), unit) for name, (value, unit) in curves.figures(run).items()} for run in runs]
    compared = _best_first(runs, scores)[:_COMPARED]
    speed = curves.of_measures((*curves.SPEED, *curves.MEMORY), drawn)
    times = [costs.costs_of(run) for run in runs[:_COSTED]]
    return {
        "runs": runs,
        "single": runs[0] if len(runs) == 1 else None,
        "headed": outcome.headline(groups[0]) if len(groups) == 1 else [],
        "title": _title(groups),
        "collapsed": list(_collapsed(runs)),
        "unfinished": sum(run.own is None for run in runs),
        "made": time.strftime("%Y-%m-%d %H:%M"),
        "states": [outcome.state(run) for run in runs],
        "key": _key(drawn) if len(runs) > 1 else [],
        "not_drawn": len(groups) - len(drawn),
        "scores": scores,
        "spreads": {key: _spreads(rows, samples) for key, rows in scores.items()},
        "sampled": bool(samples),
        "has_majority": any(row.majority for rows in scores.values() for row in rows),
        "targets": [(run.name, reached) for run in runs if (reached := outcome.time_to_target(run))],
        "learning": [*curves.of_measures(curves.LEARNING, drawn), *curves.of_evaluations(drawn)],
        "speed": speed,
        "has_speed": bool(speed) or any(of_run["is_known"] for of_run in times),
        "figures": figures,
        "columns": {name: unit for of_run in figures for name, (_, unit) in of_run.items()},
        "seconds": [curves.training_seconds(run) for run in runs],
        "costs": times,
        "panels": panels.of_extensions(runs),
        "details": _details(compared),
        "left_out": max(len(runs) - _COMPARED, 0) if len(runs) > 1 else 0,
        "differences": differences(runs) if len(runs) > 1 else {},
        "tables": [tables(run) for run in runs],
        "environments": [environment(run) for run in runs],
    }


def _title(groups: Sequence[Group]) -> str:
    runs = [run for group in groups for run in group.runs]
    tasks = ", ".join(dict.fromkeys(run.data for run in runs))
    if len(runs) == 1:
        return f"{runs[0].place}: {tasks}"
    series = {run.series for run in runs}
    prefix = f"{runs[0].series.name}: " if len(series) == 1 and runs[0].series else ""
    return f"{prefix}{tasks}, {len(runs)} {groups[0].differ_in if len(groups) == 1 else 'runs'}"


def _collapsed(runs: Sequence[Run]) -> Iterator[tuple[str, str, str]]:
    """Run, split and why nothing was learned."""
    for run in runs:
        for evaluated in run.evaluated:
            for split, details in evaluated.splits.items():
                if details.get("collapsed"):
                    yield run.name, split, str(details["collapsed"])


def _best_first(runs: Sequence[Run], scores: Mapping[tuple[str, str, str], Sequence[outcome.Score]]) -> list[Run]:
    """Runs by the first metric of their own task; those without results last."""
    ranks: dict[tuple[str, str], int] = {}
    for rows in scores.values():
        for rank, row in enumerate(rows):
            ranks.setdefault((row.run, row.task), rank)
    return sorted(runs, key=lambda run: ranks.get((run.name, run.task), len(runs)))


def _key(drawn: Sequence[Group]) -> list[dict[str, Any]]:
    """Names, colours, dashes, tasks (empty if all have the same) and numbers of seeds or folds of the lines in charts."""
    several = len({group.task for group in drawn}) > 1
    return [
        {
            "name": group.name,
            "colour": charts.COLOURS[index % len(charts.COLOURS)],
            "dash": _DASHES[index // len(charts.COLOURS)],
            "task": group.task if several else "",
            "count": len(group.runs),
            "differ_in": group.differ_in,
        }
        for index, group in enumerate(drawn)
    ]


def _spreads(rows: Sequence[outcome.Score], samples: Sequence[Group]) -> list[dict[str, Any]]:
    """Mean and sample standard deviation of a metric over each sample with at least two values, best first."""
    spreads = []
    for sample in samples:
        names = {run.name for run in sample.runs}
        values = [row.value for row in rows if row.run in names]
        if len(values) > 1:
            numbers = {"mean": statistics.fmean(values), "sd": statistics.stdev(values)}
            spreads.append({"name": sample.name, "differ_in": sample.differ_in, "values": values, **numbers})
    return sorted(spreads, key=lambda spread: spread["mean"], reverse=not is_cost(rows[0].metric))


def _details(runs: Sequence[Run]) -> list[dict[str, Any]]:
    splits = [(run, evaluated, split) for run in runs for evaluated in run.evaluated for split in evaluated.splits]
    most = max(_EXAMPLES_SHOWN // max(len(splits), 3), _LEAST_SHOWN)
    return [
        {
            "run": run.name,
            "task": evaluated.task,
            "split": split,
            "confusion": outcome.confusion(evaluated.splits[split]),
            "classes": (rows := outcome.classes(evaluated.splits[split]))[: outcome.MOST_ROWS],
            "classes_left_out": len(rows[outcome.MOST_ROWS :]),
            "wrong": outcome.wrong(evaluated, split, most),
            "panels": outcome.panels(evaluated.splits[split]),
            "is_number": evaluated.splits[split].get("labels") == [],
        }
        for run, evaluated, split in splits
    ]


def tables(run: Run) -> dict[str, dict[str, str]]:
    """Values of the configuration by name, by title."""
    training = run.training
    flags = (word[2:].partition("=") for word in shlex.split(run.command) if word.startswith("--"))
    by_flag = {name: value if equals else "true" for name, equals, value in flags}
    rest = {key: value for key, value in training.items() if key != _OF_MODEL and not key.endswith(_DIGEST)}
    by_title = {
        "Flags": by_flag,
        "Training": {key: value for key, value in rest.items() if key not in by_flag},
        "Model": mapping(training, _OF_MODEL),
        "Schedule": mapping(run.record, "schedule"),
        "Own data": mapping(run.record, "columns"),
        "Fingerprints (sha256)": {k[: -len(_DIGEST)]: v for k, v in training.items() if k.endswith(_DIGEST)},
    }
    return {title: {name: value_text(value) for name, value in rows.items()} for title, rows in by_title.items() if rows}


def environment(run: Run) -> dict[str, str]:
    rows = {**mapping(run.record, "machine"), **mapping(run.record, "versions")}
    return {name: value_text(value) for name, value in rows.items()}


def differences(runs: Sequence[Run]) -> dict[str, list[str]]:
    """Values of each run by name, only where they differ."""
    flat = [{key: row for rows in (*tables(run).values(), environment(run)) for key, row in rows.items()} for run in runs]
    names = dict.fromkeys(name for rows in flat for name in rows)
    values = {name: [rows.get(name, _NONE) for rows in flat] for name in names}
    return {name: of_runs for name, of_runs in values.items() if len(set(of_runs)) > 1}


def value_text(value: Any) -> str:
    if value is None or value in ("", []):
        return _NONE
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list) and not any(isinstance(part, (dict, list)) for part in value):
        return ", ".join(map(value_text, value))
    return value if isinstance(value, str) else documents.to_json(value)

"""Figures at the top of a page: how far a run came, its results, or mean and spread of a seed series."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from bert_tf.report import curves, outcome
from bert_tf.report.outcome import Score
from bert_tf.report.run_files import Group, Run, is_number, mapping
from bert_tf.report.wording import duration, metric, number

Figure = tuple[str, str, str]  # name, value, and a note below


def figures(group: Group, *, costs: bool) -> list[Figure]:
    last = group.runs[0].metrics[-1:] if len(group.runs) == 1 else ()
    return [
        *_scores(group),
        *_losses(group),
        *(("last logged step", f"{line['step']:g}", "") for line in last),
        *(_speeds(group) if costs else ()),
        *(_times(group) if costs else ()),
    ]


def _scores(group: Group) -> Iterator[Figure]:
    for (task, split, name), rows in outcome.scores(group.runs).items():
        if task == group.task:
            values = [row.value for row in rows]
            note = _interval(rows[0]) if len(group.runs) == 1 else _spread(values)
            yield (f"{metric(name)}, {split}", f"{statistics.fmean(values):.4f}", note)


def _interval(row: Score) -> str:
    return f"95 %: {row.interval[0]:.3f} to {row.interval[1]:.3f}" if row.interval else ""


def _spread(values: Sequence[float]) -> str:
    return f"mean of {len(values)}: {min(values):.4f} to {max(values):.4f}"


def _losses(group: Group) -> Iterator[Figure]:
    found: dict[str, list[float]] = {}
    for run in group.runs:
        for split, details in (run.own.splits if run.own else {}).items():
            if is_number(details.get("loss")):
                found.setdefault(split, []).append(details["loss"])
    for split, values in found.items():
        yield (f"loss, {split}", f"{statistics.fmean(values):.4f}", "" if len(group.runs) == 1 else _spread(values))


def _speeds(group: Group) -> Iterator[Figure]:
    of_runs = [curves.figures(run) for run in group.runs]
    for name in dict.fromkeys(name for found in of_runs for name in found):
        values = [found[name][0] for found in of_runs if name in found]
        unit = next(found[name][1] for found in of_runs if name in found)
        yield (name, number(statistics.fmean(values)), unit)


def _times(group: Group) -> Iterator[Figure]:
    seconds = [found for run in group.runs if (found := curves.training_seconds(run))]
    if seconds:
        yield ("time in training steps", duration(statistics.fmean(seconds)), "" if len(group.runs) == 1 else "a seed")


def reached(run: Run) -> int | None:
    return int(run.metrics[-1]["step"]) if run.metrics else None


def state(run: Run) -> str:
    total, last = _total(run), reached(run)
    of = f" of {total}" if total is not None else ""
    if run.own is not None:
        step = run.own.results.get("global_step", "unknown")
        if last is not None and is_number(step) and step < last:
            return f"Evaluated at step {step}, the best checkpoint; trained to step {last}{of}."
        return f"Trained and evaluated at step {step}{of}."
    if last is None:
        return "Nothing is logged yet: training has not reached its first report."
    if total is not None and last >= total:
        return f"Trained to the last step, {last}, and not evaluated: run the command again with --do_eval."
    goes_on = "The same command continues from its last checkpoint."
    return f"Not finished: the last logged step is {last}{of}, and there is no result. {goes_on}"


def _total(run: Run) -> int | None:
    """Planned steps of all phases; None if the record does not say."""
    schedule = mapping(run.record, "schedule")
    found = [schedule.get("steps"), schedule.get("phase2_steps", 0)]
    return sum(found) if all(map(is_number, found)) else None

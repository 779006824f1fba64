"""Figures at the top of a page: how far a run came, its results, or mean and spread of a seed series."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from bert_tf.extensions.report import curves, outcome
from bert_tf.extensions.report.outcome import Score
from bert_tf.extensions.report.run_files import Group, Run, is_number
from bert_tf.extensions.report.wording import duration, metric, shortened

Figure = tuple[str, str, Sequence[str]]  # name, value, and notes below


def figures(group: Group) -> list[Figure]:
    return [*_scores(group), *_losses(group), *_times(group)]


def _scores(group: Group) -> Iterator[Figure]:
    for (task, split, name), rows in outcome.scores(group.runs).items():
        if task == group.task:
            values = [row.value for row in rows]
            notes = list(_notes(rows[0])) if len(group.runs) == 1 else [_spread(values)]
            yield (f"{metric(name)}, {split}", f"{statistics.fmean(values):.4f}", notes)


def _notes(row: Score) -> Iterator[str]:
    if row.interval:
        yield f"95 %: {row.interval[0]:.3f} to {row.interval[1]:.3f}"
    if row.majority:
        yield f"always {shortened(row.majority[0])}: {row.majority[1]:.3f}"
    if row.replaced is not None:
        yield f"last run: {row.replaced:.4f} ({row.value - row.replaced:+.4f})"


def _spread(values: Sequence[float]) -> str:
    return f"mean of {len(values)}: {min(values):.4f} to {max(values):.4f}"


def _losses(group: Group) -> Iterator[Figure]:
    losses: dict[str, list[float]] = {}
    for run in group.runs:
        for split, details in (run.own.splits if run.own else {}).items():
            if is_number(details.get("loss")):
                losses.setdefault(split, []).append(details["loss"])
    for split, values in losses.items():
        yield (f"loss, {split}", f"{statistics.fmean(values):.4f}", [] if len(group.runs) == 1 else [_spread(values)])


def _times(group: Group) -> Iterator[Figure]:
    seconds = [spent for run in group.runs if (spent := curves.training_seconds(run))]
    if seconds:
        yield ("time in training steps", duration(statistics.fmean(seconds)), [] if len(group.runs) == 1 else ["a seed"])


def reached(run: Run) -> int | None:
    return int(run.metrics[-1]["step"]) if run.metrics else None


def state(run: Run) -> str:
    total, last = run.planned_steps, reached(run)
    of = f" of {total}" if total is not None else ""
    if run.own is not None:
        step = run.own.results.get("global_step", "unknown")
        if last is not None and is_number(step) and step < last:
            return f"Evaluated at step {step}, the best checkpoint; trained to step {last}{of}."
        return f"Trained and evaluated at step {step}{of}."
    no_results = "and not evaluated (--do_eval, with labelled rows to evaluate on)."
    if run.stopped_at is not None:
        return f"Stopped early at step {run.stopped_at}{of}, {no_results}"
    if last is None:
        return "Nothing is logged yet: training has not reached its first report."
    if total is not None and last >= total:
        return f"Trained to the last step, {last}, {no_results}"
    goes_on = "The same command continues from its last checkpoint."
    return f"Not finished: the last logged step is {last}{of}, and there is no result. {goes_on}"

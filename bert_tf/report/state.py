"""The progress of a run as a sentence."""

from __future__ import annotations

from bert_tf.report.run_files import Run, is_number, mapping


def reached(run: Run) -> int | None:
    return int(run.metrics[-1]["step"]) if run.metrics else None


def sentence(run: Run) -> str:
    total, last = _total(run), reached(run)
    of = f" of {total}" if total is not None else ""
    if run.own is not None:
        step = run.own.results.get("global_step", "unknown")
        if last is not None and is_number(step) and step < last:
            return f"Evaluated at step {step}, the best checkpoint; trained to step {last}{of}."
        return f"Trained and evaluated at step {step}{of}."
    if last is None:
        return "Nothing is logged yet: training has not come to its first report."
    if total is not None and last >= total:
        return f"Trained to the last step, {last}, and not evaluated: run the command again with --do_eval."
    goes_on = "The same command goes on from its last checkpoint."
    return f"Not finished: the last logged step is {last}{of}, and there is no result. {goes_on}"


def _total(run: Run) -> int | None:
    """Planned steps of all phases; None if the record does not say."""
    schedule = mapping(run.record, "schedule")
    found = [schedule.get("steps"), schedule.get("phase2_steps", 0)]
    return sum(found) if all(map(is_number, found)) else None

"""Text of a peak memory report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bert_tf.profiling.memory.peak_report import BEFORE, OF_THE_STEP, Agreement, Moment, Peak
from bert_tf.profiling.memory.trace_text import readable
from bert_tf.profiling.op_names import phase_of
from bert_tf.text_table import table

_BAR = 30
_SMALLEST_SHARE = 0.001  # of a row of a table
_SMALLEST_SHARE_OF_A_BAR = 0.01
_NOTE = (
    "What kernels take past TensorFlow, such as the buffers of matrix products on the CPU, only the allocator counts.",
    "Its own count is taken where an operation ends.",
)


def describe(peak: Peak) -> str:
    moment = peak.moment
    lines = [
        f"step {peak.step}, {peak.allocator}: {readable(moment.live)} at the peak, {moment.us / 1000:.1f} ms after the first"
        f" allocation of {peak.duration_us / 1000:.1f} ms",
        agreement(peak.agreement[peak.allocator]),
        *_NOTE,
    ]
    rows = [(name, *_row(found)) for name, found in peak.agreement.items()]
    lines += ["", *table(("allocator", "before the step", "peak of the step", "together", "own peak", "difference"), rows)]
    named = {phrase(part): size for part, size in moment.by_phase.items()}
    lines += ["", *_shares("alive at the peak by phase", named, moment.live)]
    lines += ["", *_shares("by layer, of the step alone", peak.by_layer, sum(peak.by_layer.values()))]
    largest = [(name, readable(size), phrase(phase_of(name))) for name, size in peak.largest.items()]
    lines += ["", *table(("largest at the peak", "alive", "phase"), largest)]
    lines += [
        "",
        "timeline: the most that was alive in each interval, and what of it the step added",
        *_timeline(peak.timeline),
    ]
    return "\n".join(lines) + "\n"


def agreement(found: Agreement) -> str:
    if found.difference_percent is None:
        return "the allocator keeps no count of its own"
    own, difference, of_step = found.allocator_peak or 0, found.difference_percent, found.step_difference_percent
    alone = "" if of_step is None else f" ({of_step:+.1f} % for the step alone)"
    return f"the allocator's own count is {readable(own)}: they differ by {difference:+.1f} %{alone}"


def phases(by_phase: Mapping[str, int]) -> str:
    ordered = sorted(by_phase.items(), key=lambda item: -item[1])
    return ", ".join(f"{phrase(part)} {readable(size)}" for part, size in ordered)


def phrase(part: str) -> str:
    return "other, there before" if part == BEFORE else part.replace("_", " ")


def _row(found: Agreement) -> Sequence[str]:
    before, own, difference = found.before, found.allocator_peak, found.difference_percent
    return (
        "-" if before is None else readable(before),
        readable(found.step_peak),
        readable(found.step_peak + (before or 0)),
        "-" if own is None else readable(own),
        "-" if difference is None else f"{difference:+.1f} %",
    )


def _shares(title: str, sizes: Mapping[str, int], whole: int) -> Iterator[str]:
    large = {name: size for name, size in sizes.items() if size >= _SMALLEST_SHARE * whole}
    yield from table((title, "alive", "share"), [(name, readable(n), f"{100 * n / whole:.1f} %") for name, n in large.items()])
    if len(large) < len(sizes):
        yield f"  ({len(sizes) - len(large)} more below {100 * _SMALLEST_SHARE:g} %; --json has all)"


def _timeline(timeline: Sequence[Moment]) -> Iterator[str]:
    most = max(moment.live for moment in timeline)
    least = _SMALLEST_SHARE_OF_A_BAR * most
    for moment in timeline:
        bar = "#" * round(_BAR * moment.live / most) if most else ""
        added = {part: size for part, size in moment.by_phase.items() if part in OF_THE_STEP and size >= least}
        yield f"  {moment.us / 1000:>8.1f} ms  {readable(moment.live):>9}  {bar:<{_BAR}}  {phases(added)}".rstrip()

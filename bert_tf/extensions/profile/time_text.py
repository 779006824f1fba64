"""Time tables as text and tab-separated values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from bert_tf.extensions.profile.flops import uses_tensor_cores
from bert_tf.extensions.profile.time_tables import GPU, HOST, LAUNCHES, PHASES, GroupRow, ModelTable, OpRow, as_dict
from bert_tf.io.text_table import table

_TYPES = 10
_SMALLEST_SHARE = 0.001  # of a row of groups
_NOTES = {
    GPU: "Times are those of GPU kernels; operations that run only on the host have none.",
    HOST: "Times are those of the host's threads, which run operations side by side: their sum is more than a step takes.",
    LAUNCHES: "There is no trace of the GPU: times are those of the host's threads that launch its work, not of computing it.",
}


def describe_model(model: ModelTable) -> Iterator[str]:
    yield from table(("model", ""), model_rows(model), left=(0, 1))
    yield note(model)
    yield ""
    yield from describe_groups("phase", model.by_phase, model.total)
    yield ""
    yield from describe_groups("type", model.by_type[:_TYPES], model.total)
    if len(model.by_type) > _TYPES:
        yield f"  ({len(model.by_type) - _TYPES} more types)"


def model_rows(model: ModelTable) -> list[tuple[str, str]]:
    """Returns pairs of subject and row."""
    total = model.total
    often = f"{total.ops} of them, {total.calls:.0f} calls a step, {total.time_us / model.step_us:.2f} at a time"
    peaks = ", ".join(f"{dtype} {rate:.1f}" for dtype, rate in model.matmul_peak_gflops.items())
    eligible = f"{model.eligible} of {model.products} products eligible, {_percent(total.eligible)} of the sum"
    used = "no trace of a GPU" if model.uses is None else f"used by {model.uses}, {_percent(total.uses)} of the sum"
    return [
        ("steps traced", str(model.steps)),
        ("step", f"{_ms(model.step_us)} ms wall time"),
        ("operations", f"{_ms(total.time_us)} ms a step: {often}"),
        (
            "waiting",
            f"{_ms(model.waiting_us)} ms for the batch, for other devices and for functions called, no part of the sum",
        ),
        ("matrix products", _products(model)),
        ("whole step", f"{_number(model.step_gflops_per_s)} GFLOP/s{_peak(model.step_of_peak)}"),
        ("peak", f"{peaks} GFLOP/s of large matrix products" if peaks else "not known; --matmul_peak_gflops gives one"),
        ("Tensor Cores", f"{eligible}; {used}"),
        *((f"{device} idle", f"{_percent(share)} of a step") for device, share in model.gpu_idle.items()),
    ]


def note(model: ModelTable) -> str:
    """Explains whose times the table has."""
    return f"{_NOTES[model.clock]} Shares are of the sum."


def describe_groups(title: str, groups: Sequence[GroupRow], total: GroupRow) -> Iterator[str]:
    """Yields the table as text: a scope precedes its children, which are indented."""
    scopes = title == "scope"
    shown = [row for row in groups if row.share >= _SMALLEST_SHARE] if scopes else groups
    phases = PHASES if scopes else ()
    rows = [
        (
            "  " * row.path.count("/") + row.path.rpartition("/")[2] if scopes else row.path,
            _ms(row.time_us),
            _percent(row.share),
            *(_ms(row.by_phase[phase]) if row.by_phase[phase] else "" for phase in phases),
            str(row.ops),
            _number(row.gflop) if row.gflop else "",
            _number(row.gflops_per_s),
            _percent(row.of_peak),
            _percent(row.eligible),
            *(() if row.uses is None else (_percent(row.uses),)),
        )
        for row in shown
    ]
    used = () if total.uses is None else ("TC used",)
    head = (title, "ms/step", "share", *phases, "ops", "GFLOP", "GFLOP/s", "of peak", "TC eligible", *used)
    yield from table(head, rows)
    if len(shown) < len(groups):
        yield f"  ({len(groups) - len(shown)} more below {100 * _SMALLEST_SHARE:g} %; --format=tsv has all)"


def describe_ops(ops: Sequence[OpRow], top: int) -> Iterator[str]:
    """Yields the `top` longest operations as text, with product sizes and names at the end."""
    counted = any(row.uses is not None for row in ops)
    several = len({row.device for row in ops}) > 1
    rows = [
        (
            _ms(row.time_us),
            "waits" if row.waits else _percent(row.share),
            f"{row.calls:.3g}",
            _number(row.time_us / row.calls),
            *((_number(row.host_us / row.calls),) if counted else ()),
            _number(row.min_us),
            _number(row.max_us),
            _number(row.gflops_per_s),
            _percent(row.of_peak),
            _cores(row),
            *((row.device,) if several else ()),
            row.type,
            row.sizes,
            row.name,
        )
        for row in ops[:top]
    ]
    host = ("host us", "min", "max") if counted else ("min", "max")
    words = ("Tensor Cores", *(("device",) if several else ()), "type", "multiplies", "operation")
    head = ("ms/step", "share", "calls", "us/call", *host, "GFLOP/s", "of peak", *words)
    yield from table(head, rows, left=range(len(head) - len(words), len(head)))
    if len(ops) > top:
        yield f"  ({len(ops) - top} more; --top has others)"
    yield from _kernels(ops[:top])


def tsv(rows: Iterable[OpRow | GroupRow | ModelTable]) -> Iterator[str]:
    """Yields a header and a line per row; unknown values are empty, lists of kernels are left out."""
    flat = [_flat(as_dict(row)) for row in rows]
    if flat:
        yield "\t".join(flat[0])
    for values in flat:
        yield "\t".join("" if value is None else str(value) for value in values.values())


def _flat(values: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            flat.update(_flat({f"{name}_{key}": inner for key, inner in value.items()}))
        elif not isinstance(value, (list, tuple)):
            flat[name] = value
    return flat


def _kernels(ops: Iterable[OpRow]) -> Iterator[str]:
    rows = [
        (
            row.name if not number else "",
            "used" if uses_tensor_cores(kernel.name) else "",
            str(kernel.calls),
            *map(_number, (kernel.total_us / kernel.calls, kernel.min_us, kernel.max_us)),
            kernel.name,
        )
        for row in ops
        for number, kernel in enumerate(row.kernels)
    ]
    if rows:
        yield ""
        yield from table(("operation", "Tensor Cores", "launches", "us", "min", "max", "kernel"), rows, left=(0, 1, 6))


def _products(model: ModelTable) -> str:
    total = model.total
    if not total.gflop:
        return f"{model.products}; their sizes are not known"
    share = _percent(sum(row.share for row in model.by_type if row.gflop))
    rate = f", {_number(total.gflops_per_s)} GFLOP/s while they run{_peak(total.of_peak)}" if total.gflops_per_s else ""
    return f"{model.products}, {share} of the sum: {_number(total.gflop)} GFLOP{rate}"


def _cores(row: OpRow) -> str:
    if row.uses:
        return "used"
    if row.eligible == 1:
        return "eligible"
    return f"{_percent(row.eligible)} eligible, {row.obstacle}" if row.eligible else row.obstacle


def _peak(share: float | None) -> str:
    return "" if share is None else f" = {_percent(share)} of the peak"


def _ms(micros: float) -> str:
    return _number(micros / 1e3)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def _number(value: float | None) -> str:
    """Formats at least three digits: 0.123, 1.23, 12.3, 1234."""
    if value is None:
        return ""
    size = abs(value)
    return f"{value:.{0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3}f}"

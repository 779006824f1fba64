"""Forward activations of a step of pre-training beside those of the published implementation, tensor by tensor.

    python -m tests.profiling.published_activations --reference=FILE [--traces=FOLDER]

The reference is a memory trace of the published implementation. Steps of this program with the sizes that it implies are traced
with two small batches of full rows. What grows with the batch grows in proportion, so that its size at the batch of the
reference follows from one of them, and the other checks it. With --traces the traces are kept, and not made again.
"""

from __future__ import annotations

import argparse
import collections
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Optional

from bert_tf.io.text_table import table
from bert_tf.profiling.forecast.activations import Shape, layer_blocks
from bert_tf.profiling.memory import implied_sizes, trace_file
from bert_tf.profiling.memory.trace_file import Trace
from bert_tf.profiling.op_names import FORWARD, phase_of
from tests.profiling.activation_names import OF_LAYERS, ONCE, REST, Tensor
from tests.profiling.published_trace import ATTENTION, FEED_FORWARD, config_of, operation

BATCHES = (4, 8)
MEGABYTE = 1e6

Sizes = Mapping[tuple[str, int, int], int]  # bytes of each forward output, by operation, slot, and how often it ran before
Names = Callable[[Tensor], str]


class Sum(NamedTuple):
    """Outputs."""

    outputs: int = 0  # how many
    size: int = 0  # bytes of all
    largest: int = 0  # bytes of one

    def __add__(self, other: Sum) -> Sum:  # type: ignore[override]
        """Returns both together."""
        return Sum(self.outputs + other.outputs, self.size + other.size, max(self.largest, other.largest))

    def __str__(self) -> str:
        """As a cell of the table."""
        return f"{self.outputs} {self.size / MEGABYTE:9.2f}" if self.outputs else ""


Sums = Mapping[tuple[Tensor, Optional[int]], Sum]  # by tensor, and by layer where it is of one


def forward(trace: Trace) -> Sizes:
    """Returns what the forward pass puts out."""
    seen: collections.Counter[tuple[str, int]] = collections.Counter()
    found = {}
    for name, output in trace.outputs():
        if phase_of(name) == FORWARD:
            found[(name, output.slot, seen[name, output.slot])] = output.requested
            seen[name, output.slot] += 1
    return found


def scaled(small: Sizes, large: Sizes, batches: Sequence[int], batch: int) -> dict[tuple[str, int, int], int]:
    """Returns sizes at another batch."""
    alone = sorted(small.keys() ^ large.keys())
    if alone:
        raise SystemExit(f"{alone[0][0]}: is in one of the two traces alone")
    odd = [key for key, size in small.items() if large[key] not in (size, size * batches[1] // batches[0])]
    if odd:
        raise SystemExit(f"{odd[0][0]}: {small[odd[0]]} and {large[odd[0]]} bytes, neither the same nor in proportion")
    return {key: size if large[key] == size else size * batch // batches[0] for key, size in small.items()}


def by_tensor(sizes: Sizes, names: Names) -> dict[tuple[Tensor, int | None], Sum]:
    """Returns sums by tensor, and by layer where it is of one; what no name fits is in `REST`."""
    rows = [(row, re.compile(names(row))) for row in (*ONCE, *OF_LAYERS) if names(row)]
    sums: dict[tuple[Tensor, int | None], Sum] = collections.defaultdict(Sum)
    for (name, *_), size in sizes.items():
        row, found = next(((row, found) for row, pattern in rows if (found := pattern.fullmatch(name))), (REST, None))
        layer = int(found[1]) if found and row in OF_LAYERS else None
        sums[row, layer] += Sum(1, size, size)
    return dict(sums)


def lines(columns: Mapping[str, Sums], layers: int, read: str) -> Iterator[str]:
    """Yields the tables: a layer, the last one, and the rest; outputs and megabytes of each tensor."""
    last = layers - 1
    for column in columns.values():
        _refuse_uneven(column, range(last))
    yield from _table(f"each of layers 0 to {last - 1}", columns, [(row, row.why) for row in OF_LAYERS], 0)
    whys = [(row, "" if _is_like(columns, row, 0, last) else read) for row in OF_LAYERS]
    yield from _table(f"layer {last}", columns, whys, last)
    yield from _table("once", columns, [(row, row.why) for row in (*ONCE, REST)], None)
    totals = [_total(column.values()) for column in columns.values()]
    yield from table(("forward pass", *columns), [("all outputs", *map(str, totals))])


def unexplained(columns: Mapping[str, Sums]) -> list[str]:
    """Returns the names of tensors that differ without a reason; of layers the first, since the last is compared with it."""
    keys = dict.fromkeys(key for column in columns.values() for key in column)
    return [_said(row) for row, layer in keys if layer in (None, 0) and not row.why and not _is_same(columns, row, layer)]


def _refuse_uneven(column: Sums, layers: Iterable[int]) -> None:
    for row in OF_LAYERS:
        if len({column.get((row, layer), Sum()) for layer in layers}) > 1:
            raise SystemExit(f"{_said(row)}: layers differ")


def _is_same(columns: Mapping[str, Sums], row: Tensor, layer: int | None) -> bool:
    """Whether all columns have a tensor alike."""
    return len({column.get((row, layer), Sum()) for column in columns.values()}) == 1


def _is_like(columns: Mapping[str, Sums], row: Tensor, layer: int, other: int) -> bool:
    """Whether two layers have a tensor alike, in all columns."""
    return all(column.get((row, layer), Sum()) == column.get((row, other), Sum()) for column in columns.values())


def _said(row: Tensor) -> str:
    return f"{row.part}: {row.name}"


def kept_lines(requested: Mapping[str, int], sizes: Mapping[str, int]) -> Iterator[str]:
    """Yields the table of what a layer keeps for the backward pass: as the reference has it, and by the forecast."""
    shape, config = Shape(sizes["batch"], sizes["sequence_length"], sizes["tokens"]), config_of(sizes)
    read = 1 + sizes["predictions_per_sequence"]
    derived, by_hand, last = (
        layer_blocks(shape, config, custom_gradients=custom, selected=selected)
        for custom, selected in ((False, None), (True, None), (True, read))
    )
    shown = []
    for part, names, *blocks in zip(("attention", "feed-forward"), (ATTENTION, FEED_FORWARD), derived, by_hand, last):
        for tensor in dict.fromkeys(name for block in blocks for name in block.kept):
            found = requested.get(operation(names[tensor], 0)) if tensor in names else None
            shown.append((f"{part}: {tensor}", found, *(block.kept.get(tensor) for block in blocks)))
    sums = ("together", *(sum(filter(None, column)) for column in list(zip(*shown))[1:]))
    cells = [(name, *("" if size is None else f"{size / MEGABYTE:.2f}" for size in found)) for name, *found in (*shown, sums)]
    titles = ("reference", "--published_layout", "default", f"default, layer {sizes['layers'] - 1}")
    yield from table(("kept of each layer", *titles), cells)


def _table(title: str, columns: Mapping[str, Sums], rows: Sequence[tuple[Tensor, str]], layer: int | None) -> Iterator[str]:
    shown = [
        (
            _said(row),
            *(str(column.get((row, layer), Sum())) for column in columns.values()),
            "the same" if _is_same(columns, row, layer) else why,
        )
        for row, why in rows
    ]
    sums = [_total(column.get((row, layer), Sum()) for row, _ in rows) for column in columns.values()]
    yield from table((title, *columns, ""), [*shown, ("together", *map(str, sums), "")], left=(0, len(columns) + 1))
    yield ""


def _total(sums: Iterable[Sum]) -> Sum:
    total = Sum()
    for one in sums:
        total += one
    return total


def main(arguments: Sequence[str]) -> None:
    """Prints the tables of a reference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reference", required=True, type=Path, help="memory trace of the published implementation")
    parser.add_argument("--traces", type=Path, help="folder that keeps the traces of this program")
    given = parser.parse_args(arguments)
    from tests.profiling import pretraining_step  # it imports TensorFlow

    reference = trace_file.read(given.reference)
    sizes = {name: size.value for name, size in implied_sizes.infer(reference).items()}
    columns = {"reference": by_tensor(forward(reference), lambda row: row.published)}
    for layout in pretraining_step.LAYOUTS:
        small, large = (forward(pretraining_step.trace(sizes, layout, batch, given.traces)) for batch in BATCHES)
        columns[layout] = by_tensor(scaled(small, large, BATCHES, sizes["batch"]), lambda row: row.own)
    places, tokens = sizes["predictions_per_sequence"], sizes["sequence_length"]
    read = f"by default of 1 + {places} of {tokens} tokens; keys and values of all"
    requested = {name: output.requested for name, output in reference.outputs() if output.slot == 0}
    tables = (lines(columns, sizes["layers"], read), [""], kept_lines(requested, sizes))
    sys.stdout.writelines(f"{line}\n" for part in tables for line in part)
    if unexplained(columns):
        raise SystemExit(f"no reason is given for {', '.join(unexplained(columns))}")


if __name__ == "__main__":
    main(sys.argv[1:])

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
from typing import NamedTuple

from bert_tf.profiling.memory import implied_sizes, trace_file
from bert_tf.profiling.memory.trace_file import Trace
from bert_tf.profiling.op_names import FORWARD, phase_of
from bert_tf.text_table import table
from tests.profiling.activation_names import OF_LAYERS, ONCE, REST, Tensor

BATCHES = (4, 8)
MEGABYTE = 1e6

Sizes = Mapping[tuple[str, int, int], int]  # bytes of each forward output, by operation, slot, and how often it ran before
Names = Callable[[Tensor], str]


class Sum(NamedTuple):
    """Outputs, and their bytes."""

    outputs: int = 0
    size: int = 0

    def __add__(self, other: Sum) -> Sum:  # type: ignore[override]
        """Returns both together."""
        return Sum(self.outputs + other.outputs, self.size + other.size)

    def __str__(self) -> str:
        """As a cell of the table."""
        return f"{self.outputs} {self.size / MEGABYTE:9.2f}" if self.outputs else ""


Column = Mapping[tuple[Tensor, int | None], Sum] if sys.version_info >= (3, 10) else Mapping  # by tensor and layer


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
    """Returns sizes at another batch.

    Args:
      small: sizes with the first of `batches`.
      large: those with the second.
      batches: rows of each.
      batch: rows that are asked for.

    Raises:
      SystemExit: an output is in one of them alone, or neither stays as it is nor grows in proportion.
    """
    alone = sorted(small.keys() ^ large.keys())
    if alone:
        raise SystemExit(f"{alone[0][0]}: is in one of the two traces alone")
    odd = [key for key, size in small.items() if large[key] not in (size, size * batches[1] // batches[0])]
    if odd:
        raise SystemExit(f"{odd[0][0]}: {small[odd[0]]} and {large[odd[0]]} bytes, neither the same nor in proportion")
    return {key: size if large[key] == size else size * batch // batches[0] for key, size in small.items()}


def by_tensor(sizes: Sizes, names: Names) -> dict[tuple[Tensor, int | None], Sum]:
    """Returns sums by tensor, and by layer where it is of one; what no name fits is in `REST`.

    Args:
      sizes: of outputs.
      names: the pattern of a tensor.
    """
    rows = [(row, re.compile(names(row))) for row in (*ONCE, *OF_LAYERS) if names(row)]
    sums: dict[tuple[Tensor, int | None], Sum] = collections.defaultdict(Sum)
    for (name, *_), size in sizes.items():
        row, found = next(((row, found) for row, pattern in rows if (found := pattern.fullmatch(name))), (REST, None))
        layer = int(found[1]) if found and row in OF_LAYERS else None
        sums[row, layer] += Sum(1, size)
    return dict(sums)


def lines(columns: Mapping[str, Mapping[tuple[Tensor, int | None], Sum]], layers: int) -> Iterator[str]:
    """Yields the tables: a layer, the last one, and the rest; outputs and megabytes of each tensor.

    Args:
      columns: sums by title, those of the reference first.
      layers: of the model.

    Raises:
      SystemExit: layers before the last differ.
    """
    last = layers - 1
    for column in columns.values():
        _refuse_uneven(column, range(last))
    yield from _table(f"each of layers 0 to {last - 1}", columns, OF_LAYERS, 0)
    yield from _table(f"layer {last}", columns, OF_LAYERS, last)
    yield from _table("once", columns, (*ONCE, REST), None)
    totals = [_total(column.values()) for column in columns.values()]
    yield from table(("forward pass", *columns), [("all outputs", *map(str, totals))])


def _refuse_uneven(column: Mapping[tuple[Tensor, int | None], Sum], layers: Iterable[int]) -> None:
    for row in OF_LAYERS:
        if len({column.get((row, layer), Sum()) for layer in layers}) > 1:
            raise SystemExit(f"{row.part}, {row.name}: layers differ")


def _table(
    title: str,
    columns: Mapping[str, Mapping[tuple[Tensor, int | None], Sum]],
    rows: Sequence[Tensor],
    layer: int | None,
) -> Iterator[str]:
    shown = []
    for row in rows:
        found = [column.get((row, layer), Sum()) for column in columns.values()]
        differs = len(set(found)) > 1
        shown.append((f"{row.part}: {row.name}", *map(str, found), row.why if differs else "the same"))
    sums = [_total(column.get((row, layer), Sum()) for row in rows) for column in columns.values()]
    yield from table((title, *columns, "why"), [*shown, ("together", *map(str, sums), "")], left=(0, len(columns) + 1))
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
    sys.stdout.writelines(f"{line}\n" for line in lines(columns, sizes["layers"]))


if __name__ == "__main__":
    main(sys.argv[1:])

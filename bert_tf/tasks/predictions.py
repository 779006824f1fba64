"""Predictions as tab-separated rows, for the files of a run and for streams.

Shapes: E examples, L logits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bert_tf.tasks import scores
from bert_tf.tasks.base import REGRESSION, HeadSpec

_BREAKS = str.maketrans("\t\n\r", "   ")  # ids and labels of JSON and CSV may hold them


def header(head: HeadSpec, label_names: Sequence[str]) -> str:
    """Returns the first row: id, label, and the probability of each label, or the score where a number is predicted."""
    columns = ["score"] if head.kind == REGRESSION else [f"probability_{name}" for name in label_names]
    return "\t".join(name.translate(_BREAKS) for name in ("id", "label", *columns))


def rows(
    head: HeadSpec, label_names: Sequence[str], ids: Sequence[str], logits: scores.Logits, *, label_separator: str = ","
) -> Iterator[str]:
    """Yields a row for each example, in their order; any part of a file may be given at a time.

    Args:
      head: of the task.
      label_names: of the task.
      ids: E of them.
      logits: [E, L].
      label_separator: stands between several labels of an example, as in the data that they were learned from.
    """
    cells = score_cells(head, logits)
    if head.kind == REGRESSION:
        labels = [number for (number,) in cells]
    else:
        decoded = scores.decode(head.kind, scores.predictions(head.kind, logits), label_names)
        labels = [label_separator.join(label) if isinstance(label, tuple) else str(label) for label in decoded]
    for example_id, label, example_cells in zip(ids, labels, cells):
        yield "\t".join((example_id.translate(_BREAKS), label.translate(_BREAKS), *example_cells))


def score_cells(head: HeadSpec, logits: scores.Logits) -> list[list[str]]:
    """Returns E times L probabilities or numbers, with as many digits as tell them apart."""
    cells: list[list[str]] = scores.scores(head.kind, logits).astype(str).tolist()
    return cells

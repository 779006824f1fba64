"""Result of an evaluation, for a program and a notebook."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Mapping, Sequence
from typing import Any

from bert_tf.tasks.evaluation import Evaluation


@dataclasses.dataclass(frozen=True, repr=False)
class Result:
    """What a model reaches on labelled examples.

    Attributes:
      name: of the examples: the split, or "rows".
      evaluation: all that is known of it; `details()` is what eval_results.json holds.
      predictions: one for each example, in their order.
    """

    name: str
    evaluation: Evaluation
    predictions: Sequence[Any]

    @property
    def metrics(self) -> Mapping[str, float]:
        """Metrics by name, `loss` among them."""
        return self.evaluation.values

    @property
    def intervals(self) -> Mapping[str, tuple[float, float]]:
        """Ends of the 95 % interval of each metric that has one."""
        return self.evaluation.intervals

    def __repr__(self) -> str:
        """Says what was reached."""
        reached = ", ".join(f"{metric} {value:.4f}" for metric, value in self.metrics.items())
        return f"<bert_tf.Result {self.name}: {reached}; {self.evaluation.examples} examples>"

    def _repr_html_(self) -> str:
        """Returns a table of the metrics for notebooks."""
        rows = []
        for metric, value in self.metrics.items():
            ends = self.intervals.get(metric)
            interval = f"{ends[0]:.4f} to {ends[1]:.4f}" if ends else ""
            rows.append(f"<tr><th>{html.escape(metric)}</th><td>{value:.4f}</td><td>{interval}</td></tr>")
        head = f"<caption>{html.escape(self.name)}: {self.evaluation.examples} examples</caption>"
        columns = "<tr><th>metric</th><th>value</th><th>95 % interval</th></tr>"
        return f"<table>{head}{columns}{''.join(rows)}</table>"

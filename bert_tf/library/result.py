"""An evaluation result for programs and notebooks."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Mapping, Sequence
from typing import Any

from bert_tf.tasks.evaluation import Evaluation


@dataclasses.dataclass(frozen=True, repr=False)
class Result:
    """Result of a model on labelled examples.

    Attributes:
      name: name of the split, or "rows".
      evaluation: full evaluation; `details()` is the content of eval_results.json.
      predictions: one for each example, in order.
    """

    name: str
    evaluation: Evaluation
    predictions: Sequence[Any]

    @property
    def metrics(self) -> Mapping[str, float]:
        """Metrics by name, including `loss`."""
        return self.evaluation.values

    @property
    def intervals(self) -> Mapping[str, tuple[float, float]]:
        """Bounds of the 95 % interval, for the metrics that have one."""
        return self.evaluation.intervals

    def __repr__(self) -> str:
        reached = ", ".join(f"{metric} {value:.4f}" for metric, value in self.metrics.items())
        return f"<bert_tf.Result {self.name}: {reached}; {self.evaluation.examples} examples>"

    def _repr_html_(self) -> str:
        rows = []
        for metric, value in self.metrics.items():
            ends = self.intervals.get(metric)
            interval = f"{ends[0]:.4f} to {ends[1]:.4f}" if ends else ""
            rows.append(f"<tr><th>{html.escape(metric)}</th><td>{value:.4f}</td><td>{interval}</td></tr>")
        head = f"<caption>{html.escape(self.name)}: {self.evaluation.examples} examples</caption>"
        columns = "<tr><th>metric</th><th>value</th><th>95 % interval</th></tr>"
        return f"<table>{head}{columns}{''.join(rows)}</table>"

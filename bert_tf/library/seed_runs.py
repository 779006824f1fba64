"""Results of one training repeated with several seeds."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Mapping, Sequence
from pathlib import Path

from bert_tf.library.loading import load
from bert_tf.library.model import Model
from bert_tf.tasks.base import Task
from bert_tf.training import seeds
from bert_tf.training.seeds import SeedResult, Spread


@dataclasses.dataclass(frozen=True)
class SeedRuns:
    """One run for each seed.

    Attributes:
      folder: holds the folder of each run, seeds.tsv and report.html.
      results: of each seed, in order.
    """

    folder: Path
    results: Sequence[SeedResult]
    _task: Task | None = dataclasses.field(default=None, repr=False)
    _data_dir: Path | None = dataclasses.field(default=None, repr=False)

    @property
    def spread(self) -> Mapping[str, Spread]:
        """Mean, standard deviation, minimum and maximum of each metric, named as in eval_results.json."""
        return seeds.spreads(self.results)

    def model(self, seed: int) -> Model:
        """Returns the model of a seed, see `load`.

        Args:
          seed: one of the trained seeds.

        Raises:
          CheckpointError: no run has this seed.
        """
        return load(
            self.folder / next((one.folder for one in self.results if one.seed == seed), f"seed-{seed}"), task=self._task
        )

    def __str__(self) -> str:
        """The command's output."""
        return "\n".join(seeds.table(self.results))

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

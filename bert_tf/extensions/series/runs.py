"""Results of one training repeated with several seeds, or on several folds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bert_tf.extensions.series import OUT_OF_FOLD, table
from bert_tf.extensions.series.table import RunResult, Spread
from bert_tf.io.text_table import Printed
from bert_tf.library.loading import load_trained
from bert_tf.library.model import Model
from bert_tf.tasks.base import Task

if TYPE_CHECKING:
    from bert_tf.extensions.series.folds import FoldResult
    from bert_tf.extensions.series.seeds import SeedResult
    from bert_tf.training.run_spec import RunSpec


class _Runs(Printed):
    """Results of runs in one folder."""

    folder: Path
    results: Sequence[RunResult]
    _spec: RunSpec
    _task: Task | None
    _data_dir: Path | None

    @property
    def spread(self) -> Mapping[str, Spread]:
        """Mean, standard deviation, minimum and maximum of each metric, named as in eval_results.json."""
        return table.spreads(self.results)

    def _load(self, folder: str) -> Model:
        return load_trained(self.folder / folder, self._spec, self._task, self._data_dir)

    def __str__(self) -> str:
        """The command's output."""
        return "\n".join(table.summary(self.results))


@dataclasses.dataclass(frozen=True)
class SeedRuns(_Runs):
    """One run for each seed.

    Attributes:
      folder: holds the folder of each run, seeds.tsv and report.html.
      results: of each seed, in order.
    """

    folder: Path
    results: Sequence[SeedResult]
    _spec: RunSpec = dataclasses.field(repr=False)
    _task: Task | None = dataclasses.field(default=None, repr=False)
    _data_dir: Path | None = dataclasses.field(default=None, repr=False)

    def model(self, seed: int) -> Model:
        """Returns the model of a seed, on the devices and in the precision of its training.

        Args:
          seed: one of the trained seeds.

        Raises:
          CheckpointError: no run has this seed.
        """
        return self._load(next((result.folder for result in self.results if result.seed == seed), f"seed-{seed}"))


@dataclasses.dataclass(frozen=True)
class FoldRuns(_Runs):
    """One run for each fold, and the final model of all rows.

    Attributes:
      folder: the run of the final model; also holds the folder of each fold, folds.tsv and out_of_fold.tsv.
      results: of each fold on its own rows, in order.
    """

    folder: Path
    results: Sequence[FoldResult]
    _spec: RunSpec = dataclasses.field(repr=False)
    _task: Task | None = dataclasses.field(default=None, repr=False)
    _data_dir: Path | None = dataclasses.field(default=None, repr=False)

    @property
    def out_of_fold(self) -> Path:
        """File with a prediction of each training row, by the model that was not trained on it."""
        return self.folder / OUT_OF_FOLD

    def model(self, fold: int | None = None) -> Model:
        """Returns the final model, or that of a fold, on the devices and in the precision of its training.

        Args:
          fold: from 1; None for the final model.

        Raises:
          CheckpointError: there is no such model, for example no final one with `folds_only`.
        """
        return self._load("" if fold is None else f"fold-{fold}")

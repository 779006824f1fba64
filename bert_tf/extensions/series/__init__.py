"""Series: one training with several seeds (--seeds), or on several folds (--folds), and the spread of its results."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from bert_tf.errors import FlagError
from bert_tf.extension import Driver, Extension, Series, Settings
from bert_tf.seeds import seed_numbers, seeds_text
from bert_tf.settings import setting, training_setting

FOLDS = "folds"  # part of the wall time
OUT_OF_FOLD = "out_of_fold.tsv"  # in the folder of folds

_OF_FOLDS: Mapping[str, Any] = {
    "resolved": True,
    "of_labels": True,
    "programs": ("fine-tune",),  # the texts of a distillation have no labels to evaluate on
}


@dataclasses.dataclass(frozen=True)
class SeriesSettings(Settings):
    seeds: str | None = setting(
        None,
        "several seeds: 1-5, or 1,3,7-9; runs in OUTPUT_DIR/seed-N (default: out/TASK-seeds), summary in seeds.tsv",
        resolved=True,
        check=seed_numbers,
        from_program=seeds_text,
    )
    slots: int | None = training_setting(
        None,
        "with --seeds or --folds: runs at a time; default: one for each GPU, or for each core with 4 GB of memory",
        lowest=1,
        highest=1000,
        resolved=True,
    )
    folds: int | None = training_setting(
        None,
        "cross-validate the training split in 2 to 100 parts: runs in OUTPUT_DIR/fold-N (default: out/TASK-folds),"
        " summary in folds.tsv",
        lowest=2,
        highest=100,
        **_OF_FOLDS,
    )
    group_column: str | None = training_setting(
        None, "with --folds: rows with the same value in this column stay in one fold", **_OF_FOLDS
    )
    folds_only: bool = training_setting(False, "with --folds: no final model of all rows", **_OF_FOLDS)
    folds_average: bool = training_setting(
        False,
        "with --folds: instead of a final model, evaluate and predict with the mean of the outputs of the folds' models",
        **_OF_FOLDS,
    )

    @property
    def seed_numbers(self) -> tuple[int, ...]:
        """Parsed `seeds`; empty for a single seed."""
        return () if self.seeds is None else seed_numbers(self.seeds)

    def check(self, config: Any) -> None:
        if self.seeds is not None and "seed" in config.given:
            raise FlagError("--seed and --seeds exclude each other: name all of them with --seeds")
        if self.slots is not None and self.seeds is None and self.folds is None:
            raise FlagError("--slots belongs to --seeds and --folds")
        if self.folds is None:
            for flag in ("group_column", "folds_only", "folds_average"):
                if getattr(self, flag):
                    raise FlagError(f"--{flag} belongs to --folds, such as --folds=5")
            return
        if self.seeds is not None:
            raise FlagError("--folds and --seeds exclude each other: start the folds once for each --seed")
        if config.train.eval_every_n_steps:
            raise FlagError(
                "--folds and --eval_every_n_steps exclude each other: the reported rows would choose the checkpoint"
            )
        if self.folds_average and self.folds_only:
            raise FlagError("--folds_average and --folds_only exclude each other")
        if self.folds_only and (config.actions.do_predict or config.inference.submission_zip or config.deciding):
            raise FlagError("--folds_only has no final model: leave out --do_predict, --submission_zip and decision rules")
        if self.folds_average and config.deciding:
            raise FlagError("--folds_average has no decision rule: leave out --calibrate, --threshold, --abstain and --sets")


EXTENSION = Extension(
    settings=SeriesSettings,
    drivers={
        "seeds": Driver(f"{__name__}.seeds:drive", "seed"),
        "folds": Driver(f"{__name__}.folds:drive", "fold", needs_dev=False),
    },
    series=(Series("seeds", "seed-"), Series("folds", "fold-", differ_in=("train_examples_sha256",))),
    times={FOLDS: ("folds, before the final model", "start")},
)

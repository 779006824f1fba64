"""Average: the mean of a run's last checkpoints, or of any checkpoints of one model (docs/checkpoints.md)."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from bert_tf.errors import FlagError
from bert_tf.extension import Extension, NewCommand, Settings
from bert_tf.settings import training_setting

if TYPE_CHECKING:
    from bert_tf.training.run_spec import RunSpec


@dataclasses.dataclass(frozen=True)
class LastSettings(Settings):
    average_last: int = training_setting(
        0, "average the last N checkpoints of --save_checkpoints_steps, in OUTPUT_DIR/average, evaluated too; 0: off", lowest=0
    )

    def check(self, config: RunSpec) -> None:
        count, limit = self.average_last, config.train.keep_checkpoint_max
        if count == 1:
            raise FlagError("--average_last=1: must be 0 or at least 2")
        if "save_checkpoints_steps" not in config.given:
            raise FlagError(f"--average_last={count}: needs --save_checkpoints_steps=N")
        if 0 < limit < count:
            raise FlagError(f"--average_last={count}: only --keep_checkpoint_max={limit} checkpoints are kept")


EXTENSION = Extension(
    settings=LastSettings,
    part=f"{__name__}.part:AverageOfLast",
    commands={"checkpoint average": NewCommand(f"{__name__}.command:COMMAND")},
)

"""Track: reports runs to an experiment tracker, while they train or afterwards (docs/tracking.md)."""

from __future__ import annotations

import dataclasses

from bert_tf.extension import Extension, NewCommand, Settings
from bert_tf.settings import training_setting

TRACKERS = MLFLOW, WANDB, TENSORBOARD = ("mlflow", "wandb", "tensorboard")
FOLDER = "tracking"  # in a run's folder


@dataclasses.dataclass(frozen=True)
class TrackerSettings(Settings):
    tracker: str | None = training_setting(
        None, f"report the training to an experiment tracker: {', '.join(TRACKERS)} (docs/tracking.md)", choices=TRACKERS
    )

    def check(self, config: object) -> None:
        del config
        from bert_tf.extensions.track import trackers

        trackers.require(str(self.tracker))


EXTENSION = Extension(
    settings=TrackerSettings,
    section="Output",
    part=f"{__name__}.follow:Tracked",
    commands={
        "track": NewCommand(
            f"{__name__}.command:COMMAND",
            "Look at runs",
            "sends runs to an experiment tracker: MLflow, Weights & Biases, TensorBoard",
        )
    },
    files={
        (
            *(f"{FOLDER}/{name}.*" for name in TRACKERS),
            f"{FOLDER}/{TENSORBOARD}/",
            f"{FOLDER}/{WANDB}/",
        ): "reported to experiment trackers, and their logs (docs/tracking.md)"
    },
)

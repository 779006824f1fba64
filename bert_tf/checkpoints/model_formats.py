"""Models in formats of extensions, which have no checkpoint (`Extension.model_format`); nothing here imports TensorFlow."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from bert_tf import extension
from bert_tf.errors import CheckpointError
from bert_tf.io import files


class ModelFormat(Protocol):
    """Each folder of a format has a file that names its model, as a prefix names a checkpoint."""

    def file_of(self, name: str | os.PathLike[str]) -> Path | None:
        """The file of the model that is in a folder, or is named itself; None if it is of another format.

        Raises CheckpointError for a folder in which nothing can be used.
        """

    def models_in(self, folder: Path) -> Sequence[str]:
        """Names of the models of a folder that has several, in folders below; empty for any other."""

    def why_unread(self, folder: Path) -> str:
        """Why a folder without a usable model is not read; empty if the format does not know."""

    def load(self, file: str, overrides: Any) -> Any:
        """Returns a `batch.trained.Trained` with some of its `batch.job.ModelOverrides`."""

    def inference(self, settings: Any, batch_size: int | None, files: Sequence[str]) -> Any:
        """Returns `batch.engine.InferenceOptions` from `training.settings.MachineSettings`."""

    def joint(self, models: Sequence[Any], inference: Any) -> Any:
        """What computes several models of the format at once, as `extensions.together.joint.JointForward`."""

    def share(self, file: Path) -> None:
        """Opens a model for the processes that are forked from this one."""


def every() -> list[ModelFormat]:
    return [extension.load(one.model_format) for one in extension.installed().values() if one.model_format]


def of(name: str | os.PathLike[str]) -> ModelFormat | None:
    return next((one for one in every() if one.file_of(name) is not None), None)


def file_of(name: str | os.PathLike[str]) -> Path | None:
    """See `ModelFormat.file_of`."""
    return next((file for one in every() if (file := one.file_of(name)) is not None), None)


def models_in(name: str) -> list[str]:
    """The models of a local folder that has several; else the name."""
    if files.has_scheme(name):
        return [name]
    return [os.path.join(name, model) for one in every() for model in one.models_in(Path(name))] or [name]


def refuse(checkpoint: str | os.PathLike[str]) -> None:
    """Raises CheckpointError if a checkpoint, whose variables are needed, is a model in another format."""
    if file_of(checkpoint) is not None:
        raise CheckpointError(
            f"{checkpoint}: an exported model has no weights for this; name the run that it was exported from"
        )

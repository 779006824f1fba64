"""Exports a model held by a program: `Model.export`."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

from bert_tf.extensions.export import write
from bert_tf.extensions.export.formats import Target
from bert_tf.library.keywords import takes
from bert_tf.library.model import Model
from bert_tf.settings import read_settings


class Exporter:
    """See `Model.session`."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @takes(Target)
    def export(self, format: str, output: str | os.PathLike[str], **options: Any) -> Path:  # noqa: A002  (as the flag)
        """See `Model.export`."""
        model = self._model
        return write.write(
            dataclasses.replace(model.trained, given_task=model.task),
            read_settings(Target, {"format": format, "output": output, **options}),
            find_data=model.find_data,
        )

    def close(self) -> None:
        """Holds nothing."""

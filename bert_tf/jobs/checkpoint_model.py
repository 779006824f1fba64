"""A model of any layout by published names, with its configuration and vocabulary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf import files, run_layout
from bert_tf.checkpoints import huggingface, other_names, values
from bert_tf.checkpoints.names import encoder_shapes, is_training_only
from bert_tf.checkpoints.tensors import Tensors
from bert_tf.config import BertConfig
from bert_tf.errors import CheckpointError, FlagError
from bert_tf.estimator import run_folder
from bert_tf.jobs import checkpoint_output
from bert_tf.log_form import log
from bert_tf.tokenization.casing import TOKENIZER_FILES


class PublishedModel:
    """Weights by published names and the files that belong to them: `keys` maps to names in the checkpoint `found`."""

    def __init__(self, found: Tensors, settings: Mapping[str, Any]) -> None:
        """Settings `bert_config_file` and `vocab_file` override the files beside the checkpoint."""
        self.found, self._settings = found, settings
        numbers = [name for name, entry in found.entries.items() if entry.bytes and not is_training_only(name)]
        published = other_names.published(numbers)
        self.keys = {name: key for key, (name, _) in published.items()}
        if not any(name.startswith("bert/") for name in self.keys):
            raise CheckpointError(f"{found.place}: no variable of BERT under a name that is known here; see checkpoint inspect")
        self.entries = {name: np.asarray(change(found.read(key)), order="C") for key, (name, change) in published.items()}
        values.refuse_not_finite(found.place, {self.keys[name]: value for name, value in self.entries.items()})
        self._check()

    def _check(self) -> None:
        path = self.config_file
        if path is None:
            return
        for name, shape in encoder_shapes(self.config).items():
            if name in self.entries and self.entries[name].shape != shape:
                raise CheckpointError(
                    f"{self.found.place}: {self.keys[name]} gives {list(self.entries[name].shape)}, {path} says {list(shape)}"
                )

    @property
    def config_file(self) -> Path | None:
        """From the setting, else beside the weights; None if missing."""
        names = (run_layout.CONFIG, huggingface.CONFIG_NAME)
        return self._file("bert_config_file", names)

    @property
    def vocabulary_file(self) -> Path | None:
        """From the setting, else beside the weights; None if missing."""
        return self._file("vocab_file", (run_layout.VOCABULARY,))

    def _file(self, flag: str, names: Sequence[str]) -> Path | None:
        given = self._settings[flag]
        if given is not None:
            why = files.missing(given)
            if why:
                raise FlagError(f"--{flag}={given}: {why}")
            return Path(given)
        return next((path for name in names if (path := self.found.folder / name).is_file()), None)

    @property
    def config(self) -> BertConfig:
        """Raises BertError if the file is missing or damaged."""
        path = self.config_file
        if path is None:
            raise CheckpointError(f"{self.found.folder}: no configuration beside the weights; name it with --bert_config_file")
        return BertConfig.from_json_file(path)

    @property
    def record(self) -> Mapping[str, Any]:
        return run_folder.trained(self.found.folder)

    def copy_texts(self, folder: Path) -> None:
        if self.vocabulary_file is None:
            log.warning("%s: no vocabulary beside the weights, so none beside those that are written", self.found.folder)
        else:
            (folder / run_layout.VOCABULARY).write_bytes(self.vocabulary_file.read_bytes())
        checkpoint_output.copy(folder, self.found.folder, TOKENIZER_FILES)

"""Writes a folder in Hugging Face's layout: weights, configuration, tokenizer and model card.

Shapes: D hidden size, L labels.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.numpy

from bert_tf import documents
from bert_tf.checkpoints.huggingface import CONFIG_NAME, WEIGHTS_NAME
from bert_tf.checkpoints.names import name_pairs
from bert_tf.conversion.weights import weights
from bert_tf.export import kept_files
from bert_tf.export.exported import Exported
from bert_tf.export.huggingface import architectures, card, sentence_transformers, tokenizer
from bert_tf.export.huggingface.architectures import Architecture

_CARD = "README.md"
# What transformers calls the activations; its "gelu" is the exact form.
_ACTIVATIONS = {"gelu_erf": "gelu", "gelu_tanh": "gelu_pytorch_tanh"}


def write(exported: Exported, folder: Path) -> None:
    """Writes a model; the same bytes each time.

    Args:
      exported: the model.
      folder: that is empty.

    Raises:
      CheckpointError: the weights are damaged, not finite, or of another model.
      FlagError: transformers has no class for its head.
    """
    trained = exported.trained
    architecture = architectures.of(trained.head.kind)
    tensors = _tensors(exported, architecture)
    safetensors.numpy.save_file(tensors, folder / WEIGHTS_NAME, metadata={"format": "pt"})
    contents = {
        CONFIG_NAME: _config(exported, architecture),
        **tokenizer.files(trained),
        **(sentence_transformers.files(trained) if architecture.makes_vectors else {}),
    }
    for name, content in contents.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(documents.to_json(content, indent=2) + "\n", encoding="utf-8")
    kept_files.write(exported, folder)
    (folder / _CARD).write_text(card.text(exported, architecture), encoding="utf-8")


def _tensors(exported: Exported, architecture: Architecture) -> dict[str, npt.NDArray[np.float32]]:
    """Returns weights by their names in the class; PyTorch keeps kernels [out, in]."""
    found, tensors = weights(exported.trained), {}
    for pair in name_pairs(exported.trained.config.num_hidden_layers):
        if architecture.has_pooler or not pair.huggingface.startswith("pooler."):
            array = found[pair.published]
            tensors[architecture.prefix + pair.huggingface] = np.ascontiguousarray(array.T if pair.transposed else array)
    return {**tensors, **{name: found[published] for published, name in architecture.weights.items()}}


def _config(exported: Exported, architecture: Architecture) -> dict[str, Any]:
    config = exported.trained.config
    names = exported.family.labels or [f"LABEL_{number}" for number in range(exported.trained.head.num_labels)]
    labelled = {
        "id2label": {str(number): name for number, name in enumerate(names)},
        "label2id": {name: number for number, name in enumerate(names)},
    }
    return {
        "architectures": [architecture.name],
        "model_type": "bert",
        **dataclasses.asdict(config),
        "hidden_act": _ACTIVATIONS.get(config.hidden_act, config.hidden_act),
        "pad_token_id": exported.trained.vocabulary.pad_id,
        "classifier_dropout": None,
        "dtype": "float32",
        **({"problem_type": architecture.problem_type} if architecture.problem_type else {}),
        **(labelled if architecture.weights else {}),
    }

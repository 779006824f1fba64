"""Weights and configuration in Hugging Face's layout, with the head; tokenizer and model card are not written here."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.numpy

from bert_tf import documents
from bert_tf.checkpoints import other_names
from bert_tf.checkpoints.huggingface import CONFIG_NAME, WEIGHTS_NAME
from bert_tf.config import BertConfig
from bert_tf.head_spec import CHOICE, CLASSIFICATION, MULTI_LABEL, REGRESSION, SPAN, TAGS

_ENCODER = "bert."  # before the names of the encoder where there is a head
_ACTIVATIONS = {"gelu_erf": "gelu", "gelu_tanh": "gelu_new"}
# Of a head by its kind: the class that transformers has for it, and what it calls the problem.
_CLASSES = {
    CLASSIFICATION: ("BertForSequenceClassification", "single_label_classification"),
    REGRESSION: ("BertForSequenceClassification", "regression"),
    MULTI_LABEL: ("BertForSequenceClassification", "multi_label_classification"),
    SPAN: ("BertForQuestionAnswering", None),
    TAGS: ("BertForTokenClassification", None),
    CHOICE: ("BertForMultipleChoice", None),
}
_PRETRAINING, _BARE = "BertForPreTraining", "BertModel"


def write(
    folder: Path,
    weights: Mapping[str, npt.NDArray[Any]],
    config: BertConfig,
    *,
    kind: str | None = None,
    labels: Sequence[str] = (),
) -> dict[str, str]:
    """Writes model.safetensors and config.json, the same bytes on every call.

    Args:
      folder: that exists.
      weights: arrays by published name.
      config: of the encoder.
      kind: of the head, see `head_spec`; None for what the names of the variables tell.
      labels: names of the classes or tags, in their order.

    Returns:
      The new name of each variable that is in the file.

    Raises:
      OSError: the folder cannot be written.
    """
    renamed = other_names.huggingface(config.num_hidden_layers)
    names = {name: renamed[name].name for name in sorted(weights) if name in renamed}
    architecture, problem = _architecture(names.values(), kind)
    if architecture != _BARE:
        names = {name: f"{_ENCODER}{new}" if name.startswith("bert/") else new for name, new in names.items()}
    tensors = {new: _float32(renamed[name].there(weights[name])) for name, new in names.items()}
    safetensors.numpy.save_file(tensors, folder / WEIGHTS_NAME, metadata={"format": "pt"})
    values = {**_config(config), "architectures": [architecture]}
    if problem is not None:
        values["problem_type"] = problem
    size = next((len(tensors[name]) for name in ("classifier.bias", "qa_outputs.bias") if name in tensors), 0)
    if size:
        shown = list(labels) if len(labels) == size else [f"LABEL_{number}" for number in range(size)]
        values["id2label"] = {str(number): label for number, label in enumerate(shown)}
        values["label2id"] = {label: number for number, label in enumerate(shown)}
    text = documents.to_json(values, indent=2, sort_keys=True) + "\n"
    (folder / CONFIG_NAME).write_text(text, encoding="utf-8")
    return names


def _architecture(names: Iterable[str], kind: str | None) -> tuple[str, str | None]:
    found = set(names)
    if "classifier.weight" in found or "qa_outputs.weight" in found:
        default = SPAN if "qa_outputs.weight" in found else CLASSIFICATION
        return _CLASSES.get(kind or default, _CLASSES[default])
    return (_PRETRAINING if any(name.startswith("cls.") for name in found) else _BARE), None


def _config(config: BertConfig) -> dict[str, Any]:
    values = dataclasses.asdict(config)
    activation = values["hidden_act"]
    return {**values, "hidden_act": _ACTIVATIONS.get(activation, activation), "model_type": "bert"}


def _float32(array: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    return np.ascontiguousarray(array, np.float32)

"""One model for all contenders: in the published layout for us, in Hugging Face's for the others.

Pretrained encoders have no task head. So that losses before training are comparable, every worker draws it by the
rule of `head`; our checkpoint holds it by its published names, the other format has no entry for it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.numpy

from bert_tf import documents
from bert_tf.checkpoints.huggingface import CONFIG_NAME, PUBLISHED_CONFIG_NAME, VOCABULARY_NAME, WEIGHTS_NAME
from bert_tf.checkpoints.names import encoder_shapes, name_pairs
from bert_tf.checkpoints.reader import CHECKPOINT_NAME, CheckpointReader, write_checkpoint
from bert_tf.config import BertConfig
from bert_tf.head_spec import SPAN, HeadSpec
from bert_tf.tokenization import casing
from bert_tf.tokenization.casing import TOKENIZER_FILES
from bert_tf.tokenization.vocabulary import CLS, MASK, PAD, SEP, UNK, Vocabulary

Array = npt.NDArray[Any]

# The tanh form has several names there; this one is a fused kernel.
_HUGGINGFACE_ACTIVATIONS = {"gelu_erf": "gelu", "gelu_tanh": "gelu_pytorch_tanh"}
_TOKENIZER_FIELDS = {"unk_token": UNK, "sep_token": SEP, "pad_token": PAD, "cls_token": CLS, "mask_token": MASK}


# What the variables of a head are called, where it is not as in the published classifier.
_SCOPES = {SPAN: "cls/squad/"}


def head(config: BertConfig, spec: HeadSpec, *, seed: int) -> dict[str, Array]:
    """Returns the initial head of all workers: normal(0, 0.02), drawn [D, L], and zeros."""
    kernel = np.random.default_rng(seed).normal(0, 0.02, [config.hidden_size, spec.num_labels])
    scope = _SCOPES.get(spec.kind, "")
    return {
        f"{scope}output_weights": np.ascontiguousarray(kernel.T, np.float32),  # [L, D]
        f"{scope}output_bias": np.zeros(spec.num_labels, np.float32),
    }


def read(prefix: str | os.PathLike[str], config: BertConfig) -> dict[str, Array]:
    reader = CheckpointReader(prefix)
    return {name: reader[name] for name in encoder_shapes(config)}


def write_published(folder: Path, config: BertConfig, vocabulary: Vocabulary, entries: dict[str, Array]) -> None:
    """Writes bert_config.json, vocab.txt, tokenizer_config.json and, if there are entries, bert_model.ckpt."""
    folder.mkdir(parents=True)
    (folder / PUBLISHED_CONFIG_NAME).write_text(config.to_json(), encoding="utf-8")
    _write_tokenizer(folder, config, vocabulary)
    if entries:
        write_checkpoint(folder / CHECKPOINT_NAME, entries)


def write_huggingface(
    folder: Path, config: BertConfig, vocabulary: Vocabulary, entries: dict[str, Array], *, num_labels: int
) -> None:
    """Writes config.json, vocab.txt, tokenizer_config.json and, if there are entries, model.safetensors."""
    folder.mkdir(parents=True)
    (folder / CONFIG_NAME).write_text(documents.to_json(_config(config, vocabulary, num_labels), indent=2), encoding="utf-8")
    _write_tokenizer(folder, config, vocabulary)
    if not entries:
        return
    tensors = {}
    for pair in name_pairs(config.num_hidden_layers):
        array = entries[pair.published]
        tensors[pair.huggingface] = np.ascontiguousarray(array.T) if pair.transposed else array
    safetensors.numpy.save_file(tensors, folder / WEIGHTS_NAME, metadata={"format": "pt"})


def _write_tokenizer(folder: Path, config: BertConfig, vocabulary: Vocabulary) -> None:
    (folder / VOCABULARY_NAME).write_text(vocabulary.to_text(), encoding="utf-8")
    tokenizer = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": casing.find(vocabulary).lower_case,
        "model_max_length": config.max_position_embeddings,
        **_TOKENIZER_FIELDS,
    }
    (folder / TOKENIZER_FILES[0]).write_text(documents.to_json(tokenizer, indent=2), encoding="utf-8")


def _config(config: BertConfig, vocabulary: Vocabulary, num_labels: int) -> dict[str, object]:
    return {
        "architectures": ["BertForSequenceClassification"],
        "model_type": "bert",
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "num_hidden_layers": config.num_hidden_layers,
        "num_attention_heads": config.num_attention_heads,
        "intermediate_size": config.intermediate_size,
        "hidden_act": _HUGGINGFACE_ACTIVATIONS.get(config.hidden_act, config.hidden_act),
        "hidden_dropout_prob": config.hidden_dropout_prob,
        "attention_probs_dropout_prob": config.attention_probs_dropout_prob,
        "max_position_embeddings": config.max_position_embeddings,
        "type_vocab_size": config.type_vocab_size,
        "initializer_range": config.initializer_range,
        "layer_norm_eps": config.layer_norm_eps,
        "position_embedding_type": "absolute",
        "pad_token_id": vocabulary.pad_id,
        "id2label": {str(number): f"LABEL_{number}" for number in range(num_labels)},
        "label2id": {f"LABEL_{number}": number for number in range(num_labels)},
        "torch_dtype": "float32",
    }

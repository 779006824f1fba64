"""A tiny BERT in Hugging Face's layout."""

import json
from pathlib import Path

import numpy as np
import safetensors.numpy

from bert_tf.checkpoints.names import name_pairs
from bert_tf.config import BertConfig
from tests.tiny import TOKENS, random_weights


def write_folder(folder: Path) -> Path:
    """Writes config.json, vocab.txt and model.safetensors; the same ones on every call."""
    folder.mkdir(parents=True)
    config = BertConfig.tiny(vocab_size=len(TOKENS))
    weights = random_weights(config)
    sizes = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    values = {name: getattr(config, name) for name in (*sizes, "max_position_embeddings")}
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", **values}))
    (folder / "vocab.txt").write_text("\n".join(TOKENS) + "\n")
    arrays = {
        pair.huggingface: np.ascontiguousarray(weights[pair.published].T if pair.transposed else weights[pair.published])
        for pair in name_pairs(config.num_hidden_layers)
    }
    safetensors.numpy.save_file(arrays, folder / "model.safetensors")
    return folder


def write_modules(folder: Path, pooling: dict[str, object], *others: str) -> None:
    """Writes what sentence-transformers says of vectors; `pooling` has its switches."""
    names = ("Transformer", "Pooling", *others)
    modules = [
        {"path": f"{number}_{name}", "type": f"sentence_transformers.models.{name}"} for number, name in enumerate(names)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 8, **pooling}))

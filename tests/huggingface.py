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

"""Module files of sentence-transformers: mean pooling and, for similarity models, scaling to length 1."""

from __future__ import annotations

from typing import Any

from bert_tf.batch.trained import Trained
from bert_tf.head_spec import MEAN, VECTORS

_POOLINGS = {"mean": "pooling_mode_mean_tokens", "cls": "pooling_mode_cls_token", "max": "pooling_mode_max_tokens"}


def files(trained: Trained) -> dict[str, Any]:
    options = dict(trained.head.options)
    pooling = options.get("pooling") or MEAN if trained.head.kind == VECTORS else MEAN
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    if trained.head.kind != VECTORS:
        modules.append(("2_Normalize", "Normalize"))
    return {
        "modules.json": [_module(number, *row) for number, row in enumerate(modules)],
        "1_Pooling/config.json": {
            "word_embedding_dimension": trained.config.hidden_size,
            **{name: way == pooling for way, name in _POOLINGS.items()},
        },
        "sentence_bert_config.json": {"max_seq_length": trained.max_seq_length, "do_lower_case": False},
        "config_sentence_transformers.json": {"prompts": {}, "default_prompt_name": None, "similarity_fn_name": "cosine"},
    }


def _module(number: int, path: str, name: str) -> dict[str, Any]:
    return {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{name}"}

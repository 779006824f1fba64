"""Writes a folder in Hugging Face's layout: weights, configuration, tokenizer, modules of sentence-transformers, model card."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bert_tf.batch.trained import Trained
from bert_tf.batch.weights import weights
from bert_tf.checkpoints import huggingface_export
from bert_tf.extensions.export import long_texts, tokenizer_json
from bert_tf.extensions.export.job import ExportJob, rule, write_card, write_kept_files
from bert_tf.head_spec import MEAN, VECTORS
from bert_tf.io import documents
from bert_tf.tokenization import roles, text_rules

_CARD = "README.md"
_POOLER = "bert/pooler/"
_POOLINGS = {"mean": "pooling_mode_mean_tokens", "cls": "pooling_mode_cls_token", "max": "pooling_mode_max_tokens"}


def write(exported: ExportJob, folder: Path) -> None:
    """Writes a model deterministically into an empty folder.

    Raises CheckpointError for unusable weights, FlagError if transformers has no class for the head.
    """
    trained = exported.trained
    next_sentence = dict(trained.head.options).get("next_sentence", True)
    architecture = huggingface_export.class_of(trained.head.kind, next_sentence=next_sentence)
    architecture = huggingface_export.of_encoder(architecture, trained.config)
    read = {name: array for name, array in weights(trained).items() if architecture.has_pooler or not name.startswith(_POOLER)}
    huggingface_export.write(
        folder,
        read,
        trained.config,
        architecture=architecture,
        labels=exported.family.labels,
        facts={"pad_token_id": trained.vocabulary.pad_id, "dtype": "float32", **rule(exported.family)},
    )
    contents = {**_tokenizer_files(exported), **(_module_files(trained) if architecture.makes_vectors else {})}
    for name, content in contents.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(documents.to_json(content, indent=2) + "\n", encoding="utf-8")
    write_kept_files(exported, folder)
    write_card(exported, folder / _CARD, architecture=architecture, long_texts=tuple(long_texts.lines(exported)))


def _tokenizer_files(exported: ExportJob) -> dict[str, dict[str, Any]]:
    trained = exported.trained
    vocabulary = trained.vocabulary
    text = vocabulary.to_text_of_words() if exported.family.reads_words else vocabulary.to_text()
    settings = huggingface_export.tokenizer_settings(vocabulary, trained.config, trained.max_seq_length, text=text)
    of_word_pieces = {
        "split_special_tokens": tokenizer_json.splits_special(trained),
        "do_lower_case": trained.lower_case,
        **trained.vocabulary.text_rules.values(),
    }
    return {
        text_rules.CONFIG: {**settings, **({} if trained.vocabulary.own_rules else of_word_pieces)},
        "special_tokens_map.json": {name: token for name, token in settings.items() if name in roles.SPECIAL},
    }


def _module_files(trained: Trained) -> dict[str, Any]:
    """Mean pooling and, for similarity models, scaling to length 1."""
    options = dict(trained.head.options)
    pooling = options.get("pooling") or MEAN if trained.head.kind == VECTORS else MEAN
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    if trained.head.kind != VECTORS:
        modules.append(("2_Normalize", "Normalize"))
    return {
        "modules.json": [
            {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{name}"}
            for number, (path, name) in enumerate(modules)
        ],
        "1_Pooling/config.json": {
            "word_embedding_dimension": trained.config.hidden_size,
            **{name: way == pooling for way, name in _POOLINGS.items()},
        },
        "sentence_bert_config.json": {"max_seq_length": trained.max_seq_length, "do_lower_case": False},
        "config_sentence_transformers.json": {"prompts": {}, "default_prompt_name": None, "similarity_fn_name": "cosine"},
    }

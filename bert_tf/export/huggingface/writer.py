"""Writes a folder in Hugging Face's layout: weights, configuration, tokenizer and model card."""

from __future__ import annotations

from pathlib import Path

from bert_tf import documents
from bert_tf.checkpoints import huggingface_classes, huggingface_export
from bert_tf.conversion.weights import weights
from bert_tf.export import kept_files
from bert_tf.export.exported import Exported
from bert_tf.export.huggingface import card, sentence_transformers, tokenizer

_CARD = "README.md"
_POOLER = "bert/pooler/"


def write(exported: Exported, folder: Path) -> None:
    """Writes a model deterministically into an empty folder.

    Raises CheckpointError for unusable weights, FlagError if transformers has no class for the head.
    """
    trained = exported.trained
    next_sentence = dict(trained.head.options).get("next_sentence", True)
    architecture = huggingface_classes.of(trained.head.kind, next_sentence=next_sentence)
    read = {name: array for name, array in weights(trained).items() if architecture.has_pooler or not name.startswith(_POOLER)}
    huggingface_export.write(
        folder,
        read,
        trained.config,
        architecture=architecture,
        labels=exported.family.labels,
        facts={"pad_token_id": trained.vocabulary.pad_id, "classifier_dropout": None, "dtype": "float32"},
    )
    contents = {
        **tokenizer.files(trained),
        **(sentence_transformers.files(trained) if architecture.makes_vectors else {}),
    }
    for name, content in contents.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(documents.to_json(content, indent=2) + "\n", encoding="utf-8")
    kept_files.write(exported, folder)
    (folder / _CARD).write_text(card.text(exported, architecture), encoding="utf-8")

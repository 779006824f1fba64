"""Names of BERT's heads in Hugging Face's layout, and of models that were saved in a wrapper."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from bert_tf.checkpoints.names import NamePair, pairs_of

# Heads of fine-tuning and pre-training: published and Hugging Face's names.
CLASSIFIER = {"output_weights": "classifier.weight", "output_bias": "classifier.bias"}
ANSWERS = {"cls/squad/output_weights": "qa_outputs.weight", "cls/squad/output_bias": "qa_outputs.bias"}
PRETRAINING = (
    *pairs_of("cls/predictions/transform/dense", "cls.predictions.transform.dense"),
    *pairs_of("cls/predictions/transform/LayerNorm", "cls.predictions.transform.LayerNorm"),
    NamePair("cls/predictions/output_bias", "cls.predictions.bias", False),
    NamePair("cls/seq_relationship/output_weights", "cls.seq_relationship.weight", False),
    NamePair("cls/seq_relationship/output_bias", "cls.seq_relationship.bias", False),
)
HEADS = (*(NamePair(*names, False) for names in {**CLASSIFIER, **ANSWERS}.items()), *PRETRAINING)
_LAYER = re.compile(r"(?:^|[./])layers?[._](\d+)[./]")
# Before all names of a model that was saved in a wrapper: of several GPUs, compiled, of a trainer, of sentence-transformers.
WRAPPERS = r"(?:module\.|_orig_mod\.|model\.|0\.auto_model\.)"
_WRAPPED = re.compile(rf"^{WRAPPERS}+")


def layers_in(names: Iterable[str]) -> int:
    return 1 + max((int(match[1]) for name in names for match in [_LAYER.search(name)] if match), default=-1)


def wrapped_in(names: Collection[str]) -> str:
    """Returns the prefix of a wrapper before all names, empty if there is none or some have another."""
    prefixes = {match[0] if (match := _WRAPPED.match(name)) else "" for name in names}
    return prefixes.pop() if len(prefixes) == 1 else ""


def modern(name: str) -> str:
    """Returns today's name of a tensor: files from the first PyTorch BERT name LayerNorm's parts as Google did."""
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")

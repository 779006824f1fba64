"""Encoders with BERT's layers, by `model_type` of Hugging Face's config.json: how each differs from BERT.

All compute in one graph (`modeling.encoder`). The dense layer that their classifiers put on [CLS] is BERT's pooler with another
activation, and their variables have BERT's published names.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

POOLER = "pooler.dense"  # Hugging Face's name of BERT's
_WORD_PIECES = "vocab.txt"


@dataclasses.dataclass(frozen=True)
class Encoder:
    classes: str  # prefix of transformers' class names
    prefix: str  # of the encoder's weights in a file with a head
    keys: Mapping[str, str] = dataclasses.field(default_factory=dict)  # of config.json, by field of `BertConfig`
    fixed: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # fields of `BertConfig` that config.json does not have
    parts: tuple[tuple[str, str], ...] = ()  # of BERT's weight names, and their replacements, in this order
    pooler: str = POOLER  # dense layer of the sentence classifier, without `prefix` unless it is BERT's
    choice_pooler: str | None = None  # that of multiple choice, if it has another name
    classifier: str = "classifier"  # output layer of the sentence classifier
    vocabulary: str = "tokenizer.json"  # file that defines the tokenizer, if the folder has it (`tokenization.library.file_in`)
    first_position: int = 0  # first row of the file's position table that is used; earlier rows are padding
    expected: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # the only supported values of config.json

    def weight(self, name: str) -> str:
        """Name of a weight, without prefix, by BERT's."""
        if name.startswith(POOLER):
            return name.replace(POOLER, self.pooler)
        for ours, theirs in self.parts:
            name = name.replace(ours, theirs)
        return name


# Liu et al. (2019, arXiv 1907.11692): one segment. Their code numbers positions from the id of padding on, which is 1.
_ROBERTA = Encoder(
    "Roberta",
    "roberta.",
    pooler="classifier.dense",
    choice_pooler="roberta.pooler.dense",
    classifier="classifier.out_proj",
    first_position=2,
    expected={"type_vocab_size": 1, "pad_token_id": 1},
)

ENCODERS: Mapping[str, Encoder] = {
    "bert": Encoder("Bert", "bert.", vocabulary=_WORD_PIECES),
    # Clark et al. (2020): the discriminator. The small models have narrower embeddings and a projection.
    "electra": Encoder(
        "Electra",
        "electra.",
        fixed={"pooler_act": "gelu_erf"},
        pooler="classifier.dense",
        choice_pooler="sequence_summary.summary",
        classifier="classifier.out_proj",
        vocabulary=_WORD_PIECES,
    ),
    # Sanh et al. (2019): no segments.
    "distilbert": Encoder(
        "DistilBert",
        "distilbert.",
        keys={
            "hidden_size": "dim",
            "num_hidden_layers": "n_layers",
            "num_attention_heads": "n_heads",
            "intermediate_size": "hidden_dim",
            "hidden_act": "activation",
            "hidden_dropout_prob": "dropout",
            "attention_probs_dropout_prob": "attention_dropout",
        },
        fixed={"type_vocab_size": 0, "pooler_act": "relu"},
        parts=(
            ("encoder.layer", "transformer.layer"),
            ("attention.self.query", "attention.q_lin"),
            ("attention.self.key", "attention.k_lin"),
            ("attention.self.value", "attention.v_lin"),
            ("attention.output.dense", "attention.out_lin"),
            ("attention.output.LayerNorm", "sa_layer_norm"),
            ("intermediate.dense", "ffn.lin1"),
            ("output.dense", "ffn.lin2"),
            ("output.LayerNorm", "output_layer_norm"),
        ),
        pooler="pre_classifier",
        vocabulary=_WORD_PIECES,
    ),
    "roberta": _ROBERTA,
    "xlm-roberta": dataclasses.replace(_ROBERTA, classes="XLMRoberta"),
    "camembert": dataclasses.replace(_ROBERTA, classes="Camembert"),
}

"""Encoders, by `model_type` of Hugging Face's config.json: how each differs from BERT.

All compute in one graph (`modeling.encoder`), whose parts a configuration chooses (`config.BertConfig`). The dense layer that
their classifiers put on [CLS] is BERT's pooler with another activation, and their variables have BERT's published names.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any

from bert_tf import position_kinds
from bert_tf.errors import ConfigError

POOLER = "pooler.dense"  # Hugging Face's name of BERT's
_WORD_PIECES = "vocab.txt"

Values = Mapping[str, Any]  # of a config.json


@dataclasses.dataclass(frozen=True)
class Encoder:
    classes: str  # prefix of transformers' class names
    prefix: str  # of the encoder's weights in a file with a head
    keys: Mapping[str, str] = dataclasses.field(default_factory=dict)  # of config.json, by field of `BertConfig`
    fixed: Values = dataclasses.field(default_factory=dict)  # fields of `BertConfig`, whatever config.json has
    defaults: Values = dataclasses.field(default_factory=dict)  # fields of `BertConfig`, if a configuration leaves them out
    of_class: Values = dataclasses.field(default_factory=dict)  # the same, if it is transformers'
    parts: tuple[tuple[str, str], ...] = ()  # patterns in BERT's weight names, and their replacements, in this order
    pooler: str = POOLER  # dense layer of the sentence classifier, without `prefix` unless `base_pooler`
    classifier_dropout: float | None = None  # if config.json leaves it out; None: the rate of the layers
    base_pooler: bool = False  # whether the model without a head has it
    choice_pooler: str | None = None  # that of multiple choice, if it has another name
    pooler_norm: str | None = None  # LayerNorm after it
    classifier: str = "classifier"  # output layer of the sentence classifier
    answers: str = "qa_outputs"  # output layer of question answering
    masked_words: Mapping[str, str] | None = None  # head of masked words, by BERT's names; None if it has another form
    masked_words_act: str = ""  # its activation; empty: that of the layers
    vocabulary: str = "tokenizer.json"  # file that defines the tokenizer, if the folder has it (`tokenizer.file_in`)
    unused: tuple[str, ...] = ()  # weights that some files have, without `prefix`
    first_position: int = 0  # first row of the file's position table that is used; earlier rows are padding
    expected: Values = dataclasses.field(default_factory=dict)  # the only supported values of config.json
    read: Callable[[Values], Values] = dict  # brings newer and older forms of config.json to one
    written: Callable[[Values], Values] = lambda _: {}  # further entries of a config.json, from the others

    def of_masked_words(self, name: str) -> str:
        """Name of a weight of the head of masked words, by BERT's."""
        part = next((part for part in self.masked_words or () if name.startswith(part)), "")
        return (self.masked_words or {}).get(part, "") + name[len(part) :]

    def weight(self, name: str) -> str:
        """Name of a weight, without prefix, by BERT's."""
        if name.startswith(POOLER):
            return name.replace(POOLER, self.pooler)
        if self.pooler_norm and name.startswith("pooler.LayerNorm"):
            return name.replace("pooler.LayerNorm", self.pooler_norm)
        for ours, theirs in self.parts:
            name = re.sub(ours, theirs, name)
        return name


def _masked_words(dense: str, norm: str, bias: str) -> dict[str, str]:
    """Names of the head of masked words by BERT's."""
    predictions = "cls.predictions"
    return {f"{predictions}.transform.dense": dense, f"{predictions}.transform.LayerNorm": norm, f"{predictions}.bias": bias}


_DECODER = "cls.predictions.decoder"  # the word vectors again
_LM_HEAD = {**_masked_words("lm_head.dense", "lm_head.layer_norm", "lm_head.bias"), _DECODER: "lm_head.decoder"}


_DROPOUT = {"classifier_dropout_prob": "classifier_dropout"}

# Liu et al. (2019, arXiv 1907.11692): one segment. Their code numbers positions from the id of padding on, which is 1.
_ROBERTA = Encoder(
    "Roberta",
    "roberta.",
    keys=_DROPOUT,
    pooler="classifier.dense",
    choice_pooler="roberta.pooler.dense",
    classifier="classifier.out_proj",
    masked_words=_LM_HEAD,
    masked_words_act="gelu_erf",
    first_position=2,
    expected={"type_vocab_size": 1, "pad_token_id": 1},
)


def _of_modernbert(values: Values) -> Values:
    """Since version 5 transformers writes `layer_types` and `rope_parameters` instead of three numbers."""
    values = dict(values)
    if values.get("rope_scaling"):
        raise ConfigError(f"rope_scaling is {values['rope_scaling']!r:.80}, only null can be loaded")
    if values.get("embedding_dropout", 0) != values.get("mlp_dropout", 0):
        raise ConfigError(f"embedding_dropout is {values.get('embedding_dropout', 0)!r:.80}, expected that of mlp_dropout")
    if values.get("local_rope_theta", 0) is None:
        values["local_rope_theta"] = values.get("global_rope_theta", 160_000.0)
    window = values.get("local_attention")
    if isinstance(window, int) and window < 2:
        raise ConfigError(f"local_attention is {window}, expected at least 2")
    types = values.get("layer_types")
    if types is not None:
        values["global_attn_every_n_layers"] = _every(types, values.get("num_hidden_layers"))
    rotary = values.get("rope_parameters")
    for layers, key in (("full_attention", "global_rope_theta"), ("sliding_attention", "local_rope_theta")):
        of_layers = rotary.get(layers) if isinstance(rotary, dict) else None
        if not isinstance(of_layers, dict):
            continue
        if of_layers.get("rope_type", "default") != "default":
            raise ConfigError(f"rope_type is {of_layers['rope_type']!r:.80}, only 'default' can be loaded")
        if "rope_theta" in of_layers:
            values[key] = of_layers["rope_theta"]
    return values


def _every(types: Any, layers: Any) -> int:
    """Which layers attend to whole texts: each n-th, from the first on."""
    is_full = [kind == "full_attention" for kind in types] if isinstance(types, list) else []
    step = is_full.index(True, 1) if True in is_full[1:] else len(is_full)
    if len(is_full) != layers or is_full != [number % step == 0 for number in range(len(is_full))]:
        raise ConfigError(
            f"layer_types is {types!r:.80}, expected 'full_attention' of the first and of each n-th of {layers} layers"
        )
    return step


def _for_narrow(values: Values) -> Values:
    """Without the key transformers takes a width of 128."""
    return {"embedding_size": values.get("embedding_size", values["hidden_size"])}


def _for_modernbert(values: Values) -> Values:
    """Tokens that the vocabulary does not name would be those of the published model."""
    tokens = ("pad", "bos", "eos", "cls", "sep")
    named = {f"{token}_token_id": values.get(f"{token}_token_id") for token in tokens}
    return {**named, "embedding_dropout": values["mlp_dropout"]}


def _of_deberta(values: Values) -> Values:
    """The kinds of relative attention are a list, or names between bars; -1 stands for what is not given."""
    if "positions" in values:  # already read
        return values
    values = {
        "relative_attention": False,
        "position_biased_input": True,
        "share_att_key": False,
        "norm_rel_ebd": "none",
        **values,
    }
    kinds = values.get("pos_att_type") or []
    kinds = kinds.lower().split("|") if isinstance(kinds, str) else kinds
    values["pos_att_type"] = sorted((str(kind).strip() for kind in kinds), reverse=True) if isinstance(kinds, list) else kinds
    for key in ("position_buckets", "max_relative_positions"):
        if isinstance(values.get(key), int) and values[key] < 0:
            values[key] = 0
    return values


def _for_deberta(values: Values) -> Values:
    """The older of two heads of masked words has word vectors of its own."""
    has_words = any(name.endswith("MaskedLM") for name in values["architectures"])
    return {"pooler_hidden_size": values["hidden_size"], **({"legacy": False} if has_words else {})}


ENCODERS: dict[str, Encoder] = {
    "bert": Encoder("Bert", "bert.", keys=_DROPOUT, base_pooler=True, masked_words={}, vocabulary=_WORD_PIECES),
    # Clark et al. (2020): the discriminator. The small models have narrower embeddings and a projection.
    "electra": Encoder(
        "Electra",
        "electra.",
        keys=_DROPOUT,
        fixed={"pooler_act": "gelu_erf"},
        of_class={"embedding_size": 128},
        pooler="classifier.dense",
        choice_pooler="sequence_summary.summary",
        classifier="classifier.out_proj",
        vocabulary=_WORD_PIECES,
        written=_for_narrow,
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
            "classifier_dropout_prob": "seq_classif_dropout",
        },
        fixed={"type_vocab_size": 0, "pooler_act": "relu", "layer_norm_eps": 1e-12},
        classifier_dropout=0.2,
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
        masked_words={
            **_masked_words("vocab_transform", "vocab_layer_norm", "vocab_projector.bias"),
            _DECODER: "vocab_projector",
        },
        vocabulary=_WORD_PIECES,
    ),
    "roberta": _ROBERTA,
    "xlm-roberta": dataclasses.replace(_ROBERTA, classes="XLMRoberta"),
    "camembert": dataclasses.replace(_ROBERTA, classes="Camembert"),
    # Lan et al. (2019, arXiv 1909.11942): layers of a group share their weights.
    "albert": Encoder(
        "Albert",
        "albert.",
        keys={"layer_groups": "num_hidden_groups", "classifier_dropout_prob": "classifier_dropout_prob"},
        defaults={
            "hidden_act": "gelu_new",
            "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0,
            "layer_groups": 1,
            "embedding_size": 128,
        },
        classifier_dropout=0.1,
        parts=(
            ("embeddings_project", "encoder.embedding_hidden_mapping_in"),
            (r"encoder\.layer\.(\d+)", r"encoder.albert_layer_groups.\1.albert_layers.0"),
            ("attention.self", "attention"),
            ("attention.output", "attention"),
            ("intermediate.dense", "ffn"),
            ("output.dense", "ffn_output"),
            ("output.LayerNorm", "full_layer_layer_norm"),
        ),
        pooler="pooler",
        base_pooler=True,
        expected={"inner_group_num": 1},
        written=_for_narrow,
    ),
    # Song et al. (2020, arXiv 2004.09297): RoBERTa's numbers of positions, and T5's bias of attention for each head.
    "mpnet": Encoder(
        "MPNet",
        "mpnet.",
        keys={"position_buckets": "relative_attention_num_buckets"},
        fixed={"type_vocab_size": 0, "positions": position_kinds.BUCKETED},
        defaults={"position_buckets": 32},
        parts=(
            ("attention.self.query", "attention.attn.q"),
            ("attention.self.key", "attention.attn.k"),
            ("attention.self.value", "attention.attn.v"),
            ("attention.output.dense", "attention.attn.o"),
            ("attention.output.LayerNorm", "attention.LayerNorm"),
            ("embeddings.position_bias", "encoder.relative_attention_bias.weight"),
        ),
        pooler="classifier.dense",
        choice_pooler="mpnet.pooler.dense",
        classifier="classifier.out_proj",
        masked_words=_LM_HEAD,
        masked_words_act="gelu_erf",
        first_position=2,
        expected={"pad_token_id": 1, "relative_attention_num_buckets": 32},  # their code has 32, whatever the file says
    ),
    # He et al. (2021, arXiv 2111.09543).
    "deberta-v2": Encoder(
        "DebertaV2",
        "deberta.",
        keys={"pooler_act": "pooler_hidden_act", "classifier_dropout_prob": "cls_dropout"},
        fixed={"positions": position_kinds.DISENTANGLED},
        defaults={"layer_norm_eps": 1e-7, "type_vocab_size": 0, "pooler_act": "gelu"},
        parts=(
            ("attention.self.(query|key|value)", r"attention.self.\1_proj"),
            ("embeddings.relative_embeddings", "encoder.rel_embeddings.weight"),
            ("embeddings.relative.LayerNorm", "encoder.LayerNorm"),
        ),
        masked_words=_masked_words(*(f"lm_predictions.lm_head.{part}" for part in ("dense", "LayerNorm", "bias"))),
        unused=("embeddings.position_embeddings.weight",),
        expected={
            "relative_attention": True,
            "position_biased_input": False,
            "pos_att_type": ["p2c", "c2p"],
            "share_att_key": True,
            "norm_rel_ebd": "layer_norm",
            "conv_kernel_size": 0,
            "pooler_dropout": 0,
        },
        read=_of_deberta,
        written=_for_deberta,
    ),
    # Warner et al. (2024, arXiv 2412.13663): norms come first, dense layers have no biases, layers attend within a window.
    "modernbert": Encoder(
        "ModernBert",
        "model.",
        keys={
            "hidden_act": "hidden_activation",
            "layer_norm_eps": "norm_eps",
            "hidden_dropout_prob": "mlp_dropout",
            "attention_probs_dropout_prob": "attention_dropout",
            "whole_attention_every": "global_attn_every_n_layers",
            "attention_window": "local_attention",
            "rotary_base": "global_rope_theta",
            "window_rotary_base": "local_rope_theta",
            "pooling": "classifier_pooling",
            "pooler_act": "classifier_activation",
            **_DROPOUT,
        },
        classifier_dropout=0.0,
        fixed={
            "type_vocab_size": 0,
            "positions": position_kinds.ROTARY,
            "norm_first": True,
            "biases": False,
            "gated": True,
            "output_transform": True,
        },
        defaults={
            "hidden_act": "gelu",
            "pooler_act": "gelu",
            "layer_norm_eps": 1e-5,
            "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0,
            "max_position_embeddings": 8192,
            "whole_attention_every": 3,
            "attention_window": 128,
            "rotary_base": 160_000.0,
            "window_rotary_base": 10_000.0,
        },
        parts=(
            ("embeddings.word_embeddings", "embeddings.tok_embeddings"),
            ("embeddings.LayerNorm", "embeddings.norm"),
            ("encoder.LayerNorm", "final_norm"),
            ("encoder.layer", "layers"),
            ("attention.self.(query|key|value)", "attn.Wqkv"),
            ("attention.output.dense", "attn.Wo"),
            ("attention.LayerNorm", "attn_norm"),
            ("intermediate.LayerNorm", "mlp_norm"),
            ("intermediate.dense", "mlp.Wi"),
            ("output.dense", "mlp.Wo"),
        ),
        pooler="head.dense",
        pooler_norm="head.norm",
        masked_words={"cls.predictions.bias": "decoder.bias", _DECODER: "decoder"},
        answers="classifier",
        expected={
            "attention_bias": False,
            "mlp_bias": False,
            "norm_bias": False,
            "classifier_bias": False,
        },
        read=_of_modernbert,
        written=_for_modernbert,
    ),
}


def register(model_type: str, encoder: Encoder) -> None:
    """Adds an encoder, where an extension is imported (docs/extensions.md); ValueError if the name is taken."""
    if model_type in ENCODERS:
        raise ValueError(f"there is an encoder {model_type} already")
    ENCODERS[model_type] = encoder

"""The architecture of a BERT model, as one frozen value."""

from __future__ import annotations

import dataclasses
import logging
import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from bert_tf import position_kinds
from bert_tf.encoders import ENCODERS
from bert_tf.errors import ConfigError
from bert_tf.io import documents, files
from bert_tf.io.documents import DocumentError
from bert_tf.position_kinds import ABSOLUTE, DISENTANGLED, ROTARY, PositionKind

# "gelu" is written in both kinds of configuration and means two functions: Google's code computes the tanh
# approximation (google-research/bert modeling.py), Hugging Face's the exact form with erf (activations.py).
_ACTIVATIONS = {
    "published": {"gelu": "gelu_tanh"},
    "huggingface": {
        "gelu": "gelu_erf",
        "gelu_python": "gelu_erf",
        **dict.fromkeys(("gelu_new", "gelu_fast", "gelu_pytorch_tanh"), "gelu_tanh"),
    },
}
ACTIVATIONS = ("gelu_tanh", "gelu_erf", "relu", "tanh", "linear")
FIRST_TOKEN, MEAN = "cls", "mean"

# Keys that only Hugging Face's configurations carry.
_HUGGINGFACE_KEYS = frozenset({"model_type", "architectures", "transformers_version", "layer_norm_eps"})

_HUGGINGFACE_NAME = "config.json"  # the published one is bert_config.json

# Keys of Hugging Face's that change what is computed, and why their models are not loaded.
_REFUSED = {
    "is_decoder": "a decoder reads only what is to the left; only encoders can be loaded",
    "add_cross_attention": "it reads a second encoder; only encoders alone can be loaded",
    "quantization_config": "quantized weights are not read; save the model in float32",
    "pruned_heads": "layers with fewer heads are not read; save the model with all of them",
}

_LOG = logging.getLogger(__name__)  # as in `tokenization.casing`

MOST_LAYERS = 1000
_QUERIES = 512  # at a time, of long texts
_LARGEST = 1 << 24  # of other sizes: far beyond any model, and safe to multiply

PADDING = "pad_token_id"  # a key of Hugging Face's alone

_FARTHEST = 1 << 16  # of models that have a row for each distance

_LARGEST_NUMBER = 1e30  # fits a float32

_WORD = re.compile(r"^\w+")

_CHOICES: Mapping[str, Collection[str]] = {
    "positions": position_kinds.KINDS,
    "pooling": (FIRST_TOKEN, MEAN),
    "hidden_act": ACTIVATIONS,
    "pooler_act": ACTIVATIONS,
}
_SIZES_OF_OTHERS = ("position_buckets", "max_relative_positions", "attention_window", "layer_groups")
_MAY_BE_ZERO = ("type_vocab_size", "embedding_size", *_SIZES_OF_OTHERS)
_REQUIRED = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")


@dataclasses.dataclass(frozen=True)
class BertConfig:
    """Sizes and rates of a BERT encoder (Devlin et al., 2018), or one of `encoders.ENCODERS`; the defaults are BERT-Base.

    Raises ConfigError if a size is not positive, a rate is outside [0, 1), the heads do not divide the hidden size, or
    the activation or type of model is unknown.
    """

    vocab_size: int
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu_tanh"  # one of ACTIVATIONS
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2  # 0: no segments
    initializer_range: float = 0.02  # standard deviation of the truncated normal
    layer_norm_eps: float = 1e-12
    model_type: str = "bert"  # key of ENCODERS
    embedding_size: int = 0  # width of the embeddings, which are projected to the hidden size; 0: the hidden size
    pooler_act: str = "tanh"  # one of ACTIVATIONS
    positions: str = ABSOLUTE  # how tokens know their places
    position_buckets: int = 0  # of relative positions, near ones alone; 0: each position is one
    max_relative_positions: int = 0  # the largest distance that is told from others; 0: `max_position_embeddings`
    rotary_base: float = 10_000.0
    window_rotary_base: float = 10_000.0  # of layers that attend within a window
    attention_window: int = 0  # tokens that most layers see, half of them on each side; 0: all layers see all
    whole_attention_every: int = 1  # the first and each n-th layer see all
    layer_groups: int = 0  # layers with weights of their own, which several layers share; 0: each layer
    norm_first: bool = False  # LayerNorm before attention and feed-forward, and after the last layer; not before the first
    biases: bool = True  # of dense layers and LayerNorm, but output layers
    gated: bool = False  # the feed-forward layer's activation is multiplied by a second half
    output_transform: bool = False  # the pooler has a LayerNorm, and is applied to each token before a head of tokens
    pooling: str = FIRST_TOKEN  # what the pooler reads
    classifier_dropout_prob: float = 0.1  # of the pooler's output; published: 0.1, whatever the other rates are

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            _check_value(field.name, getattr(self, field.name), str(field.type))
        if self.hidden_size % self.num_attention_heads:
            raise ConfigError(
                f"hidden_size {self.hidden_size} is not a multiple of num_attention_heads {self.num_attention_heads}"
            )
        if self.layer_groups > self.num_hidden_layers:
            raise ConfigError(f"{self.num_hidden_layers} layers cannot be divided into {self.layer_groups} groups")
        if self.position_kind.tables(self) and self.max_position_embeddings > _FARTHEST:
            raise ConfigError(
                f"max_position_embeddings is too large, expected at most {_FARTHEST} with {self.positions} positions"
            )
        if self.positions == DISENTANGLED and self.position_buckets and self.farthest <= self.position_buckets // 2 + 1:
            raise ConfigError(f"position_buckets is {self.position_buckets}, too many for distances of up to {self.farthest}")
        if self.positions == ROTARY and self.head_size % 2:
            raise ConfigError(f"rotary positions need heads of an even size, not {self.head_size}")
        for name in ("attention_window", "position_buckets"):
            if getattr(self, name) % 2:
                raise ConfigError(f"{name} is {getattr(self, name)}, expected an even number")

    @property
    def position_kind(self) -> PositionKind:
        return position_kinds.KINDS[self.positions]

    @property
    def relative_span(self) -> int:
        """Relative positions on each side that have a vector or a number of their own."""
        return self.position_buckets or self.farthest

    @property
    def farthest(self) -> int:
        """The first distance that is not told from larger ones."""
        return self.max_relative_positions or self.max_position_embeddings

    @property
    def weighted_layers(self) -> int:
        """Layers with weights of their own."""
        return self.layer_groups or self.num_hidden_layers

    def weights_of_layer(self, layer: int) -> int:
        """Which of the `weighted_layers` computes a layer."""
        return layer * self.weighted_layers // self.num_hidden_layers

    def window_of_layer(self, layer: int) -> int:
        """Tokens that a layer sees, half of them on each side; 0 for all."""
        return self.attention_window if layer % self.whole_attention_every else 0

    def kind_of_layer(self, layer: int) -> tuple[int, bool]:
        """What a layer computes otherwise than others: its window, and no LayerNorm before the first if norms come first."""
        return self.window_of_layer(layer), self.norm_first and layer == 0

    @property
    def has_whole_last_layer(self) -> bool:
        """Whether the last layer computes all tokens, whatever is read of them."""
        return self.pooling == MEAN or self.window_of_layer(self.num_hidden_layers - 1) > 0

    def queries_at_a_time(self, longest: int) -> int:
        """Most queries whose attention weights exist at once, for rows of up to `longest` tokens; 0 for all.

        Dropout of weights, scores that are added and `--nocustom_gradients` need all of them.
        """
        return _QUERIES if longest > 2 * _QUERIES and self.positions in (ABSOLUTE, ROTARY) else 0

    @property
    def embedding_width(self) -> int:
        return self.embedding_size or self.hidden_size

    @property
    def projects_embeddings(self) -> bool:
        return self.embedding_width != self.hidden_size

    @property
    def head_size(self) -> int:
        return self.hidden_size // self.num_attention_heads

    @classmethod
    def tiny(cls, vocab_size: int = 32) -> BertConfig:
        """Returns a model that takes a real training step in milliseconds."""
        return cls(
            vocab_size=vocab_size,
            hidden_size=8,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=16,
            max_position_embeddings=64,
        )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], *, source: str | None = None) -> BertConfig:
        """Reads the keys of bert_config.json or Hugging Face's config.json, ignoring others.

        `source` is whose file it is, "published" or "huggingface"; None to tell by its keys. Raises ConfigError if a key is
        missing, or the model is not a BERT encoder with absolute positions.
        """
        kind = values.get("model_type", "bert")
        _check_type(kind)
        row = ENCODERS[kind]
        values = row.read(values)
        _refuse_unlike(kind, values)
        ours = {theirs: name for name, theirs in row.keys.items()}
        fields = {field.name for field in dataclasses.fields(cls)}
        if source == "huggingface":  # a key of BERT's that the type has under another name says nothing, but sizes
            unread = {key for key, theirs in row.keys.items() if theirs != key and (theirs in values or key not in _REQUIRED)}
            values = {key: value for key, value in values.items() if key not in unread}
        arguments = {ours.get(key, key): value for key, value in values.items() if ours.get(key, key) in fields}
        arguments = {**row.fixed, **row.defaults, **arguments}
        if source == "huggingface":
            arguments = {**row.of_class, **arguments, **row.fixed}
            arguments.setdefault("classifier_dropout_prob", row.classifier_dropout)
        if arguments.get("classifier_dropout_prob", 0.1) is None:
            arguments["classifier_dropout_prob"] = arguments.get("hidden_dropout_prob", 0.1)
        is_theirs = source == "huggingface" or PADDING in values
        source = source or ("huggingface" if _HUGGINGFACE_KEYS & values.keys() else "published")
        for field in ("hidden_act", "pooler_act"):
            activation = arguments.get(field, "gelu" if field == "hidden_act" else None)
            if isinstance(activation, str):
                arguments[field] = _ACTIVATIONS[source].get(activation, activation)
        positions = arguments.get("max_position_embeddings")
        if is_theirs and isinstance(positions, int):  # theirs includes the rows of padding, ours does not
            arguments["max_position_embeddings"] = positions - row.first_position
        try:
            return cls(**arguments)
        except ConfigError as error:
            raise ConfigError(_WORD.sub(lambda match: row.keys.get(match[0], match[0]), str(error), count=1)) from error

    @classmethod
    def from_json_file(cls, path: str | os.PathLike[str]) -> BertConfig:
        try:
            values = documents.read_json(path)
        except OSError as error:
            raise ConfigError(f"{path}: cannot read the configuration: {files.reason(error)}") from error
        except DocumentError as error:
            raise ConfigError(f"{error.place(path)}: {error.problem}") from error
        if not isinstance(values, dict):
            raise ConfigError(f"{path}: expected a JSON object")
        is_huggingface = Path(path).name == _HUGGINGFACE_NAME
        try:
            config = cls.from_dict(values, source="huggingface" if is_huggingface else None)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from error
        if is_huggingface and "model_type" not in values:
            act = f"hidden_act {values.get('hidden_act', 'gelu')!r} as {config.hidden_act}"
            _LOG.warning("%s: no model_type: taken as bert, and %s", path, act)
        return config

    def to_json(self) -> str:
        """Returns text that `from_json_file` reads back unchanged."""
        return documents.to_json(self.as_dict(), indent=2, sort_keys=True) + "\n"

    def as_dict(self) -> dict[str, Any]:
        """Returns the fields; those of ADDED are omitted if they are BERT's, as earlier runs have recorded them."""
        values = dataclasses.asdict(self)
        filled = ENCODERS[self.model_type].defaults  # what reading would put in their place
        return {name: value for name, value in values.items() if name not in ADDED or value != ADDED[name] or name in filled}


_FIRST_VERSION = tuple(BertConfig.__dataclass_fields__)[: tuple(BertConfig.__dataclass_fields__).index("model_type")]
# Fields that were added after the first version, and BERT's values.
ADDED: Mapping[str, Any] = {
    field.name: field.default for field in dataclasses.fields(BertConfig) if field.name not in _FIRST_VERSION
}


def _check_type(kind: object) -> None:
    if not isinstance(kind, str) or kind not in ENCODERS:
        raise ConfigError(f"model_type is {kind!r}, only {', '.join(ENCODERS)} can be loaded")


def _refuse_unlike(kind: str, values: Mapping[str, Any]) -> None:
    """Raises ConfigError if a key is missing, or the model differs from what is computed for its type."""
    row = ENCODERS[kind]
    missing = [row.keys.get(name, name) for name in _REQUIRED if not {name, row.keys.get(name)} & values.keys()]
    if missing:
        raise ConfigError(f"missing {', '.join(missing)}; is this a BERT configuration?")
    reads_kind = "positions" not in row.fixed  # others have one kind; mmBERT's file calls it "sans_pos"
    if reads_kind and (values.get("position_embedding_type") or "absolute") != "absolute":
        raise ConfigError("position_embedding_type must be 'absolute'")
    for key, why in _REFUSED.items():
        if values.get(key):
            raise ConfigError(f"{key} is {values[key]!r:.80}: {why}")
    for key, expected in row.expected.items():
        if values.get(key, expected) != expected:
            raise ConfigError(f"{key} is {values[key]!r}, only {expected} can be loaded for model_type {kind}")


def _check_value(name: str, value: object, kind: str) -> None:
    if name == "model_type":
        _check_type(value)
        return
    if name in _CHOICES:
        choices = tuple(_CHOICES[name])
        if value not in choices:
            more = " (or gelu)" if choices == ACTIVATIONS else ""
            raise ConfigError(f"{name} is {value!r:.80}, expected one of {', '.join(choices)}{more}")
        return
    if kind == "bool":
        if not isinstance(value, bool):
            raise ConfigError(f"{name} is {value!r:.80}, expected true or false")
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)) or (kind == "int" and not isinstance(value, int)):
        raise ConfigError(f"{name} is {value!r}, expected a number")
    if name in _MAY_BE_ZERO and value == 0:
        return
    if kind == "int" and value < 1:
        raise ConfigError(f"{name} is {value}, expected at least 1")
    most = MOST_LAYERS if name == "num_hidden_layers" else _LARGEST
    if kind == "int" and value > most:
        raise ConfigError(f"{name} is too large, expected at most {most}")
    if name.endswith("_prob") and not 0 <= value < 1:
        raise ConfigError(f"{name} is {value}, expected a rate in [0, 1)")
    # Python's JSON reader accepts NaN and Infinity, and NaN compares as false.
    if not 0 < value < _LARGEST_NUMBER and not name.endswith("_prob"):
        raise ConfigError(f"{name} is {value}, expected a positive number")

"""Variable names: the published ones, Hugging Face's, and the table between them."""

from __future__ import annotations

import collections
import re
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from bert_tf.config import BertConfig
from bert_tf.encoders import ENCODERS
from bert_tf.head_spec import VARIABLE_SCOPES

_EMBEDDINGS = ("word_embeddings", "token_type_embeddings", "position_embeddings")
_LAYER = (
    *("attention/self/query", "attention/self/key", "attention/self/value"),
    *("attention/output/dense", "attention/output/LayerNorm"),
    *("intermediate/dense", "output/dense", "output/LayerNorm"),
)
_LAYER_NORM_FIRST = (
    *("attention/LayerNorm", "attention/self/query", "attention/self/key", "attention/self/value", "attention/output/dense"),
    *("intermediate/LayerNorm", "intermediate/dense", "output/dense"),
)
_NUMBERED = re.compile(r"layer_(\d+)")
POSITIONS = "bert/embeddings/position_embeddings"
# Name suffixes of both parts of a dense layer and of a LayerNorm: published, and Hugging Face's.
_DENSE, _LAYER_NORM = (("kernel", "weight"), ("bias", "bias")), (("gamma", "weight"), ("beta", "bias"))


class NamePair(NamedTuple):
    published: str
    huggingface: str  # without the prefix `bert.` that some files have
    transposed: bool  # between layouts: PyTorch keeps kernels [out, in]
    share: tuple[int, int] = (0, 1)  # which of how many equal parts of Hugging Face's outputs, if it joins several kernels


def pairs_of(published: str, huggingface: str, *, biases: bool = True) -> list[NamePair]:
    """Returns the names of both variables of a dense layer or a LayerNorm; without `biases` of the first."""
    endings = _LAYER_NORM if published.endswith("LayerNorm") else _DENSE
    return [
        NamePair(f"{published}/{ending}", f"{huggingface}.{other}", ending == "kernel")
        for ending, other in endings[: 2 if biases else 1]
    ]


# Heads of fine-tuning and pre-training: published and Hugging Face's names.
CLASSIFIER = {"output_weights": "classifier.weight", "output_bias": "classifier.bias"}
ANSWERS = {"cls/squad/output_weights": "qa_outputs.weight", "cls/squad/output_bias": "qa_outputs.bias"}
PRETRAINING_HEAD = (
    *pairs_of("cls/predictions/transform/dense", "cls.predictions.transform.dense"),
    *pairs_of("cls/predictions/transform/LayerNorm", "cls.predictions.transform.LayerNorm"),
    NamePair("cls/predictions/output_bias", "cls.predictions.bias", False),
    NamePair("cls/seq_relationship/output_weights", "cls.seq_relationship.weight", False),
    NamePair("cls/seq_relationship/output_bias", "cls.seq_relationship.bias", False),
)
HEADS = (*(NamePair(*names, False) for names in {**CLASSIFIER, **ANSWERS}.items()), *PRETRAINING_HEAD)


def name_pairs(num_hidden_layers: int) -> tuple[NamePair, ...]:
    """Returns the names of every variable of a BERT encoder, pooler included: 7 + 16 for each layer."""
    embeddings = [_table(f"embeddings/{name}", f"embeddings.{name}.weight") for name in _EMBEDDINGS]
    parts = ["embeddings/LayerNorm", "pooler/dense"]
    parts += [f"encoder/layer_{n}/{part}" for n in range(num_hidden_layers) for part in _LAYER]
    return (*embeddings, *(pair for part in parts for pair in _pairs(part)))


def _table(published: str, huggingface: str) -> NamePair:
    return NamePair(f"bert/{published}", huggingface, False)


def _pairs(part: str, *, biases: bool = True) -> list[NamePair]:
    return pairs_of(f"bert/{part}", _NUMBERED.sub(r"layer.\1", part).replace("/", "."), biases=biases)


def encoder_pairs(config: BertConfig) -> tuple[NamePair, ...]:
    """Returns the names of every encoder variable of a model."""
    has = {"token_type_embeddings": bool(config.type_vocab_size), "position_embeddings": config.position_kind.has_table}
    embeddings = [name for name in _EMBEDDINGS if has.get(name, True)]
    tables = [_table(f"embeddings/{name}", f"embeddings.{name}.weight") for name in embeddings]
    tables += [_table(f"embeddings/{name}", f"embeddings.{name}") for name in config.position_kind.tables(config)]
    pairs = [*tables, *(pair for part in _parts(config) for pair in _pairs(part, biases=config.biases))]
    row = ENCODERS[config.model_type]
    renamed = [pair._replace(huggingface=row.weight(pair.huggingface)) for pair in pairs]
    joined = collections.Counter(pair.huggingface for pair in renamed)
    seen: collections.Counter[str] = collections.Counter()
    for number, pair in enumerate(renamed):
        renamed[number] = pair._replace(share=(seen[pair.huggingface], joined[pair.huggingface]))
        seen[pair.huggingface] += 1
    return tuple(renamed)


def _parts(config: BertConfig) -> Iterator[str]:
    """Yields dense layers and LayerNorms."""
    yield from ("embeddings/LayerNorm", "pooler/dense")
    if config.output_transform:
        yield "pooler/LayerNorm"
    yield from (f"embeddings/{name}/LayerNorm" for name in config.position_kind.norms)
    if config.norm_first:
        yield "encoder/LayerNorm"
    for n in range(config.weighted_layers):
        for part in _LAYER_NORM_FIRST if config.norm_first else _LAYER:
            if not (config.norm_first and n == 0 and part == "attention/LayerNorm"):
                yield f"encoder/layer_{n}/{part}"
    if config.projects_embeddings:
        yield "embeddings_project"


def encoder_shapes(config: BertConfig) -> dict[str, tuple[int, ...]]:
    d, i, e = config.hidden_size, config.intermediate_size, config.embedding_width
    by_ending = {
        "word_embeddings": (config.vocab_size, e),
        "token_type_embeddings": (config.type_vocab_size, e),
        "position_embeddings": (config.max_position_embeddings, e),
        **config.position_kind.tables(config),
        "embeddings/LayerNorm/gamma": (e,),
        "embeddings/LayerNorm/beta": (e,),
        "embeddings_project/kernel": (e, d),
        "intermediate/dense/kernel": (d, 2 * i if config.gated else i),
        "intermediate/dense/bias": (i,),
        "attention/output/dense/kernel": (d, d),  # before "output/dense/kernel", which it ends with
        "output/dense/kernel": (i, d),
        "kernel": (d, d),
        "": (d,),
    }
    return {
        pair.published: next(shape for ending, shape in by_ending.items() if pair.published.endswith(ending))
        for pair in encoder_pairs(config)
    }


def pretraining_shapes(config: BertConfig) -> dict[str, tuple[int, ...]]:
    d, transform, pair = config.hidden_size, "cls/predictions/transform", "cls/seq_relationship"
    of_transform = {f"{transform}/dense/kernel": (d, d), f"{transform}/LayerNorm/gamma": (d,)}
    if config.biases:
        of_transform |= {f"{transform}/dense/bias": (d,), f"{transform}/LayerNorm/beta": (d,)}
    return {
        "cls/predictions/output_bias": (config.vocab_size,),
        **({} if config.output_transform else of_transform),  # else it is that of all heads of tokens
        f"{pair}/output_weights": (2, d),
        f"{pair}/output_bias": (2,),
    }


# Entries of published and Hugging Face checkpoints that belong to pre-training or to the file, not to the encoder.
_EXPECTED_EXTRAS = re.compile(
    rf"^(?:{VARIABLE_SCOPES})(?:/|$)|/(?:adam_[mv]|ema)$|^global_step$|^(?:beta[12]_power|_CHECKPOINTABLE_OBJECT_GRAPH|save_counter)"
)


_HEAD = re.compile(rf"^(?:{VARIABLE_SCOPES})(?:/|$)")
_PRETRAINING = re.compile(r"^cls/(?:predictions|seq_relationship)(?:/|$)")


_TRAINING_ONLY = re.compile(r"/(?:adam_[mv]|ema)$|^loss_scale/|^beta[12]_power")


def is_training_only(name: str) -> bool:
    """Whether an entry is needed only to continue training: moments, a moving average."""
    return bool(_TRAINING_ONLY.search(name))


def task_head(names: Iterable[str]) -> list[str]:
    """Returns the names that belong to a task head, not to that of pre-training."""
    heads = (name for name in names if _HEAD.match(name) and not _PRETRAINING.match(name))
    return sorted(name for name in heads if not is_training_only(name))


def is_expected_extra(name: str) -> bool:
    """Whether a checkpoint may hold this entry although the encoder does not use it."""
    return bool(_EXPECTED_EXTRAS.search(name))


_IN_ANY_LAYOUT = re.compile(r"(?:^|[./])layers?[._](\d+)[./]")
# Before all names of a model that was saved in a wrapper: of several GPUs, compiled, of a trainer, of sentence-transformers.
WRAPPERS = r"(?:module\.|_orig_mod\.|model\.|0\.auto_model\.)"
_WRAPPED = re.compile(rf"^{WRAPPERS}+")


def layers_in(names: Iterable[str]) -> int:
    return 1 + max((int(match[1]) for name in names for match in [_IN_ANY_LAYOUT.search(name)] if match), default=-1)


def wrapped_in(names: Collection[str]) -> str:
    """Returns the prefix of a wrapper before all names, empty if there is none or some have another."""
    prefixes = {match[0] if (match := _WRAPPED.match(name)) else "" for name in names}
    return prefixes.pop() if len(prefixes) == 1 else ""


def modern(name: str) -> str:
    """Returns today's name of a tensor: files from the first PyTorch BERT name LayerNorm's parts as Google did."""
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")

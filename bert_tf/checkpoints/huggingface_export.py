"""Writes weights and configuration, head included, in Hugging Face's layout; without tokenizer and model card."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.numpy

from bert_tf.checkpoints.huggingface import CONFIG_NAME
from bert_tf.checkpoints.names import ANSWERS, CLASSIFIER, HEADS, POSITIONS, PRETRAINING_HEAD, NamePair, encoder_pairs
from bert_tf.checkpoints.weight_files import WEIGHTS_NAME
from bert_tf.config import ADDED, BertConfig
from bert_tf.encoders import ENCODERS
from bert_tf.errors import FlagError, unknown_name
from bert_tf.head_spec import (
    CHOICE,
    CLASSIFICATION,
    CONTRASTIVE,
    MULTI_LABEL,
    PRETRAINING,
    REGRESSION,
    SIMILARITY,
    SPAN,
    TAGS,
    VECTORS,
)
from bert_tf.io import atomic, documents
from bert_tf.tokenization import library, roles
from bert_tf.tokenization.vocabulary import Vocabulary

# transformers' names of activations; its "gelu" is the exact form.
_ACTIVATIONS = {"gelu_erf": "gelu", "gelu_tanh": "gelu_pytorch_tanh"}
_SIZES = ("position_buckets", "max_relative_positions")  # fields that have Hugging Face's names


@dataclasses.dataclass(frozen=True)
class Architecture:
    """A class of transformers."""

    name: str  # of the class
    prefix: str = "bert."  # of the encoder's weights
    # published name to the class's; [labels, hidden] and [labels]
    weights: Mapping[str, str] = dataclasses.field(default_factory=dict)
    has_pooler: bool = True
    problem_type: str | None = None  # of the labels, in config.json
    pipeline: str = "text-classification"  # task name on the hub
    makes_vectors: bool = False  # whether a sentence-transformers layout is added
    pooler: str | None = None  # name without prefix; None: BERT's, with prefix

    def encoder_names(self, config: BertConfig) -> Iterator[NamePair]:
        """Yields the encoder's names in a file of the class; a pooler other than BERT's only if the class has it."""
        for pair in encoder_pairs(config):
            if self.pooler is None or not pair.published.startswith("bert/pooler/"):
                yield pair._replace(huggingface=self.prefix + pair.huggingface)
            elif self.has_pooler:
                prefix = self.pooler if pair.published.startswith("bert/pooler/dense") else pair.huggingface.rpartition(".")[0]
                yield pair._replace(huggingface=f"{prefix}.{pair.huggingface.rpartition('.')[2]}")


_SEQUENCE = Architecture("BertForSequenceClassification", weights=CLASSIFIER)
_VECTORS = Architecture("BertModel", prefix="", pipeline="sentence-similarity", makes_vectors=True)

CLASSES: dict[str, Architecture] = {
    CLASSIFICATION: dataclasses.replace(_SEQUENCE, problem_type="single_label_classification"),
    REGRESSION: dataclasses.replace(_SEQUENCE, problem_type="regression"),
    MULTI_LABEL: dataclasses.replace(_SEQUENCE, problem_type="multi_label_classification"),
    CHOICE: Architecture("BertForMultipleChoice", weights=CLASSIFIER, pipeline="multiple-choice"),
    TAGS: Architecture("BertForTokenClassification", weights=CLASSIFIER, has_pooler=False, pipeline="token-classification"),
    SPAN: Architecture("BertForQuestionAnswering", weights=ANSWERS, has_pooler=False, pipeline="question-answering"),
    PRETRAINING: Architecture("BertForPreTraining", pipeline="fill-mask"),
    **dict.fromkeys((SIMILARITY, CONTRASTIVE, VECTORS), _VECTORS),
}


def of_encoder(architecture: Architecture, config: BertConfig) -> Architecture:
    """Returns the class for another encoder than BERT, see `encoders.ENCODERS`."""
    row = ENCODERS[config.model_type]
    if config.model_type == "bert":
        return architecture
    is_choice, is_sequence = (architecture.name.endswith(end) for end in ("MultipleChoice", "SequenceClassification"))
    is_masked = architecture == MASKED_WORDS and row.masked_words is not None
    if "PreTraining" in architecture.name or (architecture == MASKED_WORDS and not is_masked):
        raise FlagError(f"a pre-training head of {config.model_type} cannot be exported")
    weights = {name: theirs.replace("qa_outputs", row.answers) for name, theirs in architecture.weights.items()}
    if is_sequence:
        weights = {name: theirs.replace("classifier", row.classifier) for name, theirs in weights.items()}
    has_head = is_choice or is_sequence or (config.output_transform and (bool(weights) or is_masked))
    name, prefix = architecture.name.replace("Bert", row.classes, 1), row.prefix if architecture.prefix else ""
    of_row = dataclasses.replace(architecture, name=name, prefix=prefix, weights=weights)
    if row.base_pooler:
        return of_row
    pooler = row.choice_pooler if is_choice and row.choice_pooler else row.pooler
    return dataclasses.replace(of_row, has_pooler=has_head, pooler=pooler)


MASKED_WORDS = Architecture("BertForMaskedLM", has_pooler=False, pipeline="fill-mask")
BARE = Architecture("BertModel", prefix="")


def class_of(kind: str, *, next_sentence: bool = True) -> Architecture:
    if kind not in CLASSES:
        raise FlagError(f"{unknown_name('kind of head of transformers', kind, CLASSES)}; take --format=saved_model")
    return CLASSES[kind] if next_sentence else MASKED_WORDS


def write(
    folder: Path,
    weights: Mapping[str, npt.NDArray[Any]],
    config: BertConfig,
    *,
    architecture: Architecture | None = None,
    labels: Sequence[str] = (),
    facts: Mapping[str, Any] | None = None,
) -> dict[str, str]:
    """Writes model.safetensors and config.json, byte-identical on every call; returns the new name of each variable.

    Without an architecture it is guessed from the variable names; `facts` are further entries of config.json.
    """
    known = architecture or of_encoder(guessed(weights), config)
    encoder = ENCODERS[config.model_type]
    masked_words = (pair._replace(huggingface=encoder.of_masked_words(pair.huggingface)) for pair in PRETRAINING_HEAD)
    pairs = {pair.published: pair for pair in (*HEADS, *masked_words, *known.encoder_names(config))}
    huggingface_names = {**{name: pair.huggingface for name, pair in pairs.items()}, **known.weights}
    names = {name: huggingface_names[name] for name in sorted(weights) if name in huggingface_names}
    transposed = {name for name in names if name.endswith("/kernel")}
    parts: dict[str, dict[int, npt.NDArray[Any]]] = {}  # several kernels may be one tensor
    for name, new in names.items():
        share = pairs[name].share[0] if name in pairs else 0
        parts.setdefault(new, {})[share] = weights[name].T if name in transposed else weights[name]
    tensors = {
        new: np.ascontiguousarray(np.concatenate([some[number] for number in sorted(some)]), np.float32)
        for new, some in parts.items()
    }
    if POSITIONS in names:
        tensors[names[POSITIONS]] = np.pad(tensors[names[POSITIONS]], [(encoder.first_position, 0), (0, 0)])
    path = folder / WEIGHTS_NAME
    with atomic.as_os_errors(path, safetensors.SafetensorError):
        path.touch()
        mode = path.stat().st_mode  # of the user's umask; the library makes the file anew, for the user alone
        safetensors.numpy.save_file(tensors, path, metadata={"format": "pt"})
        path.chmod(mode)
    values = {**_config(config, known), **_labelled(known, tensors, labels), **(facts or {})}
    values |= encoder.written(values)
    text = documents.to_json(values, indent=2, sort_keys=True) + "\n"
    (folder / CONFIG_NAME).write_text(text, encoding="utf-8")
    return names


def tokenizer_settings(vocabulary: Vocabulary, config: BertConfig, length: int, *, text: str) -> dict[str, Any]:
    """Returns the tokenizer_config.json with which transformers reads the tokenizer.json beside it, the `text`, as it is."""
    has_segments = config.type_vocab_size > 1 and vocabulary.second_segment
    blank = library.adds_blank(text)
    return {
        **{name: token for name, token in zip(roles.SPECIAL, vocabulary.special) if token},
        "tokenizer_class": "PreTrainedTokenizerFast",  # reads tokenizer.json; BertTokenizer has its own rules
        "model_input_names": ["input_ids", *(["token_type_ids"] if has_segments else []), "attention_mask"],  # default: none
        "model_max_length": length,
        **({} if blank is None else {"add_prefix_space": blank}),  # by default false in transformers 4, whatever the file says
    }


def guessed(names: Collection[str], kind: str | None = None) -> Architecture:
    """Returns the class of transformers for published variable names; `kind` decides between equal ones."""
    candidates = (CLASSES[key] for key in (kind, SPAN, CLASSIFICATION) if key in CLASSES)
    headed = next((row for row in candidates if row.weights and row.weights.keys() <= set(names)), None)
    if headed is not None:
        return headed
    pair, words = (any(name.startswith(f"cls/{part}/") for name in names) for part in ("seq_relationship", "predictions"))
    if pair or words:
        return class_of(PRETRAINING, next_sentence=pair)
    return BARE


def _labelled(architecture: Architecture, tensors: Mapping[str, npt.NDArray[Any]], labels: Sequence[str]) -> dict[str, Any]:
    size = max((len(tensors[name]) for name in architecture.weights.values()), default=0)
    if not size:
        return {}
    shown = list(labels) if len(labels) == size else [f"LABEL_{number}" for number in range(size)]
    return {
        "id2label": {str(number): label for number, label in enumerate(shown)},
        "label2id": {label: number for number, label in enumerate(shown)},
    }


def _config(config: BertConfig, architecture: Architecture) -> dict[str, Any]:
    row, values = ENCODERS[config.model_type], dataclasses.asdict(config)
    values["hidden_act"] = _ACTIVATIONS.get(config.hidden_act, config.hidden_act)
    values["embedding_size"] = config.embedding_width
    values["max_position_embeddings"] += row.first_position
    values["pooler_act"] = _ACTIVATIONS.get(config.pooler_act, config.pooler_act)
    added = {name for name in ADDED if name == "model_type" or name in row.keys or (name in _SIZES and values[name])}
    if config.projects_embeddings:
        added.add("embedding_size")
    names = (name for name in values if name not in row.fixed and (name in added or name not in ADDED))
    written = {row.keys.get(name, name): values[name] for name in names}
    return {
        **written,
        **row.expected,
        "architectures": [architecture.name],
        **({"problem_type": architecture.problem_type} if architecture.problem_type else {}),
    }

"""Converts Hugging Face folders (config.json, model.safetensors, vocab.txt or tokenizer.json) to TensorFlow checkpoints."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bert_tf import run_layout
from bert_tf.checkpoints import hub, weight_files
from bert_tf.checkpoints.converted_files import NEW_VARIABLES, ORIGIN, unchanged, write_sums
from bert_tf.checkpoints.names import (
    ANSWERS,
    CLASSIFIER,
    POSITIONS,
    PRETRAINING_HEAD,
    NamePair,
    encoder_pairs,
    encoder_shapes,
    layers_in,
    modern,
    pretraining_shapes,
    task_head,
    wrapped_in,
)
from bert_tf.checkpoints.prefixes import CHECKPOINT_NAME, HubName
from bert_tf.checkpoints.reader import problem_of_values, refuse_problem, write_checkpoint
from bert_tf.checkpoints.weight_files import WEIGHTS_NAME, Entry
from bert_tf.config import BertConfig
from bert_tf.encoders import ENCODERS
from bert_tf.errors import CheckpointError
from bert_tf.head_spec import CHOICE, CLASSIFICATION, MULTI_LABEL, REGRESSION, SPAN, TAGS
from bert_tf.io import atomic, documents, files, progress
from bert_tf.io.log_form import log
from bert_tf.tokenization import roles, text_rules
from bert_tf.tokenization.text_rules import FILES as TOKENIZER_FILES
from bert_tf.tokenization.tokenizer import SENTENCEPIECE, file_in, read_tokenizer

CONFIG_NAME = "config.json"
VOCABULARY_NAME = "vocab.txt"
PUBLISHED_CONFIG_NAME = "bert_config.json"

_MODULES = frozenset({"Transformer", "Pooling", "Normalize", "Dropout"})  # of sentence-transformers, that are computed here
_MODE = "pooling_mode_"  # begins the names of switches, as pooling_mode_cls_token
_MEAN = f"{_MODE}mean_tokens"
_FORMAT = b"6"  # of conversions: those of another one are made again
_POOLER = "bert/pooler/"
_OF_CHOICE = "ForMultipleChoice"
_KINDS = {  # by suffix of transformers' classes
    "ForSequenceClassification": CLASSIFICATION,
    "ForTokenClassification": TAGS,
    _OF_CHOICE: CHOICE,
    "ForQuestionAnswering": SPAN,
}
_WITH_POOLER = ("ForSequenceClassification", _OF_CHOICE)  # classes whose heads read it
_PROBLEMS = {"regression": REGRESSION, "multi_label_classification": MULTI_LABEL}
_UNNAMED = re.compile(r"LABEL_\d+")
_WORDS, _WORDS_OF_HEAD = "bert/embeddings/word_embeddings", "cls.predictions.decoder.weight"
_BIAS_OF_HEAD = "cls/predictions/output_bias"
_BUFFERS = ("position_ids", "token_type_ids")  # constants that some files have
_FLOATS = ("float16", "bfloat16", "float32", "float64", "f8_e4m3", "f8_e5m2")  # NumPy lacks the last two, and says so


def is_huggingface_folder(path: str | os.PathLike[str]) -> bool:
    return weight_files.in_folder(path) is not None


def read_weights(path: str | os.PathLike[str], config: BertConfig, *, architecture: str = "") -> dict[str, npt.NDArray[Any]]:
    """Reads the encoder, with or without its prefix, and the head of a task or of pre-training, from a file (`weight_files`).

    `architecture` is the class of transformers, if it is known: some encoders give several heads one name.

    Returns float32 arrays by published name, kernels [in, out]. A missing pooler (masked-LM models have none) is
    initialized; CheckpointError names all missing and misshaped encoder variables.
    """
    stored = weight_files.WeightFiles(path)
    names = _names(stored.entries, path)
    pairs = _encoder(config, names)
    has_pooler = any(name in names and pair.published.startswith(_POOLER) for name, pair in pairs)
    pairs = [(name, pair) for name, pair in pairs if has_pooler or not pair.published.startswith(_POOLER)]
    problems = [*_unread(names, pairs, config)] if any(name in names for name, _ in pairs) else []
    pairs += _heads(config, names, architecture)
    problems += _problems(stored.entries, names, pairs, config)
    refuse(path, problems)
    weights = {} if has_pooler else _new_pooler(config)
    if not has_pooler:
        log.warning("%s: has no pooler: it is newly initialized", path)
        pairs = _without_pooled_head(pairs, path, config, architecture)
    for name, pair in progress.bar(pairs, desc="converting", unit="variables"):
        weights[pair.published] = as_published(stored.read(names[name]), pair, config)
    if config.output_transform and "MaskedLM" in architecture:
        weights.setdefault(_BIAS_OF_HEAD, np.zeros(config.vocab_size, np.float32))  # "decoder_bias": false
    copied = ENCODERS[config.model_type].of_masked_words(_WORDS_OF_HEAD)
    words_of_head = stored.read(names[copied]) if copied in names else None
    if words_of_head is not None and not np.array_equal(words_of_head, weights[_WORDS]):
        log.warning("%s: has other word vectors in its head, which is dropped: the head must share the inputs' vectors", path)
        weights = {name: array for name, array in weights.items() if not name.startswith("cls/predictions/")}
    refuse_problem(problem_of_values(path, [name for name, value in weights.items() if not np.isfinite(value).all()]))
    return weights


def _without_pooled_head(
    pairs: Sequence[tuple[str, NamePair]], path: object, config: BertConfig, architecture: str
) -> list[tuple[str, NamePair]]:
    """Leaves out a task head whose pooler is missing from the file; the encoder is usable without it."""
    head = set(task_head(pair.published for _, pair in pairs))
    if not head or not any(name in architecture for name in _WITH_POOLER):
        return list(pairs)
    row = ENCODERS[config.model_type]
    pooler = row.choice_pooler if row.choice_pooler and _OF_CHOICE in architecture else row.pooler
    log.warning("%s: its head reads %s, which is missing: the head is left out", path, pooler)
    return [(name, pair) for name, pair in pairs if pair.published not in head]


def refuse(path: object, problems: Sequence[str]) -> None:
    if problems:
        more = f" and {len(problems) - 3} more" if len(problems) > 3 else ""
        raise CheckpointError(f"{path}: not the encoder that its configuration describes: {'; '.join(problems[:3])}{more}")


def _names(stored: Iterable[str], path: object) -> dict[str, str]:
    """Returns the stored names by today's, without the prefix that PyTorch's wrappers put before all of them."""
    listed = list(stored)
    names = {modern(name): name for name in listed}
    if len(names) < len(listed):
        twice = next(name for name in listed if names[modern(name)] != name)
        raise CheckpointError(f"{path}: {twice} and {names[modern(twice)]} are one variable; which one is meant?")
    wrapper = wrapped_in(names)
    if not wrapper:
        return names
    log.info("%s: the names of the weights begin with %s, which is left out", path, wrapper)
    return {name.removeprefix(wrapper): stored_name for name, stored_name in names.items() if name.startswith(wrapper)}


def _problems(
    entries: Mapping[str, Entry], names: Mapping[str, str], pairs: Iterable[tuple[str, NamePair]], config: BertConfig
) -> Iterator[str]:
    """Yields why tensors cannot be used, from shapes and dtypes: nothing is read or made yet."""
    shapes, padding = {**encoder_shapes(config), **pretraining_shapes(config)}, ENCODERS[config.model_type].first_position
    for name, pair in pairs:
        if name not in names:
            similar = [other for other in names if pair.published == _WORDS and other.endswith(pair.huggingface)]
            yield f"{name} is missing" + (f" (there is {similar[0]})" if similar else "")
            continue
        shape, kind = entries[names[name]]
        if pair.published == POSITIONS and shape:
            shape = (shape[0] - padding, *shape[1:])
        shape = (shape[0] // pair.share[1], *shape[1:]) if shape and shape[0] % pair.share[1] == 0 else shape
        shape = shape[::-1] if pair.transposed else shape
        if kind not in _FLOATS:
            yield f"{name} is of type {kind}, not floats"
        elif shape != shapes.get(pair.published, shape):
            yield f"{name} gives {shape}, not {shapes[pair.published]}"


def as_published(array: npt.NDArray[Any], pair: NamePair, config: BertConfig) -> npt.NDArray[np.float32]:
    """A tensor of transformers as the variable of a pair."""
    array = array.astype(np.float32)
    if pair.published == POSITIONS:
        array = array[ENCODERS[config.model_type].first_position :]
    array = np.split(array, pair.share[1])[pair.share[0]]
    return np.ascontiguousarray(array.T) if pair.transposed else array


def _unread(names: Iterable[str], pairs: Sequence[tuple[str, NamePair]], config: BertConfig) -> Iterator[str]:
    """Yields what the file has of an encoder beyond the configuration."""
    row, known = ENCODERS[config.model_type], {name for name, _ in pairs}
    parts = {_part(name, row.prefix) for name in known} - {_part(row.pooler, row.prefix)}
    known |= {f"{prefix}{name}" for name in row.unused for prefix in ("", row.prefix)}
    beyond = (name for name in names if name not in known and _part(name, row.prefix) in parts)
    others = [name for name in beyond if name.rpartition(".")[2] not in _BUFFERS]
    layers = layers_in(others)
    if layers > config.num_hidden_layers:
        yield f"it has {layers} layers, the configuration says {config.num_hidden_layers}"
    elif others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        yield f"{others[0]}{more} would not be used"


def _part(name: str, prefix: str) -> str:
    return name.removeprefix(prefix).partition(".")[0]


def pairs_in(config: BertConfig, names: Collection[str], architecture: str = "") -> list[tuple[str, NamePair]]:
    """Names of a file's weights in the layout of transformers, with their pairs; of those that it has not, too."""
    return [*_encoder(config, names), *_heads(config, names, architecture)]


def _encoder(config: BertConfig, names: Collection[str]) -> list[tuple[str, NamePair]]:
    """Names of the encoder's weights in a file with or without a head; a pooler of another name than BERT's has no prefix."""
    row = ENCODERS[config.model_type]
    prefix = row.prefix if any(name.startswith(row.prefix) for name in names) else ""
    pooler = next((name for name in (row.pooler, row.choice_pooler) if name and f"{name}.weight" in names), row.pooler)
    return [
        (pair.huggingface.replace(row.pooler, pooler), pair)
        if not row.base_pooler and pair.published.startswith(_POOLER)
        else (prefix + pair.huggingface, pair)
        for pair in encoder_pairs(config)
    ]


def _heads(config: BertConfig, names: Collection[str], architecture: str) -> Iterator[tuple[str, NamePair]]:
    """Names of the heads that a file has, a task's only with both of its variables."""
    row, known = ENCODERS[config.model_type], pretraining_shapes(config)
    for pair in PRETRAINING_HEAD:
        name = next((name for name in (row.of_masked_words(pair.huggingface), pair.huggingface) if name in names), None)
        if name is not None and pair.published in known:
            yield name, pair
    of_sentences = {name: theirs.replace("classifier", row.classifier) for name, theirs in CLASSIFIER.items()}
    answers = {name: theirs.replace("qa_outputs", row.answers) for name, theirs in ANSWERS.items()}
    for head in (answers,) if "QuestionAnswering" in architecture else (of_sentences, CLASSIFIER, answers):
        if set(head.values()) <= set(names):
            yield from ((theirs, NamePair(ours, theirs, False)) for ours, theirs in head.items())
            return


def convert(
    folder: str | os.PathLike[str], target: str | os.PathLike[str], *, origin: Callable[[], Mapping[str, Any]] | None = None
) -> None:
    """Writes bert_model.ckpt, bert_config.json, the vocabulary and the text settings into a new folder, atomically.

    `origin` says where the folder comes from, for the records of runs.
    """
    source = Path(folder)
    config = BertConfig.from_json_file(source / CONFIG_NAME)
    usual = ENCODERS[config.model_type].vocabulary
    tokenizer = file_in(source, usual)
    if tokenizer is None:
        advice = "; AutoTokenizer of transformers writes it (save_pretrained)" if usual in TOKENIZER_FILES else ""
        raise CheckpointError(f"{source}: no {usual} beside the weights{advice}")
    values = documents.read_json(source / CONFIG_NAME)
    architecture = str(values.get("architectures"))
    # It raises what is wrong with it, before the weights are read.
    vocabulary = read_tokenizer(tokenizer, words_as_they_are="TokenClassification" in architecture)
    file = weight_files.in_folder(source) or source / WEIGHTS_NAME
    weights = read_weights(file, config, architecture=architecture)
    if task_head(weights) and text_rules.truncation_side(source) != "right":
        raise CheckpointError(
            f"{source / text_rules.CONFIG}: truncation_side (else direction in {text_rules.PIPELINE}) is not 'right': its model"
            " reads the end of long texts; cut them yourself, and set it to 'right'"
        )
    with atomic.replacing(target) as temporary:
        temporary.mkdir()
        write_checkpoint(temporary / CHECKPOINT_NAME, weights)
        if new := _new_in(weights, config):
            (temporary / NEW_VARIABLES).write_text("".join(f"{name}\n" for name in new), encoding="utf-8")
        (temporary / PUBLISHED_CONFIG_NAME).write_text(config.to_json(), encoding="utf-8")
        if _gives_numbers(values, weights):
            log.warning("%s: its head gives several numbers for a text, as no task does: only its encoder can be used", source)
        if record := record_in(source, values, weights, config):
            (temporary / run_layout.RECORD).write_text(record_of(record), encoding="utf-8")
        for name in {tokenizer.name, *TOKENIZER_FILES} - set(SENTENCEPIECE):
            if (source / name).is_file():
                (temporary / name).write_bytes((source / name).read_bytes())
        for name, text in vocabulary.files().items() if vocabulary.own_rules else ():
            (temporary / name).write_text(text, encoding="utf-8")
        if origin is not None:
            (temporary / ORIGIN).write_text(documents.to_json(origin(), indent=2) + "\n", encoding="utf-8")
        write_sums(temporary)


def length_of(source: Path, config: BertConfig) -> int:
    """Word pieces to which sentence-transformers or the tokenizer cuts texts; if neither says so, all that the model knows."""
    of_vectors = _parsed(source / hub.LENGTHS) if (source / hub.MODULES).is_file() else None
    lengths = (
        of_vectors.get("max_seq_length") if isinstance(of_vectors, dict) else None,
        text_rules.content(source / text_rules.CONFIG).get("model_max_length"),
    )
    known = (length for length in lengths if isinstance(length, int) and 2 < length <= config.max_position_embeddings)
    return next(known, config.max_position_embeddings)  # 10^30 stands for unknown


def record_of(values: Mapping[str, Any]) -> str:
    """The record of a model from elsewhere, as of a run."""
    return documents.to_json({run_layout.DETERMINING: values}, indent=2) + "\n"


def pooling_of(source: Path) -> str:
    """Pooling of a sentence-transformers folder: one of `head_spec.POOLINGS`, or the name of an unsupported one.

    Empty if the folder has no modules. Unreadable files are no error here: only vectors need the pooling.
    """
    if not (source / hub.MODULES).is_file():
        return ""
    modules = _modules(source)
    if not modules:
        return f"unknown (unreadable {hub.MODULES})"
    kinds = [_kind(module) for module in modules]
    others = [kind for kind in kinds if kind not in _MODULES]
    if others or "Pooling" not in kinds:
        return " and ".join(others)
    path = f"{modules[kinds.index('Pooling')].get('path')}/{CONFIG_NAME}"
    values = _parsed(source / path)
    if not isinstance(values, dict):
        return f"unknown (unreadable {path})"
    switches = {**values, _MEAN: values.get(_MEAN, True)}  # the only one that is on by default there
    flags = [name for name, value in switches.items() if name.startswith(_MODE) and value]
    modes = [name[len(_MODE) :].removesuffix("_tokens").removesuffix("_token") for name in flags]
    return str(values.get("pooling_mode") or " and ".join(modes) or f"unknown (none in {path})")


def _modules(source: Path) -> list[dict[str, Any]]:
    listed = _parsed(source / hub.MODULES)
    return [module for module in listed if isinstance(module, dict)] if isinstance(listed, list) else []


def _kind(module: Mapping[str, Any]) -> str:
    return str(module.get("type")).rpartition(".")[2]


def _left_out(source: Path) -> str:
    """What sentence-transformers does to texts and vectors of a folder besides the pooling; empty if it does nothing else."""
    settings, lengths = (_parsed(source / name) for name in (hub.PROMPTS, hub.LENGTHS))
    done = []
    prompts = settings.get("prompts") if isinstance(settings, dict) else None
    if isinstance(prompts, dict) and (prompt := prompts.get(str(settings.get("default_prompt_name")))):
        done.append(f"puts {prompt!r:.80} before each text")
    if isinstance(lengths, dict) and lengths.get("do_lower_case") is True:
        done.append("lower-cases texts (do_lower_case)")
    return ", ".join(done)


def _parsed(path: Path) -> Any:
    """None if there is no such file, or a damaged one."""
    with contextlib.suppress(OSError, ValueError):
        return documents.read_json(path)
    return None


def record_in(
    source: Path, values: Mapping[str, Any], weights: Mapping[str, npt.NDArray[Any]], config: BertConfig
) -> dict[str, Any]:
    """What a folder says of its trained head and of its vectors, as in the record of a run; `values` are of its config.json."""
    record = {} if _gives_numbers(values, weights) else _record(source, values, weights)
    is_trained = bool(task_head(weights)) or (source / hub.MODULES).is_file()
    length = {"max_seq_length": length_of(source, config)} if is_trained else {}
    of_vectors = {
        run_layout.POOLING: pooling_of(source),
        run_layout.NORMALIZE: any(_kind(module) == "Normalize" for module in _modules(source)),
        run_layout.LEFT_OUT: _left_out(source),
    }
    return {**record, **length, **{name: value for name, value in of_vectors.items() if value}}


def _gives_numbers(values: Mapping[str, Any], weights: Mapping[str, npt.NDArray[Any]]) -> bool:
    """Whether the head gives several numbers for a text, which no task has."""
    return kind_of(values, weights) == REGRESSION and len(weights.get("output_weights", ())) > 1


def kind_of(values: Mapping[str, Any], weights: Mapping[str, npt.NDArray[Any]]) -> str:
    """Kind of a trained head by config.json's class of transformers; empty if it is unknown."""
    architecture, problem = str(values.get("architectures")), str(values.get("problem_type"))
    kind = next((kind for end, kind in _KINDS.items() if end in architecture), "")
    kind = _PROBLEMS.get(problem, kind) if kind == CLASSIFICATION else kind
    return REGRESSION if kind == CLASSIFICATION and len(weights.get("output_weights", ())) == 1 else kind


def _record(source: Path, values: Mapping[str, Any], weights: Mapping[str, npt.NDArray[Any]]) -> dict[str, Any]:
    """What a trained head means, as in the record of a run; empty for heads of unnamed labels, which are in a task's order."""
    kind, size, labels = kind_of(values, weights), len(weights.get("output_weights", ())), values.get("id2label")
    if not size or kind in ("", CHOICE, SPAN):
        return {}
    if kind == REGRESSION:
        return {"task_name": "custom", "kind": kind, "labels": []}
    named = {number: str(name) for number, name in labels.items() if name is not None} if isinstance(labels, dict) else {}
    if all(map(_UNNAMED.fullmatch, named.values())):
        return {}
    if named.keys() != set(map(str, range(size))):
        raise CheckpointError(f"{source / CONFIG_NAME}: id2label must name the labels 0 to {size - 1} of its head")
    names = [named[str(number)] for number in range(size)]
    return {"task_name": "custom", "kind": kind, "labels": names} if len(set(names)) == size else {}


def fetched(hub_name: HubName, checkpoints_dir: str | os.PathLike[str]) -> Path:
    """Returns the cached TensorFlow checkpoint of a model of the hub, with a file that names its revision."""
    snapshot = hub.fetch(hub_name)
    return converted(snapshot.folder, checkpoints_dir, of_hub=snapshot)


def converted(
    folder: str | os.PathLike[str], checkpoints_dir: str | os.PathLike[str], *, of_hub: hub.Fetched | None = None
) -> Path:
    """Returns the cached TensorFlow checkpoint of a Hugging Face folder, see `unchanged`."""
    source = Path(folder).resolve()
    digest = hashlib.sha256(_FORMAT + (f"{of_hub.name}@{of_hub.revision}".encode() if of_hub else b""))
    name = of_hub.name.rpartition("/")[2] if of_hub else source.name
    weights = weight_files.in_folder(source)
    beside = (CONFIG_NAME, VOCABULARY_NAME, *TOKENIZER_FILES, roles.SPECIAL_MAP, *SENTENCEPIECE)
    of_vectors = (*(source / name for name in (hub.MODULES, hub.PROMPTS, hub.LENGTHS)), *sorted(source.glob(hub.POOLING)))
    _add(digest, (*(source / name for name in beside), *of_vectors, *(weight_files.all_of(weights) if weights else ())))
    target = Path(checkpoints_dir) / f"{name}-{digest.hexdigest()[:12]}"
    return unchanged(target, lambda path: convert(source, path, origin=of_hub and of_hub.origin))


def _add(digest: Any, paths: Iterable[Path]) -> None:
    for path in paths:
        if path.is_file():
            with files.open_plain(path) as stream:
                for block in iter(lambda stream=stream: stream.read(1 << 20), b""):  # type: ignore[misc]
                    digest.update(block)


def _new_in(weights: Mapping[str, npt.NDArray[Any]], config: BertConfig) -> list[str]:
    """Names of the pooler's variables if `read_weights` has made them: other versions of NumPy may draw others."""
    pooler = _new_pooler(config)
    return list(pooler) if all(np.array_equal(weights[name], value) for name, value in pooler.items()) else []


def _new_pooler(config: BertConfig) -> dict[str, npt.NDArray[Any]]:
    """Returns a pooler by published names, the same on every call."""
    d = config.hidden_size
    kernel = np.random.default_rng(0).standard_normal((d, d)).clip(-2, 2) * config.initializer_range
    values = {"kernel": kernel.astype(np.float32), "gamma": np.ones(d, np.float32)}
    names = (name for name in encoder_shapes(config) if name.startswith(_POOLER))
    return {name: values.get(name.rpartition("/")[2], np.zeros(d, np.float32)) for name in names}

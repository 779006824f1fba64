"""Low-rank updates and a head in PEFT's format: adapter_config.json and adapter_model.safetensors.

Names are those of the model's class in transformers, after a prefix. PEFT keeps matrices transposed, [rank, D] and [E, rank].
A matrix that joins several of ours, as ModernBERT's of queries, keys and values, has one update: the ranks of ours side by
side, each in its own rows of the second matrix.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors
import safetensors.numpy

from bert_tf.checkpoints import converted_files, huggingface, huggingface_export, weight_files
from bert_tf.checkpoints.huggingface_export import CLASSES, Architecture
from bert_tf.checkpoints.names import NamePair
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.config import BertConfig
from bert_tf.encoders import ENCODERS
from bert_tf.errors import CheckpointError
from bert_tf.extensions.lora.adapter import Adapter
from bert_tf.extensions.lora.composed import scopes
from bert_tf.extensions.lora.names import DOWN, PEFT_CONFIG, PEFT_TORCH, PEFT_WEIGHTS, UP
from bert_tf.head_spec import CLASSIFICATION, MULTI_LABEL, REGRESSION, SPAN, TAGS
from bert_tf.io import atomic, documents, files
from bert_tf.io.log_form import log
from bert_tf.tasks.base import Family

Array = npt.NDArray[Any]

_PREFIX = "base_model.model."
_DOWN, _UP = ".lora_A.weight", ".lora_B.weight"
_KEPT = re.compile(r"\.modules_to_save(?:\.\w+)?(?=\.)")  # in names that earlier versions wrote
OF_TOKENS = "TOKEN_CLS"
_TASKS = {
    **dict.fromkeys((CLASSIFICATION, REGRESSION, MULTI_LABEL), "SEQ_CLS"),
    TAGS: OF_TOKENS,
    SPAN: "QUESTION_ANS",
}  # PEFT's types, by kind of head
_ARCHITECTURES = {"QUESTION_ANS": "QuestionAnswering"}
# Keys of other kinds of updates, and the value with which they change nothing.
_PLAIN: Mapping[str, Any] = {
    **dict.fromkeys(("use_dora", "fan_in_fan_out", "lora_bias", "use_qalora", "use_bdlora"), False),
    **dict.fromkeys(("layer_replication", "target_parameters", "trainable_token_indices", "alora_invocation_tokens")),
    "bias": "none",
    **dict.fromkeys(("kasa_config", "arrow_config", "monteclora_config")),
}
# Initialisations that leave the parent's weights as they are; others, such as PiSSA, subtract the initial product from them.
_INITIALISATIONS = (None, True, False, "gaussian", "eva", "orthogonal", "mica")


# Writing.


def write(folder: Path, updates: CheckpointReader, adapter: Adapter, config: BertConfig, family: Family) -> None:
    """Writes the updates and the head of a checkpoint; only warns if PEFT could not compute this model from them."""
    kind = family.head.kind
    why = _obstacle(updates, adapter, config, kind)
    if why is not None:
        remove(folder)  # those of a version that wrote them
        log.warning("no %s: %s", PEFT_WEIGHTS, why)
        return
    architecture = huggingface_export.of_encoder(CLASSES[kind], config)
    pairs = list(architecture.encoder_names(config))
    updated = dict(_joined_updates(updates, pairs, adapter))
    whole = dict(_whole(updates, pairs, architecture))
    ranks = {module: len(update.down) for module, update in updated.items()}
    rank = min(ranks.values())
    common = next(update.scaling for update in updated.values()) * rank
    alphas = {module: update.scaling * ranks[module] for module, update in updated.items()}
    content = {
        "peft_type": "LORA",
        "task_type": _TASKS.get(kind),
        **_base(adapter),
        "r": rank,
        "lora_alpha": _number(common),
        "rank_pattern": {module: module_rank for module, module_rank in ranks.items() if module_rank != rank},
        "alpha_pattern": {module: _number(module_alpha) for module, module_alpha in alphas.items() if module_alpha != common},
        "target_modules": _shortened(updated, pairs),
        "modules_to_save": sorted({_module_of_head(name, architecture) for name in whole}),
        "lora_dropout": 0.0,
        "init_lora_weights": True,
        "inference_mode": True,
        "fan_in_fan_out": False,
        "bias": "none",
    }
    tensors = {
        **{f"{_PREFIX}{module}{_DOWN}": update.down for module, update in updated.items()},
        **{f"{_PREFIX}{module}{_UP}": update.up for module, update in updated.items()},
        **{f"{_PREFIX}{name}": value for name, value in whole.items()},
    }
    _save({name: np.ascontiguousarray(value, np.float32) for name, value in tensors.items()}, folder / PEFT_WEIGHTS)
    atomic.write_text(folder / PEFT_CONFIG, documents.to_json(content, indent=2, sort_keys=True) + "\n")


def remove(folder: Path) -> None:
    """Removes the files, so that none is of another checkpoint; half of them are no adapter."""
    with atomic.readable_errors(folder):
        for name in (PEFT_CONFIG, PEFT_WEIGHTS):
            (folder / name).unlink(missing_ok=True)


def _obstacle(updates: CheckpointReader, adapter: Adapter, config: BertConfig, kind: str) -> str | None:
    """Why PEFT could not compute the model, if it could not."""
    if kind not in CLASSES:
        return f"transformers has no class for a head of the kind {kind}"
    if adapter.layers:
        return "the model lacks layers of its parent, PEFT would compute all of them"
    for pair in huggingface_export.of_encoder(CLASSES[kind], config).encoder_names(config):
        if pair.share[1] > 1 and pair.published in updates.shapes:
            return f"{pair.published} is trained as a whole, in transformers it is a part of {pair.huggingface}"
    return None


def _save(tensors: Mapping[str, npt.NDArray[np.float32]], path: Path) -> None:
    with atomic.replacing(path) as temporary, atomic.as_os_errors(temporary, safetensors.SafetensorError):
        temporary.touch()
        mode = temporary.stat().st_mode  # of the user's umask; the library makes the file anew, for the user alone
        safetensors.numpy.save_file(dict(tensors), temporary, metadata={"format": "pt"})
        temporary.chmod(mode)


def _base(adapter: Adapter) -> dict[str, Any]:
    """The parent as other software finds it: a model of the hub with its revision, or a path."""
    origin = converted_files.origin_of(adapter.parent)
    if origin:
        return {"base_model_name_or_path": origin.get("name"), "revision": origin.get("revision")}
    named = Path(adapter.parent_name)
    is_folder = bool(adapter.parent_name) and huggingface.is_huggingface_folder(named)
    return {"base_model_name_or_path": str(named.resolve()) if is_folder else adapter.parent, "revision": None}


@dataclasses.dataclass(frozen=True)
class _Update:
    """Of one module of transformers."""

    down: Array  # [R, D]
    up: Array  # [E, R]
    scaling: float


def _joined_updates(updates: CheckpointReader, pairs: Iterable[NamePair], adapter: Adapter) -> Iterator[tuple[str, _Update]]:
    by_name: dict[str, list[NamePair]] = {}
    for pair in pairs:
        by_name.setdefault(pair.huggingface, []).append(pair)
    matrices = scopes(updates.shapes)
    for name, joined in by_name.items():
        of_module = [(pair, pair.published.rpartition("/")[0]) for pair in joined]
        downs, ups = [], []
        for pair, scope in of_module:
            if not pair.transposed or scope not in matrices:
                continue
            down, up = updates[f"{scope}/{DOWN}"], updates[f"{scope}/{UP}"]
            number, count = pair.share
            wide = np.zeros((count, up.shape[1], up.shape[0]), np.float32)
            wide[number] = up.T
            downs.append(down.T)
            ups.append(wide.reshape(-1, up.shape[0]))
        if downs:
            scaling = next(adapter.scaling_of(scope) for _, scope in of_module if scope in matrices)
            yield name.rpartition(".")[0], _Update(np.concatenate(downs), np.concatenate(ups, axis=1), scaling)


def _whole(updates: CheckpointReader, pairs: Sequence[NamePair], architecture: Architecture) -> Iterator[tuple[str, Array]]:
    """Weights that are trained themselves, by their names in transformers."""
    for pair in pairs:
        if pair.published in updates.shapes and pair.share[1] == 1:
            value = updates[pair.published]
            yield pair.huggingface, value.T if pair.transposed else value
    for name, theirs in architecture.weights.items():
        if name in updates.shapes:
            yield theirs, updates[name]


def _module_of_head(name: str, architecture: Architecture) -> str:
    """What PEFT keeps: a part of the head as a whole, of the encoder one module."""
    return name.rpartition(".")[0] if name.startswith(architecture.prefix) else name.partition(".")[0]


def _shortened(modules: Iterable[str], pairs: Iterable[NamePair]) -> list[str]:
    """Names of modules; their last parts if these name no others."""
    chosen = set(modules)
    every = {pair.huggingface.rpartition(".")[0] for pair in pairs if pair.transposed}
    others = {module.rpartition(".")[2] for module in every - chosen}
    lasts = {module: module.rpartition(".")[2] for module in chosen}
    return sorted({last if last not in others else module for module, last in lasts.items()})


def _number(value: float) -> float:
    return int(value) if value == int(value) else value


# Reading.


@dataclasses.dataclass(frozen=True)
class Peft:
    """An adapter of PEFT, by published names."""

    entries: Mapping[str, npt.NDArray[np.float32]]  # updates as our variables, head, other weights
    scalings: Mapping[str, float]  # by the scope of a matrix


def read_config(folder: Path) -> dict[str, Any]:
    """Returns adapter_config.json; raises CheckpointError if it describes other updates than low-rank ones alone."""
    path = folder / PEFT_CONFIG
    try:
        values = documents.parse_json(files.read_text(path))
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {files.reason(error)}") from error
    except (ValueError, documents.DocumentError) as error:
        raise CheckpointError(f"{path}: damaged: {error}") from error
    if not isinstance(values, dict) or values.get("peft_type") != "LORA":
        kind = values.get("peft_type") if isinstance(values, dict) else values
        raise CheckpointError(f"{path}: peft_type is {kind!r:.60}, only LORA is read; merge it with PEFT (merge_and_unload)")
    for key, plain in _PLAIN.items():
        if values.get(key) not in (plain, None):
            raise CheckpointError(
                f"{path}: {key} is {values[key]!r:.60}, which is not read; merge it with PEFT (merge_and_unload)"
            )
    initialisation = values.get("init_lora_weights")
    if (initialisation.lower() if isinstance(initialisation, str) else initialisation) not in _INITIALISATIONS:
        why = "which changes the model that is adapted; merge it with PEFT (merge_and_unload)"
        raise CheckpointError(f"{path}: init_lora_weights is {initialisation!r:.60}, {why}")
    base = values.get("base_model_name_or_path")
    if not isinstance(base, str) or not base:
        raise CheckpointError(f"{path}: base_model_name_or_path is {base!r:.60}; name there the model that was adapted")
    return dict(values)


def read_peft(folder: Path, values: Mapping[str, Any], config: BertConfig) -> Peft:
    """Reads an adapter of a model of this configuration; raises CheckpointError for names and shapes that it does not have."""
    stored = weight_files.WeightFiles(_weights_in(folder))
    return by_published_names({name: stored.read(name) for name in stored.entries}, config, values, folder)


def _weights_in(folder: Path) -> Path:
    of_earlier = folder / PEFT_TORCH
    return of_earlier if of_earlier.is_file() and not (folder / PEFT_WEIGHTS).is_file() else folder / PEFT_WEIGHTS


def by_published_names(stored: Mapping[str, Array], config: BertConfig, values: Mapping[str, Any], folder: Path) -> Peft:
    """As `read_peft`, of tensors by PEFT's names; `folder` is for messages."""
    path = _weights_in(folder)
    tensors = {_KEPT.sub("", name.removeprefix(_PREFIX)): value.astype(np.float32) for name, value in stored.items()}
    of_modules = {name.replace(_DOWN, ".weight"): name for name in tensors if name.endswith(_DOWN)}
    whole = {name for name in tensors if not name.endswith((_DOWN, _UP))}
    known = huggingface.pairs_in(config, {*of_modules, *whole}, _ARCHITECTURES.get(str(values.get("task_type")), ""))
    entries: dict[str, npt.NDArray[np.float32]] = {}
    scalings: dict[str, float] = {}
    used = set()
    for name, pair in known:
        if name in whole:
            if not tensors[name].ndim or tensors[name].shape[0] % pair.share[1]:
                raise CheckpointError(f"{path}: {name} is {list(tensors[name].shape)}, not {pair.share[1]} equal parts")
            entries[pair.published] = huggingface.as_published(tensors[name], pair, config)
            used.add(name)
        if name in of_modules and pair.transposed:
            module, scope = name.removesuffix(".weight"), pair.published.rpartition("/")[0]
            down, up = tensors[of_modules[name]], tensors.get(f"{module}{_UP}")
            if up is None or down.ndim != 2 or up.ndim != 2 or not down.size or up.shape[0] % pair.share[1]:
                raise CheckpointError(f"{path}: {module} has no pair of matrices lora_A and lora_B")
            entries[f"{scope}/{DOWN}"] = np.ascontiguousarray(down.T)
            entries[f"{scope}/{UP}"] = np.ascontiguousarray(np.split(up, pair.share[1])[pair.share[0]].T)
            scalings[scope] = _scaling(values, module, len(down), path)
            used.update((of_modules[name], f"{module}{_UP}"))
    unused = sorted(tensors.keys() - used)
    if unused:
        more = f" and {len(unused) - 1} more" if len(unused) > 1 else ""
        raise CheckpointError(f"{path}: {unused[0]}{more} belongs to no known part of {ENCODERS[config.model_type].classes}")
    if not scalings:
        raise CheckpointError(f"{path}: holds no low-rank update of a matrix (lora_A)")
    return Peft(entries, scalings)


def _scaling(values: Mapping[str, Any], module: str, rank: int, path: Path) -> float:
    alpha = values.get("lora_alpha")
    patterns = values.get("alpha_pattern")
    for pattern, pattern_alpha in patterns.items() if isinstance(patterns, dict) else ():
        if module == pattern or module.endswith(f".{pattern}") or _matches(pattern, module):
            alpha = pattern_alpha
            break
    if isinstance(alpha, bool) or not isinstance(alpha, (int, float)):
        raise CheckpointError(f"{path.parent / PEFT_CONFIG}: lora_alpha of {module} is {alpha!r:.60}, expected a number")
    return float(alpha / (rank**0.5 if values.get("use_rslora") else rank))


def _matches(pattern: str, module: str) -> bool:
    try:
        return re.match(rf"(?:.*\.)?(?:{pattern})$", module) is not None
    except re.error:
        return False

"""Caches features of a split on disk, so that a second run need not tokenize."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.features.columns import Array, Features
from bert_tf.fields import Field
from bert_tf.io import atomic, documents

FORMAT_VERSION = "3"  # of the stored data, and of the conversion of texts to features


@dataclasses.dataclass(frozen=True)
class CacheKey:
    """Everything that affects the bytes of the features."""

    task: str
    split: str
    labels: tuple[str, ...]
    kind: str  # of the family
    examples: str  # digest
    vocabulary: str  # fingerprint
    lower_case: bool
    max_seq_length: int
    long_text: str
    of_family: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # other entries of its record

    @property
    def digest(self) -> str:
        """Hexadecimal digest; unchanged from earlier releases if the family adds nothing."""
        values = {name: value for name, value in dataclasses.asdict(self).items() if name != "of_family" or value}
        text = documents.to_json([FORMAT_VERSION, values], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def examples_digest(examples: Iterable[Any]) -> str:
    """sha256 of examples without names; reading other columns of a file gives another digest."""
    digest = hashlib.sha256()
    for example in examples:
        values = [getattr(example, field.name) for field in dataclasses.fields(example)[1:]]
        digest.update(documents.to_json(values).encode() + b"\n")
    return digest.hexdigest()


def load_or_build(
    folder: str | os.PathLike[str],
    key: CacheKey,
    fields: Sequence[Field],
    build: Callable[[], Features],
    *,
    writes: bool = True,
) -> tuple[Features, bool]:
    """Returns features and whether they came from the cache; rebuilds and replaces a damaged or foreign file.

    `fields` are those of targets. Without `writes` nothing is stored: of several machines only one writes.
    """
    path = Path(folder) / f"{key.task}-{key.split}-{key.digest[:16]}.safetensors"
    cached = _load(path, key.digest, fields)
    if cached is not None:
        return cached, True
    features = build()
    if not writes:
        return features, False
    from safetensors.numpy import save  # only runs need it

    columns = features.columns()
    metadata = {"key": key.digest, "content": _content_digest(columns), "truncated": str(features.truncated)}
    if features.together:
        metadata["together"] = "1"
    with atomic.replacing(path, follows=False) as temporary:
        temporary.write_bytes(save(dict(columns), metadata=metadata))
    return features, False


def _load(path: Path, key_digest: str, fields: Sequence[Field]) -> Features | None:
    import safetensors

    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            columns = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no iterator)
        if metadata.get("key") != key_digest or metadata.get("content") != _content_digest(columns):
            return None
        return Features.from_columns(columns, fields, truncated=int(metadata["truncated"]), together="together" in metadata)
    except (OSError, safetensors.SafetensorError, TypeError, ValueError, KeyError):
        return None


def _content_digest(columns: Mapping[str, Array]) -> str:
    digest = hashlib.sha256()
    for name in sorted(columns):
        digest.update(f"{name} {columns[name].dtype} {columns[name].shape}\n".encode())
        digest.update(np.ascontiguousarray(columns[name]).tobytes())
    return digest.hexdigest()

"""Copies models from the cluster's file systems to the local disk, once for all processes of a machine."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from bert_tf import run_layout
from bert_tf.checkpoints.reader import CHECKPOINT_NAME, PART
from bert_tf.cluster import paths, shipped, storage
from bert_tf.cluster.storage import Stored
from bert_tf.errors import CheckpointError
from bert_tf.log_form import log

_BESIDE = (run_layout.RECORD, run_layout.CONFIG, run_layout.VOCABULARY)
_NEWEST = re.compile(rb'^model_checkpoint_path: "(?:.*/)?([^"/]+)"', re.MULTILINE)


def checkpoint(name: str) -> str:
    """Returns a local checkpoint prefix for a prefix, one of its files, or a run folder; no scheme means local."""
    if not paths.has_scheme(name):
        return name
    prefix = _found(PART.sub("", name.rstrip("/")))
    folder, of_checkpoint = paths.divided(prefix)
    beside = [one for name in _BESIDE for one in storage.matching(paths.joined(folder, name))]
    return str(_copied([*storage.matching(f"{prefix}.*"), *beside]) / of_checkpoint)


def file(name: str) -> str:
    """Returns a file's local name; no scheme means local."""
    if not paths.has_scheme(name):
        return name
    found = storage.inputs(name)[:1]
    return str(_copied(found) / paths.divided(found[0].path)[1])


def _found(name: str) -> str:
    if storage.matching(f"{name}.index"):
        return name
    for folder in (paths.joined(name, run_layout.BEST), name):
        for listed in storage.matching(paths.joined(folder, run_layout.LIST)):
            with storage.readable_errors(listed.path), storage.open_file(listed.path) as stream:
                newest = _NEWEST.search(stream.read())
            if newest:
                return paths.joined(folder, newest[1].decode())
    if storage.matching(paths.joined(name, f"{CHECKPOINT_NAME}.index")):
        return paths.joined(name, CHECKPOINT_NAME)
    raise CheckpointError(f"{name}: no checkpoint and no run of this name")


def _copied(stored: Iterable[Stored]) -> Path:
    found = list(stored)
    contents = repr([(*one, storage.checksum(one.path)) for one in found])

    def copy(folder: Path) -> None:
        log.info("%s: copying to this machine", found[0].path)
        for one in found:
            _copy(one.path, folder / paths.divided(one.path)[1])

    return shipped.made_once(hashlib.sha256(contents.encode()).hexdigest()[:32], copy)


def _copy(source: str, target: Path) -> None:
    with storage.readable_errors(source), storage.open_file(source) as stream, target.open("wb") as file:
        shutil.copyfileobj(stream, file, 1 << 20)

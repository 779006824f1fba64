"""Fetches models of the Hugging Face hub through its own package, which keeps the cache, tokens and settings of the user.

Its environment variables apply: HF_HOME, HF_TOKEN, HF_ENDPOINT, HF_HUB_OFFLINE. Only configuration, tokenizer and weights are
fetched, never code: safetensors, or `pytorch_model.bin` of a model that has none.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bert_tf.checkpoints import prefixes, weight_files
from bert_tf.checkpoints.prefixes import HubName
from bert_tf.errors import CheckpointError
from bert_tf.io import files, progress
from bert_tf.io.log_form import log
from bert_tf.tokenization import roles, text_rules
from bert_tf.tokenization.tokenizer import SENTENCEPIECE

# Of sentence-transformers.
MODULES, POOLING = "modules.json", "*_Pooling/config.json"
PROMPTS, LENGTHS = "config_sentence_transformers.json", "sentence_bert_config.json"

_BESIDE = ("config.json", "vocab.txt", *text_rules.FILES, roles.SPECIAL_MAP, *SENTENCEPIECE)
_SAFE, _TORCH = (
    (name, f"{name}{weight_files.INDEX}", f"{Path(name).stem}-*{Path(name).suffix}")
    for name in (weight_files.WEIGHTS_NAME, weight_files.TORCH_NAME)
)
_UNREACHED = "not in the cache, and the hub cannot be reached (network, HF_ENDPOINT, HF_HUB_OFFLINE)"
# By class of the package's errors: what is wrong.
_REASONS = {
    "GatedRepoError": "access is granted on its page, to users who are logged in (hf auth login)",
    "RepositoryNotFoundError": "the hub has no model of this name, or it is private: log in (hf auth login)",
    "RevisionNotFoundError": "it has no such revision",
    "LocalEntryNotFoundError": f"it is {_UNREACHED}",
    "OfflineModeIsEnabled": "HF_HUB_OFFLINE is set, and it is not in the cache",
}


class Fetched(NamedTuple):
    """A model in the cache of the hub's package."""

    folder: Path
    name: str
    revision: str  # the commit

    def origin(self) -> dict[str, Any]:
        """Name, commit and SHA-256 of each file."""
        digests = {path.name: files.digest(path) for path in sorted(self.folder.iterdir()) if path.is_file()}
        return {"name": self.name, "revision": self.revision, "sha256": digests}


@functools.lru_cache(maxsize=16)
def refuse_missing(hub_name: HubName) -> None:
    """Raises FlagError without the package, CheckpointError if the hub has no such model or cannot be reached.

    It fetches the configuration, a small file, long before TensorFlow is imported.
    """
    prefixes.refuse_unavailable(hub_name)
    _snapshot(hub_name, _BESIDE[:1])


@functools.lru_cache(maxsize=16)
def fetch(hub_name: HubName) -> Fetched:
    """Fetches a model, or finds it in the cache; once per process, so that a run sees one revision.

    Raises FlagError without the package, CheckpointError if the hub has no such weights or cannot be reached.
    """
    refuse_missing(hub_name)
    log.info("%s: from the Hugging Face hub%s", hub_name.name, f", revision {hub_name.revision}" if hub_name.revision else "")
    folder = _snapshot(hub_name, (*_BESIDE, MODULES, POOLING, PROMPTS, LENGTHS, *_SAFE))
    if weight_files.in_folder(folder) is None:
        folder = _snapshot(HubName(hub_name.name, folder.name), _TORCH)
    if weight_files.in_folder(folder) is None:
        if not _lacks(hub_name.name, weight_files.WEIGHTS_NAME, folder.name):
            by_hand = prefixes.download_by_hand(hub_name.name)
            raise CheckpointError(f"{hub_name.name}: its weights are {_UNREACHED}; fetch it with the network, or {by_hand}")
        expected = f"{weight_files.WEIGHTS_NAME} and no {weight_files.TORCH_NAME}"
        raise CheckpointError(f"{hub_name.name}: the hub has no {expected} of this model; take another one")
    if not (folder / MODULES).is_file() and not _lacks(hub_name.name, MODULES, folder.name):
        text = "%s: its pooling is unknown: %s is %s; vectors may differ from the model's own: fetch it once with the network"
        log.warning(text, hub_name.name, MODULES, _UNREACHED)
    return Fetched(folder, hub_name.name, folder.name)


def _lacks(name: str, file: str, revision: str) -> bool:
    """Whether the hub has no such file of a model; false if it cannot be asked, and was not before.

    Other programs leave models in the cache without the files that they do not read.
    """
    package = importlib.import_module("huggingface_hub")
    known = package.try_to_load_from_cache(name, file, revision=revision)
    if known is not None:  # the path, or the mark of an earlier answer that there is none
        return not isinstance(known, str)
    try:
        with _quiet():
            package.hf_hub_download(name, file, revision=revision)
    except Exception as error:  # as in `_snapshot`
        names = _names_of(error)
        return "EntryNotFoundError" in names and "LocalEntryNotFoundError" not in names
    return False


def _snapshot(hub_name: HubName, patterns: tuple[str, ...]) -> Path:
    package = importlib.import_module("huggingface_hub")
    try:
        with _quiet():
            return Path(package.snapshot_download(hub_name.name, revision=hub_name.revision, allow_patterns=list(patterns)))
    except Exception as error:  # of the package, of its clients of HTTP, of the operating system
        why = next((_REASONS[name] for name in _names_of(error) if name in _REASONS), "")
        why = why or f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise CheckpointError(
            f"{hub_name.name}: no checkpoint of this name here, and not fetched from the Hugging Face hub: {why};"
            f" or {prefixes.download_by_hand(hub_name.name)}"
        ) from error


def _names_of(error: Exception) -> list[str]:
    """Names of an error's classes, since the package is imported late."""
    return [base.__name__ for base in type(error).__mro__]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Within the block, requests are not logged, and bars of progress are drawn only on a terminal."""
    utils = importlib.import_module("huggingface_hub.utils")
    requests = logging.getLogger("httpx")
    level = requests.level
    hides = not progress.on_terminal() and not utils.are_progress_bars_disabled()
    try:
        requests.setLevel(logging.WARNING)
        if hides:
            utils.disable_progress_bars()
        yield
    finally:
        requests.setLevel(level)
        if hides:
            utils.enable_progress_bars()

"""Folders of PEFT as checkpoints of updates, kept with the converted checkpoints."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bert_tf import run_layout
from bert_tf.checkpoints import converted_files, huggingface, saved
from bert_tf.checkpoints.names import task_head
from bert_tf.checkpoints.prefixes import CHECKPOINT_NAME, HUB
from bert_tf.checkpoints.reader import write_checkpoint
from bert_tf.config import BertConfig
from bert_tf.encoders import ENCODERS
from bert_tf.errors import CheckpointError
from bert_tf.estimator import run_folder
from bert_tf.extensions.lora import adapter, peft_format
from bert_tf.extensions.lora.adapter import Adapter
from bert_tf.extensions.lora.names import PEFT_CONFIG, PEFT_TORCH, PEFT_WEIGHTS
from bert_tf.extensions.lora.peft_format import Peft
from bert_tf.head_spec import PUBLISHED_WEIGHTS
from bert_tf.io import atomic, documents, files
from bert_tf.tokenization import text_rules
from bert_tf.tokenization.tokenizer import read_tokenizer
from bert_tf.training import sources


def opened(folder: Path, cache: Path, environment: Mapping[str, str]) -> Path | None:
    """Returns the folder in `cache` with the checkpoint of an adapter of PEFT; None for any other folder.

    A run has a checkpoint of its own. Raises CheckpointError if the adapter or the model that it adapts cannot be read.
    """
    if not (folder / PEFT_CONFIG).is_file() or saved.best_or_newest(folder) is not None:
        return None
    values = peft_format.read_config(folder)
    parent = _parent(folder, values, environment)
    parent_record = Adapter(parent=str(parent), parent_sha256=adapter.of_parent(str(parent)), scaling=1.0)
    recorded = run_folder.trained(folder).get("checkpoint_sha256", parent_record.parent_sha256)
    if recorded != parent_record.parent_sha256:
        raise CheckpointError(f"{folder}: adapts a model other than {parent}; name it in {folder / PEFT_CONFIG}")
    parts = [parent_record.parent_sha256, *(files.digest(path) for name in _READ if (path := folder / name).is_file())]
    key = hashlib.sha256("".join((_FORMAT, str(parent), *parts)).encode()).hexdigest()
    target = cache / f"{folder.resolve().name}-{key[:12]}"
    return converted_files.unchanged(target, functools.partial(_convert, folder, values, parent_record))


_FORMAT = "3"  # of conversions: those of another one are made again
_OF_BASE = (run_layout.POOLING, run_layout.NORMALIZE, run_layout.LEFT_OUT, "max_seq_length")  # its record, for an adapter
_READ = (PEFT_CONFIG, PEFT_WEIGHTS, PEFT_TORCH, run_layout.RECORD, text_rules.CONFIG)


def _parent(folder: Path, values: Mapping[str, Any], environment: Mapping[str, str]) -> Path:
    """The checkpoint of the model that is adapted: at its path, also beside the adapter, else of the hub."""
    name, revision = str(values["base_model_name_or_path"]), values.get("revision")
    for path in (Path(name), folder / name):
        if path.is_dir() or Path(f"{path}.index").is_file():
            return sources.checkpoint_of(path, environment=environment).resolve()
    if Path(name).is_absolute():
        raise CheckpointError(f"{name}: no such model, which {folder} adapts; name its new place in {folder / PEFT_CONFIG}")
    marked = f"{HUB}{name}{f'@{revision}' if revision else ''}"
    return sources.checkpoint_of(marked, environment=environment).resolve()


def _refuse_new_pooler(folder: Path, values: Mapping[str, Any], peft: Peft, config: BertConfig, parent: str) -> None:
    """Raises CheckpointError if the head was trained on a pooler that neither the adapter nor its base has."""
    has_pooler = any(name.startswith("bert/pooler/") for name in peft.entries)
    reads_pooler = values.get("task_type") != peft_format.OF_TOKENS or config.output_transform
    if PUBLISHED_WEIGHTS not in peft.entries or has_pooler or not reads_pooler:
        return
    if converted_files.has_new_pooler(parent):
        pooler = ENCODERS[config.model_type].pooler
        raise CheckpointError(
            f"{folder}: its head reads {pooler}, which neither it nor its base has; save it with PEFT's modules_to_save"
        )


def _convert(folder: Path, values: Mapping[str, Any], parent_record: Adapter, target: Path) -> None:
    beside = Path(parent_record.parent).parent
    config = BertConfig.from_json_file(beside / run_layout.CONFIG)
    peft = peft_format.read_peft(folder, values, config)
    if not (folder / run_layout.RECORD).is_file():  # a run knows the pooler that it began with
        _refuse_new_pooler(folder, values, peft, config, parent_record.parent)
    vocabulary = read_tokenizer(run_layout.vocabulary_in(beside, ENCODERS[config.model_type].vocabulary))
    with atomic.replacing(target) as temporary:
        temporary.mkdir()
        write_checkpoint(temporary / CHECKPOINT_NAME, peft.entries)
        dataclasses.replace(parent_record, scalings=peft.scalings, converted=True).write(temporary)
        texts = {**vocabulary.files(), run_layout.CONFIG: config.to_json()}
        if (folder / run_layout.RECORD).is_file():
            texts[run_layout.RECORD] = documents.read_text(folder / run_layout.RECORD)
        elif record := _record(folder, beside, peft, config):
            texts[run_layout.RECORD] = huggingface.record_of(record)
        for name, text in texts.items():
            (temporary / name).write_text(text, encoding="utf-8")
        converted_files.write_sums(temporary)


def _record(folder: Path, beside: Path, peft: Peft, config: BertConfig) -> dict[str, Any]:
    """Of the base; with a head, texts are cut as by the tokenizer of the adapter, if it has one."""
    of_base = {name: value for name, value in run_folder.trained(beside).items() if name in _OF_BASE}
    if not task_head(peft.entries):
        return of_base
    of_texts = folder if (folder / text_rules.CONFIG).is_file() else beside
    return {**of_base, "max_seq_length": huggingface.length_of(of_texts, config)}

"""Finds out all that is needed to use trained weights, from the files beside them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bert_tf import run_layout
from bert_tf.batch.job import ModelOverrides, TextOverrides
from bert_tf.batch.trained import Trained, digest
from bert_tf.checkpoints import model_formats
from bert_tf.config import BertConfig
from bert_tf.encoders import ENCODERS
from bert_tf.errors import CheckpointError, FlagError, OutputError
from bert_tf.estimator import preflight, run_folder
from bert_tf.io import files
from bert_tf.settings import read_settings, setting_names
from bert_tf.tasks.base import Family
from bert_tf.tasks.decision import DECISION, Decision, load_decision
from bert_tf.tokenization import casing
from bert_tf.tokenization.tokenizer import read_tokenizer
from bert_tf.tokenization.vocabulary import Vocabulary

_LENGTH = 128  # the default if the model has enough positions; as in the published script
_RECORDED = setting_names(TextOverrides)


def load(prefix: str, overrides: ModelOverrides, *, family: Family | None = None) -> Trained:
    """Describes and checks a checkpoint, see `load_metadata`; `family` is needed without a training record."""
    model = load_encoder(prefix, overrides)
    if family is not None:
        model = dataclasses.replace(model, record={**family.record(), **model.record})
    _ = model.head
    return model


def load_encoder(prefix: str, overrides: ModelOverrides) -> Trained:
    """As `load`, for a checkpoint that needs no head: `head` may fail."""
    other = model_formats.of(prefix)
    if other is None:
        from bert_tf.checkpoints.reader import model_reader  # imports TensorFlow

        model_reader(prefix)  # raises CheckpointError
        model = load_metadata(prefix, overrides)
    else:
        model = other.load(prefix, overrides)
    length = overrides.max_seq_length
    if length is not None and length > model.config.max_position_embeddings:
        raise FlagError(f"--max_seq_length={length}: {prefix} knows {model.config.max_position_embeddings} positions; lower it")
    preflight.refuse(model.problems())
    return model


def record_of(prefix: str) -> Mapping[str, Any]:
    """The settings that a model was trained with, wherever its format keeps them; empty without a record."""
    other = model_formats.of(prefix)
    return run_folder.trained(Path(prefix).parent) if other is None else other.load(prefix, ModelOverrides()).record


def load_metadata(prefix: str, overrides: ModelOverrides, folder: Path | None = None) -> Trained:
    """Uses overrides, else the folder's files; does not read the checkpoint. `folder` None: its own folder."""
    folder = folder or Path(prefix).parent
    plain = run_folder.trained(folder)
    record = {**plain, **fitted_decision(prefix, plain)}
    return described(prefix, folder, record, folder / run_layout.RECORD, overrides)


def described(prefix: str, folder: Path, record: Mapping[str, Any], path_of_record: Path, overrides: ModelOverrides) -> Trained:
    recorded = _recorded(path_of_record, record)
    config = BertConfig.from_json_file(_file(overrides.bert_config_file, folder / run_layout.CONFIG, "--bert_config_file"))
    beside = run_layout.vocabulary_in(folder, ENCODERS[config.model_type].vocabulary)
    path = _file(overrides.vocab_file, beside, "--vocab_file")
    vocabulary = _read_vocabulary(path, path.stat().st_mtime_ns)
    cases = [case for case in (overrides.do_lower_case, recorded.do_lower_case) if case is not None]
    lower_case = not vocabulary.own_rules and (cases[0] if cases else casing.find(vocabulary).lower_case)
    length = _first(overrides.max_seq_length, recorded.max_seq_length, min(_LENGTH, config.max_position_embeddings))
    long_text = _first(overrides.long_text, recorded.long_text, "truncate")
    return Trained(prefix, folder, config, vocabulary, lower_case, length, long_text, record)


def fitted_decision(prefix: str, recorded: Mapping[str, Any]) -> dict[str, Any]:
    """The rule that was fitted to a checkpoint, as an entry of its record; empty without one."""
    folder = Path(prefix).parent
    content = load_decision(folder)
    if content is None or content.get("checkpoint_sha256") != digest(prefix):
        return {}
    decision = Decision.from_record({DECISION: content})
    if "kind" in recorded and not decision.fits(recorded["kind"], len(recorded.get("labels", ()))):
        path = folder / run_layout.DECISION
        raise OutputError(f"{path}: a rule of another model than one of {recorded['kind']}; delete it, and calibrate again")
    return {DECISION: dataclasses.asdict(decision)}


def _recorded(path: Path, record: Mapping[str, Any]) -> ModelOverrides:
    try:
        return read_settings(ModelOverrides, {name: record[name] for name in _RECORDED if record.get(name) is not None})
    except FlagError as error:
        raise CheckpointError(f"{path}: damaged record of a run: {error}; restore it") from error


@functools.lru_cache(maxsize=4)
def _read_vocabulary(path: Path, _: int) -> Vocabulary:
    """Cached: reading takes as long as loading weights, and checkpoints of one run share a vocabulary."""
    return read_tokenizer(path)


def _file(named_file: str | None, default: Path, flag: str) -> Path:
    path = Path(named_file) if named_file else default
    why = files.missing(path)
    if why:
        raise CheckpointError(f"{path}: {why}; name it with {flag}")
    return path


def _first(*values: Any) -> Any:
    return next(value for value in values if value is not None)

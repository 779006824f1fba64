"""Models that the checkpoint command reads, in any layout, and writes, with their files and a note on their origin."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bert_tf import home, run_layout
from bert_tf.checkpoints import hub, huggingface, huggingface_export, prefixes, saved, weight_files
from bert_tf.checkpoints.names import encoder_shapes, is_training_only, layers_in, task_head
from bert_tf.checkpoints.prefixes import CHECKPOINT_NAME, PART, is_folder
from bert_tf.checkpoints.reader import refuse_not_finite, write_checkpoint
from bert_tf.config import BertConfig
from bert_tf.errors import CheckpointError, FlagError, OutputError
from bert_tf.estimator import run_folder
from bert_tf.extensions.checkpoint import renaming
from bert_tf.extensions.checkpoint.tensors import HUGGINGFACE, STEP, TENSORFLOW, SafeTensors, TensorFlowTensors, Tensors
from bert_tf.head_spec import TAGS
from bert_tf.io import atomic, documents, files, lock
from bert_tf.io.log_form import log
from bert_tf.tokenization import casing, text_rules
from bert_tf.tokenization.tokenizer import SENTENCEPIECE, read_tokenizer
from bert_tf.training import sources

MADE_FROM = "made_from.json"

_SAVED_MODEL = "variables/variables"  # the checkpoint in a SavedModel


def opened(name: str | os.PathLike[str]) -> Tensors:
    """Opens a checkpoint: a prefix or one of its files, a run (its best or newest), a Hugging Face folder, file or name."""
    of_hub = prefixes.as_hub_name(name)
    path = Path(name) if of_hub is None else hub.fetch(of_hub).folder
    if is_folder(path):
        if weight_files.in_folder(path) is not None:
            return SafeTensors(path)
        return TensorFlowTensors(sources.of_extension(path, environment=os.environ) or _prefix_in(path))
    if weight_files.is_file_of_weights(path):
        return SafeTensors(path)
    return TensorFlowTensors(os.fspath(path.with_name(PART.sub("", path.name))))


def opened_by_name(name: str | os.PathLike[str]) -> Tensors:
    checkpoint = opened(name)
    if checkpoint.layout != TENSORFLOW:
        raise CheckpointError(f"{checkpoint.name}: {checkpoint.layout}; give it names first (checkpoint convert --to=tf1)")
    return checkpoint


def _prefix_in(folder: Path) -> str:
    for name in (CHECKPOINT_NAME, _SAVED_MODEL):
        if (folder / f"{name}.index").is_file():
            return str(folder / name)
    prefix = saved.best_or_newest(folder)
    if prefix is None:
        why = files.missing_folder(folder)
        raise CheckpointError(f"{folder}: {why or weight_files.unread(folder) or 'no checkpoint in the folder'}")
    return prefix


class PublishedModel:
    """Weights by published names and the files that belong to them: `keys` maps to names in `checkpoint`."""

    def __init__(self, checkpoint: Tensors, config_file: str | None, vocabulary_file: str | None) -> None:
        """Files that are None are looked for beside the weights."""
        self.checkpoint = checkpoint
        self.config_file = self._file("bert_config_file", config_file, run_layout.CONFIG, huggingface.CONFIG_NAME)
        tokenizers = (run_layout.VOCABULARY, run_layout.TOKENIZER, *SENTENCEPIECE)
        self.vocabulary_file = self._file("vocab_file", vocabulary_file, *tokenizers)
        numbers = [name for name, entry in checkpoint.entries.items() if entry.bytes and not is_training_only(name)]
        published = renaming.published(numbers)
        self.keys = {name: key for key, (name, _) in published.items()}
        _refuse_ambiguous(checkpoint, {key: name for key, (name, _) in published.items()}, self.keys)
        if not any(name.startswith("bert/") for name in self.keys):
            of_others = checkpoint.layout == HUGGINGFACE and self.config_file and self.config.model_type != "bert"
            converted = f"; name its conversion, which predict and encode leave in {home.folder(os.environ) / 'checkpoints'}"
            advice = converted if of_others else "; see checkpoint inspect"
            raise CheckpointError(f"{checkpoint.name}: no BERT variable under a known name{advice}")
        self.entries = {name: np.asarray(change(checkpoint.read(key)), order="C") for key, (name, change) in published.items()}
        refuse_not_finite(checkpoint.name, {self.keys[name]: value for name, value in self.entries.items()})
        self._check()

    def _file(self, flag: str, path: str | None, *names: str) -> Path | None:
        if path is None:
            return next((file for name in names if (file := self.checkpoint.folder / name).is_file()), None)
        why = files.missing(path)
        if why:
            raise FlagError(f"--{flag}={path}: {why}")
        return Path(path)

    def _check(self) -> None:
        layers = layers_in(name for name in self.keys if name.startswith("bert/"))
        if self.config_file and layers != self.config.weighted_layers:
            expected = f"{self.config_file} says {self.config.weighted_layers}"
            raise CheckpointError(f"{self.checkpoint.name}: has {layers} layers, {expected}")
        for name, shape in encoder_shapes(self.config).items() if self.config_file else ():
            if name in self.entries and self.entries[name].shape != shape:
                difference = f"{self.keys[name]} gives {list(self.entries[name].shape)}, {self.config_file} says {list(shape)}"
                raise CheckpointError(f"{self.checkpoint.name}: {difference}")

    @property
    def config(self) -> BertConfig:
        """Raises BertError if the file is missing or damaged."""
        if self.config_file is None:
            raise CheckpointError(
                f"{self.checkpoint.folder}: no configuration beside the weights; name it with --bert_config_file"
            )
        return BertConfig.from_json_file(self.config_file)

    @property
    def pooling(self) -> str:
        """Pooling of a model from elsewhere, see `huggingface.pooling_of`; empty if unknown."""
        return str(self.record.get(run_layout.POOLING) or huggingface.pooling_of(self.checkpoint.folder))

    @functools.cached_property
    def record(self) -> Mapping[str, Any]:
        """Of a run, or what a Hugging Face folder says of its head and pooling."""
        folder, values = self.checkpoint.folder, self.published_config
        recorded = run_folder.trained(folder)
        return recorded if recorded or not values else huggingface.record_in(folder, values, self.entries, self.config)

    @property
    def kind(self) -> str:
        """Kind of the task head; empty if it is unknown. Raises CheckpointError for an unknown class of transformers."""
        kind, values = str(self.record.get("kind", "")), self.published_config
        if kind or not values or not task_head(self.entries):
            return kind
        kind = huggingface.kind_of(values, self.entries)
        if not kind:
            path, named = self.checkpoint.folder / huggingface.CONFIG_NAME, values.get("architectures")
            raise CheckpointError(f"{path}: architectures is {named}, which does not say what the head computes")
        return kind

    @functools.cached_property
    def published_config(self) -> Mapping[str, Any]:
        """Contents of a Hugging Face folder's config.json; empty for others."""
        path = self.checkpoint.folder / huggingface.CONFIG_NAME
        is_there = self.checkpoint.layout == HUGGINGFACE and path.is_file()
        values: Mapping[str, Any] = documents.read_json(path) if is_there else {}
        return values


def _refuse_ambiguous(checkpoint: Tensors, names: Mapping[str, str], keys: Mapping[str, str]) -> None:
    twice = next((key for key, name in names.items() if keys[name] != key), None)
    if twice is not None:
        raise CheckpointError(f"{checkpoint.name}: {twice} and {keys[names[twice]]} are one variable; which one is meant?")
    empty = next((key for key, entry in checkpoint.entries.items() if 0 in entry.shape), None)
    if empty is not None:
        raise CheckpointError(f"{checkpoint.name}: {empty} has no values, its shape is {list(checkpoint.entries[empty].shape)}")


@contextlib.contextmanager
def folder(output: str, *, overwrite: bool) -> Iterator[Path]:
    """Yields a folder that becomes the output on success; `overwrite` only replaces this command's own output."""
    target = Path(output)
    refuse_taken(target, overwrite=overwrite)
    place = Path(os.path.realpath(target))  # of a link, beside whose target is written
    atomic.make_folder(place.parent)
    with run_folder.writing_where_a_run_is([place.parent]), lock.taking_turns(place.parent):
        atomic.delete_unfinished(place)
        refuse_taken(target, overwrite=overwrite)
        with atomic.replacing(target) as temporary:
            temporary.mkdir()
            yield temporary


def refuse_taken(target: Path, *, overwrite: bool) -> None:
    """Raises OutputError if the folder exists and may not be replaced, or belongs to a checkpoint or run."""
    run_layout.refuse_taken_name(target)
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not (target / MADE_FROM).is_file():
        raise OutputError(f"{target}: was not written by this command; name another --output")
    if not overwrite:
        raise OutputError(f"{target}: already exists; name another --output, or add --overwrite")


def write_model(folder: Path, entries: Mapping[str, npt.NDArray[Any]], *, beside: Path | None) -> Path:
    """Writes a TensorFlow checkpoint, and configuration, vocabulary and record as in `beside`; returns its prefix."""
    step = entries.get(STEP)
    if step is not None and (step.shape or step.dtype.kind not in "iu" or step < 0):
        raise CheckpointError(f"{STEP} is {str(step.tolist())[:40]}, expected one whole number; take another checkpoint")
    name = CHECKPOINT_NAME if step is None else run_layout.of_step(run_layout.CHECKPOINTS, int(step))
    write_checkpoint(folder / name, entries)
    if step is not None:
        saved.write_list(folder, name, [name])
    if beside is not None:
        copy(folder, beside, (*run_layout.beside(), *text_rules.FILES))
    return folder / name


def copy(folder: Path, source: Path, names: Iterable[str]) -> None:
    for name in names:
        if (source / name).is_file():
            (folder / name).write_bytes((source / name).read_bytes())


def note(folder: Path, action: str, sources: Iterable[Tensors], **more: Any) -> None:
    made = [{"checkpoint": Path(source.name).name, "sha256": source.digest} for source in sources]
    text = documents.to_json({"action": action, "checkpoints": made, **more}, indent=2, sort_keys=True) + "\n"
    (folder / MADE_FROM).write_text(text, encoding="utf-8")


def write_record(folder: Path, model: PublishedModel) -> None:
    """Writes what is known of the head and the pooling of a model from elsewhere; the record of a run is copied instead."""
    if model.record and not (folder / run_layout.RECORD).exists():
        (folder / run_layout.RECORD).write_text(huggingface.record_of(model.record), encoding="utf-8")


def write_text_settings(folder: Path, model: PublishedModel) -> None:
    """Writes what transformers must know of its tokenizer; a folder of its own with a tokenizer.json says it already."""
    vocabulary = read_tokenizer(model.vocabulary_file) if model.vocabulary_file else None
    if vocabulary is None or (vocabulary.own_rules and model.published_config):
        return
    values = text_rules.content(folder / text_rules.CONFIG)
    length = int(model.record.get("max_seq_length", model.config.max_position_embeddings))
    if vocabulary.own_rules:
        text = vocabulary.to_text_of_words() if model.kind == TAGS else vocabulary.to_text()
        (folder / vocabulary.file).write_text(text, encoding="utf-8")
        values = {**values, **huggingface_export.tokenizer_settings(vocabulary, model.config, length, text=text)}
    else:
        signs = {"do_lower_case": casing.find(vocabulary).lower_case, "model_max_length": length}
        values = {**signs, **values, **{name: value for name, value in model.record.items() if name in signs}}
    (folder / text_rules.CONFIG).write_text(documents.to_json(values, indent=2) + "\n", encoding="utf-8")


def copy_texts(folder: Path, model: PublishedModel) -> None:
    if model.vocabulary_file is None:
        log.warning("%s: no vocabulary beside the weights, so none is written", model.checkpoint.folder)
    elif model.vocabulary_file.name in SENTENCEPIECE:
        for name, text in read_tokenizer(model.vocabulary_file).files().items():
            (folder / name).write_text(text, encoding="utf-8")
    else:
        name = run_layout.TOKENIZER if model.vocabulary_file.suffix == ".json" else run_layout.VOCABULARY
        (folder / name).write_bytes(model.vocabulary_file.read_bytes())
    copy(folder, model.checkpoint.folder, text_rules.FILES)

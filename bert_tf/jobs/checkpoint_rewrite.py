"""Rewrites checkpoints: without training state, with other names, in another layout."""

from __future__ import annotations

import dataclasses
import html
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt

from bert_tf import files, run_layout
from bert_tf.checkpoints import huggingface_export, other_names, values
from bert_tf.checkpoints.names import is_training_only
from bert_tf.checkpoints.tensors import STEP, TENSORFLOW, Tensors
from bert_tf.errors import CheckpointError, FlagError
from bert_tf.jobs import checkpoint_output, checkpoint_sources
from bert_tf.jobs.checkpoint_model import PublishedModel
from bert_tf.jobs.checkpoint_settings import HF, LAYOUTS, TF1, TF2
from bert_tf.log_form import log
from bert_tf.text_table import table

_ARROW = "=>"

Entries = dict[str, npt.NDArray[Any]]


@dataclasses.dataclass(frozen=True)
class Written:
    """What was written, or would be with a dry run."""

    output: Path | None  # None if nothing was written
    names: Mapping[str, str]  # old to new
    left_out: tuple[str, ...] = ()  # dropped entries

    def __str__(self) -> str:
        changed = [(name, new) for name, new in self.names.items() if name != new]
        lines = [*(table(("name", "new name"), changed, left=(0, 1)) if changed else ("no name changes",))]
        lines += [f"left out: {name}" for name in self.left_out]
        return "\n".join(lines) + "\n"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def strip(name: str | os.PathLike[str], settings: Mapping[str, Any]) -> Written:
    found = _by_name(name)
    kept = [entry for entry in found.entries if not is_training_only(entry)]
    left_out = tuple(sorted(found.entries.keys() - set(kept)))
    with checkpoint_output.writing(settings["output"], overwrite=settings["overwrite"]) as folder:
        checkpoint_output.write_model(folder, _read(found, {entry: entry for entry in kept}), beside=found.folder)
        checkpoint_output.note(folder, "strip", [found])
    before, after = (sum(found.entries[entry].bytes for entry in entries) for entries in (found.entries, kept))
    log.info("%s: %.1f MB, was %.1f MB: %d entries left out", settings["output"], after / 1e6, before / 1e6, len(left_out))
    return Written(Path(settings["output"]), {entry: entry for entry in kept}, left_out)


def rename(name: str | os.PathLike[str], settings: Mapping[str, Any]) -> Written:
    """Renames entries, or only lists the changes; BertError if two entries get one name."""
    found = _by_name(name)
    rules = _rules(settings["map"])
    names = {entry: _renamed(entry, rules) for entry in found.entries}
    _refuse_collisions(names)
    if settings["dry_run"]:
        return Written(None, names)
    if all(new == entry for entry, new in names.items()):
        log.warning("--map=%s: changes no name; what is written is a copy", settings["map"])
    with checkpoint_output.writing(settings["output"], overwrite=settings["overwrite"]) as folder:
        checkpoint_output.write_model(folder, _read(found, names), beside=found.folder)
        checkpoint_output.note(folder, "rename", [found], map=[f"{old.pattern}{_ARROW}{new}" for old, new in rules])
    return Written(Path(settings["output"]), names)


def _by_name(name: str | os.PathLike[str]) -> Tensors:
    found = checkpoint_sources.opened(name)
    if found.layout != TENSORFLOW:
        raise CheckpointError(f"{found.place}: {found.layout}; give it names first (checkpoint convert --to={TF1})")
    return found


def _read(found: Tensors, names: Mapping[str, str]) -> Entries:
    entries = {name: found.read(name) for name in names}
    values.refuse_not_finite(found.place, entries)
    return {new: entries[name] for name, new in names.items()}


def _rules(given: str | None) -> list[tuple[re.Pattern[str], str]]:
    if given is None:
        raise FlagError(f"--map is required, as --map='^bert/{_ARROW}encoder/'")
    path = Path(given)
    try:
        texts = files.read_text(path).splitlines() if _ARROW not in given else given.split()
    except (OSError, UnicodeDecodeError) as error:
        why = files.reason(error) if isinstance(error, OSError) else "not UTF-8"
        raise FlagError(f"--map={given}: neither a rule, as '^bert/{_ARROW}encoder/', nor a file: {why}") from error
    rules = [_rule(given, text.strip()) for text in texts if text.strip()]
    if not rules:
        raise FlagError(f"--map={given}: holds no rule")
    return rules


def _rule(given: str, text: str) -> tuple[re.Pattern[str], str]:
    old, arrow, new = (part.strip() for part in text.partition(_ARROW))
    try:
        pattern = re.compile(old)
        if not arrow or not old:
            raise re.error(f"OLD{_ARROW}NEW wanted")
        re.sub(pattern, new, "") if pattern.groups == 0 else re.compile(f"{old}|").sub(new, "")
    except (re.error, IndexError) as error:
        raise FlagError(f"--map={given}: '{text}': {error}") from error
    return pattern, new


def _renamed(name: str, rules: Sequence[tuple[re.Pattern[str], str]]) -> str:
    for old, new in rules:
        name = old.sub(new, name)
    return name


def _refuse_collisions(names: Mapping[str, str]) -> None:
    homes: dict[str, str] = {}
    for name, new in names.items():
        if not new:
            raise FlagError(f"--map: {name} would have no name")
        if new in homes:
            raise FlagError(f"--map: {homes[new]} and {name} would both be {new}; nothing was written")
        homes[new] = name


def convert(name: str | os.PathLike[str], settings: Mapping[str, Any]) -> Written:
    if settings["to"] is None:
        raise FlagError(f"--to is required: {', '.join(LAYOUTS)}")
    found = checkpoint_sources.opened(name)
    model = PublishedModel(found, settings)
    with checkpoint_output.writing(settings["output"], overwrite=settings["overwrite"]) as folder:
        names = _WRITERS[settings["to"]](folder, model)
        checkpoint_output.note(folder, "convert", [found], to=settings["to"])
    left_out = tuple(sorted(model.keys[entry] for entry in model.keys if entry not in names))
    if left_out:
        log.warning("left out, as it has no place there: %s", ", ".join(left_out[:5]) + ", ..." * (len(left_out) > 5))
    return Written(Path(settings["output"]), {model.keys[entry]: new for entry, new in names.items()}, left_out)


def _to_tf1(folder: Path, model: PublishedModel) -> dict[str, str]:
    checkpoint_output.write_model(folder, model.entries, beside=model.found.folder)
    if model.config_file is not None:
        (folder / run_layout.CONFIG).write_text(model.config.to_json(), encoding="utf-8")
    model.copy_texts(folder)
    return {name: name for name in model.entries}


def _to_model_garden(folder: Path, model: PublishedModel) -> dict[str, str]:
    config = model.config
    renamed = other_names.model_garden(config.num_hidden_layers, config.num_attention_heads)
    names = {name: renamed[name].name for name in model.entries if name in renamed}
    kept = {STEP: model.entries[STEP]} if STEP in model.entries else {}
    entries: Entries = {renamed[name].name: renamed[name].there(model.entries[name]) for name in names}
    checkpoint_output.write_model(folder, {**entries, **kept}, beside=None)
    (folder / run_layout.CONFIG).write_text(config.to_json(), encoding="utf-8")
    model.copy_texts(folder)
    return {**names, **{name: name for name in kept}}


def _to_huggingface(folder: Path, model: PublishedModel) -> dict[str, str]:
    record = model.record
    architecture = huggingface_export.guessed(model.entries, record.get("kind"))
    names = huggingface_export.write(
        folder, model.entries, model.config, architecture=architecture, labels=record.get("labels") or ()
    )
    model.copy_texts(folder)
    return {**names, **({STEP: "(no step)"} if STEP in model.entries else {})}


_WRITERS: Mapping[str, Callable[[Path, PublishedModel], dict[str, str]]] = {
    TF1: _to_tf1,
    TF2: _to_model_garden,
    HF: _to_huggingface,
}

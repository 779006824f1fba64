"""Rewrites checkpoints: without training state, with other names, in another layout."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from bert_tf import files, run_layout
from bert_tf.checkpoints import other_names
from bert_tf.checkpoints.names import is_training_only
from bert_tf.errors import FlagError
from bert_tf.library.keywords import takes
from bert_tf.log_form import log
from bert_tf.operations.command import Call, Command
from bert_tf.settings import read, same, setting
from bert_tf.text_table import Printed, table

if TYPE_CHECKING:  # what imports TensorFlow waits until it is needed: --help is quick
    from bert_tf.checkpoints.tensors import Tensors
    from bert_tf.operations.checkpoint.reading import PublishedModel

LAYOUTS = TF1, TF2, HF = ("tf1", "tf2-names", "hf")
_ARROW = "=>"

Entries = dict[str, npt.NDArray[Any]]


@dataclasses.dataclass(frozen=True)
class StripSettings:
    checkpoint: str = setting(None, "a checkpoint", positional=True, required=True)
    output: str = setting(None, "folder to write; one that exists is kept unless --overwrite is given", required=True)
    overwrite: bool = setting(False, "replace a folder that this command has written")


@dataclasses.dataclass(frozen=True)
class ConvertSettings:
    checkpoint: str = same(StripSettings, "checkpoint")
    to: str = setting(None, f"{', '.join(LAYOUTS)} (docs/checkpoints.md)", choices=LAYOUTS, required=True)
    output: str = same(StripSettings, "output")
    bert_config_file: str | None = setting(None, "sizes of the model; else beside the weights")
    vocab_file: str | None = setting(None, "word pieces of the model; else beside the weights")
    overwrite: bool = same(StripSettings, "overwrite")


@dataclasses.dataclass(frozen=True)
class RenameSettings:
    checkpoint: str = same(StripSettings, "checkpoint")
    map: str = setting(
        None, "rules with blanks between them, 'OLD=>NEW' by regular expression; or a file, one a line", required=True
    )
    dry_run: bool = setting(False, "print the table of names, and write nothing")
    output: str | None = same(StripSettings, "output", required=False)
    overwrite: bool = same(StripSettings, "overwrite")

    def __post_init__(self) -> None:
        if self.output is None and not self.dry_run:
            raise FlagError("--output is required: folder to write")


@dataclasses.dataclass(frozen=True)
class Written(Printed):
    """What was written, or would be with a dry run."""

    output: Path | None  # None if nothing was written
    names: Mapping[str, str]  # old to new
    left_out: tuple[str, ...] = ()  # dropped entries

    def __str__(self) -> str:
        changed = [(name, new) for name, new in self.names.items() if name != new]
        lines = [*(table(("name", "new name"), changed, left=(0, 1)) if changed else ("no name changes",))]
        lines += [f"left out: {name}" for name in self.left_out]
        return "\n".join(lines) + "\n"


@takes(StripSettings)
def strip_checkpoint(checkpoint: str | os.PathLike[str], **settings: Any) -> Written:
    """Writes a checkpoint without training state; as `python -m bert_tf checkpoint strip`.

    Args:
      checkpoint: a prefix, or a run (its best or newest checkpoint).
      **settings: the command's flags, by name.

    Raises:
      BertError: invalid settings or input.
    """
    return strip(read(StripSettings, {"checkpoint": checkpoint, **settings}))


def strip(settings: StripSettings) -> Written:
    from bert_tf.operations.checkpoint import reading, writing

    found = reading.opened_by_name(settings.checkpoint)
    kept = [entry for entry in found.entries if not is_training_only(entry)]
    left_out = tuple(sorted(found.entries.keys() - set(kept)))
    with writing.folder(settings.output, overwrite=settings.overwrite) as folder:
        writing.write_model(folder, _read(found, {entry: entry for entry in kept}), beside=found.folder)
        writing.note(folder, "strip", [found])
    before, after = (sum(found.entries[entry].bytes for entry in entries) for entries in (found.entries, kept))
    log.info("%s: %.1f MB, was %.1f MB: %d entries left out", settings.output, after / 1e6, before / 1e6, len(left_out))
    return Written(Path(settings.output), {entry: entry for entry in kept}, left_out)


def _read(found: Tensors, names: Mapping[str, str]) -> Entries:
    from bert_tf.checkpoints import values

    entries = {name: found.read(name) for name in names}
    values.refuse_not_finite(found.place, entries)
    return {new: entries[name] for name, new in names.items()}


@takes(RenameSettings)
def rename_checkpoint(checkpoint: str | os.PathLike[str], **settings: Any) -> Written:
    """Writes a checkpoint with renamed variables, or lists the new names; as `python -m bert_tf checkpoint rename`.

    Args:
      checkpoint: a prefix, or a run (its best or newest checkpoint).
      **settings: the command's flags, by name.

    Raises:
      BertError: invalid settings or input.
    """
    return rename(read(RenameSettings, {"checkpoint": checkpoint, **settings}))


def rename(settings: RenameSettings) -> Written:
    """Renames entries, or only lists the changes; BertError if two entries get one name."""
    from bert_tf.operations.checkpoint import reading, writing

    found, rules = reading.opened_by_name(settings.checkpoint), _rules(settings.map)
    names = {entry: _renamed(entry, rules) for entry in found.entries}
    _refuse_collisions(names)
    if settings.dry_run or settings.output is None:
        return Written(None, names)
    if all(new == entry for entry, new in names.items()):
        log.warning("--map=%s: changes no name; what is written is a copy", settings.map)
    with writing.folder(settings.output, overwrite=settings.overwrite) as folder:
        writing.write_model(folder, _read(found, names), beside=found.folder)
        writing.note(folder, "rename", [found], map=[f"{old.pattern}{_ARROW}{new}" for old, new in rules])
    return Written(Path(settings.output), names)


def _rules(given: str) -> list[tuple[re.Pattern[str], str]]:
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


@takes(ConvertSettings)
def convert_checkpoint(checkpoint: str | os.PathLike[str], **settings: Any) -> Written:
    """Writes a model in another layout; as `python -m bert_tf checkpoint convert`.

    Args:
      checkpoint: a prefix, a run (its best or newest checkpoint), or a Hugging Face folder.
      **settings: the command's flags, by name.

    Raises:
      BertError: invalid settings or input.
    """
    return convert(read(ConvertSettings, {"checkpoint": checkpoint, **settings}))


def convert(settings: ConvertSettings) -> Written:
    from bert_tf.operations.checkpoint import reading, writing

    found = reading.opened(settings.checkpoint)
    model = reading.PublishedModel(found, settings.bert_config_file, settings.vocab_file)
    with writing.folder(settings.output, overwrite=settings.overwrite) as folder:
        names = _WRITERS[settings.to](folder, model)
        writing.copy_texts(folder, model)
        writing.note(folder, "convert", [found], to=settings.to)
    left_out = tuple(sorted(model.keys[entry] for entry in model.keys if entry not in names))
    if left_out:
        log.warning("left out, as it has no place there: %s", ", ".join(left_out[:5]) + ", ..." * (len(left_out) > 5))
    return Written(Path(settings.output), {model.keys[entry]: new for entry, new in names.items()}, left_out)


def _to_tf1(folder: Path, model: PublishedModel) -> dict[str, str]:
    from bert_tf.operations.checkpoint import writing

    writing.write_model(folder, model.entries, beside=model.found.folder)
    if model.config_file is not None:
        (folder / run_layout.CONFIG).write_text(model.config.to_json(), encoding="utf-8")
    return {name: name for name in model.entries}


def _to_model_garden(folder: Path, model: PublishedModel) -> dict[str, str]:
    from bert_tf.checkpoints.tensors import STEP
    from bert_tf.operations.checkpoint import writing

    config = model.config
    renamed = other_names.model_garden(config.num_hidden_layers, config.num_attention_heads)
    names = {name: renamed[name].name for name in model.entries if name in renamed}
    kept = {STEP: model.entries[STEP]} if STEP in model.entries else {}
    entries: Entries = {renamed[name].name: renamed[name].there(model.entries[name]) for name in names}
    writing.write_model(folder, {**entries, **kept}, beside=None)
    (folder / run_layout.CONFIG).write_text(config.to_json(), encoding="utf-8")
    return {**names, **{name: name for name in kept}}


def _to_huggingface(folder: Path, model: PublishedModel) -> dict[str, str]:
    from bert_tf.checkpoints import huggingface_export
    from bert_tf.checkpoints.tensors import STEP

    record = model.record
    architecture = huggingface_export.guessed(model.entries, record.get("kind"))
    names = huggingface_export.write(
        folder, model.entries, model.config, architecture=architecture, labels=record.get("labels") or ()
    )
    return {**names, **({STEP: "(no step)"} if STEP in model.entries else {})}


_WRITERS: Mapping[str, Callable[[Path, PublishedModel], dict[str, str]]] = {
    TF1: _to_tf1,
    TF2: _to_model_garden,
    HF: _to_huggingface,
}


def _command(title: str, settings: type, work: Callable[[Any], Written]) -> Command:
    def run(call: Call) -> None:
        print(work(call.settings), end="")

    return Command(title, settings, run)


COMMANDS = {
    "strip": _command("without the optimizer's moments and the moving average", StripSettings, strip),
    "convert": _command("in another layout, with all that belongs to it", ConvertSettings, convert),
    "rename": _command("with other names", RenameSettings, rename),
}

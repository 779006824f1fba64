"""Rewrites checkpoints: without training state, with renamed variables, in another layout."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bert_tf import run_layout
from bert_tf.checkpoints.names import is_training_only
from bert_tf.checkpoints.prefixes import refuse_missing_model
from bert_tf.errors import CheckpointError, FlagError
from bert_tf.extensions.checkpoint import renaming
from bert_tf.head_spec import MEAN
from bert_tf.io import files
from bert_tf.io.log_form import log
from bert_tf.io.text_table import Printed, table
from bert_tf.library.keywords import takes
from bert_tf.operations.command import Call, Command
from bert_tf.run_layout import NORMALIZE
from bert_tf.settings import read_settings, same, setting
from bert_tf.tasks.decision import DECISION, Decision

if TYPE_CHECKING:  # lazy import of TensorFlow: --help stays fast
    from bert_tf.extensions.checkpoint.models import PublishedModel
    from bert_tf.extensions.checkpoint.tensors import Tensors

LAYOUTS = TF1, TF2, HF = ("tf1", "tf2-names", "hf")
_ARROW = "=>"
_OF_HEAD = ("id2label", "label2id", "problem_type")  # in config.json


@dataclasses.dataclass(frozen=True)
class StripSettings:
    checkpoint: str = setting(None, "a checkpoint", positional=True, required=True, refuse_missing=refuse_missing_model)
    output: str = setting(
        None, "folder to write; an existing one is kept unless --overwrite is given", required=True, written=True
    )
    overwrite: bool = setting(False, "replace a folder written by this command")


@dataclasses.dataclass(frozen=True)
class ConvertSettings:
    checkpoint: str = same(StripSettings, "checkpoint")
    to: str = setting(None, f"{', '.join(LAYOUTS)} (docs/checkpoints.md)", choices=LAYOUTS, required=True)
    output: str = same(StripSettings, "output")
    bert_config_file: str | None = setting(None, "model configuration; default: beside the weights")
    vocab_file: str | None = setting(None, "vocabulary of the model; default: beside the weights")
    overwrite: bool = same(StripSettings, "overwrite")


@dataclasses.dataclass(frozen=True)
class RenameSettings:
    checkpoint: str = same(StripSettings, "checkpoint")
    map: str = setting(
        None, "rules 'OLD=>NEW' (regular expressions) separated by blanks, or a file with one per line", required=True
    )
    dry_run: bool = setting(False, "print the table of names; write nothing")
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
    return strip(read_settings(StripSettings, {"checkpoint": checkpoint, **settings}))


def strip(settings: StripSettings) -> Written:
    from bert_tf.extensions.checkpoint import models

    checkpoint = models.opened_by_name(settings.checkpoint)
    remaining = {entry: entry for entry in checkpoint.entries if not is_training_only(entry)}
    left_out = tuple(sorted(checkpoint.entries.keys() - remaining.keys()))
    written = _write(settings, "strip", checkpoint, remaining)
    before, after = (sum(checkpoint.entries[entry].bytes for entry in entries) for entries in (checkpoint.entries, remaining))
    log.info("%s: %.1f MB, was %.1f MB: %d entries left out", settings.output, after / 1e6, before / 1e6, len(left_out))
    return dataclasses.replace(written, left_out=left_out)


def _write(settings: Any, action: str, checkpoint: Tensors, names: Mapping[str, str], **noted: Any) -> Written:
    """Writes the named entries under their new names."""
    from bert_tf.batch import model_copy
    from bert_tf.checkpoints.reader import refuse_not_finite
    from bert_tf.extensions.checkpoint import models

    with models.folder(settings.output, overwrite=settings.overwrite) as folder:
        entries = {name: checkpoint.read(name) for name in names}
        refuse_not_finite(checkpoint.name, entries)
        copied = models.write_model(folder, {new: entries[name] for name, new in names.items()}, beside=checkpoint.folder)
        model_copy.copy_decision(checkpoint.name, copied)
        models.note(folder, action, [checkpoint], **noted)
    return Written(Path(settings.output), names)


@takes(RenameSettings)
def rename_checkpoint(checkpoint: str | os.PathLike[str], **settings: Any) -> Written:
    """Writes a checkpoint with renamed variables, or lists the new names; as `python -m bert_tf checkpoint rename`.

    Args:
      checkpoint: a prefix, or a run (its best or newest checkpoint).
      **settings: the command's flags, by name.

    Raises:
      BertError: invalid settings or input.
    """
    return rename(read_settings(RenameSettings, {"checkpoint": checkpoint, **settings}))


def rename(settings: RenameSettings) -> Written:
    """Renames entries, or only lists the changes; BertError if two entries get one name."""
    from bert_tf.extensions.checkpoint import models

    checkpoint, rules = models.opened_by_name(settings.checkpoint), _rules(settings.map)
    names = {entry: _renamed(entry, rules) for entry in checkpoint.entries}
    entry_of: dict[str, str] = {}
    for name, new in names.items():
        if not new:
            raise FlagError(f"--map: {name} would have no name")
        if entry_of.setdefault(new, name) != name:
            raise FlagError(f"--map: {entry_of[new]} and {name} would both be {new}; nothing was written")
    if settings.dry_run or settings.output is None:
        return Written(None, names)
    if all(new == entry for entry, new in names.items()):
        log.warning("--map=%s: changes no name; writing a copy", settings.map)
    return _write(settings, "rename", checkpoint, names, map=[f"{old.pattern}{_ARROW}{new}" for old, new in rules])


def _rules(argument: str) -> list[tuple[re.Pattern[str], str]]:
    path = Path(argument)
    try:
        texts = files.read_text(path).splitlines() if _ARROW not in argument else argument.split()
    except (OSError, UnicodeDecodeError) as error:
        why = files.reason(error) if isinstance(error, OSError) else "not UTF-8"
        raise FlagError(f"--map={argument}: neither a rule, as '^bert/{_ARROW}encoder/', nor a file: {why}") from error
    rules = [_rule(argument, text.strip()) for text in texts if text.strip()]
    if not rules:
        raise FlagError(f"--map={argument}: holds no rule")
    return rules


def _rule(argument: str, text: str) -> tuple[re.Pattern[str], str]:
    old, arrow, new = (part.strip() for part in text.partition(_ARROW))
    try:
        pattern = re.compile(old)
        if not arrow or not old:
            raise re.error(f"OLD{_ARROW}NEW wanted")
        re.sub(pattern, new, "") if pattern.groups == 0 else re.compile(f"{old}|").sub(new, "")
    except (re.error, IndexError) as error:
        raise FlagError(f"--map={argument}: '{text}': {error}") from error
    return pattern, new


def _renamed(name: str, rules: Sequence[tuple[re.Pattern[str], str]]) -> str:
    for old, new in rules:
        name = old.sub(new, name)
    return name


@takes(ConvertSettings)
def convert_checkpoint(checkpoint: str | os.PathLike[str], **settings: Any) -> Written:
    """Writes a model in another layout; as `python -m bert_tf checkpoint convert`.

    Args:
      checkpoint: a prefix, a run (its best or newest checkpoint), or a Hugging Face folder.
      **settings: the command's flags, by name.

    Raises:
      BertError: invalid settings or input.
    """
    return convert(read_settings(ConvertSettings, {"checkpoint": checkpoint, **settings}))


def convert(settings: ConvertSettings) -> Written:
    from bert_tf.extensions.checkpoint import models

    checkpoint = models.opened(settings.checkpoint)
    model = models.PublishedModel(checkpoint, settings.bert_config_file, settings.vocab_file)
    with models.folder(settings.output, overwrite=settings.overwrite) as folder:
        names = _WRITERS[settings.to](folder, model)
        models.copy_texts(folder, model)
        if settings.to == HF:
            models.write_text_settings(folder, model)
        models.note(folder, "convert", [checkpoint], to=settings.to)
    left_out = tuple(sorted(model.keys[entry] for entry in model.keys if entry not in names))
    if left_out:
        log.warning("left out, since the layout lacks it: %s", ", ".join(left_out[:5]) + ", ..." * (len(left_out) > 5))
    return Written(Path(settings.output), {model.keys[entry]: new for entry, new in names.items()}, left_out)


def _to_tf1(folder: Path, model: PublishedModel) -> dict[str, str]:
    from bert_tf.batch import model_copy
    from bert_tf.extensions.checkpoint import models

    copied = models.write_model(folder, model.entries, beside=model.checkpoint.folder)
    model_copy.copy_decision(model.checkpoint.name, copied)
    models.write_record(folder, model)
    if model.config_file is not None:
        (folder / run_layout.CONFIG).write_text(model.config.to_json(), encoding="utf-8")
    return {name: name for name in model.entries}


def _to_model_garden(folder: Path, model: PublishedModel) -> dict[str, str]:
    from bert_tf.extensions.checkpoint import models
    from bert_tf.extensions.checkpoint.tensors import STEP

    config = model.config
    if config.model_type != "bert":
        why = f"{TF2} is a layout of BERT alone, and this is {config.model_type}"
        raise CheckpointError(f"{model.checkpoint.name}: {why}; take --to={TF1} or --to={HF}")
    renamed = renaming.model_garden(config.num_hidden_layers, config.num_attention_heads)
    names = {name: renamed[name].name for name in model.entries if name in renamed}
    entries = {new: renamed[name].there(model.entries[name]) for name, new in names.items()}
    if STEP in model.entries:
        names[STEP], entries[STEP] = STEP, model.entries[STEP]
    models.write_model(folder, entries, beside=None)
    (folder / run_layout.CONFIG).write_text(config.to_json(), encoding="utf-8")
    return names


def _to_huggingface(folder: Path, model: PublishedModel) -> dict[str, str]:
    from bert_tf.batch import model_copy
    from bert_tf.batch.weights import calibrated
    from bert_tf.checkpoints import hub, huggingface_export
    from bert_tf.extensions.checkpoint.tensors import STEP

    guessed = huggingface_export.guessed(model.entries, model.kind)
    architecture = huggingface_export.of_encoder(guessed, model.config)
    labels = model.record.get("labels") or ()
    facts = {name: value for name, value in model.published_config.items() if name in _OF_HEAD}
    if model.pooling not in ("", MEAN):
        text = "%s: the model's pooling is %s, but sentence-transformers uses mean pooling without %s; copy that file"
        log.warning(text, model.checkpoint.name, model.pooling, hub.MODULES)
    if model.record.get(NORMALIZE):
        log.warning("%s: scales vectors to length 1, as %s says; copy that file", model.checkpoint.name, hub.MODULES)
    decision = Decision.from_record({DECISION: model_copy.decision_of(model.checkpoint.name)})
    entries = calibrated(model.entries, decision.temperatures)
    facts |= {DECISION: decision.facts()} if decision.facts() else {}
    names = huggingface_export.write(folder, entries, model.config, architecture=architecture, labels=labels, facts=facts)
    return {**names, **({STEP: "(no step)"} if STEP in model.entries else {})}


_WRITERS = {TF1: _to_tf1, TF2: _to_model_garden, HF: _to_huggingface}


def _command(title: str, settings: type, work: Callable[[Any], Written], example: str) -> Command:
    def run(call: Call) -> None:
        print(work(call.settings), end="")

    return Command(title, settings, run, f"python -m bert_tf checkpoint {example}")


COMMANDS = {
    "strip": _command(
        "removes optimizer moments and the moving average", StripSettings, strip, "strip out/mrpc --output=out/small"
    ),
    "convert": _command(
        "converts to another layout, with vocabulary and configuration",
        ConvertSettings,
        convert,
        "convert out/mrpc --to=hf --output=out/hf",
    ),
    "rename": _command("renames variables", RenameSettings, rename, "rename out/mrpc --map='^bert/=>encoder/' --dry_run"),
}

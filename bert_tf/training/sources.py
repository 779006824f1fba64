"""Finds data and models; a task of some rows of another."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf import extension, home, run_layout
from bert_tf.batch.job import ModelOverrides
from bert_tf.checkpoints import model_formats, prefixes
from bert_tf.checkpoints.prefixes import CHECKPOINT_NAME, PART, is_folder, may_name_several, on_hub
from bert_tf.errors import CheckpointError, DataError, FlagError
from bert_tf.features import cache
from bert_tf.features.columns import Numbers
from bert_tf.io import files
from bert_tf.io.log_form import log
from bert_tf.tasks import tables, text_lines
from bert_tf.tasks.base import Family, Splits, Submission, Task
from bert_tf.tasks.registry import folder_name, get_task
from bert_tf.training.settings import ModelSettings

if TYPE_CHECKING:
    from bert_tf.batch.trained import Trained


SAMPLE_NOTE = "bundled sample, written for this project: not comparable with published figures"


@dataclasses.dataclass(frozen=True)
class DataSource:
    """Location of a task's files."""

    folder: Path  # unused if the task knows its files
    origin: str  # which setting or default chose it
    is_sample: bool = False  # bundled sample
    has_folder: bool = True  # the task reads `folder`
    has_command: bool = True  # a command line can name them

    @property
    def data_dir(self) -> Path | None:
        """The absolute folder, for another command's --data_dir; None if the task knows its files."""
        return self.folder.absolute() if self.has_folder else None


@dataclasses.dataclass(frozen=True)
class ModelSource:
    checkpoint: str
    config: Path
    vocabulary: Path
    origin: str
    is_default: bool = False

    @property
    def from_scratch(self) -> bool:
        """No checkpoint: all weights are new."""
        return not self.checkpoint

    @property
    def files(self) -> tuple[Path, ...]:
        weights = () if self.from_scratch else (Path(self.checkpoint),)
        return (*weights, self.config, self.vocabulary)


def find(
    name: str | os.PathLike[str] | None,
    overrides: ModelOverrides,
    *,
    environment: Mapping[str, str],
    task: str | Task | None = None,
    needs_head: bool = True,
) -> Trained:
    """Finds a model by a checkpoint, a run (best, else newest), a Hugging Face folder or name, and checks it unread.

    Without a name it is that of $BERT_BASE_DIR, else the default. `task` is needed if no run record names it. A pretrained
    model suffices unless it `needs_head`.
    """
    from bert_tf.batch import loading
    from bert_tf.batch.inputs import refuse_other_task

    if name is None:
        source = find_model(ModelSettings(), environment=environment)
        values = {name: value for name, value in dataclasses.asdict(overrides).items() if value is not None}
        files_of_model = {"bert_config_file": str(source.config), "vocab_file": str(source.vocabulary)}
        return loading.load_encoder(source.checkpoint, ModelOverrides(**{**files_of_model, **values}))
    prefix = _only_match(os.fspath(name)) or str(checkpoint_of(name, environment=environment))
    if not needs_head:
        return loading.load_encoder(prefix, overrides)
    if isinstance(task, str):
        record = loading.record_of(prefix)
        refuse_other_task(task, record, prefix)
        task = None if "task_name" in record else get_task(task)
    model = loading.load(prefix, overrides, family=None if task is None else task.family)
    return model if task is None else dataclasses.replace(model, given_task=task)


def find_all(
    pattern: str, overrides: ModelOverrides, *, environment: Mapping[str, str], task: str | Task | None
) -> list[Trained]:
    """Finds the models of all checkpoints that a pattern matches."""
    from bert_tf.batch import checkpoints

    matches = checkpoints.named([pattern])
    if matches[0].problem:
        raise CheckpointError(matches[0].problem)
    return [find(match.prefix, overrides, environment=environment, task=task) for match in matches]


def _only_match(name: str) -> str | None:
    """The checkpoint of a pattern or `FOLDER:all`, which must have one; None for any other name."""
    if not may_name_several(name):
        return None
    from bert_tf.batch import checkpoints  # imports TensorFlow

    matches = checkpoints.named([name])
    if len(matches) > 1:
        raise CheckpointError(f"{name}: {len(matches)} checkpoints; name one")
    if matches[0].problem:
        raise CheckpointError(matches[0].problem)
    return matches[0].prefix


def find_data(task: Task, data_dir: str | None, *, environment: Mapping[str, str]) -> DataSource:
    """--data_dir, else $GLUE_DIR/TASK, else data/TASK of the project, else the sample; own files need no folder."""
    if not task.reads_folder:
        named_by = getattr(task, "named_by", "--train_file, --dev_file and --test_file")
        if data_dir is not None:
            raise FlagError(f"--data_dir: {task.name} takes {named_by} instead of a folder")
        return DataSource(Path(), named_by, has_folder=False)
    name = folder_name(task.name)
    sample = home.SAMPLE / task.name
    if data_dir is not None:
        why = files.missing_folder(data_dir)
        if why:
            raise DataError(f"{why}; --data_dir must hold the files of {task.name}", data_dir)
        return DataSource(Path(data_dir), "--data_dir", is_sample=Path(data_dir).resolve() == sample.resolve())
    glue = environment.get("GLUE_DIR")
    candidates = [DataSource(Path(glue) / name, "$GLUE_DIR")] if glue else []
    candidates.append(DataSource(home.folder(environment) / "data" / name, "data/"))
    candidates.append(DataSource(sample, SAMPLE_NOTE, is_sample=True))
    for source in candidates:
        if source.folder.is_dir():
            if glue and source is not candidates[0]:
                log.warning("$GLUE_DIR has no folder %s: reading %s (%s)", name, source.folder, source.origin)
            return source
    fetch = extension.advice("data", f"fetch it (python -m bert_tf data fetch {task.name}), ")
    raise DataError(
        f"no data for {task.name}; {fetch}put its files there, set GLUE_DIR, or name their folder with --data_dir",
        candidates[-2].folder,
    )


def find_model(settings: ModelSettings, *, environment: Mapping[str, str], may_be_new: bool = False) -> ModelSource:
    """Finds the model of --init_checkpoint, else of $BERT_BASE_DIR, else the default one.

    `may_be_new` allows a configuration and a vocabulary without checkpoint: a model with new weights.
    """
    named = settings.init_checkpoint
    base = environment.get("BERT_BASE_DIR")
    origin = "--init_checkpoint" if named else "$BERT_BASE_DIR"
    if may_be_new and not named and (settings.bert_config_file or settings.vocab_file):
        if not (settings.bert_config_file and settings.vocab_file):
            raise FlagError("--bert_config_file and --vocab_file together start from scratch; otherwise name --init_checkpoint")
        return _model(None, Path(), settings, "from scratch")
    if not named and not base:
        if settings.bert_config_file or settings.vocab_file:
            raise FlagError("--bert_config_file and --vocab_file belong to a checkpoint; name it with --init_checkpoint")
        from bert_tf.checkpoints import default  # imports TensorFlow

        folder = default.ensure(home.folder(environment) / "checkpoints")
        return _model(folder / CHECKPOINT_NAME, folder, settings, f"default checkpoint {default.NAME}", is_default=True)
    path = Path(named or base or "")
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        os.stat(path)  # other errors are raised as they are
    alone = not (settings.bert_config_file and settings.vocab_file)  # else preflight reports it with other misfits
    if alone and prefixes.as_hub_name(path) is None and not path.is_dir():
        beside = path.parent.iterdir() if path.parent.is_dir() else ()
        if not any(near.name.startswith(path.name) for near in beside):
            advice = on_hub(named or base or "")
            raise CheckpointError(f"{path}: no checkpoint or folder of this name ({origin}){advice}")
    checkpoint = checkpoint_of(path, environment=environment)
    model_formats.refuse(checkpoint)
    folders = checkpoint.parent if run_layout.vocabulary_in(checkpoint.parent).is_file() or not base else Path(base)
    return _model(checkpoint, folders, settings, origin)


def checkpoint_of(name: str | os.PathLike[str], *, environment: Mapping[str, str]) -> Path:
    """Finds a checkpoint by its prefix, one of its files, a folder, or the name of a model of the Hugging Face hub."""
    path, cache_dir = Path(name), home.folder(environment) / "checkpoints"
    of_hub = prefixes.as_hub_name(name)
    if of_hub is None and not is_folder(path):
        return path.with_name(PART.sub("", path.name))
    file = None if of_hub is not None else model_formats.file_of(path)
    if file is not None:
        return file
    from bert_tf.checkpoints import weight_files

    if of_hub is not None or weight_files.in_folder(path) is not None:
        from bert_tf.checkpoints import huggingface  # and what reads its tokenizers

        path = huggingface.converted(path, cache_dir) if of_hub is None else huggingface.fetched(of_hub, cache_dir)
    else:
        path = Path(of_extension(path, environment=environment) or path)
    return _checkpoint_in(path) if is_folder(path) else path.with_name(PART.sub("", path.name))


def of_extension(name: str | os.PathLike[str], *, environment: Mapping[str, str]) -> str | None:
    """Returns the checkpoint of a folder in the layout of an extension (`Extension.opens`); None for any other name."""
    cache_dir = home.folder(environment) / "checkpoints"
    if not is_folder(name) or model_formats.file_of(name) is not None:
        return None
    opens = [extension.load(entry.opens) for entry in extension.installed().values() if entry.opens]
    folders = (opened(Path(name), cache_dir, environment) for opened in opens)
    return next((str(_checkpoint_in(folder)) for folder in folders if folder is not None), None)


def _model(
    checkpoint: Path | None, folder: Path, settings: ModelSettings, origin: str, *, is_default: bool = False
) -> ModelSource:
    config = Path(settings.bert_config_file or folder / "bert_config.json")
    vocabulary = Path(settings.vocab_file or run_layout.vocabulary_in(folder))
    for path, flag in ((config, "--bert_config_file"), (vocabulary, "--vocab_file")):
        why = files.missing(path)
        if why:
            raise CheckpointError(f"{path}: {why}; name it with {flag}")
    return ModelSource(str(checkpoint or ""), config, vocabulary, origin, is_default)


def _checkpoint_in(folder: Path) -> Path:
    from bert_tf.checkpoints import saved, weight_files

    if (folder / "bert_model.ckpt.index").is_file():
        return folder / "bert_model.ckpt"
    trained = saved.best_or_newest(folder)
    if trained is None:
        why = weight_files.unread(folder)
        raise CheckpointError(
            f"{folder}: {why}"
            if why
            else f"{folder}: no bert_model.ckpt, no model.safetensors and no trained checkpoint in the folder{_below(folder)}"
        )
    return Path(trained)


def _below(folder: Path) -> str:
    """Asks for the newest model below a folder of several: the hub's cache, a Trainer's output, runs of several seeds."""
    from bert_tf.checkpoints import weight_files

    names = (*weight_files.NAMES, f"{CHECKPOINT_NAME}.index", run_layout.LIST)
    paths = [path for inner in ("*", "snapshots/*") for name in names for path in folder.glob(f"{inner}/{name}")]
    newest = max(paths, key=lambda path: path.stat().st_mtime, default=None)
    return "" if newest is None else f"; did you mean {newest.parent}?"


@dataclasses.dataclass(frozen=True)
class Whole:
    """A split that is divided; its features are built once and shared by the parts."""

    split: str
    examples: Sequence[Any]
    features_dir: Path

    @functools.cached_property
    def digest(self) -> str:
        return cache.examples_digest(self.examples)


class PartOfSplit(Sequence[Any]):
    """Some examples of a split, in its order."""

    def __init__(self, whole: Whole, numbers: Numbers) -> None:
        self.whole, self.numbers = whole, np.sort(numbers)
        self._examples = [whole.examples[number] for number in self.numbers]

    def __len__(self) -> int:
        return len(self._examples)

    def __getitem__(self, index: Any) -> Any:
        return self._examples[index]


@dataclasses.dataclass(frozen=True)
class PartialTask(Splits):
    inner: Task
    data: DataSource  # of the inner task
    parts: Mapping[str, PartOfSplit]  # by purpose; others are those of the inner task

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def family(self) -> Family:
        return self.inner.family

    def splits(self, data_dir: object, purpose: str) -> tuple[str, ...]:
        del data_dir
        return (purpose,) if purpose in self.parts else self.inner.splits(self.data.folder, purpose)

    def file(self, data_dir: str | os.PathLike[str], split: str) -> Path:
        return self.inner.file(data_dir, split)

    def published_name(self, split: str) -> str:
        return self.inner.published_name(split)

    def submission(self, split: str) -> Submission | None:
        return self.inner.submission(split)

    def examples(self, data_dir: object, split: str) -> Sequence[Any]:
        del data_dir
        return self.parts[split] if split in self.parts else self.inner.examples(self.data.folder, split)

    def stream(self, source: text_lines.Source, split: str, report: tables.Report = tables.refuse) -> Iterator[Any]:
        return self.inner.stream(source, split, report)

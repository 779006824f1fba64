"""Extensions: features outside the core, which finds them by name and knows none of them (docs/extensions.md).

An extension is a package in `bert_tf/extensions`, or an entry point of the group "bert_tf.extensions" of an installed
package: a module with a constant EXTENSION. Each start imports these modules, so they import little; what an extension does
is in other modules, named as "module:name" and imported when it is asked for.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import pkgutil
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from typing import Any, NamedTuple

from bert_tf import versions
from bert_tf.errors import BertError

_GROUP = "bert_tf.extensions"
_NAMED = {
    "commands": "command",
    "drivers": "driver",
    "tasks": "task",
    "kinds": "kind",
    "pipelines": "pipeline",
    "engines": "engine",
    "weight_files": "file of weights with the suffix",
    "tokenizers": "tokenizer with the suffix",
    "times": "part of the wall time",
}  # fields by name, and what a name is of


class NewCommand(NamedTuple):
    """A command of the command line, or, by a name of two words, an action of one."""

    declaration: str  # module:name of an `operations.command.Command` or `Actions`
    group: str = ""  # in --help
    line: str = ""  # what it does, in --help
    computes: bool = False  # always uses TensorFlow, which is then loaded ahead


class NewTask(NamedTuple):
    """A task of the extension, by its name."""

    make: str  # module:name of a function from the name, `TaskSettings` and labels (None if unknown) to the task
    command: str = ""  # which alone trains it; empty if it has labels
    takes: tuple[str, ...] = ()  # settings of the core that it takes, besides those of the extension
    without: tuple[str, ...] = ()  # settings of the extension that it does not take
    folder: str = ""  # name of the folder of its files, if not its own


class NewKind(NamedTuple):
    """A kind of tasks: module:name of its object in each layer, which may be empty."""

    family: str = ""  # a `tasks.base.Family`
    head: str = ""  # a `modeling.heads.base.Head`
    nodes: str = ""  # its head as ONNX nodes, an `extensions.engines.heads.HeadNodes`
    client: str = ""  # how clients of a SavedModel send raw text, an `extensions.export.saved_model.signatures.Client`
    prediction: str = ""  # class of the objects that `Family.listed` returns
    form: str = ""  # request and response of the service, an `extensions.serve.forms.Form`
    row: str = ""  # function from an example to a row as `Model.predict` takes it
    usage: str = ""  # code of a card, a `Usage`
    problem: NewTask | None = None  # custom data of it, by --problem


class Usage(NamedTuple):
    """How a kind of models is used, as code of a card; {name} stands for a value of the row, as a literal."""

    row: Mapping[str, Any]  # if there is none of the data
    call: str = "model.predict([{row}])[0].label"  # empty if there is none
    line: str = "python -m bert_tf predict --checkpoint={place} --input=FILE --output=predictions.tsv"
    command: str = ""  # of an extension, without which there are neither call nor line
    named: bool = False  # whether a row is a mapping, else a sequence of values
    transformers: str = ""  # code for a folder in Hugging Face's layout; empty if transformers has a pipeline for it
    options: str = ""  # of the pipeline
    call_options: str = ", truncation=True"  # of a call of the pipeline


class Driver(NamedTuple):
    """What trains several runs instead of one, if a setting is given."""

    function: str  # module:name of a function of `config`, `environment` and a `task` in memory, if any; returns `Driven`
    run: str  # what one of the runs is called
    needs_dev: bool = True  # False: it evaluates rows of the training split


class Driven(NamedTuple):
    """Runs that a driver has trained."""

    result: Any  # returned by the library's function
    lines: Sequence[str]  # printed by the command
    runs: int  # that are finished
    where: str  # their folder, for people
    stopped_by: signal.Signals | None = None  # the same job continues


class RunPage(NamedTuple):
    """Writes the report of a run, or of several in a folder, at their end."""

    write: str  # module:name of a function of the folder, which raises no error
    prepare: str = ""  # module:name of a function that starts what takes long, while the last checkpoint is written


class Series(NamedTuple):
    """Runs below one folder, which stands for them on a page: by their names, or by a file beside them."""

    name: str  # of all of them
    prefix: str = ""  # of their names, before a number
    table: str = ""  # the file beside them
    differ_in: tuple[str, ...] = ()  # keys of records in which they may differ, besides the seed, and still have a mean


@dataclasses.dataclass(frozen=True)
class Settings:
    """Base of an extension's dataclass of settings; itself it has none."""

    def check(self, config: Any) -> None:
        """Raises FlagError; called before TensorFlow is imported, if a setting was given.

        `config` is a `training.run_spec.RunSpec`, in which values of a recipe are still missing.
        """


@dataclasses.dataclass(frozen=True)
class Extension:
    """What a feature adds; nothing by default."""

    # Of a training.
    settings: type[Settings] = Settings  # its flags
    section: str = "Training"  # of --help, in which they are listed
    programs: tuple[str, ...] = ()  # training commands that take them; empty: all
    part: str = ""  # module:name of a `training.part.Part`, for runs in which a setting of it is given
    decides: bool = False  # its part fits the decision rule of the model; left out for folds and held-out rows
    times: Mapping[str, tuple[str, str]] = dataclasses.field(default_factory=dict)  # parts of it: name, part before it
    drivers: Mapping[str, Driver] = dataclasses.field(default_factory=dict)  # by the setting that asks for one
    beside: tuple[str, ...] = ()  # files that a checkpoint of its runs needs beside it
    adapts: str = ""  # module:name of a function of settings, a `BertConfig`, frozen and new parts to a forecast's `Adapted`
    remedies: str = ""  # module:name of a function of a forecast `Step` and bytes to the flags that make it fit, in words
    # Of what is learned.
    tasks: Mapping[str, NewTask] = dataclasses.field(default_factory=dict)
    of_tasks: type = Settings  # dataclass of their settings, in `TaskSettings.extensions` by the extension's name
    kinds: Mapping[str, NewKind] = dataclasses.field(default_factory=dict)
    # Of the command line.
    commands: Mapping[str, NewCommand] = dataclasses.field(default_factory=dict)
    pipelines: Mapping[str, str] = dataclasses.field(default_factory=dict)  # module:name of a function of a job and a `Beam`
    # Of a run's folder and its page.
    files: Mapping[tuple[str, ...], str] = dataclasses.field(default_factory=dict)  # their names, and what they hold
    series: tuple[Series, ...] = ()  # folders of its runs
    page: RunPage | None = None
    panel: str = ""  # module:name of a function from the runs on a page to its `extensions.report.panels.Panel`, or None
    shows: tuple[str, ...] = ()  # files of the core that the panel shows, besides `files`
    # Of a model.
    model_format: str = ""  # module:name of a `checkpoints.model_formats.ModelFormat`, of models without a checkpoint
    weight_files: Mapping[str, str] = dataclasses.field(default_factory=dict)  # by suffix of a file, module:name of a
    # `checkpoints.weight_files.WeightFile`, made from its path
    tokenizers: Mapping[str, str] = dataclasses.field(default_factory=dict)  # by suffix of a file, module:name of a function
    # from its path to the text of a tokenizer.json
    engines: Mapping[str, str] = dataclasses.field(default_factory=dict)  # by value of --engine, `batch.engine.EngineKind`
    composes: str = ""  # module:name of a function from a `CheckpointReader` to one of the whole model; None for all others
    identifies: str = ""  # module:name of a function from the folder of a checkpoint to what determines the model besides its
    # own weights, as text; empty for all others
    opens: str = ""  # module:name of a function of a folder, one for what is made, and the environment: the folder with its
    # checkpoint, if it has a layout of the extension
    predicts_several: str = ""  # module:name of a function of `PredictSettings` with several checkpoints to the file pairs
    computes_several: str = ""  # module:name of a `batch.engine.SeveralModels`, made from `Trained`s and `InferenceOptions`
    session: str = ""  # module:name of a function from a `library.model.Model` to its `session`
    call: str = ""  # module:name of an `extensions.serve.call.Call`
    serving: type = Settings  # flags of `serve`, for its call
    # Of `evaluate`.
    evaluating: type = Settings  # flags
    evaluator: str = ""  # module:name of an `extensions.evaluate.command.Evaluator`, if a flag is given


@functools.cache
def _every() -> tuple[Mapping[str, Extension], tuple[str, ...]]:
    """Extensions by name, ours first, and what is wrong with others."""
    ours = sorted(module.name for module in pkgutil.iter_modules(importlib.import_module(_GROUP).__path__))
    usable: dict[str, Extension] = {name: load(f"{_GROUP}.{name}:EXTENSION") for name in ours}
    problems = []
    for point in _entry_points():
        source = f"extension {point.name} ({point.value})"
        if not point.name.isidentifier() or point.name in usable:
            problems.append(f"{source}: name it otherwise, as a name of Python that is not taken")
            continue
        _refuse_unfinished(point.value)
        try:
            extension = point.load().EXTENSION
            if not isinstance(extension, Extension):
                raise TypeError(f"EXTENSION is {extension!r:.40}, no bert_tf.extension.Extension")
            _refuse_unusable(extension, list(usable.values()))
            usable[point.name] = extension
        except Exception as error:  # whatever a module does when it is imported
            problems.append(f"{source}: {type(error).__name__}: {error}; correct or uninstall its package")
    return usable, tuple(problems)


def _refuse_unusable(extension: Extension, others: Iterable[Extension]) -> None:
    """Raises ValueError for names of another extension; those of the core are refused where they are."""
    for field, what in _NAMED.items():
        taken = {name for other in others for name in getattr(other, field) if name in getattr(extension, field)}
        if taken:
            raise ValueError(f"there is a {what} {min(taken)} already")
    if extension.decides and not extension.part:
        raise ValueError("a decision rule is fitted by a part, and there is none")


def _refuse_unfinished(module: str) -> None:
    """Raises ImportError if the module of an extension imports one that asks for the extensions, of which it will be one."""
    unfinished = getattr(sys.modules.get(module), "__spec__", None)
    if getattr(unfinished, "_initializing", False):
        raise ImportError("it imports a module of bert_tf that lists the extensions; import that in its functions instead")


def _entry_points() -> list[Any]:
    points: Any = metadata.entry_points()
    # Python 3.9 returns a dictionary.
    group = points.select(group=_GROUP) if hasattr(points, "select") else points.get(_GROUP, ())
    return sorted(group, key=lambda point: str(point.name))


def installed() -> Mapping[str, Extension]:
    """Extensions by name, in the order of names: ours, then those of other packages."""
    return _every()[0]


def refuse_broken() -> None:
    """Raises BertError for an extension of another package that cannot be used."""
    for problem in _every()[1]:
        raise BertError(problem)


def commands() -> dict[str, NewCommand]:
    """Commands and actions by name. Several of ours may declare the command whose actions they are; the first counts."""
    every: dict[str, NewCommand] = {}
    for extension in installed().values():
        for name, command in extension.commands.items():
            every.setdefault(name, command)
    return every


def named(field: str) -> dict[str, Any]:
    """What the extensions add in a field that maps names to it: module:name, kinds or drivers."""
    return {name: added for entry in installed().values() for name, added in getattr(entry, field).items()}


def needed(name: str, user: str) -> Extension:
    """The extension that something else (`user`, as a message calls it) needs; raises BertError if its folder was deleted."""
    if name not in installed():
        raise BertError(f"{user} needs the extension {name}, which is missing (docs/extensions.md)")
    return installed()[name]


def advice(command: str, text: str) -> str:
    """`text`, which names a command (or an action, by two words) of an extension; empty if no extension adds it.

    The core advises commands of extensions only through this.
    """
    return text if command in commands() else ""


def load(name: str) -> Any:
    """Imports module:name; raises BertError for whatever the module of another package does when it is imported."""
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except Exception as error:
        if name.startswith("bert_tf.") or isinstance(error, BertError) or versions.lacks_tensorflow(error):
            raise
        raise BertError(f"{name}: {type(error).__name__}: {error}; correct or uninstall its package") from error

"""Settings as fields of frozen dataclasses: name, type, default, help, choices and bounds, declared once.

Flags, --help and the library's keyword arguments are made from them.
"""

from __future__ import annotations

import collections
import dataclasses
import difflib
import errno
import functools
import operator
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple, TypeVar, Union, cast

from bert_tf import extension
from bert_tf.errors import BertError, FlagError, unknown_name
from bert_tf.io import files
from bert_tf.io.documents import LARGEST_SETTING

T = TypeVar("T")
Kind = Union[type, Callable[[], type]]  # a dataclass of settings, or what makes it

# Our settings, and their names in transformers (TrainingArguments, its scripts), Keras, Lightning and others.
_NAMED_ELSEWHERE: Mapping[str, str] = {
    "task_name": "task dataset dataset_name",
    "data_dir": "data data_path data_folder dataset_dir",
    "train_file": "train train_data train_path train_csv training_file",
    "dev_file": "dev validation_file valid_file val_file eval_file validation_data dev_data dev_csv",
    "test_file": "test test_data test_csv",
    "text_a": "text text_column text_col text_field text_column_name text_column_names sentence1_key",
    "text_b": "text_pair text_pair_column sentence2_key",
    "label_column": "label label_col labels_column target target_column label_column_name",
    "problem": "problem_type task_type",
    "max_seq_length": "seq_len seq_length sequence_length max_length max_len maxlen max_seq_len max_sequence_length",
    "do_lower_case": "lower_case lowercase uncased",
    "init_checkpoint": "model model_name model_path model_name_or_path pretrained pretrained_model_name_or_path",
    "checkpoint": "model model_path model_name model_name_or_path model_dir init_checkpoint",
    "checkpoints": "checkpoint model model_path model_name_or_path models",
    "do_train": "train training",
    "do_eval": "eval evaluate validate",
    "do_predict": "predict test",
    "train_batch_size": "batch_size bs batch per_device_train_batch_size per_gpu_train_batch_size train_bs",
    "eval_batch_size": "per_device_eval_batch_size per_gpu_eval_batch_size test_batch_size validation_batch_size",
    "predict_batch_size": "batch_size bs eval_batch_size per_device_eval_batch_size",
    "learning_rate": "lr init_lr base_lr max_lr adam_lr",
    "num_train_epochs": "epochs epoch n_epochs num_epochs max_epochs train_epochs nb_epoch",
    "num_train_steps": "steps max_steps num_steps train_steps total_steps max_train_steps",
    "warmup_proportion": "warmup warmup_ratio warmup_fraction",
    "num_warmup_steps": "warmup_steps",
    "learning_rate_schedule": "lr_scheduler lr_scheduler_type lr_schedule scheduler schedule",
    "layer_decay": "layerwise_lr_decay llrd",
    "gradient_accumulation_steps": "grad_accum accumulate_grad_batches accumulation_steps gradient_accumulation",
    "recompute": "gradient_checkpointing",
    "class_weights": "class_weight loss_weights pos_weight",
    "label_smoothing": "label_smoothing_factor smoothing",
    "optimizer": "optim",
    "seed": "random_state random_seed rng_seed",
    "save_checkpoints_steps": "save_steps save_freq save_every save_interval",
    "keep_checkpoint_max": "save_total_limit save_top_k max_to_keep",
    "log_every_n_steps": "logging_steps log_steps log_interval log_every",
    "eval_every_n_steps": "eval_steps eval_interval evaluation_steps val_check_interval eval_freq",
    "best_metric": "metric_for_best_model monitor metric",
    "early_stopping_patience": "patience early_stopping",
    "precision": "fp16 bf16 tf32 mixed_precision amp dtype",
    "xla": "jit_compile torch_compile",
    "num_gpus": "gpus n_gpu devices",
    "output_dir": "out output out_dir output_path save_dir model_dir save_path",
    "overwrite_output_dir": "overwrite force",
    "input": "input_file input_path file data data_file",
    "output": "output_file output_path out output_dir",
    "skip_bad_rows": "skip_errors on_bad_lines ignore_errors",
    "keep_columns": "passthrough include_input",
    "id_column": "id id_col index_col",
    "file_format": "format",
    "verbosity": "verbose log_level",
}
_KINDS: Mapping[str, type] = {"bool": bool, "float": float, "int": int, "str": str, "tuple[str,": tuple, "tuple[int,": str}
MOST_EXAMPLES = 1 << 17  # of a batch; twice the largest that BERT was pretrained with (You et al., 2019)
_EXPECTED = {bool: "True or False", int: "a whole number", float: "a number", str: "a text", tuple: "names"}
_SENTENCES = {"text", "query"}  # settings that are read by a model
_DECLARED, _GROUP = "setting", "group"  # keys of a field's metadata


class Setting(NamedTuple):
    """One setting.

    A string must not be empty unless allowed: `--init_checkpoint=$UNSET` is a mistake, not the default.
    """

    name: str  # of the field, the flag and the keyword argument
    kind: type  # bool, int, float or str
    default: Any  # None is allowed only if it is the default
    help: str
    lowest: float | None = None
    above: float | None = None  # as `lowest`, but it is no value itself
    below: float | None = None
    choices: tuple[str, ...] = ()  # of a string; empty for any
    may_be_empty: bool = False  # for strings
    check: Callable[[Any], object] | None = None  # raises FlagError; may be what parses the value
    highest: float = LARGEST_SETTING
    required: bool = False
    positional: bool = False  # a word on the command line, not a flag
    in_memory: bool = False  # the library accepts rows instead of their file name
    path: bool = False  # a command that repeats the run from another folder needs the absolute path
    paths: bool = False  # the same, several with commas between them
    written: bool = False  # a path on the local disk: gs://bucket/run would become a folder gs:/
    refuse_missing: Callable[[str], None] | None = None  # of a name that is read: called before TensorFlow is imported
    determines: bool = False  # with another value, something else is learned: it is another run
    exact: bool = False  # computes the same in another way, up to rounding; off in the published layout
    added_later: bool = False  # records of runs leave out its default: runs of versions without the setting can resume
    resolved: bool = False  # read before the run starts, for other settings or for how many runs there are: not recorded
    of_training: bool = False  # has no effect if nothing is trained
    of_labels: bool = False  # for labelled examples, which pre-training does not have
    column_of: str = ""  # of a task: "rows" if files to predict have it, "labels" if only files with labels do
    decodes: bool = False  # of a task: how answers are decoded, so that a trained model may be used with another value
    is_column: bool = False  # names a column of a table, or counts it from 1
    of_recipes: bool = False  # recipes of families set it
    needs_evaluations: bool = False  # has no effect without evaluations during training
    of_rows: bool = False  # chooses or corrects the rows to train on, before they are divided into folds
    of_one_run: bool = False  # a trained model is not used with the value of its training
    programs: tuple[str, ...] = ()  # training commands that take it, if not all those of its extension
    from_program: Callable[[Any], Any] | None = None  # makes the text of a flag of what the library takes too, such as a list


def setting(default: Any, help: str | Callable[[], str], **declared: Any) -> Any:  # noqa: A002  (its usual name)
    """Returns a dataclass field for a `Setting` (`declared`: its fields); its annotation tells the kind, as `int | None`.

    Help and choices that depend on extensions are functions, called when they are needed.
    """
    return dataclasses.field(default=default, metadata={_DECLARED: {"help": help, **declared}})


training_setting = functools.partial(setting, of_training=True)
learned_setting = functools.partial(setting, of_training=True, determines=True)


def same(kind: type, name: str, *, more: str = "", **differing: Any) -> Any:
    """Copies a setting of another dataclass, with differences; `more` is appended to its help."""
    field = next(field for field in dataclasses.fields(kind) if field.name == name)
    default = differing.pop("default", field.default)
    declared = {**field.metadata[_DECLARED], **differing}
    return dataclasses.field(default=default, metadata={_DECLARED: {**declared, "help": declared["help"] + more}})


def group(kind: Kind, title: str = "", *, without: Collection[str] = (), **changed: Mapping[str, Any]) -> Any:
    """Field of a dataclass that holds another dataclass of settings, listed among its own, in --help below a title.

    The default title is the class's TITLE, if it has one, else that of the holder. Settings in `without` keep their defaults;
    `changed` overrides help or choices of a setting.
    """
    return dataclasses.field(default_factory=lambda: _type_of(kind)(), metadata={_GROUP: (kind, title, without, changed)})


def _type_of(kind: Kind) -> type:
    return kind if isinstance(kind, type) else kind()


class OfExtensions:
    """Base of dataclasses that `of_extensions` or a function like it makes; pickles name the function."""

    made_by: ClassVar[Callable[[], type]]

    def __reduce__(self) -> tuple[Any, ...]:
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(cast(Any, self))}
        return _unpickled, (type(self).made_by, values)


def _unpickled(made_by: Callable[[], type], values: Mapping[str, Any]) -> Any:
    return made_by()(**values)


def of_extensions(attribute: str, title: str = "") -> type:
    """A dataclass with a group for each extension, by its name: of the settings that it has as `attribute`.

    `title` is the attribute with the title of its section. The same arguments return the same dataclass.
    """
    return _of_extensions(attribute, title)


@functools.cache
def _of_extensions(attribute: str, title: str) -> type:
    fields = [
        (name, Any, group(getattr(entry, attribute), getattr(entry, title) if title else ""))
        for name, entry in extension.installed().items()
    ]
    return dataclasses.make_dataclass(
        "ExtensionSettings",
        fields,
        bases=(OfExtensions,),
        namespace={"made_by": functools.partial(of_extensions, attribute, title)},
        frozen=True,
    )


def sections_of(kind: type) -> dict[str, list[Setting]]:
    """Settings of a dataclass by the title of their group; its own have none."""
    sections: dict[str, list[Setting]] = {}
    for title, row in _titled(kind):
        sections.setdefault(title, []).append(row)
    return sections


def replaced(holder: T, values: Mapping[str, Any]) -> T:
    """Returns a dataclass of settings with the values of some changed, whichever group they belong to."""
    changed: dict[str, Any] = {}
    for field in dataclasses.fields(cast(Any, holder)):
        if _GROUP in field.metadata:
            changed[field.name] = replaced(getattr(holder, field.name), values)
        elif _DECLARED in field.metadata and field.name in values:
            changed[field.name] = values[field.name]
    return cast(T, dataclasses.replace(cast(Any, holder), **changed))


def settings_of(*kinds: type) -> Iterator[Setting]:
    return (row for kind in kinds for _, row in _titled(kind))


def setting_names(*kinds: type, **attributes: Any) -> tuple[str, ...]:
    """Names of settings in their order, or of those with such attributes as determines=True."""
    rows = (row for kind in kinds for _, row in _titled(kind, lists=False))
    return tuple(row.name for row in rows if all(getattr(row, name) == value for name, value in attributes.items()))


def defaults(*kinds: type) -> dict[str, Any]:
    return {row.name: row.default for row in settings_of(*kinds)}


def refuse_taken(kind: type, added: Mapping[str, type]) -> None:
    """Raises BertError if a dataclass has a setting of an extension twice; `added` are the settings of each."""
    names = collections.Counter(setting_names(kind))
    for name, settings in added.items():
        taken = [own for own in setting_names(settings) if names[own] > 1]
        if taken:
            raise BertError(f"extension {name}: there is a setting {taken[0]} already; correct or uninstall its package")


def annotation(field: dataclasses.Field[Any]) -> str:
    """The type of a field as text, however it was written."""
    return field.type.__name__ if type(field.type) is type else str(field.type)


def _titled(kind: type, title: str = "", *, lists: bool = True) -> Iterator[tuple[str, Setting]]:
    """Settings with the title of their group; `lists` tells whether help and choices may list extensions."""
    for field in dataclasses.fields(kind):
        if _DECLARED in field.metadata:
            word = annotation(field).partition(" ")[0]
            if word not in _KINDS:
                place = f"{kind.__module__}.{kind.__qualname__}.{field.name}"
                known = "bool, int, float, str, tuple[str, ...], X | None"
                raise BertError(f"{place}: {field.type} is no type of a setting ({known}); correct or uninstall its package")
            declared = field.metadata[_DECLARED]
            late = {name: declared[name]() for name in ("help", "choices") if lists and callable(declared.get(name))}
            yield title, Setting(field.name.rstrip("_"), _KINDS[word], field.default, **{**declared, **late})
        elif _GROUP in field.metadata:
            kind_of_group, own_title, without, changed = field.metadata[_GROUP]
            inner = _type_of(kind_of_group)
            for place, row in _titled(inner, own_title or getattr(inner, "TITLE", title), lists=lists):
                if row.name not in without:
                    yield place, row._replace(**changed.get(row.name, {}))


def read_settings(kind: type[T], values: Mapping[str, Any]) -> T:
    """Makes a dataclass of settings, groups included, from values by name; None means not given. Raises FlagError.

    A field `given` gets the names of the values. Names that are keywords of Python belong to fields with a trailing underscore.
    """
    rows = tuple(settings_of(kind))
    complete: Callable[..., dict[str, Any]] = getattr(kind, "complete", dict)  # adds those of a job file
    complete_values = complete(named(rows, values))
    for row in rows:
        if row.required and row.name not in complete_values:
            name = row.name if row.positional else f"--{row.name}"
            raise FlagError(f"{name} is required: {row.help.partition(';')[0]}")
    return _made(kind, complete_values)


def _made(kind: type[T], values: Mapping[str, Any]) -> T:
    fields: dict[str, Any] = {}
    for field in dataclasses.fields(cast(Any, kind)):
        if _GROUP in field.metadata:
            fields[field.name] = _made(_type_of(field.metadata[_GROUP][0]), values)
        elif field.name.rstrip("_") in values:
            fields[field.name] = values[field.name.rstrip("_")]
        elif field.name == "given":
            fields["given"] = frozenset(values)
    return kind(**fields)


def values_of(settings: Any) -> dict[str, Any]:
    """Returns the values of settings by name, groups included."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(settings):
        if _GROUP in field.metadata:
            values.update(values_of(getattr(settings, field.name)))
        elif _DECLARED in field.metadata:
            values[field.name.rstrip("_")] = getattr(settings, field.name)
    return values


def changed(settings: Any) -> dict[str, Any]:
    """Returns settings that differ from their defaults, by name, groups included."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if _GROUP in field.metadata:
            values.update(changed(value))
        elif value != field.default:
            values[field.name] = value
    return values


def check(row: Setting, value: object) -> None:
    """Raises FlagError for an empty string, an unknown choice or an out-of-bounds number."""
    if value == "" and not row.may_be_empty:
        raise left_empty(row.name)
    if isinstance(value, tuple) and "" in value:
        raise FlagError(f"--{row.name}={','.join(value)}: a name is empty; remove the extra comma")
    for text in value if isinstance(value, tuple) else [value] if isinstance(value, str) else ():
        refuse_unusable_text(f"--{row.name}", text)
        if row.name not in _SENTENCES and text != "~":  # which may be a separator or a column
            _refuse_home(f"--{row.name}", text)
        if row.written:
            refuse_remote(f"--{row.name}=", text)
    if row.choices and value not in (None, *row.choices):
        raise FlagError(f"--{row.name}: {unknown_name('value', str(value), row.choices)}")
    if isinstance(value, (int, float)) and not abs(value) <= row.highest:  # nan compares as false
        raise FlagError(f"flag --{row.name}={value}: not a number up to {row.highest}")
    if isinstance(value, (int, float)) and row.above is not None and value <= row.above:
        raise FlagError(f"--{row.name}={value:g}: must be above {row.above:g}")
    if isinstance(value, (int, float)) and row.below is not None and value >= row.below:
        raise FlagError(f"--{row.name}={value:g}: must be below {row.below:g}")
    if row.check is not None and value is not None:
        row.check(value)


def refuse_unusable_text(name: str, text: str) -> None:
    """Raises FlagError for NUL or lone surrogates, which neither file names nor text files hold."""
    try:
        text.encode("utf-8", "surrogateescape")  # names of files may hold any byte
    except UnicodeEncodeError as error:
        raise FlagError(f"{name}={text!a:.80}: unpaired surrogate {text[error.start]!a}") from error
    if "\0" in text:
        raise FlagError(f"{name}={text!r:.80}: holds a NUL character")


def _refuse_home(name: str, text: str) -> None:
    """Raises FlagError for a ~ that nobody expanded: a folder of this name would be made."""
    if text == "~" or text.startswith("~/"):
        written = os.path.expanduser(text)
        raise FlagError(f"{name}={text:.80}: ~ is the home folder only where a word of a shell begins; write {written:.200}")


def refuse_remote(flag: str, path: str, remedy: str = "and copy it afterwards") -> None:
    """Raises FlagError for a path with a scheme, such as gs://bucket/run, where the local disk is written."""
    if files.has_scheme(path):
        raise FlagError(f"{flag}{path:.200}: outputs are written to the local disk; name a local path, {remedy}")


def path_of(name: str, value: object) -> str:
    """Returns an argument's path as a string; FlagError if it is not a path, empty or unusable."""
    try:
        text = _text(value)
    except TypeError as error:
        raise FlagError(f"{name}={value!r:.80}: expected a path, as a string or a pathlib.Path") from error
    if not text:
        raise FlagError(f"{name} is empty: give a path")
    refuse_unusable_text(name, text)
    _refuse_home(name, text)
    for part in text.split(","):  # some settings take several paths
        try:
            os.stat(part)
        except OSError as error:
            if error.errno in (errno.ENAMETOOLONG, errno.ELOOP):  # other errors are left to whoever opens it
                raise FlagError(f"{name}={part!r:.80}: {files.reason(error)}") from error
    return text


def left_empty(name: str) -> FlagError:
    return FlagError(f"--{name} is empty: did you mean to set a shell variable? Give a value, or leave the flag out")


def checked(row: Setting, value: object) -> Any:
    """Returns a program's value as its setting's type: a path as a string, 3 as 3.0; FlagError if invalid."""
    if value is None and row.default is None:
        return None
    if row.in_memory and isinstance(value, (list, tuple)):
        return list(value)
    if row.from_program is not None:
        value = row.from_program(value)
    try:
        parsed = _READ[row.kind](value)
    except (TypeError, OverflowError) as error:
        raise FlagError(f"--{row.name}={value!r}: expected {_EXPECTED[row.kind]}") from error
    if row.lowest is not None and parsed < row.lowest:
        raise FlagError(f"--{row.name}={value}: expected at least {row.lowest}")
    check(row, parsed)
    return parsed


def named(rows: Iterable[Setting], values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a program's values by setting name, each as its setting's type; None counts as not given."""
    known = {row.name: row for row in rows}
    for name in values:
        if name not in known:
            raise FlagError(unknown_setting("setting", name, known))
    read = {name: checked(known[name], value) for name, value in values.items()}
    return {name: value for name, value in read.items() if value is not None}


def nearest(name: str, known: Collection[str]) -> str | None:
    """Returns the setting that a name may mean: a known synonym, else the most similar spelling."""
    folded = name.lower().replace("-", "_")
    if folded in known:
        return folded
    synonym = next((ours for ours, theirs in _NAMED_ELSEWHERE.items() if ours in known and folded in theirs.split()), None)
    return synonym or next(iter(difflib.get_close_matches(folded, known, n=1)), None)


def unknown_setting(kind: str, name: str, known: Collection[str]) -> str:
    """Returns a message on an unknown setting; lists all only if none is similar."""
    near = nearest(name, known)
    return f"unknown {kind} {name!r}; did you mean {near}?" if near else unknown_name(kind, name, known)


def fields_of(kind: Callable[..., T], values: Mapping[str, Any]) -> T:
    names = (field.name for field in dataclasses.fields(cast(Any, kind)))
    return kind(**{name: values[name] for name in names if name in values})


def _bool(value: Any) -> bool:
    if isinstance(value, str) or str(value) not in ("True", "False"):  # NumPy's too
        raise TypeError
    return bool(value)


def _number(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def number(value: Any) -> Any:
        if isinstance(value, (bool, str, bytes)):
            raise TypeError
        return read(value)

    return number


def _text(value: Any) -> str:
    path = os.fspath(value)
    if not isinstance(path, str):  # bytes
        raise TypeError
    return path


def _names(value: Any) -> tuple[str, ...]:
    """Returns the names that a text with commas, a path or a list holds."""
    names: Iterable[Any] = value.split(",") if isinstance(value, str) else value
    names = [value] if isinstance(value, os.PathLike) else names
    return tuple(map(_text, names))


_READ: Mapping[type, Callable[[Any], Any]] = {
    bool: _bool,
    int: _number(operator.index),
    float: _number(float),
    str: _text,
    tuple: _names,
}

"""Formats by name, and options; the table imports none of them, so --help is fast and optional packages may be missing."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bert_tf import extension, extras
from bert_tf.errors import FlagError
from bert_tf.io import files
from bert_tf.settings import changed, group, setting

if TYPE_CHECKING:
    from bert_tf.batch.engine import Compute
    from bert_tf.extensions.export.job import ExportJob

PRECISIONS = ("float32", "int8", "bfloat16")


def has_card() -> bool:
    """Whether the card of a model can be written."""
    return {"card", "report"} <= extension.installed().keys()


def _credits() -> type:
    """What the card in the folder says besides; nothing if there is no extension that writes it."""
    return extension.load("bert_tf.extensions.card:Credits") if has_card() else extension.Settings


@dataclasses.dataclass(frozen=True)
class ExportOptions:
    """How to export a model; each format takes some of them."""

    precision: str = setting("float32", f"precision of onnx and openvino: {', '.join(PRECISIONS)}", choices=PRECISIONS)
    pairs: bool | None = setting(
        None, "inputs of saved_model and huggingface are sentence pairs, text_a and text_b; default: as in training"
    )
    gate_data: str | None = setting(
        None,
        "labelled examples to measure reduced precision or long texts; default: the task's dev split",
        refuse_missing=files.refuse_missing,
    )
    max_loss_of_metric: float = setting(0.5, "maximum loss of a metric by reduced precision, in points", lowest=0.0)
    credits: Any = group(_credits)


@dataclasses.dataclass(frozen=True)
class Format:
    """An export format. `write` fills an empty folder deterministically.

    The folder is temporary: its name must not appear in the output.
    """

    name: str  # value of `--format`
    write: Callable[[ExportJob, Path], None]
    extra: str | None = None  # group of optional packages in pyproject.toml
    imports: tuple[str, ...] = ()  # modules of the group
    precisions: tuple[str, ...] = ("float32",)
    is_converted: bool = False  # to what an engine computes
    record: Callable[[ExportJob, Path], Mapping[str, Any]] | None = None  # more facts for the record, once all is written
    ignores_pairs: str = ""  # why `pairs` has no effect; empty if it determines what is written
    writes_card: bool = False
    measures_long_texts: bool = False

    def require(self, precision: str) -> None:
        """Raises FlagError if the format lacks the precision or an optional package is missing; says how to install it."""
        if precision not in self.precisions:
            raise FlagError(f"--precision={precision}: --format={self.name} supports {', '.join(self.precisions)}")
        if self.is_converted:
            extension.needed("engines", f"--format={self.name}")
        missing = [name for name in self.imports if importlib.util.find_spec(name) is None]
        if self.extra and missing:
            raise FlagError(f"--format={self.name} needs {', '.join(missing)}: {extras.install(self.extra)}")

    def refuse_idle(self, options: ExportOptions) -> None:
        """Raises FlagError for an option without effect on this format in its precision."""
        is_reduced, credit = options.precision != PRECISIONS[0], next(iter(changed(options.credits)), None)
        if "max_loss_of_metric" in changed(options) and not is_reduced:
            raise FlagError("--max_loss_of_metric: is for --precision=int8 or bfloat16; leave it out")
        if options.gate_data and not (is_reduced or self.measures_long_texts):
            raise FlagError(
                "--gate_data: measures --precision=int8 or bfloat16, and long texts of --format=huggingface; nothing else"
            )
        if options.pairs is not None and self.ignores_pairs:
            raise FlagError(f"--{'' if options.pairs else 'no'}pairs: --format={self.name} {self.ignores_pairs}; leave it out")
        if credit and not self.writes_card:
            raise FlagError(
                f"--{credit}: --format={self.name} has no model card; leave it out (python -m bert_tf card makes one)"
            )


def _late(module: str, name: str) -> Callable[..., Any]:
    """A function of this package that is imported when it is called."""
    return lambda *arguments: getattr(importlib.import_module(f"bert_tf.extensions.export.{module}"), name)(*arguments)


FORMATS: Mapping[str, Format] = {
    row.name: row
    for row in (
        Format("saved_model", _late("saved_model.writer", "write")),
        Format("huggingface", _late("huggingface", "write"), writes_card=True, measures_long_texts=True),
        Format(
            "onnx",
            _late("onnx", "write"),
            "onnx",
            ("onnx", "onnxruntime"),
            ("float32", "int8"),
            is_converted=True,
            record=_late("onnx", "record"),
            ignores_pairs="reads texts as in training",
            writes_card=True,
        ),
        Format(
            "openvino",
            _late("openvino", "write"),
            "openvino",
            ("onnx", "openvino", "nncf"),
            ("float32", "bfloat16", "int8"),
            is_converted=True,
            ignores_pairs="reads ids alone",
        ),
    )
}
# Opens exports that can be executed here: from the folder to a function from ids to the head's outputs.
OPENERS: Mapping[str, Callable[[Path], Compute]] = {
    "saved_model": _late("saved_model.writer", "open_folder"),
    "onnx": _late("onnx", "open_folder"),
    "openvino": _late("openvino", "open_folder"),
}


@dataclasses.dataclass(frozen=True)
class Target:
    """What to write, and where."""

    format: str = setting(None, f"format: {', '.join(FORMATS)}", choices=tuple(FORMATS), required=True)
    output: str = setting(
        None, "folder to write; an existing export of the same format is replaced", required=True, written=True
    )
    overwrite: bool = setting(False, "replace any folder except a run")
    options: ExportOptions = group(ExportOptions)

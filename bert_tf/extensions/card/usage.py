"""Code of a card that loads the model and predicts; it runs in the folder of the card."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from bert_tf import extension
from bert_tf.checkpoints.huggingface_export import Architecture
from bert_tf.extension import Usage
from bert_tf.head_spec import CLASSIFICATION, MULTI_LABEL, REGRESSION
from bert_tf.io import documents
from bert_tf.kinds import Registry

Row = Mapping[str, Any]

_UNSAFE = re.compile("[`\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")

_PIPELINE = """\
from transformers import pipeline

model = pipeline("{task}", model="."{options})
model({row})"""
_ENCODE = """\
from sentence_transformers import SentenceTransformer

model = SentenceTransformer(".")
model.encode([{first}])"""
_TEXT: Row = {"text": "The parcel arrived late, and the box was damaged."}
_PAIR: Row = {"text_a": "The parcel arrived late.", "text_b": "The delivery took longer than promised."}

LABELS = Usage(_TEXT)
NUMBERS = Usage(_TEXT, options=', function_to_apply="none"')
SEVERAL_LABELS = Usage(_TEXT, options=", top_k=None")
_OTHER = Usage(_TEXT, call="", line="")

_USAGES = Registry[Usage](
    "usage",
    {CLASSIFICATION: f"{__name__}:LABELS", REGRESSION: f"{__name__}:NUMBERS", MULTI_LABEL: f"{__name__}:SEVERAL_LABELS"},
)


def package(kind: str, place: str, *, pairs: bool, row: Row | None) -> tuple[str, str]:
    """Python code and a command line, empty if there is none; `place` is the run or its checkpoint, `row` one of its data."""
    load = f'import bert_tf\n\nmodel = bert_tf.load("{place}")'
    usage = _USAGES.get(kind, _OTHER)
    if not usage.call or (usage.command and usage.command not in extension.commands()):
        return load, ""
    values = _values(usage, row, pairs=pairs)
    shown = next(iter(values.values())) if len(values) == 1 else f"({', '.join(values.values())})"
    if usage.named:
        shown = f"{{{', '.join(f'{documents.to_json(name)}: {value}' for name, value in values.items())}}}"
    return f"{load}\n{usage.call.format(row=shown)}", usage.line.format(place=place, row=shown)


def transformers(kind: str, architecture: Architecture, *, pairs: bool, row: Row | None) -> str:
    """Code for a folder in Hugging Face's layout."""
    usage = _USAGES.get(kind, _OTHER)
    values = _values(usage, row, pairs=pairs)
    if architecture.makes_vectors:
        return _ENCODE.format(first=next(iter(values.values())))
    if usage.transformers:
        return usage.transformers.format(**values)
    text = f'{{"text": {values["text_a"]}, "text_pair": {values["text_b"]}}}' if "text_b" in values else values["text"]
    return _PIPELINE.format(task=architecture.pipeline, options=usage.options, row=f"{text}{usage.call_options}")


def _values(usage: Usage, row: Row | None, *, pairs: bool) -> dict[str, str]:
    """The row, if the model reads it; else one that any model of its kind does. As literals of Python."""
    own = _PAIR if pairs and usage.row is _TEXT else usage.row
    shown = row if row is not None and row.keys() == own.keys() else own
    return {
        name: f"[{', '.join(map(_literal, value))}]" if isinstance(value, list) else _literal(value)
        for name, value in shown.items()
    }


def _literal(text: str) -> str:
    """A literal of Python in a block of Markdown: without backticks, and without what changes a line."""
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", documents.to_json(text, ensure_ascii=False))

"""Code of a card that loads the model and predicts; it runs in the folder of the card."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from bert_tf.head_spec import CLASSIFICATION, MULTI_LABEL, REGRESSION
from bert_tf.io import documents
from bert_tf.kinds import Registry

Row = Mapping[str, Any]


class Usage(NamedTuple):
    """How a kind of models is used, with the values of a row as literals."""

    row: Row  # if there is none of the data
    call: str = "model.predict([{row}])[0].label"  # empty if there is none
    line: str = "python -m bert_tf predict --checkpoint={place} --input=FILE --output=predictions.tsv"
    named: bool = False  # whether a row is a mapping, else a sequence of values
    transformers: str = ""  # code for a folder in Hugging Face's layout, `first` is its first value; empty for a pipeline
    options: str = ""  # of the pipeline


_UNSAFE = re.compile("[`\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")

PIPELINE = """\
from transformers import pipeline

model = pipeline("{task}", model="."{options})
model({row})"""
CLASS = """\
import torch
from transformers import {name}, AutoTokenizer

tokenizer, model = AutoTokenizer.from_pretrained("."), {name}.from_pretrained(".")
"""
ENCODE = """\
from sentence_transformers import SentenceTransformer

model = SentenceTransformer(".")
model.encode([{first}])"""
TEXT: Row = {"text": "The parcel arrived late, and the box was damaged."}
PAIR: Row = {"text_a": "The parcel arrived late.", "text_b": "The delivery took longer than promised."}

LABELS = Usage(TEXT)
NUMBERS = Usage(TEXT, options=', function_to_apply="none"')
SEVERAL_LABELS = Usage(TEXT, options=", top_k=None")
_OTHER = Usage(TEXT, call="", line="")

_USAGES = Registry[Usage](
    "usage",
    {CLASSIFICATION: f"{__name__}:LABELS", REGRESSION: f"{__name__}:NUMBERS", MULTI_LABEL: f"{__name__}:SEVERAL_LABELS"},
)


def package(kind: str, place: str, *, pairs: bool, row: Row | None = None) -> tuple[str, str]:
    """Python code and a command line, empty if there is none; `place` is the run or its checkpoint, `row` one of its data."""
    load = f'import bert_tf\n\nmodel = bert_tf.load("{place}")'
    usage = _USAGES.get(kind, _OTHER)
    if not usage.call:
        return load, ""
    values = _values(usage, row, pairs=pairs)
    shown = next(iter(values.values())) if len(values) == 1 else f"({', '.join(values.values())})"
    if usage.named:
        shown = f"{{{', '.join(f'{documents.to_json(name)}: {value}' for name, value in values.items())}}}"
    return f"{load}\n{usage.call.format(row=shown)}", usage.line.format(place=place, row=shown)


def transformers(kind: str, pipeline: str, *, pairs: bool, row: Row | None = None) -> str:
    """Code for a folder in Hugging Face's layout."""
    usage = _USAGES.get(kind, _OTHER)
    values = _values(usage, row, pairs=pairs)
    if usage.transformers:
        return usage.transformers.format(**values, first=next(iter(values.values())))
    text = f'{{"text": {values["text_a"]}, "text_pair": {values["text_b"]}}}' if "text_b" in values else values["text"]
    return PIPELINE.format(task=pipeline, options=usage.options, row=f"{text}, truncation=True")


def _values(usage: Usage, row: Row | None, *, pairs: bool) -> dict[str, str]:
    """The row, if the model reads it; else one that any model of its kind does. As literals of Python."""
    own = PAIR if pairs and usage.row is TEXT else usage.row
    return _literals(row if row is not None and row.keys() == own.keys() else own)


def _literals(row: Row) -> dict[str, str]:
    """Values as literals of Python in a block of Markdown: without backticks, and without what changes a line."""
    return {
        name: f"[{', '.join(map(_literal, value))}]" if isinstance(value, list) else _literal(value)
        for name, value in row.items()
    }


def _literal(text: str) -> str:
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", documents.to_json(text, ensure_ascii=False))

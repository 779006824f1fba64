"""Code of a card that loads the model and predicts; it runs in the folder of the card."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from bert_tf import extension
from bert_tf.head_spec import (
    CLASSIFICATION,
    CONTRASTIVE,
    MULTI_LABEL,
    PRETRAINING,
    REGRESSION,
    SIMILARITY,
    VECTORS,
)
from bert_tf.io import documents

Row = Mapping[str, Any]


class Usage(NamedTuple):
    """How a kind of models is used."""

    row: Row  # if there is none of the data
    field: str = "label"  # of a prediction
    named: bool = False  # whether a row is a mapping, else a sequence of values
    transformers: str = ""  # code for a folder in Hugging Face's layout, a format of the row's values as literals


_UNSAFE = re.compile("[`\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")

_SENTENCES = (CLASSIFICATION, REGRESSION, MULTI_LABEL)
_PAIRS = (SIMILARITY, CONTRASTIVE)
_MASKED = "It rained all [MASK]."
_TEXT: Row = {"text": "The parcel arrived late, and the box was damaged."}
_PAIR: Row = {"text_a": "The parcel arrived late.", "text_b": "The delivery took longer than promised."}
_FIELDS = dict.fromkeys(_PAIRS, "cosine")  # of a prediction; else label
_OPTIONS_OF = {  # of a pipeline
    REGRESSION: ', function_to_apply="none"',
    MULTI_LABEL: ", top_k=None",
}
PIPELINE = """\
from transformers import pipeline

model = pipeline("{task}", model="."{options})
model({row})"""
CLASS = """\
import torch
from transformers import {name}, AutoTokenizer

tokenizer, model = AutoTokenizer.from_pretrained("."), {name}.from_pretrained(".")
"""
_ENCODE = """\
from sentence_transformers import SentenceTransformer

model = SentenceTransformer(".")
model.encode([{text}])"""


def package(kind: str, place: str, *, pairs: bool, row: Row | None = None) -> tuple[str, str]:
    """Python code and a command line, empty if there is none; `place` is the run or its checkpoint, `row` one of its data."""
    load = f'import bert_tf\n\nmodel = bert_tf.load("{place}")'
    line = extension.advice("fill-mask", f'python -m bert_tf fill-mask {place} --text="{_MASKED}"')
    if kind == PRETRAINING and line:
        return f'{load}\nmodel.fill_mask(["{_MASKED}"])[0][0].words', line
    new = _added(kind)
    if kind not in (*_SENTENCES, *_FIELDS) and new is None:
        return load, ""
    given = _literals(_usable(kind, row, pairs=pairs))
    if new is not None and new.named:
        shown = f"{{{', '.join(f'{documents.to_json(name)}: {value}' for name, value in given.items())}}}"
    else:
        shown = next(iter(given.values())) if len(given) == 1 else f"({', '.join(given.values())})"
    call = f"model.predict([{shown}])[0].{new.field if new else _FIELDS.get(kind, 'label')}"
    return f"{load}\n{call}", f"python -m bert_tf predict --checkpoint={place} --input=FILE --output=predictions.tsv"


def transformers(kind: str, pipeline: str, *, pairs: bool, row: Row | None = None) -> str:
    """Code for a folder in Hugging Face's layout."""
    given = _literals(_usable(kind, row, pairs=pairs))
    if kind in (*_PAIRS, VECTORS):
        return _ENCODE.format(text=next(iter(given.values())))
    new = _added(kind)
    if new is not None and new.transformers:
        return new.transformers.format(**given)
    rows = {PRETRAINING: f'"{_MASKED}"'}
    text = f'{{"text": {given["text_a"]}, "text_pair": {given["text_b"]}}}' if "text_b" in given else given["text"]
    options = _OPTIONS_OF.get(kind, "")
    return PIPELINE.format(task=pipeline, options=options, row=rows.get(kind, f"{text}, truncation=True"))


def _added(kind: str) -> Usage | None:
    """What an extension says of its kind."""
    new = extension.kinds().get(kind)
    return extension.load(new.usage) if new and new.usage else None


def _usable(kind: str, row: Row | None, *, pairs: bool) -> Row:
    """The row, if the model reads it; else one that any model of its kind does."""
    new = _added(kind)
    own = new.row if new else _PAIR if pairs or kind in _PAIRS else _TEXT
    return row if row is not None and row.keys() == own.keys() else own


def _literals(row: Row) -> dict[str, str]:
    """Values as literals of Python in a block of Markdown: without backticks, and without what changes a line."""
    return {
        name: f"[{', '.join(map(_literal, value))}]" if isinstance(value, list) else _literal(value)
        for name, value in row.items()
    }


def _literal(text: str) -> str:
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", documents.to_json(text, ensure_ascii=False))

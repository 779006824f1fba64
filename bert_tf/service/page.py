"""Pages for trying the model and for the API documentation. They load nothing from other hosts."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import jinja2

from bert_tf import documents
from bert_tf.service.worker import Description

STATIC = {"page.js": "text/javascript; charset=utf-8", "page.css": "text/css; charset=utf-8"}

_HERE = Path(__file__).parent


@functools.cache
def static(name: str) -> tuple[bytes, str]:
    """Content and media type of a file that the pages load; `name` is a key of `STATIC`."""
    return (_HERE / name).read_bytes(), STATIC[name]


def to_try(model: Description | None) -> str:
    form = model.form if model else None
    example = dict(form.example) if form else {}
    shown = {name: "\n".join(value) if isinstance(value, list) else value for name, value in example.items()}
    as_json = documents.to_json({"rows": [example]} if form else {"rows": []}, ensure_ascii=False)
    return _template("page.html.j2").render(model=model, form=form, example=shown, example_json=as_json)


def docs(document: dict[str, Any]) -> str:
    return _template("docs.html.j2").render(document=document, as_json=_as_json)


def _as_json(value: Any) -> str:
    return documents.to_json(value, indent=2, ensure_ascii=False)


@functools.cache
def _template(name: str) -> jinja2.Template:
    loader = jinja2.FileSystemLoader(_HERE)
    return jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    ).get_template(name)

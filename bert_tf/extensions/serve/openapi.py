"""OpenAPI document of the loaded model, and pages to read it and to try the model; they load nothing from other hosts."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import jinja2

from bert_tf import versions
from bert_tf.extensions.serve import forms
from bert_tf.extensions.serve.call import PREDICT, ROWS, Call, every
from bert_tf.extensions.serve.settings import Limits
from bert_tf.extensions.serve.worker import Description
from bert_tf.io import documents
from bert_tf.tasks.predictions import object_schema

# Media types of the files that the pages load.
STATIC = {"page.js": "text/javascript; charset=utf-8", "page.css": "text/css; charset=utf-8"}

_HERE = Path(__file__).parent

_ERRORS = {
    "400": "invalid UTF-8 JSON (NaN not allowed), a repeated key, nesting too deep; Content-Length with Transfer-Encoding",
    "403": "Host or Origin is not allowed; see --allowed_hosts",
    "408": "timeout while reading the body",
    "413": "the body, a text, or the number of rows is too large",
    "415": "the body is compressed",
    "422": "JSON of another form",
    "429": "too many requests wait; Retry-After says when to try again",
    "500": "the rows cannot be computed",
    "503": "no worker is ready, or no answer in time; Retry-After says when to try again",
}
_RELOAD = {"403": "a browser may not reload", "409": "a reload is in progress", "503": "the checkpoint cannot be loaded"}
_REFUSED = object_schema({"status": {"type": "integer"}, "message": {"type": "string", "description": "one line"}})
_ERROR = object_schema({"error": _REFUSED})
_MODEL = object_schema(
    {
        "name": {"type": "string", "description": "of the run's folder"},
        "checkpoint": {"type": "string"},
        "digest": {"type": "string", "description": "fingerprint of its weights"},
    }
)
_UNKNOWN = forms.Form("Predicts rows.", {}, {}, (), "json")
_GETS = {
    "/": ("a page to try the model", "text/html"),
    "/docs": ("this document as a page", "text/html"),
    "/openapi.json": ("this document", "application/json"),
    "/health": ("200 if requests can be computed now, else 503", "application/json"),
    "/health/live": ("200 if the process responds", "application/json"),
    "/health/ready": ("the same as /health", "application/json"),
    "/metrics": ("figures for Prometheus", "text/plain"),
}


def document(model: Description | None, limits: Limits, *, paths: Collection[str]) -> dict[str, Any]:
    form = (model and model.form) or _UNKNOWN
    described: dict[str, Any] = {
        path: {"get": {"summary": says, "responses": {"200": {"description": says, "content": {kind: {}}}}}}
        for path, (says, kind) in _GETS.items()
        if path in paths
    }
    described.update(
        (f"/{name}", {"post": _call(call, form, limits)})
        for name, call in every().items()
        if name == PREDICT or (model and name in model.calls)
    )
    if "/reload" in paths:
        described["/reload"] = {
            "post": _answered(
                "Loads the current checkpoint of the run.", object_schema({"model": _reference("Model")}), _RELOAD
            )
        }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"bert_tf: {model.name if model else 'loading'}",
            "version": versions.__version__,
            "description": _described(model, form, limits),
        },
        "paths": described,
        "components": {
            "schemas": {
                "Error": _ERROR,
                "Model": _MODEL,
                "Row": form.row,
                **{call.answer: call.schema(form) for call in every().values()},
            }
        },
    }


def _described(model: Description | None, form: forms.Form, limits: Limits) -> str:
    labels = f" Labels: {', '.join(model.labels)}." if model and model.labels else ""
    return (
        f"{form.says}{labels} A request has at most {limits.max_rows} rows, {limits.body_bytes} bytes, and"
        f" {limits.max_text_length} characters in a text."
    )


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _call(call: Call, form: forms.Form, limits: Limits) -> dict[str, Any]:
    """A body is an object with rows, or a single row object."""
    row, of_row = call.row(form), _reference(call.answer)
    rows = {"type": "array", "items": row, "maxItems": limits.max_rows if call.key else 1}
    options = {name: option.schema for name, option in call.options.items()}
    body = {"anyOf": [object_schema({ROWS: rows}, options), {"type": "object", "description": "one row", **row}]}
    listed = {"model": _reference("Model"), call.key: {"type": "array", "items": of_row}}
    answer = object_schema(listed) if call.key else of_row
    return _post(call.says or form.says, body, call.example(form), answer)


def _post(says: str, body: Mapping[str, Any], example: Any, answer: Mapping[str, Any]) -> dict[str, Any]:
    content = {"application/json": {"schema": body, "example": example}}
    return {"requestBody": {"required": True, "content": content}, **_answered(says, answer)}


def _answered(says: str, answer: Mapping[str, Any], errors: Mapping[str, str] = _ERRORS) -> dict[str, Any]:
    refused = {status: _response(said, _reference("Error")) for status, said in errors.items()}
    return {
        "summary": says,
        "responses": {"200": _response("the answers, in the order of the rows", answer), **refused},
    }


def _response(says: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": says, "content": {"application/json": {"schema": schema}}}


def page(model: Description | None) -> str:
    form = model.form if model else None
    example = dict(form.example) if form else {}
    shown = {name: "\n".join(value) if isinstance(value, list) else value for name, value in example.items()}
    if "text" in example:  # a form for one text or two calls it the first
        shown.setdefault("text_a", example["text"])
    as_json = documents.to_json({"rows": [example]} if form else {"rows": []}, ensure_ascii=False)
    return _template("page.html.j2").render(model=model, form=form, example=shown, example_json=as_json)


def docs_page(document: dict[str, Any]) -> str:
    as_json = functools.partial(documents.to_json, indent=2, ensure_ascii=False)
    return _template("docs.html.j2").render(document=document, as_json=as_json)


@functools.cache
def _template(name: str) -> jinja2.Template:
    loader = jinja2.FileSystemLoader(_HERE)
    return jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    ).get_template(name)

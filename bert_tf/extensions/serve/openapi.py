"""OpenAPI document of the loaded models, and pages to read it and to try them; they load nothing from other hosts."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2

from bert_tf import versions
from bert_tf.extensions.serve import forms
from bert_tf.extensions.serve.call import PREDICT, ROWS, Call, every
from bert_tf.extensions.serve.question import MODELS
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


def document(
    models: Sequence[Description], limits: Limits, *, paths: Collection[str], names: Sequence[str] = ()
) -> dict[str, Any]:
    """`models` are those of the service, none while they are loading; `names` are those of several."""
    described: dict[str, Any] = {
        path: {"get": {"summary": says, "responses": {"200": {"description": says, "content": {kind: {}}}}}}
        for path, (says, kind) in _GETS.items()
        if path in paths
    }
    schemas: dict[str, Any] = {"Error": _ERROR, "Model": _MODEL}
    if names:
        described[f"/{PREDICT}"] = {"post": _of_several(names, models, limits)}
        for number, (name, model) in enumerate(itertools.zip_longest(names, models), 1):
            _add(described, schemas, model, limits, path=f"/{quote(name)}", suffix=str(number))
    else:
        _add(described, schemas, models[0] if models else None, limits)
    if "/reload" in paths:
        one, many = {"model": _reference("Model")}, {"models": {"type": "array", "items": _reference("Model")}}
        reloaded: dict[str, Any] = many if names else one
        described["/reload"] = {"post": _answered("Loads the current checkpoint of the run.", object_schema(reloaded), _RELOAD)}
    title = ", ".join(model.name for model in models) or "loading"
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"bert_tf: {title}",
            "version": versions.__version__,
            "description": _described(models, limits),
        },
        "paths": described,
        "components": {"schemas": schemas},
    }


def _add(
    paths: dict[str, Any],
    schemas: dict[str, Any],
    model: Description | None,
    limits: Limits,
    *,
    path: str = "",
    suffix: str = "",
) -> None:
    """Adds the calls of a model; `path` and `suffix`, of schemas, tell several apart."""
    form = (model and model.form) or _UNKNOWN
    for name, call in every().items():
        if name == PREDICT or (model and name in model.calls):
            paths[f"/{name}{path}"] = {"post": _call(call, form, limits, suffix)}
    schemas[f"Row{suffix}"] = form.row
    schemas.update((f"{call.answer}{suffix}", call.schema(form)) for call in every().values())


def _of_several(names: Sequence[str], models: Sequence[Description], limits: Limits) -> dict[str, Any]:
    rows = {"type": "array", "items": {}, "maxItems": limits.max_rows, "description": "rows that each of the models takes"}
    asked = {"type": "array", "items": {"enum": list(names)}, "minItems": 1, "uniqueItems": True, "description": "default: all"}
    body = object_schema({ROWS: rows}, {MODELS: asked})
    call = every()[PREDICT]
    of_models = {name: _listed(call, _reference(f"{call.answer}{number}")) for number, name in enumerate(names, 1)}
    answers = {"type": "object", "properties": of_models, "additionalProperties": False}
    form = (models[0].form if models else None) or _UNKNOWN
    example = {MODELS: list(names), ROWS: [form.example]}
    return _post("Predicts with several models.", body, example, object_schema({"answers": answers}))


def _described(models: Sequence[Description], limits: Limits) -> str:
    of_models = [f"{model.name}: {_says(model)}" for model in models] if len(models) > 1 else list(map(_says, models))
    return (
        f"{' '.join(of_models) or _UNKNOWN.says} A request has at most {limits.max_rows} rows, {limits.body_bytes} bytes, and"
        f" {limits.max_text_length} characters in a text."
    )


def _says(model: Description) -> str:
    labels = f" Labels: {', '.join(model.labels)}." if model.labels else ""
    return f"{(model.form or _UNKNOWN).says}{labels}"


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _call(call: Call, form: forms.Form, limits: Limits, suffix: str) -> dict[str, Any]:
    """A body is an object with rows, or a single row object."""
    row, of_row = call.row(form), _reference(f"{call.answer}{suffix}")
    rows = {"type": "array", "items": row, "maxItems": limits.max_rows if call.key else 1}
    options = {name: option.schema for name, option in call.options.items()}
    body = {"anyOf": [object_schema({ROWS: rows}, options), {"type": "object", "description": "one row", **row}]}
    answer = _listed(call, of_row) if call.key else of_row
    return _post(call.says or form.says, body, call.example(form), answer)


def _listed(call: Call, of_row: Mapping[str, Any]) -> dict[str, Any]:
    return object_schema({"model": _reference("Model"), call.key: {"type": "array", "items": of_row}})


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


def page(model: Description | None, names: Sequence[str] = ()) -> str:
    """A page to try a model; `names` are those of several models, to which it links."""
    form = model.form if model else None
    example = dict(form.example) if form else {}
    shown = {name: "\n".join(value) if isinstance(value, list) else value for name, value in example.items()}
    if "text" in example:  # a form for one text or two calls it the first
        shown.setdefault("text_a", example["text"])
    as_json = documents.to_json({"rows": [example]} if form else {"rows": []}, ensure_ascii=False)
    return _template("page.html.j2").render(model=model, names=names, form=form, example=shown, example_json=as_json)


def docs_page(document: dict[str, Any]) -> str:
    as_json = functools.partial(documents.to_json, indent=2, ensure_ascii=False)
    return _template("docs.html.j2").render(document=document, as_json=as_json)


@functools.cache
def _template(name: str) -> jinja2.Template:
    loader = jinja2.FileSystemLoader(_HERE)
    return jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    ).get_template(name)

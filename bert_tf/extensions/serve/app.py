"""Routes of the service: requests, responses, guarding and logging."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bert_tf.errors import BertError
from bert_tf.extensions.serve import call as calls
from bert_tf.extensions.serve import metrics, openapi
from bert_tf.extensions.serve.question import AS_IT_IS, encoded
from bert_tf.extensions.serve.refusal import (
    CLOSE,
    CONFLICT,
    FORBIDDEN,
    GONE,
    INTERNAL,
    NOT_ALLOWED,
    NOT_FOUND,
    TIMEOUT,
    TOO_LARGE,
    UNAVAILABLE,
    Guard,
    Refusal,
)
from bert_tf.extensions.serve.service import Answered, Service
from bert_tf.extensions.serve.settings import Address
from bert_tf.extensions.serve.worker import Description
from bert_tf.io import documents
from bert_tf.io.log_form import log

_JSON, _HTML = "application/json", "text/html; charset=utf-8"
Handler = Callable[[Request], Awaitable[Response]]

_ORIGIN = re.compile(r"^https?://[^/]*", re.IGNORECASE)  # of a target in absolute form, as for a proxy

# The pages may load only their own files and call only this service.
_OF_PAGES = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:;"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def make(service: Service, address: Address) -> ASGIApp:
    paths = _Paths(service, address)
    routes = [
        *(Route(path, get, methods=["GET"]) for path, get in paths.gets.items()),
        *(Route(path, post, methods=["POST"]) for path, post in paths.posts.items()),
    ]
    if service.names:
        routes += [Route(f"/{call}/{{name}}", paths.of_model(call), methods=["POST"]) for call in calls.every()]
    app = Starlette(
        routes=routes,
        exception_handlers={Refusal: _refused, HTTPException: _unknown, ClientDisconnect: _gone, Exception: _internal},
    )
    app.router.redirect_slashes = False
    known = frozenset((*paths.gets, *paths.posts, *(f"/{call}/{name}" for call in calls.every() for name in service.names)))
    return _Observed(app, service, Guard(address), known, logs=address.access_log)


class _Paths:
    """Request handlers, by path."""

    def __init__(self, service: Service, address: Address) -> None:
        self._service = service
        self.gets = {
            "/": self._page,
            "/docs": self._docs,
            "/openapi.json": self._openapi,
            "/health": self._ready,
            "/health/live": self._live,
            "/health/ready": self._ready,
            "/metrics": self._metrics,
            **{f"/{name}": _static(name) for name in openapi.STATIC},
        }
        self.posts = {f"/{call}": self._of_several(call) if service.names else self.of_model(call) for call in calls.every()}
        if address.admin:
            self.posts["/reload"] = self._reload

    def of_model(self, call: str) -> Handler:
        """Handles a path that names one of several models, or that of the only one."""
        names = self._service.names

        async def compute(request: Request) -> Response:
            name = request.path_params.get("name")
            if names and name not in names:
                raise Refusal(NOT_FOUND, f"there is no model {name!r:.80}; there are {', '.join(names)}")
            (answered,) = await self._answered(request, call, names.index(name) if names else 0)
            return Response(b"%b\n" % _answer(call, answered), media_type=_JSON)

        return compute

    def _of_several(self, call: str) -> Handler:
        names = self._service.names

        async def compute(request: Request) -> Response:
            if call != calls.PREDICT:
                raise Refusal(NOT_FOUND, f"{call} takes one model: POST /{call}/NAME, with one of {', '.join(names)}")
            answers = await self._answered(request, call, None)
            of_models = (b"%b: %b" % (_text(one.model.name), _answer(call, one)) for one in answers)
            return Response(b'{"answers": {%b}}\n' % b", ".join(of_models), media_type=_JSON)

        return compute

    async def _answered(self, request: Request, call: str, model: int | None) -> list[Answered]:
        with self._service.place():
            body = await _body(request, self._service)
            how = request.headers.get("content-encoding", AS_IT_IS)
            if how.strip().lower() != AS_IT_IS:
                raise encoded(how)
            answers = await _unless_gone(request, self._service.answer(call, body, model))
        request.scope["state"].update(rows=sum(len(one.values) for one in answers), tokens=answers[0].tokens)
        return answers

    async def _reload(self, request: Request) -> Response:
        if "origin" in request.headers:
            raise Refusal(FORBIDDEN, "a browser may not reload; use curl")
        if self._service.is_reloading:
            raise Refusal(CONFLICT, "a reload is in progress; GET /health names the current checkpoint")
        try:
            await self._service.reload()
        except BertError as error:
            raise Refusal(UNAVAILABLE, f"cannot reload: {error}") from error
        return _json(self._models())

    def _models(self) -> dict[str, Any]:
        models = [_model(one) for one in self._service.models]
        return {"models": models} if self._service.names else {"model": models[0] if models else None}

    async def _ready(self, _: Request) -> Response:
        workers = self._service.workers
        stopped = "stopping" if self._service.is_stopping else "no worker computes" if self._service.models else "loading"
        state = "ready" if self._service.is_ready else stopped
        computing = workers.computing if workers else 0
        said = {"status": state, "workers": computing, **self._models()}
        return _json(said, 200 if self._service.is_ready else UNAVAILABLE)

    async def _live(self, _: Request) -> Response:
        return _json({"status": "live"})

    async def _metrics(self, _: Request) -> Response:
        return Response(self._service.metrics.text(), headers={"Content-Type": metrics.TYPE})

    async def _openapi(self, _: Request) -> Response:
        return _json(self._document())

    async def _docs(self, _: Request) -> Response:
        return Response(openapi.docs_page(self._document()), headers=_OF_PAGES, media_type=_HTML)

    def _document(self) -> dict[str, Any]:
        service = self._service
        return openapi.document(service.models, service.limits, paths=[*self.gets, *self.posts], names=service.names)

    async def _page(self, request: Request) -> Response:
        models, name = self._service.models, request.query_params.get("model")
        model = next((one for one in models if one.name == name), models[0] if models else None)
        return Response(openapi.page(model, self._service.names), headers=_OF_PAGES, media_type=_HTML)


def _static(name: str) -> Callable[[Request], Awaitable[Response]]:
    content = (Path(openapi.__file__).parent / name).read_bytes()

    async def get(_: Request) -> Response:
        return Response(content, headers={**_OF_PAGES, "Cache-Control": "max-age=300"}, media_type=openapi.STATIC[name])

    return get


async def _body(request: Request, service: Service) -> bytes:
    """Reads a body; raises Refusal if it is too large or slow."""
    most, declared = service.limits.body_bytes, int(request.headers.get("content-length", 0))
    too_large = Refusal(
        TOO_LARGE,
        f"the body has more than {most} bytes; send less at a time, or start the service with --max_body_mb",
        CLOSE if "expect" in request.headers else None,
    )
    if declared > most:
        raise too_large
    body, end = bytearray(), time.monotonic() + service.patience.body_timeout_s
    stream = request.stream()
    while True:
        try:
            part = await asyncio.wait_for(stream.__anext__(), end - time.monotonic())
        except StopAsyncIteration:
            break
        except asyncio.TimeoutError as error:
            raise Refusal(TIMEOUT, f"the body did not arrive within {service.patience.body_timeout_s:g} s", CLOSE) from error
        if len(body) + len(part) > most:
            raise too_large
        body += part
    return bytes(body)


async def _unless_gone(request: Request, answer: Awaitable[list[Answered]]) -> list[Answered]:
    """Waits for an answer; cancels the rest of the computation if the client disconnects."""
    answering, leaving = asyncio.ensure_future(answer), asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not answering.done():
            raise ClientDisconnect
        return answering.result()
    finally:
        leaving.cancel()
        answering.cancel()


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _drained(receive: Receive) -> None:
    """Drops the rest of a body: a connection that is closed before is reset, and its client loses the answer."""
    while (await receive()).get("more_body", False):
        pass


def _answer(call: str, answered: Answered) -> bytes:
    key = calls.every()[call].key
    if not key:
        return answered.values[0]
    return b'{"model": %b, "%b": [%b]}' % (_text(_model(answered.model)), key.encode(), b", ".join(answered.values))


def _text(value: Any) -> bytes:
    return documents.to_json(value).encode()


def _model(model: Description) -> dict[str, str]:
    return {"name": model.name, "checkpoint": model.step, "digest": model.digest[:12]}


def _json(value: Any, status: int = 200) -> Response:
    return Response(documents.to_json(value) + "\n", status, media_type=_JSON)


def _problem(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    said = documents.to_json({"error": {"status": status, "message": message}}) + "\n"
    return Response(said, status, dict(headers or {}), media_type=_JSON)


async def _refused(_: Request, error: Any) -> Response:
    return _problem(error.status, error.message, error.headers)


async def _unknown(request: Request, error: Any) -> Response:
    path = request.url.path[:80]
    said = {
        NOT_FOUND: f"there is no {path}; GET /docs lists what there is",
        NOT_ALLOWED: f"{path} takes {(error.headers or {}).get('Allow', 'another method')}, not {request.method}",
    }
    return _problem(error.status_code, said.get(error.status_code, error.detail), error.headers)


async def _gone(_: Request, __: Exception) -> Response:
    return _problem(GONE, "the client disconnected")


async def _internal(_: Request, __: Exception) -> Response:
    return _problem(INTERNAL, "internal error; see the log of the service")


class _Observed:
    """Guards, counts, times and logs requests; turns an unexpected error into one line for the client."""

    def __init__(self, app: ASGIApp, service: Service, guard: Guard, paths: frozenset[str], *, logs: bool) -> None:
        self._app, self._service, self._guard, self._paths, self._logs = app, service, guard, paths, logs

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start, status, is_held = time.perf_counter(), 0, False
        headers = Headers(scope=scope)
        has_body = "content-length" in headers or "transfer-encoding" in headers
        is_unread = has_body and "expect" not in headers  # a client that expects an interim answer sends no body without it

        async def receiving() -> Message:
            nonlocal is_unread
            message = await receive()
            is_unread = message.get("more_body", False)
            return message

        async def sending(message: Message) -> None:
            nonlocal status, is_held
            status = message.get("status", status)
            if is_unread and message["type"] == "http.response.body":
                is_held, message = True, {**message, "more_body": True}  # else uvicorn may close, and the client lose it
            if self._service.is_stopping and message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), (b"connection", b"close")]  # clients must reconnect
            await send(message)

        scope.setdefault("state", {})
        scope["path"] = _ORIGIN.sub("", scope["path"]) or "/"
        try:
            refusal = self._guard.refusal(headers)
            if refusal is not None:
                await _problem(refusal.status, refusal.message, refusal.headers)(scope, receiving, sending)
            else:
                await self._app(scope, receiving, sending)
        except Exception:  # already reported to the client
            log.exception("internal error in %s %s; this is a bug in bert_tf", scope["method"], _quoted(scope["path"]))
        finally:
            seconds = time.perf_counter() - start
            self._note(scope, status or INTERNAL, seconds)
        if is_held:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(_drained(receive), self._service.patience.body_timeout_s - seconds)
            await send({"type": "http.response.body"})

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        path = scope["path"] if scope["path"] in self._paths else "other"
        figures = self._service.metrics
        figures.requests.labels(path, str(status)).inc()
        figures.seconds.labels(path).observe(seconds)
        if status >= 400:
            figures.rejected.labels(str(status)).inc()
        if self._logs:
            client = (scope.get("client") or ("-",))[0]
            of_rows = "".join(f" {name}={scope['state'][name]}" for name in ("rows", "tokens") if name in scope["state"])
            log.info("%s %s %d %.1f ms%s %s", scope["method"], _quoted(scope["path"]), status, seconds * 1e3, of_rows, client)


def _quoted(path: str) -> str:
    """Escapes a path so that it stays one word on one log line."""
    return path[:200].encode("unicode_escape").decode()

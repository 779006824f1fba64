"""The service as a process: port, signals, shutdown; uvicorn with the signal handling and timeouts of this service.

uvicorn closes connections that idle between requests. `PatientProtocol` covers the rest: an unfinished request head, a
client that does not read its answers, a client that has closed its sending side, and too many connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from bert_tf.errors import DeviceError
from bert_tf.extensions.serve import app, service
from bert_tf.extensions.serve.service import Service
from bert_tf.extensions.serve.settings import Address, Limits, Patience, ServeConfig
from bert_tf.io import files
from bert_tf.io.log_form import log
from bert_tf.runtime import cgroup

_BACKLOG = 2048
_UNREAD_BYTES = 1 << 18  # kernel buffer of answers to a client that does not read; the default is megabytes
_OTHER_FILES = 256  # open files besides connections
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LOOK_S = 0.1  # interval of checks for a second signal during shutdown
_MOST_HEAD_BYTES = 16_384

_HEAD, _READING, _PROBE = "head", "reading", "probe"  # names of timers
_PROBE_S = 0.5
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"  # an interim answer, which clients skip


class PatientProtocol(H11Protocol):
    """Time and count limits of connections; a subclass sets them."""

    patience: Patience
    limits: Limits
    _is_half_closed = False

    def connection_made(self, transport: Any) -> None:
        self._timers: dict[str, asyncio.TimerHandle] = {}
        super().connection_made(transport)
        if len(self.connections) > self.limits.max_connections:
            transport.abort()
        else:
            self._abort_after(_HEAD, self.patience.header_timeout_s)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_answering:
            self._cancel(_HEAD)
        elif _HEAD not in self._timers:
            self._abort_after(_HEAD, self.patience.header_timeout_s)

    def eof_received(self) -> bool:  # type: ignore[override]  # as asyncio calls it
        """Keeps the connection open for the answer to a complete request."""
        self._is_half_closed = self._is_answering and not self.cycle.more_body
        if self._is_half_closed:
            self._wait(_PROBE, _PROBE_S, self._probe)
        else:
            self._abort_after(_READING, self.patience.idle_timeout_s)  # asyncio closes it when all is read
        return self._is_half_closed

    def pause_writing(self) -> None:
        super().pause_writing()
        self._abort_after(_READING, self.patience.idle_timeout_s)

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self._cancel(_READING)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._is_half_closed and not self._is_answering:  # and no other request is pending
            self.transport.close()
        if self.transport.is_closing():
            self._abort_after(_READING, self.patience.idle_timeout_s)

    def send_400_response(self, msg: str) -> None:
        super().send_400_response(msg)
        self._abort_after(_READING, self.patience.idle_timeout_s)

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        if self.transport.get_write_buffer_size():  # the client has not read its answer to the end
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        for name in list(self._timers):
            self._cancel(name)

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _probe(self) -> None:
        """Sends "100 Continue": a client that is gone, and has not just closed its sending side, resets the connection."""
        if self._is_answering and not self.cycle.response_started and self.scope["http_version"] == "1.1":
            self.transport.write(_CONTINUE)
            self._wait(_PROBE, _PROBE_S, self._probe)

    def _abort_after(self, name: str, seconds: float) -> None:
        self._wait(name, seconds, self.transport.abort)

    def _wait(self, name: str, seconds: float, then: Callable[[], None]) -> None:
        self._cancel(name)
        self._timers[name] = self.loop.call_later(seconds, then)

    def _cancel(self, name: str) -> None:
        if name in self._timers:
            self._timers.pop(name).cancel()


class Server(uvicorn.Server):
    """Shuts down gracefully on the first signal, immediately on the second."""

    def __init__(self, app: ASGIApp, config: ServeConfig, *, stopping: Callable[[], None]) -> None:
        self._stopping = stopping
        limits = {"patience": config.patience, "limits": config.limits}
        super().__init__(
            uvicorn.Config(
                app,
                http=type("LimitedProtocol", (PatientProtocol,), limits),
                loop="asyncio",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=config.patience.idle_timeout_s,  # type: ignore[arg-type]  # fractions work too
                timeout_graceful_shutdown=config.patience.grace_s,  # type: ignore[arg-type]
                h11_max_incomplete_event_size=_MOST_HEAD_BYTES,
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handles signals while serving; uvicorn's own version re-raises them, which would count as a second signal."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Like uvicorn's, but a second signal interrupts it. Since Python 3.12 it would wait for open connections."""
        ending = asyncio.ensure_future(super().shutdown(sockets))
        try:
            await asyncio.sleep(0)  # closes the sockets
            while not ending.done() and not self.force_exit:
                await asyncio.wait({ending}, timeout=_LOOK_S)
            if ending.done():
                ending.result()
        finally:
            ending.cancel()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        del sig, frame
        if self.should_exit:
            self.force_exit = True
        else:
            self._stopping()
            log.info("shutting down: finishing accepted requests (signal again to stop now)")
        self.should_exit = True


def run(config: ServeConfig, verbosity: int) -> None:
    """See `command.run_service`."""
    most = config.limits.max_connections + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)  # open files and sockets; the usual default is about a thousand
    if soft != resource.RLIM_INFINITY and soft < most:
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    with contextlib.closing(listening(config.address)) as listener:
        asyncio.run(_serve(config, listener, verbosity))


def listening(address: Address) -> socket.socket:
    """Opens the listening socket; raises DeviceError if the port is in use or the address is not local."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _UNREAD_BYTES)  # of each connection
            listener.bind(place)
            listener.listen(_BACKLOG)
        except BaseException:
            listener.close()
            raise
    except (OSError, UnicodeError) as error:  # the latter of a name that no host can have
        why = files.reason(error) if isinstance(error, OSError) else "not the name of a host"
        raise DeviceError(
            f"cannot listen on {address.host} port {address.port}: {why}; name others with --host and --port"
        ) from error
    return listener


async def _serve(config: ServeConfig, listener: socket.socket, verbosity: int) -> None:
    served = service.of(config, verbosity=verbosity, cores=cgroup.granted_cpus)
    server = Server(app.make(served, config.address), config, stopping=served.stop)
    for logger in ("uvicorn.error", "asyncio"):
        logging.getLogger(logger).setLevel(logging.ERROR)  # clients receive their own errors
    with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # only the main thread can handle signals
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, served.request_reload)
    host, port = listener.getsockname()[:2]
    host = f"[{host}]" if ":" in host else host
    log.info("http://%s:%d: loading %s; stop with Ctrl-C or SIGTERM", host, port, ", ".join(config.runs))
    await until_signal(served, server, listener)


async def until_signal(served: Service, server: Server, listener: socket.socket) -> None:
    """Loads the model and serves until a signal, then finishes accepted requests; KeyboardInterrupt on a second."""
    serving = asyncio.ensure_future(server.serve(sockets=[listener]))
    loading = asyncio.ensure_future(served.start())
    loading.add_done_callback(lambda done: done.cancelled() or done.exception())  # after a signal, nobody awaits it
    try:
        await asyncio.wait({serving, loading}, return_when=asyncio.FIRST_COMPLETED)
        if loading.done() and loading.exception() is not None:
            server.should_exit = True
            await serving
            loading.result()
        await serving
        if not server.force_exit:
            await served.close()
    finally:
        loading.cancel()
        served.kill()
    if server.force_exit:
        raise KeyboardInterrupt

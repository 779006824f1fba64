"""The service as a process: port, signals, shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging
import resource
import signal
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from bert_tf import extras
from bert_tf.errors import DeviceError, FlagError
from bert_tf.extensions.serve.settings import Address, ServeConfig
from bert_tf.io import files
from bert_tf.io.log_form import log
from bert_tf.runtime import cgroup

if TYPE_CHECKING:
    from bert_tf.extensions.serve.server import Server
    from bert_tf.extensions.serve.service import Service

_BACKLOG = 2048
_UNREAD_BYTES = 1 << 18  # kernel buffer of answers to a client that does not read; the default is megabytes
_OTHER_FILES = 256  # open files besides connections
_NEEDED = ("uvicorn", "starlette", "prometheus_client")


def run_service(config: ServeConfig, *, verbosity: int = 0) -> None:
    """Serves until a signal, then finishes accepted requests; a second signal raises KeyboardInterrupt."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise FlagError(f"serve needs {', '.join(missing)}: {extras.install('serve')}")
    _allow_files(config.limits.max_connections + _OTHER_FILES)
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
    except OSError as error:
        raise DeviceError(
            f"cannot listen on {address.host} port {address.port}: {files.reason(error)}; name others with --host and --port"
        ) from error
    return listener


def _allow_files(most: int) -> None:
    """Raises the limit of open files and sockets as far as the system allows; the usual default is about a thousand."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < most:
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


async def _serve(config: ServeConfig, listener: socket.socket, verbosity: int) -> None:
    from bert_tf.extensions.serve import app, service
    from bert_tf.extensions.serve.server import Server

    served = service.of(config, verbosity=verbosity, cores=cgroup.granted_cpus)
    server = Server(app.make(served, config.address), config, stopping=served.stop)
    for logger in ("uvicorn.error", "asyncio"):
        logging.getLogger(logger).setLevel(logging.ERROR)  # clients receive their own errors
    _on_hangup(served.request_reload)
    log.info("http://%s:%d: loading %s; stop with Ctrl-C or SIGTERM", *_place(listener), ", ".join(config.runs))
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


def _place(listener: socket.socket) -> tuple[str, int]:
    host, port = listener.getsockname()[:2]
    return (f"[{host}]" if ":" in host else host), port


def _on_hangup(reload: Callable[[], None]) -> None:
    with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # only the main thread can handle signals
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload)

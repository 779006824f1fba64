"""uvicorn with the signal handling and timeouts of this service."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from bert_tf.log_form import log
from bert_tf.service import patience
from bert_tf.service.settings import ServeConfig

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LOOK_S = 0.1  # how often a service that ends looks for a second signal


class Server(uvicorn.Server):
    """Shuts down gracefully on the first signal, immediately on the second."""

    def __init__(self, app: ASGIApp, config: ServeConfig, *, stopping: Callable[[], None]) -> None:
        self._stopping = stopping
        super().__init__(
            uvicorn.Config(
                app,
                http=patience.protocol(config.patience, config.limits),
                loop="asyncio",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=config.patience.idle_timeout_s,  # type: ignore[arg-type]  # a fraction will do
                timeout_graceful_shutdown=config.patience.grace_s,  # type: ignore[arg-type]
                h11_max_incomplete_event_size=patience.MOST_HEAD_BYTES,
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

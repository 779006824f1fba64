"""Connections whose clients may be slow, but not for ever.

uvicorn closes what is idle between requests. Here is the rest: a head that does not come to its end, a client that does not
read its answer, more connections than there may be.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from bert_tf.service.settings import Limits, Patience

MOST_HEAD_BYTES = 16_384

_HEAD, _READING = "head", "reading"  # what is waited for


def protocol(patience: Patience, limits: Limits) -> type[H11Protocol]:
    """Returns the class of connections.

    Args:
      patience: with clients.
      limits: how many connections there may be.
    """

    class PatientProtocol(H11Protocol):
        """A connection."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._timers: dict[str, asyncio.TimerHandle] = {}
            if len(self.connections) > limits.max_connections:
                transport.abort()
            else:
                self._abort_after(_HEAD, patience.header_timeout_s)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._go_on(_HEAD)
            elif _HEAD not in self._timers:
                self._abort_after(_HEAD, patience.header_timeout_s)

        def pause_writing(self) -> None:
            super().pause_writing()
            self._abort_after(_READING, patience.body_timeout_s)

        def resume_writing(self) -> None:
            super().resume_writing()
            self._go_on(_READING)

        def timeout_keep_alive_handler(self) -> None:
            super().timeout_keep_alive_handler()
            if self.transport.get_write_buffer_size():  # the client has not read the end of its answer
                self.transport.abort()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            for purpose in list(self._timers):
                self._go_on(purpose)

        def _abort_after(self, purpose: str, seconds: float) -> None:
            self._timers[purpose] = self.loop.call_later(seconds, self.transport.abort)

        def _go_on(self, purpose: str) -> None:
            if purpose in self._timers:
                self._timers.pop(purpose).cancel()

    return PatientProtocol

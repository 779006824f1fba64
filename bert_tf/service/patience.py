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


def protocol(patience: Patience, limits: Limits) -> type[H11Protocol]:
    """Returns the class of connections.

    Args:
      patience: with clients.
      limits: how many connections there may be.
    """

    class PatientProtocol(H11Protocol):
        """A connection."""

        _head: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > limits.max_connections:
                transport.abort()
            else:
                self._wait_for_head()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._stop_waiting()
            elif self._head is None:
                self._wait_for_head()

        def timeout_keep_alive_handler(self) -> None:
            super().timeout_keep_alive_handler()
            if self.transport.get_write_buffer_size():  # the client has not read its answer to the end
                self.transport.abort()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self._stop_waiting()

        def _wait_for_head(self) -> None:
            self._head = self.loop.call_later(patience.header_timeout_s, self.transport.abort)

        def _stop_waiting(self) -> None:
            if self._head is not None:
                self._head.cancel()
            self._head = None

    return PatientProtocol

"""Watches the other machines of a job, since TensorFlow waits forever for one that is gone.

If a worker dies, the others hang in a collective operation that cannot be interrupted, or create sessions over and over,
since TensorFlow assumes a short preemption. So a thread per peer keeps an idle connection to its port: the kernel keeps it
up for a busy or stopped process, closes it for a dead one, and keepalive probes detect a dead machine.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from bert_tf.errors import START_AGAIN, DeviceError, LostPeerError
from bert_tf.runtime.cluster import Cluster, Worker
from bert_tf.runtime.settings import TF_CONFIG

# Greeting of a gRPC (HTTP/2) client. Without it, a connection holds a file in TensorFlow's server for two minutes,
# even after it is closed, and is then dropped.
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
# Connection errors caused by this process, not by the peer.
_OUR_OWN = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL)
# A connection is dead after 3 s without traffic and four unanswered probes, 2 s apart; not every system can set this.
_KEEPALIVE = {"TCP_KEEPIDLE": 3, "TCP_KEEPINTVL": 2, "TCP_KEEPCNT": 4}
_UNDECIDED = 30.0  # seconds to decide whether an unresponsive peer is gone
_BLOCK = 4096
_CLOSING: list[threading.Thread] = []


@dataclasses.dataclass(frozen=True)
class Patience:
    """Timeouts in seconds; by default a dead process is detected after 1 s, a dead machine after 20 s."""

    first: float = 600.0  # for a peer's first contact: images may be fetched
    report: float = 30.0  # between two lines about missing peers
    again: float = 0.3  # before a retry after a refused or closed connection
    answer: float = 3.0  # timeout, and pause before a retry after one
    misses: int = 3  # consecutive failures until a peer is gone
    settle: float = 5.0  # for the port of a failing process to close


USUAL = Patience()


def end_process(line: str) -> None:
    """Prints a line and ends the process immediately, since the main thread may hang uninterruptibly.

    No file is left half-written: checkpoints and `bert_tf.io.atomic` write to a temporary name first.
    """
    with contextlib.suppress(OSError, ValueError):  # a closed pipe must not keep the process alive
        sys.stdout.flush()
        sys.stderr.write(f"error: {line}\n")
        sys.stderr.flush()
    os._exit(LostPeerError.status)


def require_free_port(worker: Worker) -> None:
    """DeviceError if this process's port is taken or forbidden; TensorFlow only says that no server started."""
    try:
        socket.create_server(("", worker.port)).close()
    except OSError as error:
        raise DeviceError(
            f"{worker}: cannot listen at port {worker.port}: {os.strerror(error.errno or 0)};"
            f" end the process that does (an earlier run?), or write another port into {TF_CONFIG} of all workers"
        ) from error


def call(address: tuple[str, int], timeout: float) -> socket.socket:
    """Connects to a host and port, timeout in seconds; OSError if nothing listens or the host is unreachable."""
    line = socket.create_connection(address, timeout)
    try:
        if line.getpeername() == line.getsockname():  # if nobody listens, Linux may connect a port of this machine to itself
            raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
        line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE.items():
            if hasattr(socket, name):
                line.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        line.settimeout(None)  # from here on, keepalive probes decide
        line.sendall(_GREETING)
    except OSError:
        line.close()
        raise
    return line


class Watch:
    """Ends the process if a peer is gone or does not come.

    Must start before TensorFlow waits for the peers and stop after the last step, when peers may leave.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        log: Callable[[str], None],
        patience: Patience = USUAL,
        end: Callable[[str], None] = end_process,
    ) -> None:
        """`end` receives the message and ends the process, at most once; `log` receives lines about missing peers."""
        self._log, self._end, self._patience = log, end, patience
        self._over = threading.Event()  # the watch is stopped, or a peer is gone
        self._deciding = threading.Lock()  # after `stop` returns, no peer is reported gone; nothing runs beside `end`
        # Failures in a row; None for a peer that has not come yet.
        self._misses: dict[Worker, int | None] = dict.fromkeys(cluster.peers)
        self._reasons: dict[Worker, str] = {}
        self._places = {peer: (peer.host, peer.port) for peer in cluster.peers}
        self._lines: dict[Worker, socket.socket] = {}

    def start(self) -> None:
        threading.Thread(target=self._wait, name="peers", daemon=True).start()
        for peer in self._misses:
            threading.Thread(target=self._follow, args=(peer,), name=f"peers: {peer}", daemon=True).start()

    def stop(self) -> None:
        with self._deciding:
            self._over.set()
        for line in tuple(self._lines.values()):
            with contextlib.suppress(OSError):  # it is closed already
                line.shutdown(socket.SHUT_RDWR)  # wakes the thread that holds it

    def settle(self) -> None:
        """Returns if all peers are still there, else ends the process.

        Call before reporting a TensorFlow error that a lost peer may explain: a failing process takes seconds to be gone.
        """
        soon = time.monotonic() + self._patience.settle
        late = soon + _UNDECIDED
        while time.monotonic() < (late if any(self._misses.values()) else soon):
            if self._over.wait(self._patience.again / 2):
                break
        with self._deciding:  # if a peer is gone, this waits for the end
            return

    def _wait(self) -> None:
        patience = self._patience
        limit = time.monotonic() + patience.first
        while not self._over.wait(max(0.0, min(patience.report, limit - time.monotonic()))):
            awaited = [peer for peer, misses in self._misses.items() if misses is None]
            if not awaited:
                return
            listed = ", ".join(f"{peer}: {self._reasons.get(peer, 'no answer yet')}" for peer in awaited)
            if time.monotonic() >= limit:
                remedy = f"check the logs there, and the addresses in {TF_CONFIG}"
                self._fail(f"waited {patience.first:.0f} s in vain for {listed}; {remedy}")
                return
            self._log(f"waiting for {listed}")

    def _follow(self, peer: Worker) -> None:
        pause = 0.0
        while not self._over.wait(pause):
            try:
                with call(self._places[peer], self._patience.answer) as line:
                    self._lines[peer] = line
                    self._hold(peer, line)
            except OSError as error:
                pause = self._patience.again if isinstance(error, ConnectionError) else self._patience.answer
                self._missed(peer, error)

    def _hold(self, peer: Worker, line: socket.socket) -> None:
        while not self._over.is_set():
            if not line.recv(_BLOCK):
                raise ConnectionResetError(errno.ECONNRESET, "it hung up")
            self._misses[peer] = 0  # its server sends a greeting; a proxy without a server is silent
            self._places[peer] = line.getpeername()[:2]  # as an IP address: a failing name server is not a lost peer

    def _missed(self, peer: Worker, error: OSError) -> None:
        self._reasons[peer] = error.strerror or str(error)
        misses = self._misses[peer]
        if misses is None or error.errno in _OUR_OWN:
            return
        self._misses[peer] = misses + 1
        if misses + 1 >= self._patience.misses:
            self._fail(f"{peer} is gone; {START_AGAIN}")

    def _fail(self, line: str) -> None:
        with self._deciding:
            if self._over.is_set():
                return
            self._over.set()
            self._end(line)


def close_in_background(session: Any) -> None:
    """Makes the next `session.close()` return immediately: with several machines TensorFlow takes up to 90 s."""
    thread = threading.Thread(target=session.close, name="close session", daemon=True)
    session.close = lambda: None if thread.ident else thread.start()
    _CLOSING.append(thread)


def leave(status: int) -> int:
    """Returns the exit status, or ends the process if a session is still closing, since Python cannot."""
    if any(thread.is_alive() for thread in _CLOSING):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return status

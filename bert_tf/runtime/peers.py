"""Watches the other machines of a job, since TensorFlow waits for ever for one that is gone.

Where a worker dies, the others hang inside a collective operation that nothing interrupts, or create one session after the
other: TensorFlow takes the loss for a preemption that will soon be over. So a thread for each peer holds a line to its port,
a connection over which nothing is said: a kernel keeps it up for a process that is busy or stopped, and hangs up for one that
is gone; where the whole machine is gone, its keepalive probes stay without answer.
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
from types import TracebackType

from bert_tf.errors import DeviceError, LostPeerError
from bert_tf.runtime.cluster import VARIABLE, Cluster, Worker

START_AGAIN = "start all workers again with the same command: training continues from the last checkpoint"
# How a client of gRPC, which is HTTP/2, begins. A caller without manners costs TensorFlow's server a file for two minutes,
# even after it hung up, and is then hung up on.
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
# What keeps this process, and not the peer, from a connection.
_OUR_OWN = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL)
# A line is dead after 3 s without traffic and four probes, 2 s apart, without answer; not every system lets us say so.
_KEEPALIVE = {"TCP_KEEPIDLE": 3, "TCP_KEEPINTVL": 2, "TCP_KEEPCNT": 4}
_UNDECIDED = 30.0  # seconds in which a peer that fails to answer is found gone, or there
_BLOCK = 4096


@dataclasses.dataclass(frozen=True)
class Patience:
    """How long to wait, in seconds; by default a process is missed after 1 s, a machine after 20 s.

    Attributes:
      first: for the first words of a peer: machines start, and images are fetched, at their own pace.
      report: between two lines that say whom we wait for.
      again: before the next call where a peer hangs up or refuses; a process that starts anew takes longer than all of them.
      answer: for an answer, and before the next call where none came.
      misses: failures in a row after which a peer is gone.
      settle: for the port of a process that fails to close.
    """

    first: float = 600.0
    report: float = 30.0
    again: float = 0.3
    answer: float = 3.0
    misses: int = 3
    settle: float = 5.0


USUAL = Patience()


def end_process(line: str) -> None:
    """Prints a line and ends the process at once, since the main thread may hang where nothing interrupts it.

    No file is half-written: checkpoints and what `bert_tf.atomic` writes go by a temporary name first.
    """
    with contextlib.suppress(OSError, ValueError):  # a closed pipe shall not keep the process
        sys.stdout.flush()
        sys.stderr.write(f"error: {line}\n")
        sys.stderr.flush()
    os._exit(LostPeerError.status)


def require_free_port(own: Worker) -> None:
    """Tries the port of this process, of which TensorFlow only says that it could not start a server.

    Raises:
      DeviceError: another process listens there, or this one may not.
    """
    try:
        socket.create_server(("", own.port)).close()
    except OSError as error:
        raise DeviceError(
            f"{own}: cannot listen at port {own.port}: {os.strerror(error.errno or 0)};"
            f" end the process that does (an earlier run?), or write another port into {VARIABLE} of all workers"
        ) from error


def call(place: tuple[str, int], timeout: float) -> socket.socket:
    """Returns a line to a listening process.

    Args:
      place: host and port.
      timeout: in seconds.

    Raises:
      OSError: no process listens, or there is no way to the machine.
    """
    line = socket.create_connection(place, timeout)
    try:
        if line.getpeername() == line.getsockname():  # where nobody listens, Linux may connect a port of this machine to itself
            raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
        line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE.items():
            if hasattr(socket, name):
                line.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        line.settimeout(None)  # from here on the probes find out
        line.sendall(_GREETING)
    except OSError:
        line.close()
        raise
    return line


class Watch:
    """Ends the process where a peer is gone, or does not come.

    To be started before TensorFlow waits for the others, and stopped after the last step: then peers may leave.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        log: Callable[[str], None],
        patience: Patience = USUAL,
        end: Callable[[str], None] = end_process,
    ) -> None:
        """Prepares the watch.

        Args:
          cluster: whose peers to watch.
          log: takes a line about peers that are waited for.
          patience: how long to wait.
          end: takes the line for the user and ends the process; called once at most.
        """
        self._log, self._end, self._patience = log, end, patience
        self._over = threading.Event()  # the watch is stopped, or a peer is gone
        self._deciding = threading.Lock()  # once `stop` has returned nobody is called gone, and nothing goes on beside `end`
        # Failures in a row; None for a peer that has not come yet.
        self._misses: dict[Worker, int | None] = dict.fromkeys(cluster.peers)
        self._reasons: dict[Worker, str] = {}
        self._places = {peer: (peer.host, peer.port) for peer in cluster.peers}
        self._lines: dict[Worker, socket.socket] = {}

    def start(self) -> None:
        """Waits for each peer, and watches those that have come."""
        threading.Thread(target=self._wait, name="peers", daemon=True).start()
        for peer in self._misses:
            threading.Thread(target=self._follow, args=(peer,), name=f"peers: {peer}", daemon=True).start()

    def stop(self) -> None:
        """Ends the watch, where it has not ended yet."""
        with self._deciding:
            self._over.set()
        for line in tuple(self._lines.values()):
            with contextlib.suppress(OSError):  # it is closed already
                line.shutdown(socket.SHUT_RDWR)  # wakes the thread that holds it

    def settle(self) -> None:
        """Returns where all peers that have come are there; else the process ends.

        To be called before an error of TensorFlow is reported that a lost peer may explain: a process that fails takes
        seconds to be gone.
        """
        soon = time.monotonic() + self._patience.settle
        late = soon + _UNDECIDED
        while time.monotonic() < (late if any(self._misses.values()) else soon):
            if self._over.wait(self._patience.again / 2):
                break
        with self._deciding:  # where a peer is gone, this waits for the end
            return

    def __enter__(self) -> Watch:
        """Starts the watch."""
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stops the watch."""
        self.stop()

    def _wait(self) -> None:
        patience = self._patience
        limit = time.monotonic() + patience.first
        while not self._over.wait(max(0.0, min(patience.report, limit - time.monotonic()))):
            awaited = [peer for peer, misses in self._misses.items() if misses is None]
            if not awaited:
                return
            listed = ", ".join(f"{peer}: {self._reasons.get(peer, 'no answer yet')}" for peer in awaited)
            if time.monotonic() >= limit:
                place = f"look into the logs there, and at the addresses in {VARIABLE}"
                self._fail(f"waited {patience.first:.0f} s in vain for {listed}; {place}")
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
            self._misses[peer] = 0  # its server introduces itself; a proxy that answers for nobody is silent
            self._places[peer] = line.getpeername()[:2]  # in numbers: a name server that fails is no lost peer

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

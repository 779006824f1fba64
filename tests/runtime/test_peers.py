"""Peers that come, go, are slow or never come; on real sockets of this machine, with short patience."""

import contextlib
import errno
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest

from bert_tf.errors import DeviceError
from bert_tf.runtime import peers
from bert_tf.runtime.cluster import Cluster, Worker
from bert_tf.runtime.peers import Patience, Watch
from tests import processes

QUICK = Patience(first=20, report=10, again=0.02, answer=0.1, settle=0.05)
LONG = 10  # seconds until a test fails
GONE = "start all workers again with the same command: training continues from the last checkpoint"


class Server:
    """A listening peer that introduces itself, as TensorFlow's server does."""

    def __init__(self, port=0, *, says=b"SETTINGS"):
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port = self._listener.getsockname()[1]
        self._says = says
        self.lines = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                line, _ = self._listener.accept()
                self.lines.append(line)
                line.sendall(self._says)

    def hang_up(self):
        while self.lines:
            self.lines.pop().close()

    def close(self):
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # `close` alone does not wake the thread
        self._listener.close()
        self.hang_up()


def worker(index, port):
    return Worker("worker", index, "127.0.0.1", port, f"127.0.0.1:{port}")


def recorded(*ports, patience=QUICK):
    """A watch over peers, which are given by their ports, and what it said."""
    others = [port if isinstance(port, Worker) else worker(index, port) for index, port in enumerate(ports, 1)]
    log, ends = [], []
    watch = Watch(Cluster((worker(0, 1), *others), 0), log=log.append, patience=patience, end=ends.append)
    return SimpleNamespace(watch=watch, log=log, ends=ends)


@pytest.fixture
def server():
    made = Server()
    yield made
    made.close()


@pytest.fixture
def watching():
    """Makes watches that are stopped after the test; `meets`: all peers have come."""
    with contextlib.ExitStack() as stack:

        def start(*ports, meets=True, **settings):
            record = recorded(*ports, **settings)
            record.watch.start()
            stack.callback(record.watch.stop)
            if meets:
                wait_until(lambda: met(record.watch))
            return record

        yield start


def wait_until(condition):
    limit = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < limit, "too late"
        time.sleep(0.002)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def met(watch):
    """Whether all peers have come."""
    return None not in watch._misses.values()


def test_a_peer_that_is_gone_ends_the_process_with_one_line(server, watching):
    record = watching(server.port, patience=peers.USUAL)
    began = time.monotonic()
    server.close()
    wait_until(lambda: record.ends)
    assert time.monotonic() - began < 2.5  # before another process could take its place
    assert record.ends == [f"worker 1 (127.0.0.1:{server.port}) is gone; {GONE}"]
    assert record.log == []


def test_once_a_peer_has_come_no_name_server_is_asked(server, watching, monkeypatch):
    resolve = mock.Mock(wraps=socket.getaddrinfo)
    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    watching(Worker("worker", 1, "localhost", server.port, f"localhost:{server.port}"))
    server.hang_up()
    wait_until(lambda: resolve.call_count > 1)
    assert [call.args[0] for call in resolve.call_args_list[:2]] == ["localhost", "127.0.0.1"]


def test_a_peer_that_only_hangs_up_is_called_again(server, watching):
    record = watching(server.port)
    for _ in range(2 * QUICK.misses):
        wait_until(lambda: server.lines and met(record.watch) and not any(record.watch._misses.values()))
        server.hang_up()
    wait_until(lambda: server.lines)
    assert record.ends == []


LISTENER = """
import socket, sys
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
lines = []
while True:
    lines.append(listener.accept()[0])
    lines[-1].sendall(b"SETTINGS")
"""


@pytest.fixture
def process():
    """A peer in a process of its own, and its port."""
    with subprocess.Popen([sys.executable, "-c", LISTENER], stdout=subprocess.PIPE, text=True) as started:
        yield started, int(started.stdout.readline())
        started.kill()


def test_a_peer_that_stands_still_is_not_lost_and_one_that_is_killed_is(process, watching):
    started, port = process
    record = watching(port)
    started.send_signal(signal.SIGSTOP)
    time.sleep(10 * QUICK.misses * QUICK.again)
    assert record.ends == []
    assert not any(record.watch._misses.values())
    started.kill()
    wait_until(lambda: record.ends)


def test_a_machine_that_answers_no_more_is_gone(watching):
    # A queue of one that is full drops what comes, as a dead machine does.
    with socket.socket() as listener, contextlib.ExitStack() as queue:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        place = listener.getsockname()
        record = watching(place[1], meets=False)
        line, _ = listener.accept()
        line.sendall(b"SETTINGS")
        wait_until(lambda: met(record.watch))
        for _ in range(4):
            waiting = queue.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(place)
        time.sleep(0.02)
        line.close()
        wait_until(lambda: record.ends)
    assert list(record.watch._reasons.values()) == ["timed out"]
    assert " is gone; " in record.ends[0]


def test_a_line_is_probed_so_that_a_dead_machine_ends_it(server):
    with peers.call(("127.0.0.1", server.port), 1) as line:
        assert line.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert line.gettimeout() is None
        if sys.platform == "linux":
            idle, interval, count = (
                line.getsockopt(socket.IPPROTO_TCP, option)
                for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
            )
            assert 5 <= idle + interval * count <= 15


def test_a_watch_that_is_stopped_hangs_up(server):
    record = recorded(server.port)
    record.watch.start()
    wait_until(lambda: met(record.watch))
    for _ in range(2):
        record.watch.stop()
    (line,) = server.lines
    line.settimeout(LONG)
    received = b"".join(iter(lambda: line.recv(100), b""))
    assert received == peers._GREETING
    server.close()  # peers may leave now
    wait_until(lambda: not [thread for thread in threading.enumerate() if thread.name.startswith("peers")])
    assert record.ends == []


def test_who_does_not_come_is_named_and_ends_the_process(server, watching):
    absent = [free_port(), free_port()]
    record = watching(absent[0], server.port, absent[1], meets=False, patience=Patience(first=0.35, report=0.1, again=0.02))
    wait_until(lambda: record.ends)
    listed = ", ".join(f"worker {i} (127.0.0.1:{port}): Connection refused" for i, port in ((1, absent[0]), (3, absent[1])))
    assert set(record.log) == {f"waiting for {listed}"}
    assert record.ends == [f"waited 0 s in vain for {listed}; check the logs there, and the addresses in TF_CONFIG"]


def test_who_comes_late_is_watched_from_then_on(watching):
    port = free_port()
    record = watching(port, meets=False, patience=Patience(first=LONG, report=0.05, again=0.02))
    wait_until(lambda: record.log)
    late = Server(port)
    wait_until(lambda: met(record.watch))
    assert record.ends == []
    late.close()
    wait_until(lambda: record.ends)
    assert " is gone; " in record.ends[0]


def test_who_answers_for_a_peer_and_says_nothing_is_no_peer(watching):
    proxy = Server(says=b"")
    record = watching(proxy.port, meets=False, patience=Patience(first=0.2, report=0.1))
    wait_until(lambda: record.ends)
    proxy.close()
    assert record.ends[0].startswith(f"waited 0 s in vain for worker 1 (127.0.0.1:{proxy.port}): no answer yet; check")


def test_an_error_waits_for_the_end_of_a_peer_that_goes(server, watching):
    record = watching(server.port)
    record.watch.settle()  # soon, since nobody is gone
    assert record.ends == []
    record = watching(server.port, patience=Patience(again=0.02, settle=LONG))
    threading.Timer(0.1, server.close).start()
    record.watch.settle()
    assert len(record.ends) == 1


def test_what_keeps_us_from_calling_does_not_make_a_peer_lost(server, watching, monkeypatch):
    call = mock.Mock(side_effect=OSError(errno.EMFILE, os.strerror(errno.EMFILE)))
    record = watching(server.port, patience=Patience(again=0.01, answer=0.01))
    monkeypatch.setattr(peers, "call", call)
    server.hang_up()
    wait_until(lambda: call.call_count > 3 * QUICK.misses)
    assert record.ends == []


def test_a_line_to_oneself_is_none(monkeypatch):
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        own.connect(own.getsockname())
        monkeypatch.setattr(socket, "create_connection", lambda *_: own)
        with pytest.raises(ConnectionRefusedError):
            peers.call(own.getsockname(), 1)
        assert own.fileno() == -1


def test_a_port_must_be_free(server):
    with pytest.raises(DeviceError) as caught:
        peers.require_free_port(worker(1, server.port))
    assert str(caught.value) == (
        f"worker 1 (127.0.0.1:{server.port}): cannot listen at port {server.port}: Address already in use;"
        " end the process that does (an earlier run?), or write another port into TF_CONFIG of all workers"
    )
    port = free_port()
    for _ in range(2):  # it stays free
        peers.require_free_port(worker(1, port))


HANGING = """
import sys, threading
from bert_tf.runtime.peers import end_process
print("before")
threading.Thread(target=end_process, args=("worker 1 is gone",)).start()
threading.Event().wait()
"""


CLOSING = """
import sys, time
from bert_tf.runtime import peers

class Session:
    def close(self):
        time.sleep(60)

session = Session()
peers.close_in_background(session)
session.close()
session.close()
print("said")
sys.exit(peers.leave(7))
"""


@pytest.mark.parametrize(
    ("code", "status", "output", "errors"),
    [(HANGING, 75, "before\n", "error: worker 1 is gone\n"), (CLOSING, 7, "said\n", "")],
    ids=["the main thread hangs", "a session is closing"],
)
def test_the_process_ends_with_its_status_and_output(code, status, output, errors):
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=2 * LONG)
    assert (result.returncode, result.stdout, result.stderr) == (status, output, errors)


TENSORFLOW = """
import sys, tensorflow as tf
server = tf.distribute.Server({"worker": ["127.0.0.1:" + sys.argv[1]]}, job_name="worker", task_index=0)
print("server is up", file=sys.stderr, flush=True)
server.join()
"""


@pytest.fixture(scope="module")
def tensorflow_server(tmp_path_factory):
    """A process with TensorFlow's own server, and its port."""
    port, path = free_port(), tmp_path_factory.mktemp("server") / "server.py"
    path.write_text(TENSORFLOW)
    with processes.start([path, str(port)]) as started:
        started.wait_for("server is up")
        yield started, port
        started.kill()


@pytest.mark.several_machines
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc")
def test_the_server_of_tensorflow_is_a_peer_and_loses_no_file_by_it(tensorflow_server, watching):
    process, port = tensorflow_server
    watching(port)
    files = Path(f"/proc/{process.pid}/fd")

    def call(times):
        for _ in range(times):
            with peers.call(("127.0.0.1", port), 1) as line:
                assert line.recv(100)

    call(10)  # its threads come with the first calls, and keep files of their own
    time.sleep(0.2)
    before = len(list(files.iterdir()))
    call(40)
    wait_until(lambda: len(list(files.iterdir())) < before + 10)


def test_a_session_is_closed_once_and_nobody_waits(monkeypatch):
    monkeypatch.setattr(peers, "_CLOSING", [])
    may, closed = threading.Event(), []
    session = SimpleNamespace(close=lambda: closed.append(may.wait(10)))
    peers.close_in_background(session)
    assert peers.leave(3) == 3  # not closed yet
    for _ in range(2):
        session.close()
    assert closed == []
    may.set()
    peers._CLOSING[0].join(10)
    assert closed == [True]
    assert peers.leave(3) == 3

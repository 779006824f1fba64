"""A service whose workers are threads, and whose model answers with what it was asked."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import http.client
import itertools
import json
import multiprocessing
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Optional

from bert_tf.errors import CheckpointError
from bert_tf.extensions.serve import app, server, worker
from bert_tf.extensions.serve.call import Part
from bert_tf.extensions.serve.service import Service
from bert_tf.extensions.serve.settings import ServeConfig, configured
from bert_tf.extensions.serve.worker import Description
from bert_tf.library.reading import Reader
from bert_tf.tasks.base import Limits
from bert_tf.tasks.sentence.family import SentenceFamily
from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

VOCABULARY = Vocabulary(
    [*SPECIAL_TOKENS, *"abcdefghijklmnopqrstuvwxyz", *(f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")]
)
READER = Reader(SentenceFamily(("no", "yes")), WordPieceTokenizer(VOCABULARY), Limits(16))
LATER = concurrent.futures.ThreadPoolExecutor(32)  # clients beside that of a test
Hook = Optional[Callable[[Sequence[Part]], None]]


def description(**changed: Any) -> Description:
    """Returns a model that has no weights."""
    usual = {"name": "toy", "checkpoint": "/runs/toy/model.ckpt-1", "digest": "d1" * 32, "kind": "classification"}
    return Description(
        **{**usual, "labels": ("no", "yes"), "reader": READER, "calls": ("predict", "encode"), "weight_bytes": 8, **changed}
    )


class Toy:
    """Answers with id and texts of each row, and the checkpoint that it is of."""

    def __init__(self, described: Description, before: Hook = None, problem: str | None = None) -> None:
        self.description, self._before, self._problem = described, before, problem
        self.batches: list[list[str]] = []
        self.is_closed = False

    @property
    def descriptions(self) -> tuple[Description, ...]:
        return (self.description,)

    def load(self) -> None:
        if self._problem:
            raise CheckpointError(self._problem)

    def close(self) -> None:
        self.is_closed = True

    def answers(self, batch: Sequence[Part]) -> list[list[bytes]]:
        self.batches.append([example.texts[0] for one in batch for example in one.examples])
        if self._before:
            self._before(batch)
        return [[self._answer(example, one) for example in one.examples] for one in batch]

    def _answer(self, example: Any, one: Part) -> bytes:
        said = {"id": example.guid, "texts": example.texts, "call": one.call, "of": self.description.step, **one.options}
        return json.dumps(said).encode()


class Loading(Toy):
    """Is loaded once `free` is set."""

    def __init__(self) -> None:
        super().__init__(description())
        self.free = threading.Event()

    def load(self) -> None:
        self.free.wait(20)


class Held(Toy):
    """Computes nothing until `free` is set."""

    def __init__(self) -> None:
        self.begun, self.free = threading.Event(), threading.Event()
        super().__init__(description(), self._hold)

    def _hold(self, _: Sequence[Part]) -> None:
        self.begun.set()
        self.free.wait(20)


class Thread:
    """A worker as a thread, in the words of a process; killing it closes its end of the connection."""

    exitcode = -9
    _pids = itertools.count(1)

    def __init__(self, connection: Any, toy: Toy) -> None:
        self.pid, self._connection, self._killed = next(self._pids), connection, False
        self._thread = threading.Thread(target=self._run, args=(toy,), daemon=True)
        self._thread.start()

    def _run(self, toy: Toy) -> None:
        with contextlib.suppress(SystemExit):  # how a toy has its worker end
            worker.converse(self._connection, lambda: toy)

    def is_alive(self) -> bool:
        return self._thread.is_alive() and not self._killed

    def kill(self) -> None:
        self._killed = True
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(self._connection.fileno())) as end:
            end.shutdown(socket.SHUT_RDWR)

    def join(self, timeout: float | None = None) -> None:
        if not self._killed:
            self._thread.join(timeout)


class Launcher:
    """Starts threads as workers; `toys` says what they compute with, one after the other, the last again and again."""

    def __init__(self, *toys: Toy) -> None:
        self.toys, self.started = list(toys), []

    def __call__(self, config: ServeConfig, number: int, **_: int) -> tuple[Any, Thread]:
        del config, number
        own, other = multiprocessing.Pipe()
        self.started.append(Thread(other, self.toys.pop(0) if len(self.toys) > 1 else self.toys[0]))
        return own, self.started[-1]


class Running:
    """A service that listens, in a thread; leaving the block ends it."""

    def __init__(self, *toys: Toy, runs: Sequence[str] = ("/runs/toy",), waits: bool = True, **settings: Any) -> None:
        """Entering the block waits until the model is loaded, or, if `waits` is false, until the service listens."""
        self._waits = waits
        self.launcher = Launcher(*(toys or (Toy(description()),)))
        self.config = configured(*runs, **{"port": 0, "grace_s": 5.0, **settings})
        self._listener = server.listening(self.config.address)
        self.port = self._listener.getsockname()[1]
        self.error: BaseException | None = None  # that ended it
        self._made = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve(self.config))
        except BaseException as error:
            self.error = error

    async def _serve(self, config: ServeConfig) -> None:
        self.loop = asyncio.get_running_loop()
        self.service = Service(config, launch=self.launcher)
        self.server = server.Server(app.make(self.service, config.address), config, stopping=self.service.stop)
        self._made.set()
        await server.until_signal(self.service, self.server, self._listener)

    def __enter__(self) -> Running:
        self._thread.start()
        self._made.wait(10)
        if self._waits:
            self.wait_for(lambda: self.service.is_ready or not self._thread.is_alive())
        else:
            self.wait_for(lambda: self.server.started)
        return self

    def __exit__(self, *error: object) -> None:
        if not self.server.should_exit:
            self.stop()
        self._thread.join(20)
        self._listener.close()
        assert not self._thread.is_alive()

    def stop(self) -> None:
        """As the first signal does."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self.loop.call_soon_threadsafe(self.server.handle_exit, 15, None)

    def wait_for(self, what: Callable[[], Any], limit_s: float = 10.0) -> None:
        end = time.monotonic() + limit_s
        while not what():
            assert time.monotonic() < end
            time.sleep(0.005)

    @contextlib.contextmanager
    def connected(self) -> Iterator[socket.socket]:
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            yield connection

    def ask(
        self, path: str = "/predict", body: Any = None, *, method: str | None = None, **headers: str
    ) -> tuple[int, Any, Any]:
        """Returns status, value of the body and headers of an answer; bodies that are not bytes go as JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        with contextlib.closing(connection):
            sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method or ("GET" if body is None else "POST"), path, sent, headers)
            response = connection.getresponse()
            text = response.read()
        is_json = "json" in (response.getheader("content-type") or "")
        return response.status, json.loads(text) if is_json else text.decode(), response.headers

    def ask_later(self, text: str = "a") -> concurrent.futures.Future[tuple[int, Any, Any]]:
        return LATER.submit(self.ask, body={"text": text})

    def predict(self, *rows: Any) -> list[Any]:
        status, said, _ = self.ask(body={"rows": rows})
        assert status == 200, said
        return said["predictions"]


def message(answer: tuple[int, Any, Any]) -> tuple[int, str]:
    """Returns status and message of a refusal."""
    status, said, _ = answer
    assert said["error"]["status"] == status
    assert "\n" not in said["error"]["message"]
    return status, said["error"]["message"]

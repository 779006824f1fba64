"""The worker processes of one model, or of several; one that dies is replaced without losing requests.

A thread per worker takes batches from the queue, sends them, and waits. If its process dies from a signal or a lack
of memory, the parts of the batch return to the queue, each to be computed alone, and a new process takes over. A
part that kills a second worker is refused; a death before the batch was received counts against none.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import os
import pickle
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from typing import Any

from bert_tf.checkpoints import model_formats
from bert_tf.errors import BertError
from bert_tf.extensions.serve import worker
from bert_tf.extensions.serve.call import Failed, Part
from bert_tf.extensions.serve.metrics import Metrics
from bert_tf.extensions.serve.queue import Answer, Queue, Waiting
from bert_tf.extensions.serve.refusal import INTERNAL, UNUSABLE, Refusal
from bert_tf.extensions.serve.settings import ServeConfig
from bert_tf.extensions.serve.worker import Description
from bert_tf.io import files
from bert_tf.io.log_form import log
from bert_tf.runtime import forks

PRELOADED, PRELOADED_ENGINE = "bert_tf.extensions.serve.preloaded", "bert_tf.extensions.serve.preloaded_engine"
MODEL_OF_ENGINE = "BERT_TF_SERVED"  # variable of the environment: the exported model that workers share

Descriptions = tuple[Description, ...]  # of the models, in their order
Launch = Callable[[ServeConfig, int], tuple[Connection, Any]]

_LOOK_S = 0.5  # between checks that an idle worker is alive
_LONGEST_PAUSE_S = 30.0  # before another try to start a worker that cannot start
_LONGEST_START_S = 600.0


class StartError(BertError):
    """A worker could not start."""


class Workers:
    """All workers, each of which computes with all models.

    `first` resolves to the models when one worker computes, or to its start error; `all` is done when all of them
    compute.
    """

    def __init__(
        self,
        config: ServeConfig,
        metrics: Metrics,
        *,
        changed: Callable[[], None] = lambda: None,
        launch: Launch | None = None,
    ) -> None:
        """Starts nothing yet.

        `changed` is called if a worker cannot be replaced because the model's files are gone or belong to another model.
        `launch` starts a process; None uses `launched`.
        """
        self._config, self._metrics, self._changed = config, metrics, changed
        computing, self._number = config.computing, config.computing.workers
        self._launch = launch or launched
        self.queue = Queue(batch_tokens=computing.batch_tokens, max_delay_s=computing.max_delay_ms / 1e3)
        self.first: concurrent.futures.Future[Descriptions] = concurrent.futures.Future()
        self.all: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._threads: list[threading.Thread] = []
        self._processes: dict[int, Any] = {}
        self._closing = threading.Event()
        self._computing = 0
        self._tokens_per_s = 0.0
        self._has_begun = self._is_killed = False
        self._lock = threading.Lock()

    @property
    def computing(self) -> int:
        """Number of workers that compute or can be restarted."""
        return self._computing

    def wait_s(self) -> float:
        """Estimated seconds until the queue is empty."""
        return self.queue.tokens / (self._tokens_per_s * max(1, self._computing)) if self._tokens_per_s else 1.0

    def start(self) -> None:
        """Starts the first worker; the others follow once it computes."""
        self._begin(0)

    def submit(self, parts: Sequence[Part]) -> list[concurrent.futures.Future[Answer]]:
        """Queues the parts of a request; returns their answers in order. Raises GoneError if the workers are retired."""
        return [waiting.answer for waiting in self.queue.put(parts)]

    def retire(self) -> None:
        """Lets the workers empty the queue and exit; returns immediately."""
        self._closing.set()
        self.queue.close()

    def join(self, timeout_s: float) -> bool:
        """Waits for the end after `retire`; False on timeout."""
        end = time.monotonic() + timeout_s
        for thread in list(self._threads):
            thread.join(max(0.0, end - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def kill(self) -> None:
        self._is_killed = True
        self.retire()
        self.queue.fail()
        for process in list(self._processes.values()):
            process.kill()

    def _begin(self, number: int) -> None:
        thread = threading.Thread(target=self._work, args=(number,), name=f"worker {number}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self, number: int) -> None:
        """Keeps one process running, restarting it if it dies, until the queue is closed."""
        failures = 0
        while True:
            try:
                connection, memory = self._started(number)
            except StartError as error:
                failures += 1
                if not self._tries_again(error, failures):
                    return
                continue
            failures = 0
            self._count(1, memory)
            is_done = self._serve(number, connection)
            self._count(-1)
            if is_done:
                return
            self._metrics.replaced.inc()

    def _tries_again(self, error: StartError, failures: int) -> bool:
        """Waits before a failed start is retried; False if it is not."""
        if not self.first.done():
            self.first.set_exception(error)
            self.all.set_exception(error)
            return False
        if self._closing.is_set():
            if not self._computing:
                self.queue.fail()
            return False
        with self._lock:  # several may fail at once
            if not self.all.done():
                self.all.set_exception(error)
        pause = min(2.0 ** (failures - 1), _LONGEST_PAUSE_S)
        log.error("a worker cannot start: %s; the next try is in %.0f s", error, pause)
        self._changed()
        self._closing.wait(pause)
        return True

    def _started(self, number: int) -> tuple[Connection, int]:
        """Starts a process; returns its connection once it is ready, and its memory in bytes."""
        if self._is_killed:
            raise StartError("the service has ended")
        try:
            own, process = self._launch(self._config, number)
        except OSError as error:
            raise StartError(f"cannot start a process: {files.reason(error)}") from error
        except (EOFError, RuntimeError) as error:  # the fork server has ended or cannot be reached
            raise StartError(f"cannot start a process: {error}") from error
        self._processes[number] = process
        try:
            if self._is_killed:  # killed meanwhile, before this process was registered
                raise StartError("the service has ended")
            self._take(_told(own, tuple))
            return own, _told(own, int)
        except BaseException:
            own.close()
            process.kill()
            raise

    def _take(self, descriptions: Descriptions) -> None:
        """The first worker's descriptions fix the models for all; another worker must find the same."""
        with self._lock:
            if not self.first.done():
                self._config = dataclasses.replace(self._config, runs=tuple(one.checkpoint for one in descriptions))
                self._descriptions = descriptions
                _say(descriptions, self._number)
                return
            for description, first in zip(descriptions, self._descriptions):
                if description.digest != first.digest:
                    raise StartError(f"{description.checkpoint}: the checkpoint has changed")

    def _count(self, change: int, memory: int = 0) -> None:
        with self._lock:
            self._computing += change
            self._metrics.workers.inc(change)
            is_first = change > 0 and not self._has_begun
            self._has_begun |= is_first
            if change > 0 and not self.all.done() and self._computing == self._number:
                self.all.set_result(None)
        if is_first:
            steps = ", ".join(one.step for one in self._descriptions)
            log.info("%s: first worker ready, %d MB in memory", steps, memory >> 20)
            for number in range(1, self._number):
                self._begin(number)
            self.first.set_result(self._descriptions)

    def _serve(self, number: int, connection: Connection) -> bool:
        """Passes batches on; True if the queue is closed, False if the process died."""
        process = self._processes[number]
        with contextlib.closing(connection):
            while True:
                if not process.is_alive():
                    log.warning("worker %d (process %d) has ended (%s); replacing it", number, process.pid, _why(process))
                    return False
                batch = self.queue.take(_LOOK_S)
                if batch is None:
                    break
                if not batch:
                    continue
                if not self._begun(connection, batch):
                    process.kill()
                    process.join()
                elif not self._computed(connection, batch):
                    process.kill()
                    process.join()
                    if not self._is_killed:
                        log.warning(
                            "worker %d (process %d) ended (%s) while it computed; %d parts of requests go to another",
                            *(number, process.pid, _why(process), len(batch)),
                        )
                    return False
        process.join()
        del self._processes[number]
        return True

    def _begun(self, connection: Connection, batch: Sequence[Waiting]) -> bool:
        """Sends a batch; False if the process ended before it received it, and the batch is back in the queue unchanged."""
        with contextlib.suppress(EOFError, OSError):
            connection.send([one.part for one in batch])
            self._said(connection)
            return True
        self.queue.put_back(batch, alone=False)
        return False

    def _said(self, connection: Connection) -> Any:
        silence_s = self._config.patience.answer_timeout_s
        if not connection.poll(silence_s):
            log.warning("no answer from a worker for %.0f s; ending it", silence_s)
            raise EOFError
        return connection.recv()

    def _computed(self, connection: Connection, batch: Sequence[Waiting]) -> bool:
        start = time.monotonic()
        try:
            answers = self._said(connection)
        except (EOFError, OSError, pickle.UnpicklingError):
            self._again(batch, "its process ended; is it too large for the memory?")
            return False
        if isinstance(answers, Failed):
            log.error("a batch cannot be computed: %s%s", answers.problem, f"\n{answers.trace}" if answers.trace else "")
            self._again(batch, "internal error" if answers.trace else answers.problem)
            return True
        self._note(batch, time.monotonic() - start)
        for one, answer in zip(batch, answers):
            if isinstance(answer, Failed):
                one.answer.set_exception(Refusal(UNUSABLE, answer.problem))
            else:
                one.answer.set_result(answer)
        return True

    def _again(self, batch: Sequence[Waiting], problem: str) -> None:
        """Requeues what was not computed; refuses a part that was alone, since it is the cause."""
        for one in batch:
            if one.alone:
                one.answer.set_exception(Refusal(INTERNAL, f"the request cannot be computed: {problem}"))
        self.queue.put_back([one for one in batch if not one.alone])

    def _note(self, batch: Sequence[Waiting], seconds: float) -> None:
        tokens, rows = (sum(values) for values in zip(*((one.part.tokens, len(one.part.examples)) for one in batch)))
        rate = tokens / max(seconds, 1e-9)
        self._tokens_per_s = rate if not self._tokens_per_s else 0.8 * self._tokens_per_s + 0.2 * rate
        metrics = self._metrics
        metrics.rows.inc(rows)
        metrics.tokens.inc(tokens)
        for histogram, value in (
            (metrics.batch_rows, rows),
            (metrics.batch_tokens, tokens),
            (metrics.batch_requests, len(batch)),
            (metrics.batch_seconds, seconds),
        ):
            histogram.observe(value)


def launched(config: ServeConfig, number: int, *, verbosity: int = 0) -> tuple[Connection, Any]:
    """Starts a worker process; only number 0 logs its device, the others log warnings. Raises OSError."""
    context = _context(config)
    own, other = context.Pipe()
    with contextlib.closing(other):
        told = (other, config, -1 if number else verbosity)
        process = context.Process(target=worker.run, args=told, name=f"bert_tf worker {number}", daemon=True)
        process.start()
    return own, process


def _context(config: ServeConfig) -> ForkServerContext:
    run = config.runs[0]  # several models are checkpoints, or of one exported folder
    if model_formats.file_of(run) is None:
        return forks.server_context(PRELOADED)
    if config.machine.devices.intra_op_threads == 1:  # see `preloaded_engine.share`
        os.environ[MODEL_OF_ENGINE] = run  # the fork server inherits it
    return forks.server_context(PRELOADED_ENGINE)


def _told(connection: Connection, kind: type[Any]) -> Any:
    """Receives a worker's start-up message; raises StartError if the worker failed or died."""
    try:
        if not connection.poll(_LONGEST_START_S):
            raise StartError(f"no start-up message for {_LONGEST_START_S:.0f} s")
        said = connection.recv()
    except (EOFError, OSError) as error:
        raise StartError("its process ended; is there memory for its weights?") from error
    if isinstance(said, Failed):
        if said.trace:
            log.error("%s", said.trace)
        raise StartError(said.problem)
    if not isinstance(said, kind):
        raise StartError(f"unexpected message {said!r:.80}")
    return said


def _why(process: Any) -> str:
    process.join(1.0)
    code = process.exitcode
    return f"signal {-code}" if code is not None and code < 0 else f"status {code}"


def _say(descriptions: Descriptions, workers: int) -> None:
    megabytes = sum(one.weight_bytes for one in descriptions) / 1e6
    plural = "" if workers == 1 else "s"
    if model_formats.file_of(descriptions[0].checkpoint) is not None:
        names = ", ".join(one.checkpoint for one in descriptions)
        log.info("%s: weights of %.0f MB, which workers of one thread share", names, descriptions[0].weight_bytes / 1e6)
        return
    if len(descriptions) > 1:
        log.info(
            "%d models: weights of at most %.0f MB for each of %d worker%s, with copies for /encode and /explain,"
            " and as much again during a reload; equal layers are held once",
            *(len(descriptions), megabytes, workers, plural),
        )
        return
    (description,) = descriptions
    log.info(
        "%s: weights of %.0f MB for each of %d worker%s, %.0f MB together, and as much again during a reload",
        *(description.checkpoint, megabytes, workers, plural, megabytes * workers),
    )

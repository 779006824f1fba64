"""A model that answers requests and can be replaced while it does."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import dataclasses
import functools
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from bert_tf.checkpoints import model_formats
from bert_tf.errors import BertError
from bert_tf.extensions.serve import call as calls
from bert_tf.extensions.serve import question, refusal
from bert_tf.extensions.serve import workers as processes
from bert_tf.extensions.serve.call import Part
from bert_tf.extensions.serve.metrics import Metrics
from bert_tf.extensions.serve.queue import GoneError
from bert_tf.extensions.serve.refusal import NOT_FOUND, TOO_MANY, UNAVAILABLE, Refusal
from bert_tf.extensions.serve.settings import ServeConfig
from bert_tf.extensions.serve.worker import Description
from bert_tf.extensions.serve.workers import Launch, Workers
from bert_tf.io.log_form import log
from bert_tf.run_layout import BEST, LIST
from bert_tf.training.settings import with_threads

_READING = 2  # threads that read bodies
_PUBLISHED = "bert_model.ckpt.index"
_LOOK_S = 2.0  # between checks of the run's files


class Answered(NamedTuple):
    """The result of a request."""

    model: Description  # the model that answered
    values: list[bytes]  # JSON of each row
    tokens: int  # computed


class Service:
    """Reads requests, dispatches them to workers, and keeps the model current; bound to one event loop."""

    def __init__(self, config: ServeConfig, *, launch: Launch | None = None) -> None:
        """Loads nothing yet. `launch` starts a worker process; None uses `workers.launched`."""
        self._config, self._launch = config, launch
        self.limits, self.patience, self.computing = config.limits, config.patience, config.computing
        self.metrics = Metrics()
        self.workers: Workers | None = None  # in use
        self.model: Description | None = None  # in use
        self._retired: list[Workers] = []
        self._readers = concurrent.futures.ThreadPoolExecutor(_READING, "read")
        self._reloading = asyncio.Lock()
        self._inside = 0
        self.is_stopping, self._end = False, 0.0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def is_ready(self) -> bool:
        return self.workers is not None and self.workers.computing > 0 and not self.is_stopping

    @property
    def is_reloading(self) -> bool:
        return self._reloading.locked()

    def stop(self) -> None:
        """Announces the shutdown; requests that still arrive are answered."""
        self.is_stopping = True
        self._end = time.monotonic() + self.patience.grace_s

    async def start(self) -> None:
        workers = self._made()
        workers.start()
        self._retired.append(workers)  # so that a shutdown during loading ends it
        model = await asyncio.wrap_future(workers.first)
        self._exchange(workers, model)
        if self.computing.watch:
            self._spawn(self._watch())

    @contextlib.contextmanager
    def place(self) -> Iterator[None]:
        """Reserves a slot from the request's head to its answer; raises Refusal if none is free."""
        if self._inside >= self.limits.max_requests:
            raise self._later(TOO_MANY, f"{self._inside} requests are in progress, the maximum; try again later")
        self._inside += 1
        self.metrics.inside.set(self._inside)
        try:
            yield
        finally:
            self._inside -= 1
            self.metrics.inside.set(self._inside)

    async def answer(self, call: str, body: bytes) -> Answered:
        """Answers a JSON body, even if the model is replaced meanwhile; raises Refusal."""
        try:
            return await asyncio.wait_for(self._answer(call, body), self.patience.answer_timeout_s)
        except asyncio.TimeoutError as error:
            raise self._later(UNAVAILABLE, f"no answer within {self.patience.answer_timeout_s:g} s; try again later") from error

    async def _answer(self, call: str, body: bytes) -> Answered:
        while True:
            workers, model = self.workers, self.model
            if workers is None or model is None:
                raise refusal.later(UNAVAILABLE, "the model is not yet loaded; try again later", 2)
            parts = await self._read(call, body, model)
            try:
                answers = await self._computed(workers, parts)
            except GoneError as error:
                if workers is self.workers:
                    raise refusal.later(UNAVAILABLE, "the service is stopping", 5) from error
                continue
            return Answered(model, [value for answer in answers for value in answer], sum(part.tokens for part in parts))

    async def _read(self, call: str, body: bytes, model: Description) -> list[Part]:
        if call not in model.calls:
            raise Refusal(NOT_FOUND, f"this model offers only {', '.join(model.calls)}{calls.every()[call].remedy}")
        read = functools.partial(question.read, batch_tokens=self.computing.batch_tokens)
        return await asyncio.get_running_loop().run_in_executor(self._readers, read, call, body, model.reader, self.limits)

    async def _computed(self, workers: Workers, parts: list[Part]) -> list[list[bytes]]:
        queued = workers.queue.tokens
        if parts and queued >= self.limits.max_queue_tokens:
            raise self._later(TOO_MANY, f"{queued} tokens are waiting, the maximum; try again later")
        futures = workers.submit(parts)
        try:
            return await asyncio.gather(*map(asyncio.wrap_future, futures))
        except BaseException:
            for future in futures:
                future.cancel()  # nobody waits for the other parts
            raise

    def _later(self, status: int, message: str) -> Refusal:
        return refusal.later(status, message, min(60.0, self.workers.wait_s() if self.workers else 2.0))

    async def reload(self) -> Description:
        """Loads the current checkpoint of the run without interrupting requests; on a BertError the old model stays."""
        async with self._reloading:
            workers = self._made()
            self._retired.append(workers)
            workers.start()
            try:
                model = await asyncio.wrap_future(workers.first)
                await asyncio.wrap_future(workers.all)
            except BertError as error:
                workers.kill()
                self._retired.remove(workers)
                self.metrics.reloads.labels("failed").inc()
                log.error("cannot reload: %s; %s keeps answering", error, self.model.step if self.model else "nothing")
                raise
            self._exchange(workers, model)
            self.metrics.reloads.labels("done").inc()
            return model

    def request_reload(self) -> None:
        """Starts a reload in the background and logs its result; does nothing if one is in progress."""
        if not self.is_reloading:
            self._spawn(self._reload_quietly())

    async def _reload_quietly(self) -> None:
        with contextlib.suppress(BertError):
            await self.reload()

    def _made(self) -> Workers:
        loop = asyncio.get_running_loop()

        def changed() -> None:
            loop.call_soon_threadsafe(self.request_reload)

        return Workers(self._config, self.metrics, changed=changed, launch=self._launch)

    def _exchange(self, workers: Workers, model: Description) -> None:
        """Routes further requests to the new workers; the old ones finish what they accepted and exit."""
        earlier, self.workers, self.model = self.workers, workers, model
        self._retired.remove(workers)
        if earlier is not None:
            self._retired.append(earlier)
            earlier.retire()
        self.metrics.model.clear()
        self.metrics.model.labels(model.step, model.digest[:12]).set(1)
        self.metrics.queue_tokens.set_function(lambda: workers.queue.tokens)
        self.metrics.queue_requests.set_function(lambda: workers.queue.requests)
        log.info("serving %s", model.checkpoint)

    async def _watch(self) -> None:
        watch = Watch(self._config.run)
        while True:
            await asyncio.sleep(_LOOK_S)
            if await asyncio.to_thread(watch.has_changed):
                log.info("%s: the run has a new best checkpoint", self._config.run)
                await self._reload_quietly()

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Finishes what is queued and ends the workers; kills them once the grace period is over."""
        for task in list(self._tasks):
            task.cancel()
        workers = [*self._retired, *([self.workers] if self.workers else [])]
        for one in workers:
            one.retire() if one.first.done() else one.kill()  # workers that are still loading have no requests
        for one in workers:
            await asyncio.to_thread(one.join, max(0.0, self._end - time.monotonic()))
        self.kill()

    def kill(self) -> None:
        for one in [*self._retired, *([self.workers] if self.workers else [])]:
            one.kill()
        self._readers.shutdown(wait=False)


def of(config: ServeConfig, *, verbosity: int = 0, cores: Callable[[], int]) -> Service:
    """Needs a running event loop; `cores` returns the number of CPU cores that the workers share."""
    several = config.computing.workers
    machine = with_threads(config.machine, max(1, cores() // several)) if several > 1 else config.machine
    resolved = dataclasses.replace(config, run=os.path.abspath(config.run), machine=machine)
    return Service(resolved, launch=functools.partial(processes.launched, verbosity=verbosity))


class Watch:
    """Watches the checkpoint lists of a run, the file of a model in another format, or the index of a single checkpoint."""

    def __init__(self, run: str | os.PathLike[str]) -> None:
        self._run = Path(run)
        self._known = self._seen = self._look()

    def has_changed(self) -> bool:
        """True if changed and the same as in the previous call: a file that is being written is left to its writer."""
        before, self._seen = self._seen, self._look()
        if self._seen in (self._known,) or self._seen != before or not any(self._seen):
            return False
        self._known = self._seen
        return True

    def _look(self) -> tuple[object, ...]:
        if not self._run.is_dir():
            return (_stamp(self._run.with_name(f"{self._run.name}.index")),)
        exported, best = model_formats.file_of(self._run), _stamp(self._run / BEST / LIST)
        return (exported and _stamp(exported), _stamp(self._run / _PUBLISHED), best, None if best else _stamp(self._run / LIST))


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino

"""Models that answer requests and can be replaced while they do."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import dataclasses
import functools
import math
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bert_tf.checkpoints import model_formats, prefixes
from bert_tf.errors import BertError
from bert_tf.extensions.serve import call as calls
from bert_tf.extensions.serve import question, refusal
from bert_tf.extensions.serve import workers as processes
from bert_tf.extensions.serve.call import Part
from bert_tf.extensions.serve.metrics import Metrics
from bert_tf.extensions.serve.queue import GoneError
from bert_tf.extensions.serve.refusal import NOT_FOUND, TOO_MANY, UNAVAILABLE, Refusal
from bert_tf.extensions.serve.settings import ServeConfig, names_of
from bert_tf.extensions.serve.worker import Description
from bert_tf.extensions.serve.workers import Launch, Workers
from bert_tf.io import files
from bert_tf.io.log_form import log
from bert_tf.run_layout import BEST, LIST
from bert_tf.training.settings import with_threads

_READING = 2  # threads that read bodies
_PUBLISHED = "bert_model.ckpt.index"
_READ = (".safetensors", ".bin", ".json", ".txt", ".model")  # suffixes of weights, configurations and vocabularies
_LOOK_S = 2.0  # between checks of the run's files
_PAUSE_S, _LONGEST_PAUSE_S = 30.0, 600.0  # before a reload that failed is tried again


class Answered(NamedTuple):
    """The answer of a model to a request."""

    model: Description  # the model that answered
    values: list[bytes]  # JSON of each row
    tokens: int  # computed


class Service:
    """Reads requests, dispatches them to workers, and keeps the models current; bound to one event loop."""

    def __init__(self, config: ServeConfig, *, launch: Launch | None = None) -> None:
        """Loads nothing yet. `launch` starts a worker process; None uses `workers.launched`."""
        self._config, self._launch = config, launch
        self.limits, self.patience, self.computing = config.limits, config.patience, config.computing
        self.metrics = Metrics()
        self.workers: Workers | None = None  # in use
        self.names: tuple[str, ...] = names_of(config.runs) if len(config.runs) > 1 else ()  # of several models
        self.models: tuple[Description, ...] = ()  # in use; none while the first is loaded
        self._retired: list[Workers] = []  # and those that are being loaded, or have ended since the last exchange
        self._readers = concurrent.futures.ThreadPoolExecutor(_READING, "read")
        self._reloading = asyncio.Lock()
        self._inside = 0
        self.is_stopping, self._end = False, 0.0
        self._tasks: set[asyncio.Task[object]] = set()

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
        watches = {run: Watch(run) for run in self._config.runs} if self.computing.watch else {}  # before models are chosen
        workers.start()
        self._retired.append(workers)  # so that a shutdown during loading ends it
        self._exchange(workers, await asyncio.wrap_future(workers.first))
        if watches:
            self._spawn(self._watch(watches))

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

    async def answer(self, call: str, body: bytes, model: int | None = 0) -> list[Answered]:
        """Answers a JSON body, even if the models are replaced meanwhile; raises Refusal.

        `model` is a number, None for those that the body names.
        """
        try:
            return await asyncio.wait_for(self._answer(call, body, model), self.patience.answer_timeout_s)
        except asyncio.TimeoutError as error:
            raise self._later(UNAVAILABLE, f"no answer within {self.patience.answer_timeout_s:g} s; try again later") from error

    async def _answer(self, call: str, body: bytes, model: int | None) -> list[Answered]:
        while True:
            workers, models = self.workers, self.models
            if workers is None or not models:
                raise refusal.later(UNAVAILABLE, "the model is not yet loaded; try again later", 2)
            asked, parts = await self._read(call, body, models, model)
            try:
                answers = await self._computed(workers, parts)
            except GoneError as error:
                if workers is self.workers:
                    raise refusal.later(UNAVAILABLE, "the service is stopping", 5) from error
                continue
            values: dict[int, list[bytes]] = {number: [] for number in asked}
            for part, answer in zip(parts, answers):
                for number, of_model in part.of_models(answer):
                    values[number] += of_model
            tokens = sum(part.tokens for part in parts)
            return [Answered(models[number], of_model, tokens) for number, of_model in values.items()]

    async def _read(
        self, call: str, body: bytes, models: Sequence[Description], number: int | None
    ) -> tuple[Sequence[int], list[Part]]:
        """The numbers of the models that are asked, and the parts of the request."""
        in_thread = functools.partial(asyncio.get_running_loop().run_in_executor, self._readers)
        if number is None:
            read = functools.partial(question.read_several, batch_tokens=self.computing.batch_tokens)
            return await in_thread(read, body, models, self.limits)
        model = models[number]
        if call not in model.calls:
            raise Refusal(NOT_FOUND, f"this model offers only {', '.join(model.calls)}{calls.every()[call].remedy}")
        read_one = functools.partial(question.read_parts, batch_tokens=self.computing.batch_tokens)
        parts = await in_thread(read_one, call, body, model.reader, self.limits)
        return (number,), [dataclasses.replace(part, models=(number,)) for part in parts]

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
            workers.queue.discard_cancelled()
            raise

    def _later(self, status: int, message: str) -> Refusal:
        return refusal.later(status, message, min(60.0, self.workers.wait_s() if self.workers else 2.0))

    async def reload(self) -> None:
        """Loads the current checkpoint of each run without interrupting requests; on a BertError the old models stay."""
        async with self._reloading:
            workers = self._made()
            self._retired.append(workers)
            workers.start()
            try:
                models = await asyncio.wrap_future(workers.first)
                await asyncio.wrap_future(workers.all)
            except BertError as error:
                workers.kill()
                self._retired.remove(workers)
                self.metrics.reloads.labels("failed").inc()
                kept = ", ".join(one.step for one in self.models) or "nothing"
                log.error("cannot reload: %s; %s keeps answering", error, kept)
                raise
            self._exchange(workers, models)
            self.metrics.reloads.labels("done").inc()

    def request_reload(self) -> None:
        """Starts a reload in the background and logs its result; does nothing if one is in progress."""
        if not self.is_reloading:
            self._spawn(self._reload_quietly())

    async def _reload_quietly(self) -> bool:
        with contextlib.suppress(BertError):
            await self.reload()
            return True
        return False

    def _made(self) -> Workers:
        loop = asyncio.get_running_loop()

        def changed() -> None:
            loop.call_soon_threadsafe(self.request_reload)

        return Workers(self._config, self.metrics, changed=changed, launch=self._launch)

    def _exchange(self, workers: Workers, models: tuple[Description, ...]) -> None:
        """Routes further requests to the new workers; the old ones finish what they accepted and exit."""
        named = tuple(dataclasses.replace(model, name=name) for model, name in zip(models, self.names))
        earlier, self.workers, self.models = self.workers, workers, named or models
        self._retired = [one for one in self._retired if one is not workers and not one.join(0.0)]
        if earlier is not None:
            self._retired.append(earlier)
            earlier.retire()
        self.metrics.model.clear()
        for model in self.models:
            step = f"{model.name}/{model.step}" if self.names else model.step
            self.metrics.model.labels(step, model.digest[:12]).set(1)
        self.metrics.queue_tokens.set_function(lambda: workers.queue.tokens)
        self.metrics.queue_requests.set_function(lambda: workers.queue.requests)
        log.info("serving %s", ", ".join(model.checkpoint for model in self.models))

    async def _watch(self, watches: Mapping[str, Watch]) -> None:
        pause, again = 0.0, math.inf  # after a reload that failed, as for want of memory
        while True:
            await asyncio.sleep(_LOOK_S)
            changed = [run for run, watch in watches.items() if await asyncio.to_thread(watch.has_changed)]
            for run in changed:
                log.info("%s has changed", run)
            if changed or time.monotonic() >= again:
                pause = _PAUSE_S if changed else min(2 * pause, _LONGEST_PAUSE_S)
                again = math.inf if await self._reload_quietly() else time.monotonic() + pause

    def _spawn(self, work: Awaitable[object]) -> None:
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
    runs = tuple(run if prefixes.as_hub_name(run) else os.path.abspath(run) for run in config.runs)
    resolved = dataclasses.replace(config, runs=runs, machine=machine)
    return Service(resolved, launch=functools.partial(processes.launched, verbosity=verbosity))


class Watch:
    """Watches the checkpoint lists of a run, the file of a model in another format, or the index of a single checkpoint.

    Of a folder that has none of these, as of Hugging Face or PEFT, it watches weights, configuration and vocabulary.
    """

    def __init__(self, run: str | os.PathLike[str]) -> None:
        self._run = Path(run)
        self._has_list = True
        self._has_list = any(self._look())
        self._known = self._seen = self._look()
        self._is_away = False

    def has_changed(self) -> bool:
        """True if changed and the same as in the previous call: a file that is being written is left to its writer."""
        before = self._seen
        try:
            self._seen = self._look()
        except OSError as error:  # a network drive that does not answer
            if not self._is_away:
                log.warning("%s: cannot be watched: %s", self._run, files.reason(error))
            self._is_away = True
            return False
        self._is_away = False
        if self._seen in (self._known,) or self._seen != before or not any(self._seen):
            return False
        self._known = self._seen
        return True

    def _look(self) -> tuple[object, ...]:
        if not self._run.is_dir():
            return (_stamp(self._run.with_name(f"{self._run.name}.index")), _stamp(self._run))
        if not self._has_list:
            return tuple((path.name, _stamp(path)) for path in sorted(self._run.glob("*")) if path.suffix in _READ)
        exported, best = model_formats.file_of(self._run), _stamp(self._run / BEST / LIST)
        return (exported and _stamp(exported), _stamp(self._run / _PUBLISHED), best, None if best else _stamp(self._run / LIST))


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino

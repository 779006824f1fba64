"""The machines of a job, as TF_CONFIG names them; does not import TensorFlow.

    {"cluster": {"worker": ["host-a:2222", "host-b:2222"]}, "task": {"type": "worker", "index": 0}}

All processes get the same `cluster`; `task` identifies this one.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from bert_tf.errors import DeviceError
from bert_tf.io import documents
from bert_tf.io.documents import DocumentError
from bert_tf.runtime.settings import TF_CONFIG

_EXAMPLE = '{"cluster": {"worker": ["host-a:2222", "host-b:2222"]}, "task": {"type": "worker", "index": 0}}'
_CHIEF, _WORKER = "chief", "worker"
_ORDER = (_CHIEF, _WORKER)  # TensorFlow's order of replicas
_REFUSED = {
    "ps": "the weights are on every machine, there are no parameter servers; list the machine under worker, or leave it out",
    "evaluator": "the chief evaluates once training is over; list the machine under worker, or leave it out",
    "master": "this is the old name of chief; write chief",
}
_NAME = r"[\w-]{1,63}(?:\.[\w-]{1,63})*\.?"
_ADDRESS = re.compile(rf"(?P<host>\[[0-9A-Fa-f:.]+\]|{_NAME}):(?P<port>[0-9]{{1,9}})", re.ASCII)
_LAST_PORT = 65535
_LONGEST_QUOTE = 60  # characters


@dataclasses.dataclass(frozen=True)
class Worker:
    """One process of the job."""

    task_type: str  # chief or worker
    index: int  # within its task type
    host: str  # name or IP address, without brackets
    port: int
    address: str  # host:port as in TF_CONFIG

    def __str__(self) -> str:
        task = self.task_type if self.task_type == _CHIEF else f"{self.task_type} {self.index}"
        return f"{task} ({self.address})"


@dataclasses.dataclass(frozen=True)
class Cluster:
    workers: tuple[Worker, ...]  # in TensorFlow's order: a chief first, if any
    position: int  # of this process

    @property
    def own(self) -> Worker:
        return self.workers[self.position]

    @property
    def is_chief(self) -> bool:
        """Whether this process writes: the chief, or worker 0 if there is no chief."""
        return self.position == 0

    @property
    def peers(self) -> tuple[Worker, ...]:
        return tuple(worker for worker in self.workers if worker is not self.own)


def read_cluster(environment: Mapping[str, str]) -> Cluster | None:
    """Reads TF_CONFIG; None if it names no other machine; DeviceError if it is malformed."""
    text = environment.get(TF_CONFIG, "").strip()
    config = _parse(text) if text else {}
    if not config:
        return None
    workers = _workers(_jobs(config))
    position = _position(config, workers)
    return Cluster(workers, position) if len(workers) > 1 else None


def _wrong(problem: str) -> DeviceError:
    return DeviceError(f"{TF_CONFIG}: {problem}")


def _quote(value: Any) -> str:
    text = documents.to_json(value)
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}..."


def _parse(text: str) -> dict[str, Any]:
    try:
        config = documents.parse_json(text)
    except DocumentError as error:
        raise _wrong(f"{error}; write {_EXAMPLE}") from error
    if not isinstance(config, dict):
        raise _wrong(f"{_quote(config)} is not an object in braces; write {_EXAMPLE}")
    return config


def _jobs(config: Mapping[str, Any]) -> Mapping[str, Any]:
    jobs = config.get("cluster")
    if not isinstance(jobs, dict) or not jobs:
        problem = "no cluster" if jobs is None else f"cluster {_quote(jobs)} names no task type"
        raise _wrong(f"{problem}; write the addresses of all processes, the same for each: {_EXAMPLE}")
    for name in jobs:
        if name in _REFUSED:
            raise _wrong(f"cluster has {_quote(name)}: {_REFUSED[name]}")
        if name not in _ORDER:
            raise _wrong(f"cluster has the unknown task type {_quote(name)}; only chief and worker are known")
    return jobs


def _workers(jobs: Mapping[str, Any]) -> tuple[Worker, ...]:
    workers = tuple(worker for name in _ORDER if name in jobs for worker in _tasks(name, jobs[name]))
    seen: dict[tuple[str, int], Worker] = {}
    for worker in workers:
        other = seen.setdefault((worker.host.lower(), worker.port), worker)
        if other is not worker:
            raise _wrong(f"{other} and {worker} have the same address; give each process a port or a host of its own")
    return workers


def _tasks(name: str, addresses: Any) -> list[Worker]:
    if not isinstance(addresses, list) or not addresses:
        problem = "is empty" if addresses in ([], {}, "", None) else f"is not a list: {_quote(addresses)}"
        raise _wrong(f'cluster.{name} {problem}; write its addresses as ["host:port", ...], or leave {name} out')
    if name == _CHIEF and len(addresses) > 1:
        raise _wrong(f"cluster.chief has {len(addresses)} addresses; there is one chief: list the others under worker")
    return [_worker(name, index, address) for index, address in enumerate(addresses)]


def _worker(name: str, index: int, address: Any) -> Worker:
    match = _ADDRESS.fullmatch(address) if isinstance(address, str) else None
    if match is None:
        raise _wrong(f'cluster.{name}[{index}] is {_quote(address)}; write it as "host:port", such as "host-a:2222"')
    port = int(match["port"])
    if not 1 <= port <= _LAST_PORT:
        raise _wrong(f"cluster.{name}[{index}] is {_quote(address)}; a port is a number from 1 to {_LAST_PORT}")
    return Worker(name, index, match["host"].strip("[]"), port, address)


def _position(config: Mapping[str, Any], workers: tuple[Worker, ...]) -> int:
    task = config.get("task")
    if not isinstance(task, dict) or "type" not in task:
        problem = "no task" if task is None else f"task {_quote(task)} has no type"
        raise _wrong(f'{problem}; say which process this one is, such as "task": {{"type": "worker", "index": 0}}')
    name = task["type"]
    positions = [position for position, worker in enumerate(workers) if worker.task_type == name]
    if not positions:
        known = " or ".join(dict.fromkeys(worker.task_type for worker in workers))
        remedy = _REFUSED.get(name, f"write {known}") if isinstance(name, str) else f"write {known}"
        raise _wrong(f"task.type is {_quote(name)}, which cluster does not have: {remedy}")
    return positions[_index(task, len(positions))]


def _index(task: Mapping[str, Any], known: int) -> int:
    name = task["type"]
    if "index" not in task:
        raise _wrong(f"task has no index; write the place of this process under cluster.{name}, counted from 0")
    index = task["index"]
    if type(index) is not int:  # True would be one as well
        raise _wrong(f"task.index is {_quote(index)}; write a whole number without quotes, counted from 0")
    if not 0 <= index < known:
        places = "0 is the only one" if known == 1 else f"write 0 to {known - 1}"
        raise _wrong(f"task.index is {index}, and the addresses of cluster.{name} are counted from 0: {places}")
    return index

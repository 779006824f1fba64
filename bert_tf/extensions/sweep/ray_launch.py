"""Starts the leader of a sweep on each node of a Ray cluster, and waits for them.

A leader reserves its whole node, since it divides all CPUs and GPUs among its runs: Ray then hides no GPU from it, and it takes
nothing from other jobs. On a busy node it starts when these have ended; leaders of other nodes do not wait for it.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import signal
import socket
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bert_tf import extras
from bert_tf.errors import FlagError, LostPeerError
from bert_tf.extensions.sweep import ray_node, table
from bert_tf.io import atomic
from bert_tf.io.log_form import log

RUNS_FAILED = "runs failed, the first"  # in the last line of a leader with all results
LEADERS = "leaders"  # folder for their logs

_ADDRESS = re.compile(r"(?:ray://)?([^/]+):(\d{1,5})")
# Variables of the command for the leaders.
_VARIABLES = re.compile("BERT_BASE_DIR|BERT_TF_HOME|GLUE_DIR|PYTHONPATH|HF_.*|(?i:https?|no|all)_(?i:proxy)")
_CONNECT_S = 10.0
_ANSWER_S = 60.0  # for a node to start a process
_GRACE_S = 30.0  # for other leaders to end when one has all results


class Node(NamedTuple):
    id: str
    name: str
    cpus: float
    gpus: float


def lead(command: Sequence[str], folder: Path, names: Sequence[str], tasks: Sequence[str]) -> list[table.Result]:
    """Runs a Python command on each node and returns the results when one has all; in a search, `names` is empty.

    Raises LostPeerError if no leader has all results; KeyboardInterrupt on Ctrl-C or SIGTERM, when the leaders have ended.
    """
    with _connected(os.environ) as ray:
        nodes = _that_see(ray, _nodes(ray.nodes()), folder)
        log.info("a leader on each of %d nodes, once no other job uses it: %s", len(nodes), ", ".join(n.name for n in nodes))
        is_complete = _followed(ray, _started(ray, nodes, command, folder), lambda: len(_finished(folder, names, tasks)))
    finished = _finished(folder, names, tasks)
    if not (is_complete or (names and len(finished) == len(names))):
        problem = (
            f"{len(finished)} runs have a result, no leader has all; the same command continues; {folder / LEADERS} has logs"
        )
        raise LostPeerError(f"--launch=ray: {problem}")
    results = [result for result in (table.read_result(folder, name) for name in finished) if result]
    return results if names else sorted(results, key=lambda result: (tasks.index(result.task), len(result.name), result.name))


def _finished(folder: Path, names: Sequence[str], tasks: Sequence[str]) -> list[str]:
    """Names of the runs with a result; in a search, those of trials: the folder may have runs of a grid and of other tasks."""
    finished = dict.fromkeys(table.finished(folder))
    trial = re.compile(rf"(?:{'|'.join(map(re.escape, tasks))})-trial\d+")
    return [name for name in names or filter(trial.fullmatch, finished) if name in finished]


@contextlib.contextmanager
def _connected(environment: Mapping[str, str]) -> Iterator[Any]:
    """Yields Ray, connected to the cluster. SIGTERM raises KeyboardInterrupt; Ray would end the process."""
    try:
        import ray
        import ray.exceptions
        import ray.util.scheduling_strategies
    except ImportError as error:
        raise FlagError(f"--launch=ray needs Ray: {extras.install('ray')}") from error
    with contextlib.ExitStack() as undone:
        before = signal.getsignal(signal.SIGTERM)
        if not ray.is_initialized():
            _connect(ray, environment.get("RAY_ADDRESS") or "auto")
            undone.callback(ray.shutdown)
        with contextlib.suppress(ValueError):  # not the main thread
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            undone.callback(signal.signal, signal.SIGTERM, before)
        ray.cloudpickle.register_pickle_by_value(ray_node)
        yield ray


def _connect(ray: Any, address: str) -> None:
    try:
        named = _ADDRESS.fullmatch(address)
        if named:  # Ray itself tries for minutes
            socket.create_connection((named[1], int(named[2])), _CONNECT_S).close()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about later versions of Ray
            ray.init(address=address, log_to_driver=False, logging_level="error")
    except (OSError, OverflowError, RuntimeError, ValueError) as error:
        reason = re.split(r"\n|\. ", str(error))[0]
        problem = f"--launch=ray: no cluster at {address} ({reason}); ray start --head starts one, RAY_ADDRESS names another"
        raise FlagError(problem) from error


def _nodes(rows: Sequence[Mapping[str, Any]]) -> list[Node]:
    """Nodes that are alive and offer CPUs or GPUs; a head often offers none."""
    offers = [(row, *(row["Resources"].get(name, 0.0) for name in ("CPU", "GPU"))) for row in rows if row["Alive"]]
    nodes = (Node(row["NodeID"], row["NodeName"], cpus, gpus) for row, cpus, gpus in offers if cpus or gpus)
    return sorted(nodes, key=lambda node: node.name)


def _that_see(ray: Any, nodes: Sequence[Node], folder: Path) -> list[Node]:
    """Returns the nodes that answer; FlagError names those that do not see the folder."""
    token = folder / f".{uuid.uuid4().hex}.token"
    atomic.write_text(token, "")
    try:
        asked = [(node, _task(ray, node, ray_node.sees).remote(str(token))) for node in nodes]
        answers = {node: _answer(ray, node, ref, _ANSWER_S) for node, ref in asked}
    finally:
        token.unlink(missing_ok=True)
    blind = [node.name for node, answer in answers.items() if answer is False]
    if blind:
        raise FlagError(f"--output_dir={folder}: not seen by {', '.join(blind)}; name a folder that all nodes share")
    if not any(answers.values()):
        raise LostPeerError("--launch=ray: no node with CPUs or GPUs answers; see ray status")
    return [node for node, answer in answers.items() if answer]


def _task(ray: Any, node: Node, function: Callable[..., Any], *, whole: bool = False) -> Any:
    """A task for a node, without retries; `whole` reserves all CPUs and GPUs."""
    strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node.id, soft=False)
    resources = {"num_cpus": node.cpus * whole, "num_gpus": node.gpus * whole}
    return ray.remote(function).options(**resources, max_retries=0, scheduling_strategy=strategy)


def _answer(ray: Any, node: Node, ref: Any, seconds: float | None = None) -> Any:
    """Waits for a task; None if its node was lost."""
    try:
        return ray.get(ref, timeout=seconds)
    except ray.exceptions.RayError as error:
        log.warning("%s: lost (%s); its runs are left to the other nodes", node.name, type(error).__name__)
        return None


def _started(ray: Any, nodes: Sequence[Node], command: Sequence[str], folder: Path) -> dict[Any, Node]:
    environment = {name: value for name, value in os.environ.items() if _VARIABLES.fullmatch(name)}
    logs = atomic.make_folder(folder / LEADERS, follows=False)
    arguments = list(command), os.getcwd(), environment
    paths = [logs / f"{node.name.replace('/', '_')}-{node.id[:6]}.txt" for node in nodes]  # several nodes may be one machine
    return {_task(ray, n, ray_node.lead, whole=True).remote(*arguments, str(path)): n for n, path in zip(nodes, paths)}


def _followed(ray: Any, leaders: Mapping[Any, Node], count: Callable[[], int]) -> bool:
    """Waits for the leaders to end, only briefly once one has all results; returns whether one has."""
    waiting, until, is_complete, known = dict(leaders), math.inf, False, 0
    try:
        while waiting and time.monotonic() < until:
            done, _ = ray.wait(list(waiting), timeout=1.0)
            ends = [_has_all_results(ray, waiting.pop(ref), ref) for ref in done]
            if any(ends) and not is_complete:
                is_complete, until = True, time.monotonic() + _GRACE_S
            known, before = count(), known
            if known != before:
                log.info("%d runs have a result", known)
        return is_complete
    finally:
        _stop(ray, list(waiting))


def _has_all_results(ray: Any, node: Node, ref: Any) -> bool:
    answer = _answer(ray, node, ref)
    if answer is None:
        return False
    status, message = answer
    if status and RUNS_FAILED not in message:
        log.warning("%s: its leader ended with status %d: %s", node.name, status, message)
        return False
    return True


def _stop(ray: Any, waiting: Sequence[Any]) -> None:
    """Stops leaders and waits for their ends: their runs save a checkpoint after their step."""
    for ref in waiting:
        ray.cancel(ref)
    if waiting:
        log.warning("stopping the leaders of %d nodes", len(waiting))
        ray.wait(list(waiting), num_returns=len(waiting))

"""Graphs opened in ONNX Runtime, on the CPU."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Optional

from bert_tf.batch.engine import Batch, Compute

ComputeOutputs = Callable[[Batch, Optional[Collection[str]]], dict[str, Any]]

_ERRORS = 3  # lowest severity that is logged

_shared: dict[tuple[object, ...], Any] = {}  # sessions by `_state` of their graph


def share(path: Path) -> None:
    """Opens a graph for the processes that are forked from this one: they share its memory.

    Without a pool of threads, which does not survive a fork: only sessions of one thread are shared.
    """
    state = _state(path)
    _shared[state] = _session(path, 1)


def _state(path: Path) -> tuple[object, ...]:
    """Path of a graph, and what changes if it or its weights, which are beside it, are replaced."""
    statuses = [one.stat() for one in (path, *sorted(path.parent.glob("*.data")))]
    return path, *((status.st_ino, status.st_size, status.st_mtime_ns) for status in statuses)


def opened(path: Path, threads: int, outputs: Collection[str] | None = None) -> Compute:
    """Opens a graph that computes some of its outputs, or all; `threads` of one operation, 0 for all cores."""
    compute = opened_for_outputs(path, threads)
    return lambda batch: compute(batch, outputs)


def opened_for_outputs(path: Path, threads: int) -> ComputeOutputs:
    """As `opened`, for other outputs with each batch; what only others need is not computed."""
    import onnxruntime

    shared = _shared.get(_state(path)) if threads == 1 and _shared else None
    session = shared or _session(path, threads)
    reads = [value.name for value in session.get_inputs()]
    every = [value.name for value in session.get_outputs()]

    def compute(batch: Batch, outputs: Collection[str] | None) -> dict[str, Any]:
        names = every if outputs is None else [name for name in every if name in outputs]
        of_run = onnxruntime.RunOptions()
        of_run.only_execute_path_to_fetches = outputs is not None
        return dict(zip(names, session.run(names, {name: batch[name] for name in reads}, of_run)))

    return compute


def _session(path: Path, threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = _ERRORS
    return onnxruntime.InferenceSession(os.fspath(path), options, providers=["CPUExecutionProvider"])

"""Records a few training steps; the others run unchanged."""

from __future__ import annotations

import collections
import fnmatch
import functools
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.errors import BertError
from bert_tf.estimator import stamps
from bert_tf.estimator.run import Hook
from bert_tf.extensions.profile import FOLDER, OPERATIONS, PHASES, RECORDED, StepRange, operations_file, step_stats
from bert_tf.extensions.profile.cuda_profiler import CudaProfiler
from bert_tf.extensions.profile.matmul_peak import MatmulPeak
from bert_tf.extensions.profile.operations_file import Record
from bert_tf.graphs import HOST
from bert_tf.io import atomic, documents
from bert_tf.io.log_form import log
from bert_tf.profiling.wall_clock import Ranges
from bert_tf.training.part import Part
from bert_tf.training.run import Run

tf1 = tf.compat.v1

COPIED = "watch/time/copied"  # a stamp: the batch is on its device
_BATCH, _DATA, _COPY, _FORWARD, _BACKWARD = "batch", "data", "copy to device", "forward", "backward"
_ALL_REDUCE, _OPTIMIZER = "all-reduce", "optimizer"
_BOTH = "forward and backward"  # of micro-batches, which alternate both
_TRACED = 10  # last steps of the range, whose operations are recorded: records stay in memory until it ends
_UNDER_NSYS = "NSYS_PROFILING_SESSION_ID"  # set by Nsight Systems; a GPU has only one tracer


class Profiled(Part):
    def check(self, run: Run) -> Iterator[str]:
        folder = run.output_dir / FOLDER
        names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        others = [name for name in names if not any(fnmatch.fnmatch(name, Path(recorded).name) for recorded in RECORDED)]
        if others:
            yield f"--profile_steps would replace {folder}, which holds {others[0]!r}; name another --output_dir"

    def hooks(self, run: Run) -> list[Hook]:
        return [ProfileHook(run.output_dir, self.settings.steps, copies=run.machine.sees_gpu)]


class ProfileHook(tf1.train.SessionRunHook):
    """Writes a folder `profile`: TensorFlow's profile, a Chrome trace of the last step, times by phase and by operation.

    The same steps have NVTX ranges, and cudaProfilerStart and cudaProfilerStop around them.
    """

    flag = "profile_steps"

    def __init__(
        self,
        output_dir: str | os.PathLike[str],
        steps: StepRange,
        *,
        copies: bool = False,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        """`copies`: batches are copied to a device. Under Nsight Systems (see `environment`) TensorFlow's profiler is off."""
        self._output_dir = Path(output_dir)
        self._folder = self._output_dir / FOLDER
        self._steps = steps
        self._copies = copies
        self._with_tensorflow = _UNDER_NSYS not in environment
        self._ranges, self._cuda = Ranges(), CudaProfiler()
        if not self._with_tensorflow and not self._ranges.seen_by_nsight:
            log.warning("--profile_steps: Nsight Systems will show no phase names; pip install nvtx")
        self._profiling = self._recorded = False
        self._traces: collections.deque[Any] = collections.deque(maxlen=_TRACED)  # `StepStats`

    def begin(self) -> None:
        graph = tf1.get_default_graph()
        if self._copies:
            mark_copied(graph)
        names = {op.name for op in graph.get_operations()}
        phases = _phases(names)
        self._marks = []
        for number, (stamp, phase) in enumerate(phases):
            following = phases[number + 1][1] if number + 1 < len(phases) else _OPTIMIZER
            with tf.device(HOST), tf.control_dependencies([graph.get_tensor_by_name(f"{stamp}:0")]):
                passed = functools.partial(self._pass, phase, following)
                self._marks.append(tf.numpy_function(passed, [], tf.bool, name="watch/profile"))
            if stamp != COPIED:  # covers the whole graph: nothing follows it, and a GPU does not wait at a gate
                stamps.wait_at_gate(stamp, self._marks[-1])
        self._first_phase = phases[0][1]
        # Values that must be fetched for stamps to be valid, see `stamps.mark_done`.
        self._marks += [graph.get_tensor_by_name(f"{s}{stamps.RECEIVED}:0") for s, _ in phases if s + stamps.RECEIVED in names]
        self._peak = MatmulPeak(graph)

    def after_create_session(self, session: tf1.Session, coord: Any) -> None:
        start = int(session.run(tf1.train.get_global_step(session.graph)))
        self._next = start + 1
        # The first step of a resumed run builds and tunes, so it is not representative.
        self._first = max(self._steps.first, start + 2) if start else self._steps.first
        if self._first > self._steps.last:
            log.warning("--profile_steps: nothing to record, the run starts with step %d", self._next)

    def before_run(self, run_context: tf1.train.SessionRunContext) -> tf1.train.SessionRunArgs | None:
        step = self._next
        traced = tf1.RunOptions(trace_level=tf1.RunOptions.SOFTWARE_TRACE)  # tells `StepTimingHook` to set the step apart
        if step == self._first - 1:  # new fetches trigger another graph optimization, which must not be recorded
            return tf1.train.SessionRunArgs(self._marks, options=traced)
        if not self._first <= step <= self._steps.last:
            return None
        if not self._profiling:
            self._start()
        self._marked = tf.profiler.experimental.Trace("train", step_num=step, _r=1)  # lets TensorBoard tell steps apart
        self._marked.__enter__()
        self._ranges.start(_BATCH, shown=f"{_BATCH} {step}")
        self._ranges.start(self._first_phase)
        return tf1.train.SessionRunArgs(self._marks, options=traced)

    def _start(self) -> None:
        self._profiling = True
        shutil.rmtree(self._folder, ignore_errors=True)  # an earlier record of the run: `Profiled.check` has looked
        if self._with_tensorflow:
            try:
                tf.profiler.experimental.start(os.fspath(self._folder))
            except tf.errors.OpError as error:  # the program profiles already
                log.warning("--profile_steps: TensorFlow's profile is left out: %s", error.message)
                self._with_tensorflow = False
        self._cuda.start()

    def _pass(self, phase: str, following: str) -> np.bool_:
        """Moves a step from one phase to the next; called by the graph."""
        if self._profiling:
            self._ranges.end(phase)
            self._ranges.start(following)
        return np.bool_(True)

    def after_run(self, run_context: tf1.train.SessionRunContext, run_values: tf1.train.SessionRunValues) -> None:
        if self._profiling:
            self._ranges.end_all()
            self._marked.__exit__(None, None, None)
            self._traces.append(run_values.run_metadata.step_stats)
            if self._next == self._steps.last:
                self._stop(run_context.session)
        self._next += 1

    def _stop(self, session: tf1.Session) -> None:
        """Ends the recording; training continues even if that fails."""
        self._recorded = True
        self._stop_profilers()
        try:
            self._write(session)
        except Exception as error:
            reason = str(error) if isinstance(error, BertError) else repr(error)
            log.warning("--profile_steps: the record is incomplete: %s", reason)

    def _write(self, session: tf1.Session) -> None:
        trace = self._folder / f"chrome_trace_step{self._next}.json"
        self._folder.mkdir(parents=True, exist_ok=True)
        shown = step_stats.chrome_trace(self._traces[-1])
        if shown is not None:
            atomic.write_text(trace, shown)
        means = {name: float(np.mean(seconds)) for name, seconds in self._ranges.seconds.items()}
        steps = len(self._ranges.seconds[_BATCH])
        atomic.write_text(self._output_dir / PHASES, documents.to_json({"steps": steps, **means}, indent=2))
        kernels, gpus = step_stats.gpu_kernels(self._folder, steps) if self._with_tensorflow else ({}, {})
        operations = step_stats.operations(self._traces, kernels)
        record = Record(len(self._traces), means[_BATCH] * 1e6, operations, gpus, self._peak.measure(session))
        operations_file.write(self._output_dir / OPERATIONS, record)  # which `python -m bert_tf profile` shows
        self._traces.clear()
        split = ", ".join(f"{name} {seconds * 1e3:.2f} ms" for name, seconds in means.items() if name != _BATCH)
        log.info("steps %d to %d are recorded in %s: %s", self._first, self._next, self._folder, split)

    def _stop_profilers(self) -> None:
        self._profiling = False
        self._cuda.stop()
        if self._with_tensorflow:
            try:
                tf.profiler.experimental.stop()
            except tf.errors.OpError as error:  # nothing was recorded, or it cannot be written
                log.warning("--profile_steps: TensorFlow's profile is not in %s: %s", self._folder, error.message)

    def end(self, session: tf1.Session) -> None:
        """Stops a recording cut off by the end of the run; logs it if there is none."""
        if self._profiling:
            self._stop_profilers()
        if not self._recorded and self._first <= self._steps.last:
            log.warning("--profile_steps: the record is incomplete, the run ended with step %d", self._next - 1)


def _phases(names: set[str]) -> list[tuple[str, str]]:
    """Returns the stamps of a step in order, each with the phase that it ends; `names` are the graph's operations."""
    whole = [
        (stamps.BATCH, _DATA),
        (COPIED, _COPY),
        (stamps.FORWARD, _FORWARD),
        (stamps.GRADIENTS, _BACKWARD),
        (stamps.SUMS, _ALL_REDUCE),
    ]
    present = [(stamp, phase) for stamp, phase in whole if stamp in names]
    return [(s, _BOTH if phase == _BACKWARD and stamps.FORWARD not in names else phase) for s, phase in present]


def mark_copied(graph: tf.Graph) -> None:
    """Adds the moment when all parts of a batch are on the devices of the operations that read them.

    A device receives a tensor once for all its readers, so the readers added here cause no further copy. The graph must
    be complete: earlier additions would change operation numbers, and with them the seeds of initial weights.
    """
    opened = graph.get_operation_by_name(stamps.BATCH + stamps.GATE)
    features = [tensor for op in graph.get_operations() if opened in op.control_inputs for tensor in op.outputs]
    arrived = []
    for tensor in features:
        readers = tensor.consumers()
        if readers:
            with tf.device(readers[0].device):  # an int32 passed on unchanged would stay on the host
                arrived.append(tf.reduce_sum(tf.cast(tensor, tf.float32)))
    with tf.device(HOST):
        received = tf.add_n(arrived, name=COPIED + stamps.RECEIVED)
    stamps.mark(COPIED, [received])

"""Traces the memory of one training step; the others run unchanged."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

import tensorflow as tf

from bert_tf import run_layout
from bert_tf.errors import OutputError
from bert_tf.estimator.run import Hook
from bert_tf.extensions.memory_trace import LIVE, TRACE, live_memory, peak_report, trace_file
from bert_tf.extensions.memory_trace.trace_report import readable
from bert_tf.io.log_form import log
from bert_tf.training.part import Part
from bert_tf.training.run import Run

tf1 = tf.compat.v1


class MemoryTrace(Part):
    def hooks(self, run: Run) -> list[Hook]:
        return [MemoryTraceHook(run.output_dir, self.settings.memory_trace_step)]


class MemoryTraceHook(tf1.train.SessionRunHook):
    """Writes memory_trace_stepN.txt and live_memory_stepN.tsv, read by `python -m bert_tf memory report` and `peak`."""

    flag = "memory_trace_step"

    def __init__(self, output_dir: str | os.PathLike[str], step: int) -> None:
        self._path = Path(output_dir) / run_layout.of_step(TRACE, step)
        self._live_path = Path(output_dir) / run_layout.of_step(LIVE, step)
        self._step = step
        self._next = 0

    def after_create_session(self, session: tf1.Session, coord: Any) -> None:
        self._next = int(session.run(tf1.train.get_global_step(session.graph))) + 1
        self._variables = _sizes(session.graph)
        if self._next > self._step:
            log.warning("--memory_trace_step=%d: no trace, the run starts with step %d", self._step, self._next)

    def before_run(self, run_context: tf1.train.SessionRunContext) -> tf1.train.SessionRunArgs | None:
        if self._next != self._step:
            return None
        # A software trace has all allocations; a hardware trace would take the GPU's only tracer from other profilers.
        return tf1.train.SessionRunArgs(None, options=tf1.RunOptions(trace_level=tf1.RunOptions.SOFTWARE_TRACE))

    def after_run(self, run_context: tf1.train.SessionRunContext, run_values: tf1.train.SessionRunValues) -> None:
        self._next += 1
        if self._next != self._step + 1:
            return
        try:
            self._write_trace(run_values.run_metadata)
            self._write_live_memory(run_values.run_metadata)
        except OutputError as error:  # a failed trace must not stop training
            log.warning("--memory_trace_step=%d: %s", self._step, error)

    def _write_trace(self, metadata: tf1.RunMetadata) -> None:
        trace = trace_file.from_run_metadata(metadata)
        trace_file.write(self._path, trace)
        log.info(
            "%d outputs of %d operations of step %d are in %s",
            len(list(trace.outputs())),
            len(trace.nodes),
            self._step,
            self._path,
        )

    def _write_live_memory(self, metadata: tf1.RunMetadata) -> None:
        step = live_memory.Step(self._step, live_memory.live_memory(metadata), live_memory.held(metadata, self._variables))
        if not step.memories:
            log.warning("--memory_trace_step=%d: no %s, the runtime recorded no allocation", self._step, self._live_path)
            return
        live_memory.write(self._live_path, step)
        peak = peak_report.make_peak(step)
        text = "step %d had %s of %s alive at its peak (%s); %s; see python -m bert_tf memory peak %s"
        shown = (peak_report.phases(peak.moment.by_phase), peak_report.agreement(peak.agreement[peak.allocator]))
        log.info(text, self._step, readable(peak.moment.live), peak.allocator, *shown, shlex.quote(str(self._live_path)))

    def end(self, session: tf1.Session) -> None:
        if self._next <= self._step:
            log.warning("--memory_trace_step=%d: no trace, the run ended with step %d", self._step, self._next - 1)


def _sizes(graph: tf.Graph) -> dict[str, int]:
    """Returns bytes by variable name; per replica for a mirrored variable."""
    collections = (tf1.GraphKeys.GLOBAL_VARIABLES, tf1.GraphKeys.LOCAL_VARIABLES)
    variables = [variable for name in collections for variable in graph.get_collection(name)]
    each = [part for variable in variables for part in getattr(variable, "values", (variable,))]
    return {part.op.name: part.shape.num_elements() * part.dtype.base_dtype.size for part in each if part.shape.num_elements()}

"""A run with a step whose memory is traced."""

from __future__ import annotations

from bert_tf.estimator.run import Hook
from bert_tf.extensions.memory_trace.hook import MemoryTraceHook
from bert_tf.training.part import Part
from bert_tf.training.run import Run


class MemoryTrace(Part):
    def hooks(self, run: Run) -> list[Hook]:
        return [MemoryTraceHook(run.output_dir, self.settings.memory_trace_step)]

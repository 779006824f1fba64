"""A run with a step whose memory is traced."""

from __future__ import annotations

from bert_tf.estimator.run import Hook
from bert_tf.extensions.memory_trace.hook import MemoryTraceHook
from bert_tf.training.job import Job
from bert_tf.training.part import Part


class MemoryTrace(Part):
    def hooks(self, job: Job) -> list[Hook]:
        return [MemoryTraceHook(job.output_dir, self.settings.memory_trace_step)]

"""A run with steps that are recorded."""

from __future__ import annotations

from bert_tf.estimator.run import Hook
from bert_tf.extensions.profile.hook import ProfileHook
from bert_tf.training.job import Job
from bert_tf.training.part import Part


class Profiled(Part):
    def hooks(self, job: Job) -> list[Hook]:
        return [ProfileHook(job.output_dir, self.settings.steps, copies=job.machine.sees_gpu)]

"""A run with steps that are recorded."""

from __future__ import annotations

from bert_tf.estimator.run import Hook
from bert_tf.extensions.profile.hook import ProfileHook
from bert_tf.training.part import Part
from bert_tf.training.run import Run


class Profiled(Part):
    def hooks(self, run: Run) -> list[Hook]:
        return [ProfileHook(run.output_dir, self.settings.steps, copies=run.machine.sees_gpu)]

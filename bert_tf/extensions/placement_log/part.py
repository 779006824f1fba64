"""A run that writes where its operations are."""

from __future__ import annotations

from bert_tf.estimator.run import Hook
from bert_tf.extensions.placement_log.hook import PlacementHook
from bert_tf.training.job import Job
from bert_tf.training.part import Part


class PlacementLog(Part):
    def hooks(self, job: Job) -> list[Hook]:
        return [PlacementHook(job.output_dir)]

"""A run that writes where its operations are."""

from __future__ import annotations

from bert_tf.estimator.run import Hook
from bert_tf.extensions.placement_log.hook import PlacementHook
from bert_tf.training.part import Part
from bert_tf.training.run import Run


class PlacementLog(Part):
    def hooks(self, run: Run) -> list[Hook]:
        return [PlacementHook(run.output_dir)]

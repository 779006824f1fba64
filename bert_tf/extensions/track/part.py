"""A run that is reported to a tracker while it trains."""

from __future__ import annotations

from bert_tf.extensions.track import follow
from bert_tf.training.job import Job
from bert_tf.training.part import Part


class Tracked(Part):
    def claimed(self, job: Job) -> None:
        follow.start(job.output_dir, self.settings.tracker)

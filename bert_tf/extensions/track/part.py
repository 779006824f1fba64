"""A run that is reported to a tracker while it trains."""

from __future__ import annotations

from bert_tf import extension
from bert_tf.training.part import Part
from bert_tf.training.run import Run

extension.needed("report", "--tracker")
from bert_tf.extensions.track import follow  # noqa: E402


class Tracked(Part):
    def claimed(self, run: Run) -> None:
        follow.start(run.output_dir, self.settings.tracker)

"""The decision rule of a run, fitted on its dev splits after the evaluation."""

from __future__ import annotations

from bert_tf.extensions.calibrate import fit
from bert_tf.io.log_form import log
from bert_tf.tasks.base import DEV
from bert_tf.tasks.decision import Decision
from bert_tf.training.job import Job
from bert_tf.training.part import Part, Predict


class Calibration(Part):
    def check(self, job: Job) -> tuple[str, ...]:
        splits = job.splits[DEV]
        examples = sum(len(job.examples[split]) for split in splits)
        fit.check(job.family, examples, data=", ".join(splits), rules=self.settings.rules)
        return ()

    def decision(self, job: Job, predict: Predict, checkpoint: str) -> Decision:
        """Writes the rule beside the weights, too."""
        examples = [example for split in job.splits[DEV] for example in job.examples[split]]
        data = f"{job.task.name} {', '.join(job.splits[DEV])}"
        found = fit.calibrate(job.family, predict, examples, data=data, seed=job.settings.train.seed, rules=self.settings.rules)
        for line in str(found).splitlines():
            log.info("%s", line)
        fit.write(checkpoint, found, examples)
        return found.decision

"""The decision rule of a run, fitted on its dev splits after the evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bert_tf import run_layout
from bert_tf.batch.loading import fitted_decision
from bert_tf.errors import FlagError
from bert_tf.extensions.calibrate import fit, rules
from bert_tf.io.log_form import log
from bert_tf.settings import changed
from bert_tf.tasks.base import DEV
from bert_tf.tasks.decision import Decision
from bert_tf.training.part import Part, Predict
from bert_tf.training.run import Run


class Calibration(Part):
    def check(self, run: Run) -> tuple[str, ...]:
        splits = run.splits[DEV]
        examples = sum(len(run.examples[split]) for split in splits)
        fit.check(run.family, examples, data=", ".join(splits), rules=self.settings.rules)
        return ()

    def repeated(self, run: Run) -> dict[str, Any]:
        del run
        threshold = self.settings.rules.threshold
        return {**changed(self.settings), **({"threshold": rules.anywhere(threshold)} if threshold else {})}

    def decision(self, run: Run, predict: Predict, checkpoint: str) -> Decision:
        """Writes the rule beside the weights, too; if none fits, an earlier one of theirs stays: the training is done."""
        examples = [example for split in run.splits[DEV] for example in run.examples[split]]
        data = f"{run.task.name} {', '.join(run.splits[DEV])}"
        try:
            calibrated = fit.calibrate(
                run.family, predict, examples, data=data, seed=run.spec.train.seed, rules=self.settings.rules
            )
        except FlagError as error:
            earlier = fitted_decision(checkpoint, run.family.record())
            followed = f"the rule in {Path(checkpoint).parent / run_layout.DECISION}, which stays" if earlier else "no rule"
            text = "%s; predictions follow %s; choose another: python -m bert_tf calibrate %s"
            log.warning(text, error, followed, run.output_dir)
            return Decision.from_record(earlier)
        for line in str(calibrated).splitlines():
            log.info("%s", line)
        fit.write(checkpoint, calibrated, map(run.digest, run.splits[DEV]))
        return calibrated.decision

"""Evaluation and prediction of a fine-tuning job: one graph for all splits, from weights to files and metrics."""

from __future__ import annotations

import concurrent.futures
import functools
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf import run_layout
from bert_tf.checkpoints.restore import RestorePlan
from bert_tf.estimator import evaluations, kept, run
from bert_tf.estimator.failures import refuse_what_is_no_number
from bert_tf.estimator.forward import Forward
from bert_tf.features.columns import Features
from bert_tf.io.log_form import log, published
from bert_tf.profiling.timing.wall_clock import EVALUATION, PREDICTION, WALL
from bert_tf.report import wording
from bert_tf.runtime.precision import computed
from bert_tf.tasks.base import DEV, TEST
from bert_tf.tasks.decision import Decision
from bert_tf.tasks.evaluation import Evaluation
from bert_tf.training import results, speed, training
from bert_tf.training.job import Job, features
from bert_tf.training.part import Part
from bert_tf.training.sources import SAMPLE_NOTE

_Mistakes = dict[str, Sequence[Mapping[str, Any]]]  # by split, see `Family.mistakes`


class Inference:
    """Evaluates and predicts with a job's weights; must be closed. `step` is 0 until weights are loaded."""

    def __init__(self, job: Job, plan: RestorePlan) -> None:
        """Builds no graph yet; `plan` tells which variables came from the initial checkpoint."""
        self._job, self._plan = job, plan
        self._forward: Forward | None = None
        self._building: concurrent.futures.Future[Forward] | None = None
        self._checkpoint = ""
        self.step = 0
        self.outputs: dict[str, Any] = {}  # of the evaluated splits, see `Family.predictions`

    def forward(self) -> Forward:
        """Returns the one graph: from `build_ahead`, or built on first use."""
        if self._forward is None:
            self._forward = self._build() if self._building is None else self._building.result()
        return self._forward

    def _build(self) -> Forward:
        return Forward(training.forward_model(self._job), self._job.machine)

    def build_ahead(self) -> None:
        """Builds the graph in a thread while the caller waits, for example for a checkpoint to be written."""
        if self._forward is None and self._building is None:
            pool = concurrent.futures.ThreadPoolExecutor(1, "build ahead")
            self._building = pool.submit(self._build)
            pool.shutdown(wait=False)

    @WALL.span(EVALUATION)
    def evaluate(self) -> dict[str, Evaluation]:
        log.info("***** Running evaluation *****")
        job = self._job
        wrong: _Mistakes = {}
        self._load()
        published.info("Starting evaluation at %s", time.strftime("%Y-%m-%dT%H:%M:%S"))
        evaluations = self._evaluations(wrong)
        averages = self._of_averages(wrong)
        published.info("Finished evaluation at %s", time.strftime("%Y-%m-%d-%H:%M:%S"))
        note = SAMPLE_NOTE if job.data.is_sample else ""
        more = {"precision": computed(job.settings.speed.precision), **_time_to_target(job)}
        values = results.write_evaluation(job.results_dir, evaluations, step=self.step, note=note, more=more, averages=averages)
        results.write_mistakes(job.results_dir, wrong)
        run.report_to_tensorboard(job.output_dir, values, self.step, checkpoint=self._checkpoint)
        return evaluations

    def _evaluations(self, wrong: _Mistakes, *, of: str = "") -> dict[str, Evaluation]:
        """Evaluates the loaded weights on all dev splits; `wrong` collects mistakes, `of` names an average or is empty."""
        job, evaluations = self._job, {}
        for split in job.splits[DEV]:
            if not job.settings.actions.do_train:
                job.weights.warn_if_fitted_on(functools.partial(job.digest, split), split)
            predictions = self._predictions(split, job.settings.inference.eval_batch_size)
            if not of:
                self.outputs[split] = predictions
            evaluations[split] = job.family.evaluation(predictions, job.examples[split])
            wrong[results.title(split, of)] = job.family.mistakes(predictions, job.examples[split])
        return evaluations

    def _of_averages(self, wrong: _Mistakes) -> dict[str, dict[str, Evaluation]]:
        """Evaluates the run's averages, then reloads the weights that were loaded before."""
        own, found = self._checkpoint, {}
        for kind, average in self._averages().items():
            log.info("with the weights of %s", average)
            self.forward().load(average)
            self._checkpoint = average
            found[kind] = self._evaluations(wrong, of=kind)
        if found:
            self.forward().load(own)
            self._checkpoint = own
        return found

    def _averages(self) -> dict[str, str]:
        """Averages of the run; empty unless its own task is evaluated with its default checkpoint."""
        job = self._job
        if job.results_dir != job.output_dir or self._checkpoint != kept.best_or_newest(job.output_dir):
            return {}
        found = {kind: kept.checkpoint(job.output_dir, kind) for kind in run_layout.AVERAGES}
        return {kind: average for kind, average in found.items() if average is not None}

    @WALL.span(PREDICTION)
    def predict(self) -> dict[str, Path]:
        log.info("***** Running prediction *****")
        job, written = self._job, {}
        self._load()
        for split in job.splits[TEST]:
            predictions = self._predictions(split, job.settings.inference.predict_batch_size)
            examples = job.examples[split]
            written[split] = results.write_predictions(job.results_dir, job.task, split, examples, predictions, job.family)
        if job.settings.inference.submission_zip:
            log.info("the files for GLUE's server are in %s", results.zip_submissions(job.results_dir))
        return written

    @WALL.span(EVALUATION)
    def decision(self, part: Part) -> Decision:
        """The decision rule that a part of the run fits."""
        job = self._job
        self._load()

        def predict(examples: Sequence[Any]) -> Any:
            columns = job.family.features(examples, job.weights.tokenizer, job.weights.limits)
            return self._computed(columns, examples, job.settings.inference.eval_batch_size)

        return part.decision(job, predict, self._checkpoint)

    def _load(self) -> None:
        """Loads the job's weights once."""
        if self._checkpoint:
            return
        job, forward = self._job, self.forward()
        checkpoint = run.require_checkpoint(job.output_dir) if job.settings.actions.do_train else job.weights.prefix
        log.info("with the weights of %s", checkpoint)
        forward.log_graph(job.settings.data.max_seq_length, self._plan.loaded)
        self.step, self._checkpoint = forward.load(checkpoint), checkpoint

    def _predictions(self, split: str, batch_size: int | None) -> Any:
        return self._computed(features(self._job, split), self._job.examples[split], batch_size)

    def _computed(self, columns: Features, examples: Sequence[Any], batch_size: int | None) -> Any:
        job = self._job
        batching = speed.eval_batching(job.settings.speed, job.settings.data.max_seq_length, job.config, job.machine)
        outputs = self.forward().outputs(columns, batch_size=batch_size, batching=batching)
        refuse_what_is_no_number(outputs, self._checkpoint)
        return job.family.predictions(outputs, columns, examples)

    def close(self) -> None:
        """Frees the graph; waits if it is being built."""
        if self._building is not None and self._building.exception() is None:
            self._forward = self._building.result()
        if self._forward is not None:
            self._forward.close()


def _time_to_target(job: Job) -> dict[str, Any]:
    """Logs and returns the entry on --target_metric of eval_results.json; empty if it is not set."""
    if job.target is None:
        return {}
    found = evaluations.time_to_target(job.run_dir, job.target, up_to=run.last_step(job.run_dir))
    log.info("%s", wording.time_to_target(found))
    return {"time_to_target": found}

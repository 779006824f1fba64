"""Evaluation and prediction of a fine-tuning run: one graph for all splits, from weights to files and metrics."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bert_tf import run_layout
from bert_tf.batch.loading import fitted_decision
from bert_tf.batch.trained import refuse_what_is_no_number
from bert_tf.checkpoints import saved
from bert_tf.estimator.forward import Forward
from bert_tf.estimator.run import last_step, report_to_tensorboard, require_checkpoint
from bert_tf.features.columns import Features
from bert_tf.io.log_form import log, published
from bert_tf.profiling.wall_clock import EVALUATION, PREDICTION, WALL
from bert_tf.runtime.precision import computed
from bert_tf.tasks.base import DEV, TEST
from bert_tf.tasks.decision import Decision
from bert_tf.tasks.evaluation import Evaluation
from bert_tf.training import results, speed
from bert_tf.training.run import Run, features
from bert_tf.training.sources import SAMPLE_NOTE, PartOfSplit
from bert_tf.training.training import forward_model

if TYPE_CHECKING:
    from bert_tf.training.part import Part

_Mistakes = dict[str, Sequence[Mapping[str, Any]]]  # by split, see `Family.mistakes`


class Inference:
    """Evaluates and predicts with a run's weights; must be closed. `step` is 0 until weights are loaded."""

    def __init__(self, run: Run) -> None:
        """Builds no graph yet."""
        self.run = run
        self._forward: Forward | None = None
        self._building: concurrent.futures.Future[Forward] | None = None
        self._checkpoint = ""
        self.step = 0
        self._steps: dict[str, int] = {}  # of averages: the last one, where `step` may be that of the best checkpoint
        self.averages: dict[str, dict[str, Evaluation]] = {}  # of each average of the weights, by split
        self.outputs: dict[str, Any] = {}  # of the evaluated splits, see `Family.predictions`

    def forward(self) -> Forward:
        """Returns the one graph: from `build_ahead`, or built on first use."""
        if self._forward is None:
            self._forward = self._build() if self._building is None else self._building.result()
        return self._forward

    def _build(self) -> Forward:
        return Forward(forward_model(self.run), self.run.machine)

    def build_ahead(self) -> None:
        """Builds the graph in a thread while the caller waits, for example for a checkpoint to be written."""
        if self._forward is None and self._building is None:
            pool = concurrent.futures.ThreadPoolExecutor(1, "build ahead")
            self._building = pool.submit(self._build)
            pool.shutdown(wait=False)

    @WALL.span(EVALUATION)
    def evaluate(self) -> dict[str, Evaluation]:
        log.info("***** Running evaluation *****")
        wrong: _Mistakes = {}
        self._load()
        run = self.run
        published.info("Starting evaluation at %s", time.strftime("%Y-%m-%dT%H:%M:%S"))
        evaluations = self._evaluations(wrong)
        self.averages = self._of_averages(wrong)
        published.info("Finished evaluation at %s", time.strftime("%Y-%m-%d-%H:%M:%S"))
        note = SAMPLE_NOTE if run.data.is_sample else ""
        results.warn_of_other_rows(run.results_dir, evaluations)
        more = {"precision": computed(run.spec.speed.precision), **_time_to_target(run), **self._steps}
        values = results.write_evaluation(
            run.results_dir, evaluations, step=self.step, note=note, more=more, averages=self.averages
        )
        results.write_mistakes(run.results_dir, wrong)
        report_to_tensorboard(run.output_dir, values, self.step, checkpoint=self._checkpoint)
        return evaluations

    def _evaluations(self, wrong: _Mistakes, *, of: str = "") -> dict[str, Evaluation]:
        """Evaluates the loaded weights on all dev splits; `wrong` collects mistakes, `of` names an average or is empty."""
        run, evaluations = self.run, {}
        for split in run.splits[DEV]:
            if not run.spec.actions.do_train:
                run.weights.warn_if_fitted_on(functools.partial(run.digest, split), split)
            predictions = self._predictions(split, run.spec.inference.eval_batch_size)
            if not of:
                self.outputs[split] = predictions
            evaluation = run.family.evaluation(predictions, run.examples[split])
            evaluations[split] = dataclasses.replace(evaluation, more={**evaluation.more, **_measured_on(run, split)})
            wrong[results.title(split, of)] = run.family.mistakes(predictions, run.examples[split])
        return evaluations

    def _of_averages(self, wrong: _Mistakes) -> dict[str, dict[str, Evaluation]]:
        """Evaluates the run's averages, then reloads the weights that were loaded before."""
        previous, by_kind = self._checkpoint, {}
        for kind, average in self._averages().items():
            log.info("with the weights of %s", average)
            self._steps[f"global_step_{kind}"] = self.forward().load(average)
            self._checkpoint = average
            by_kind[kind] = self._evaluations(wrong, of=kind)
        if by_kind:
            self.forward().load(previous)
            self._checkpoint = previous
        return by_kind

    def _averages(self) -> dict[str, str]:
        """Averages of the run; empty unless its own task is evaluated with its default checkpoint."""
        run = self.run
        if run.results_dir != run.output_dir or self._checkpoint != saved.best_or_newest(run.output_dir):
            return {}
        prefixes = {kind: saved.checkpoint(run.output_dir, kind) for kind in run_layout.AVERAGES}
        averages = {kind: average for kind, average in prefixes.items() if average is not None}
        newest = saved.newest(run.output_dir).prefix  # none if only best/ is left
        last = Path(newest).name if newest else ""
        others = [average for average in averages.values() if last and Path(average).name != last]
        for average in others:
            log.warning("%s: of another step than the end of the run, %s: it is not evaluated", average, last)
        return {kind: average for kind, average in averages.items() if average not in others}

    @WALL.span(PREDICTION)
    def predict(self) -> dict[str, Path]:
        log.info("***** Running prediction *****")
        self._follow_fitted_rule()
        self._load()
        run, written = self.run, {}
        for split in run.splits[TEST]:
            predictions = self._predictions(split, run.spec.inference.predict_batch_size)
            examples = run.examples[split]
            written[split] = results.write_predictions(run.results_dir, run.task, split, examples, predictions, run.family)
        if run.spec.inference.submission_zip:
            log.info("the files for GLUE's server are in %s", results.zip_submissions(run.results_dir))
        return written

    @WALL.span(EVALUATION)
    def decide(self, part: Part) -> None:
        """Predicts by the decision rule that a part of the run fits from now on, with another graph: temperatures are in it."""
        run = self.run
        self._load()

        def predict(examples: Sequence[Any]) -> Any:
            columns = run.family.features(examples, run.weights.tokenizer, run.weights.limits)
            return self._computed(columns, examples, run.spec.inference.eval_batch_size)

        self._decide_by(part.decision(run, predict, self._checkpoint))

    def _decide_by(self, decision: Decision) -> None:
        self.run = dataclasses.replace(self.run, decision=decision)
        self.close()
        self._forward, self._building, self._checkpoint = None, None, ""

    def _follow_fitted_rule(self) -> None:
        """Predicts by the rule that an earlier command fitted to a finished training: its evaluation is without one."""
        run = self.run
        if not run.spec.actions.do_train or run.spec.deciding is not None:
            return
        checkpoint = require_checkpoint(run.output_dir)
        rule = Decision.from_record(fitted_decision(checkpoint, run.family.record()))
        if rule == run.decision:
            return
        if run.spec.actions.do_eval:
            path = Path(checkpoint).parent / run_layout.DECISION
            log.warning("%s: predictions follow it, the metrics of a training do not; --do_eval alone measures with it", path)
        self._decide_by(rule)

    def _load(self) -> None:
        """Loads the run's weights once."""
        if self._checkpoint:
            return
        run, forward = self.run, self.forward()
        checkpoint = require_checkpoint(run.output_dir) if run.spec.actions.do_train else run.weights.prefix
        log.info("with the weights of %s", checkpoint)
        forward.log_graph(run.spec.data.max_seq_length, run.restore.loaded if run.restore else ())
        self.step, self._checkpoint = forward.load(checkpoint), checkpoint

    def _predictions(self, split: str, batch_size: int | None) -> Any:
        return self._computed(features(self.run, split), self.run.examples[split], batch_size)

    def _computed(self, columns: Features, examples: Sequence[Any], batch_size: int | None) -> Any:
        run = self.run
        batching = speed.eval_batching(run.spec.speed, run.spec.data.max_seq_length, run.config, run.machine)
        outputs = self.forward().outputs(columns, batch_size=batch_size, batching=batching)
        refuse_what_is_no_number(outputs, self._checkpoint)
        return run.family.predictions(outputs, columns, examples)

    def close(self) -> None:
        """Frees the graph; waits if it is being built."""
        if self._building is not None and self._building.exception() is None:
            self._forward = self._building.result()
        if self._forward is not None:
            self._forward.close()


def _measured_on(run: Run, split: str) -> dict[str, str]:
    """Entries of eval_results.json: the digest of a split's rows, and the name of its file if it is the user's own."""
    is_file = run.data.has_command and not run.data.has_folder and not isinstance(run.examples[split], PartOfSplit)
    name = {results.FILE: run.task.file("", split).name} if is_file else {}
    return {results.ROWS: run.digest(split), **name}


def _time_to_target(run: Run) -> dict[str, Any]:
    """Logs and returns the entry on --target_metric of eval_results.json; empty if it is not set."""
    if run.target is None:
        return {}
    from bert_tf.estimator.evaluations import time_to_target

    entry = time_to_target(run.run_dir, run.target, up_to=last_step(run.run_dir))
    reached = "not reached" if entry["step"] is None else f"first reached at step {entry['step']}"
    log.info("target %s: %s", run.spec.train.target_metric, reached)
    return {"time_to_target": entry}

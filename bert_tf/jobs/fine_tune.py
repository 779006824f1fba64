"""Fine-tuning, evaluation and prediction of one model, from a configuration to files and figures."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from absl import logging

from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.checkpoints.restore import RestorePlan
from bert_tf.errors import OutputError
from bert_tf.estimator import run, run_folder, time_to_target
from bert_tf.estimator.forward import Forward
from bert_tf.features.columns import Features
from bert_tf.inputs.pipeline import Batching
from bert_tf.jobs import memory_preflight, report, results, speed, submission, training
from bert_tf.jobs.checks import check
from bert_tf.jobs.fine_tune_config import FineTuneConfig
from bert_tf.jobs.job import Job
from bert_tf.jobs.preparation import prepare
from bert_tf.jobs.sources import SAMPLE_NOTE
from bert_tf.jobs.split_features import features
from bert_tf.profiling.timing import timing_file
from bert_tf.profiling.timing.wall_clock import DEVICES, EVALUATION, PAGE, PREDICTION, WALL
from bert_tf.report import wording
from bert_tf.runtime import placement
from bert_tf.runtime.machine import Machine, set_up
from bert_tf.runtime.machine import describe as describe_machine
from bert_tf.runtime.precision import computed
from bert_tf.tasks.base import DEV, TEST, Outputs, Task
from bert_tf.tasks.evaluation import Evaluation, summarize


@dataclasses.dataclass(frozen=True)
class FineTuned:
    """What a job came to.

    Attributes:
      job: what was done, with all settings, examples and parts of the model.
      step: of the weights that were trained or evaluated.
      stopped_by: the signal that ended training; its state is kept, and the same job continues.
      evaluations: by split; empty where nothing was evaluated.
      predictions: by split, the file that holds them; empty where nothing was predicted.
    """

    job: Job
    step: int
    stopped_by: signal.Signals | None = None
    evaluations: Mapping[str, Evaluation] = dataclasses.field(default_factory=dict)
    predictions: Mapping[str, Path] = dataclasses.field(default_factory=dict)

    @property
    def output_dir(self) -> Path:
        """Folder of the checkpoints."""
        return self.job.output_dir

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics of all splits by name and `loss`, see `evaluation.summarize`; empty where nothing was evaluated."""
        return summarize(self.evaluations) if self.evaluations else {}


@WALL.run()
def fine_tune(config: FineTuneConfig, *, environment: Mapping[str, str], task: Task | None = None) -> FineTuned:
    """Trains, evaluates and predicts, as the configuration asks.

    Args:
      config: all settings.
      environment: names folders of data and model, and the machines of a cluster.
      task: what to learn, in the place of the task that the configuration names.

    Raises:
      BertError: something that the user can fix.
    """
    with WALL.span(DEVICES):
        config = dataclasses.replace(config, speed=speed.continued(config.speed, config.output.folder))
        speed.set_up(config.speed)
        machine = set_up(config.devices, environment=environment, xla=config.speed.xla)
        describe_machine(machine, config.devices, environment)
        speed.warn(config.speed)
        if config.actions.do_train:
            config = _deferring(config, machine)
    with run_folder.writing(config.output.folder) if machine.is_chief else contextlib.nullcontext():
        done = _run(prepare(config, machine, environment=environment, task=task))
        _end(done.job)
    return done


def _deferring(config: FineTuneConfig, machine: Machine) -> FineTuneConfig:
    on_gpu = machine.sees_gpu and not placement.hosts_words(config.devices.rules)
    found = speed.deferring(config.speed, deterministic=config.devices.deterministic, on_gpu=on_gpu)
    return dataclasses.replace(config, speed=found)


def _run(job: Job) -> FineTuned:
    """Does a job; of several machines the chief alone writes to the output folder."""
    plan, actions, step = check(job), job.settings.actions, 0
    if actions.do_train:
        job = memory_preflight.fitted(job, job.machine.gpu_memory)
        outcome = training.train(job, plan)
        step = outcome.step
        if outcome.stopped_by is not None:
            logging.warning("stopped by %s at step %d; the same command continues there", outcome.stopped_by.name, step)
            return FineTuned(job, step, outcome.stopped_by)
    if not job.machine.is_chief:
        logging.info("the chief evaluates and predicts; this worker is done")
        return FineTuned(job, step)
    inference = _Inference(job, plan)
    evaluations = inference.evaluate() if actions.do_eval else {}
    predictions = inference.predict() if actions.do_predict else {}
    return FineTuned(job, inference.step or step, None, evaluations, predictions)


def _end(job: Job) -> None:
    """Makes the page, and says where the wall time went: on the page, in timing.json of a run that was trained, in the log."""
    if job.machine.is_chief:
        kept = _keep_account(job)
        with WALL.span(PAGE):
            report.at_end(job.output_dir)
        if kept:
            _keep_account(job)
    logging.info("%s", WALL.account().text)


def _keep_account(job: Job) -> bool:
    """Writes the account of a run that was trained; returns whether there is one and it could be written."""
    account = WALL.account()
    try:
        if account.trained:
            timing_file.add_account(job.output_dir, account)
    except OutputError as error:  # what is trained is saved already
        logging.warning("%s", error)
        return False
    return account.trained


class _Inference:
    """Evaluation and prediction with the weights of a job.

    Attributes:
      step: of the weights; 0 before anything is computed.
    """

    def __init__(self, job: Job, plan: RestorePlan) -> None:
        model = dataclasses.replace(training.forward_model(job), restore=plan)  # so that the log can mark variables
        self._job = job
        self._estimator = run.make_estimator(model, job.output_dir, job.machine.alone())
        self.step = 0

    @WALL.span(EVALUATION)
    def evaluate(self) -> dict[str, Evaluation]:
        """Evaluates all splits of dev, and writes what comes of it."""
        logging.info("***** Running evaluation *****")
        job, evaluations, wrong = self._job, {}, {}
        for split in job.splits[DEV]:
            predictions = self._predictions(split, job.settings.inference.eval_batch_size)
            evaluations[split] = job.task.family.evaluation(predictions, job.examples[split])
            wrong[split] = job.task.family.mistakes(predictions, job.examples[split])
        note = SAMPLE_NOTE if job.data.is_sample else ""
        more = {"precision": computed(job.settings.speed.precision), **_time_to_target(job)}
        values = results.write_evaluation(job.results_dir, evaluations, step=self.step, note=note, more=more)
        results.write_mistakes(job.results_dir, wrong)
        run.report_to_tensorboard(self._estimator, values, self.step)
        return evaluations

    @WALL.span(PREDICTION)
    def predict(self) -> dict[str, Path]:
        """Predicts all splits of test; returns the files."""
        logging.info("***** Running prediction *****")
        job, written = self._job, {}
        for split in job.splits[TEST]:
            predictions = self._predictions(split, job.settings.inference.predict_batch_size)
            written[split] = results.write_predictions(job.results_dir, job.task, split, job.examples[split], predictions)
        if job.settings.inference.submission_zip:
            logging.info("what GLUE's server takes is in %s", submission.zip_submissions(job.results_dir))
        return written

    def _predictions(self, split: str, batch_size: int | None) -> Any:
        """Returns what the model says of a split, see `Family.predictions`."""
        job, family = self._job, self._job.task.family
        columns = features(job, split)
        checkpoint = None if job.settings.actions.do_train else job.weights.prefix
        batching = speed.eval_batching(job.settings.speed, job.settings.data.max_seq_length, job.config, job.machine)
        if checkpoint and "global_step" not in CheckpointReader(checkpoint).shapes:  # which an Estimator wants
            outputs = self._of_pretrained(checkpoint, columns, batch_size, batching)
            return family.predictions(outputs, columns, job.examples[split])
        outputs, self.step = run.forward(
            self._estimator, family.head, columns, checkpoint, batch_size=batch_size, batching=batching
        )
        return family.predictions(outputs, columns, job.examples[split])

    def _of_pretrained(self, checkpoint: str, columns: Features, batch_size: int | None, batching: Batching) -> Outputs:
        """Returns the outputs of a head without variables on a model that was never trained here."""
        with contextlib.closing(Forward(training.forward_model(self._job), self._job.machine.alone())) as forward:
            forward.load(checkpoint)
            return forward.outputs(columns, batch_size=batch_size, batching=batching)


def _time_to_target(job: Job) -> dict[str, Any]:
    """Returns what eval_results.json says of --target_metric, and logs it; nothing where it is not given."""
    if job.target is None:
        return {}
    found = time_to_target.summary(job.run_dir, job.target, up_to=run.last_step(job.run_dir))
    logging.info("%s", wording.time_to_target(found))
    return {"time_to_target": found}

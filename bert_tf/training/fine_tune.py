"""Fine-tuning, evaluation and prediction of one model, from a configuration to files and metrics."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import signal
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bert_tf.errors import OutputError
from bert_tf.estimator import run_folder
from bert_tf.io.log_form import log
from bert_tf.profiling.timing import timing_file
from bert_tf.profiling.timing.wall_clock import DEVICES, KERNELS, PAGE, WALL
from bert_tf.runtime import placement
from bert_tf.runtime.machine import Machine, set_up
from bert_tf.runtime.machine import describe as describe_machine
from bert_tf.tasks.base import Task
from bert_tf.tasks.evaluation import Evaluation, summarize
from bert_tf.training import memory_preflight, results, speed, training
from bert_tf.training.checks import check
from bert_tf.training.fine_tune_config import FineTuneConfig
from bert_tf.training.inference import Inference
from bert_tf.training.job import Job
from bert_tf.training.preparation import prepare

TURN = threading.Lock()  # held while training: wall time is measured once per process


@dataclasses.dataclass(frozen=True)
class FineTuned:
    job: Job
    step: int  # of the weights trained or evaluated
    stopped_by: signal.Signals | None = None  # signal that ended training; the same job can resume
    evaluations: Mapping[str, Evaluation] = dataclasses.field(default_factory=dict)  # by split; empty without evaluation
    predictions: Mapping[str, Path] = dataclasses.field(default_factory=dict)  # files by split; empty without prediction
    outputs: Mapping[str, Any] = dataclasses.field(default_factory=dict, repr=False)  # by evaluated split: its predictions

    @property
    def output_dir(self) -> Path:
        return self.job.output_dir

    @property
    def metrics(self) -> dict[str, float]:
        """Metrics of all splits by name, and `loss`, see `evaluation.summarize`; empty without evaluation."""
        return summarize(self.evaluations) if self.evaluations else {}

    @property
    def finite_metrics(self) -> dict[str, float]:
        """Metrics by name, as eval_accuracy, without those that are not finite."""
        return {f"eval_{name}": value for name, value in sorted(self.metrics.items()) if math.isfinite(value)}

    @property
    def collapsed(self) -> str | None:
        """Why nothing was learned; None if it was."""
        found = [f"{split}: {one.collapsed}" for split, one in sorted(self.evaluations.items()) if one.collapsed]
        return "; ".join(found) or None


@WALL.run()
def fine_tune(config: FineTuneConfig, *, environment: Mapping[str, str], task: Task | None = None) -> FineTuned:
    """Trains, evaluates and predicts as configured; `task` replaces the task of the configuration."""
    with WALL.span(DEVICES):
        config = dataclasses.replace(config, speed=speed.continued(config.speed, config.output.folder))
        speed.set_up(config.speed)
        machine = set_up(config.devices, environment=environment, xla=config.speed.xla)
        describe_machine(machine, config.devices, environment)
        speed.warn(config.speed)
        if config.actions.do_train:
            config = _deferring(config, machine)
    with run_folder.writing(config.output.folder) if machine.is_chief else contextlib.nullcontext():
        done = _run(prepare(config, machine, environment=environment, task=task), environment)
        _end(done.job)
    return done


def _deferring(config: FineTuneConfig, machine: Machine) -> FineTuneConfig:
    on_gpu = machine.sees_gpu and not placement.hosts_words(config.devices.rules)
    found = speed.deferring(config.speed, deterministic=config.devices.deterministic, on_gpu=on_gpu)
    return dataclasses.replace(config, speed=found)


def _run(job: Job, environment: Mapping[str, str]) -> FineTuned:
    """Runs a job; of several machines only the chief writes to the output folder."""
    plan, actions, step = check(job), job.settings.actions, 0
    with WALL.span(KERNELS):  # after the checks, since building takes a while
        machine = speed.with_kernels(job.settings.speed, job.machine, environment)
    job = dataclasses.replace(job, machine=machine)
    if actions.do_train:
        job = memory_preflight.fitted(job, job.machine.gpu_memory)
    with contextlib.closing(Inference(job, plan)) as inference:
        if actions.do_train:
            outcome = training.train(job, plan, make_forward=inference.forward, at_end=lambda: _prepare_end(job, inference))
            step = outcome.step
            if outcome.stopped_by is not None:
                log.warning("stopped by %s at step %d; the same command continues there", outcome.stopped_by.name, step)
                return FineTuned(job, step, outcome.stopped_by)
            for part in job.parts.values() if job.machine.is_chief else ():
                part.trained(job, step)
        if not job.machine.is_chief:
            log.info("the chief evaluates and predicts; this worker is done")
            return FineTuned(job, step)
        evaluations = inference.evaluate() if actions.do_eval else {}
        deciding = job.settings.deciding
        if deciding is None:
            return _predicted(job, inference, step, evaluations, inference.outputs)
        job, outputs = dataclasses.replace(job, decision=inference.decision(job.parts[deciding])), inference.outputs
    with contextlib.closing(Inference(job, plan)) as inference:
        return _predicted(job, inference, step, evaluations, outputs)


def _predicted(
    job: Job, inference: Inference, step: int, evaluations: Mapping[str, Evaluation], outputs: Mapping[str, Any]
) -> FineTuned:
    predictions = inference.predict() if job.settings.actions.do_predict else {}
    return FineTuned(job, inference.step or step, None, evaluations, predictions, outputs)


def _prepare_end(job: Job, inference: Inference) -> None:
    """Prepares the steps after training while the last checkpoint is being written."""
    if not job.machine.is_chief:
        return
    results.start_page_ahead()
    if job.settings.actions.do_eval or job.settings.actions.do_predict:
        inference.build_ahead()


def _end(job: Job) -> None:
    """Makes the page and reports wall time: on the page, in the log, and in timing.json after training."""
    if job.machine.is_chief:
        kept = _keep_account(job)
        with WALL.span(PAGE):
            results.write_page(job.output_dir)
        if kept:
            _keep_account(job)
    log.info("%s", WALL.account().text)


def _keep_account(job: Job) -> bool:
    """Writes the time account of a training run; false if there is none or it could not be written."""
    account = WALL.account()
    try:
        if account.trained:
            timing_file.add_account(job.output_dir, account)
    except OutputError as error:  # the model is already saved
        log.warning("%s", error)
        return False
    return account.trained

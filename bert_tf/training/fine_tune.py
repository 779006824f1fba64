"""Fine-tuning, evaluation and prediction of one model: what happens in a run, in the order of this file's last function."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bert_tf.errors import OutputError
from bert_tf.estimator import run_folder
from bert_tf.io.log_form import log
from bert_tf.profiling import timing_file
from bert_tf.profiling.wall_clock import DEVICES, KERNELS, WALL
from bert_tf.runtime.machine import Machine, set_up
from bert_tf.runtime.machine import describe as describe_machine
from bert_tf.tasks.base import Task
from bert_tf.tasks.evaluation import Evaluation, summarize
from bert_tf.training import results, speed
from bert_tf.training.checks import check
from bert_tf.training.inference import Inference
from bert_tf.training.preparation import prepare
from bert_tf.training.run import Run
from bert_tf.training.run_spec import RunSpec
from bert_tf.training.training import train


@dataclasses.dataclass(frozen=True)
class FineTuned:
    run: Run
    step: int  # of the weights trained or evaluated
    stopped_by: signal.Signals | None = None  # signal that ended training; the same run can resume
    evaluations: Mapping[str, Evaluation] = dataclasses.field(default_factory=dict)  # by split; empty without evaluation
    averages: Mapping[str, Mapping[str, Evaluation]] = dataclasses.field(default_factory=dict)  # the same, of each average
    predictions: Mapping[str, Path] = dataclasses.field(default_factory=dict)  # files by split; empty without prediction
    outputs: Mapping[str, Any] = dataclasses.field(default_factory=dict, repr=False)  # by evaluated split: its predictions

    @property
    def output_dir(self) -> Path:
        return self.run.output_dir

    @property
    def metrics(self) -> dict[str, float]:
        """Metrics of all splits by name, and `loss`, see `evaluation.summarize`; empty without evaluation."""
        return summarize(self.evaluations) if self.evaluations else {}

    @property
    def finite_metrics(self) -> dict[str, float]:
        """Metrics by name, as eval_accuracy and eval_accuracy_ema, without those that are not finite."""
        every = [("", self.metrics), *((f"_{kind}", summarize(of_kind)) for kind, of_kind in sorted(self.averages.items()))]
        values = {f"eval_{name}{kind}": value for kind, metrics in every for name, value in sorted(metrics.items())}
        return {name: value for name, value in values.items() if math.isfinite(value)}

    @property
    def collapsed(self) -> str | None:
        """Why nothing was learned; None if it was."""
        reasons = [
            f"{split}: {evaluation.collapsed}" for split, evaluation in sorted(self.evaluations.items()) if evaluation.collapsed
        ]
        return "; ".join(reasons) or None


def _deferring(spec: RunSpec, machine: Machine) -> RunSpec:
    on_gpu = machine.sees_gpu and not any(rule.hosts_words for rule in spec.devices.rules)
    speed_settings = speed.deferring(spec.speed, deterministic=spec.devices.deterministic, on_gpu=on_gpu)
    return dataclasses.replace(spec, speed=speed_settings)


def _fitted(run: Run) -> Run:
    """Checks by a forecast whether training fits into the memory of GPUs."""
    if run.machine.gpu_memory is None and not run.spec.train.fit_memory:
        return run
    from bert_tf.training import memory_preflight

    return memory_preflight.fitted(run, run.machine.gpu_memory)


def _prepare_end(run: Run, inference: Inference) -> None:
    """Prepares the steps after training while the last checkpoint is being written."""
    if not run.machine.is_chief:
        return
    results.start_page_ahead()
    if run.spec.actions.do_eval or run.spec.actions.do_predict:
        inference.build_ahead()


def _carried_out(run: Run) -> FineTuned:
    """Trains, evaluates and predicts; of several machines only the chief writes to the output folder."""
    actions, step = run.spec.actions, 0
    with contextlib.closing(Inference(run)) as inference:
        if actions.do_train:
            outcome = train(run, make_forward=inference.forward, at_end=lambda: _prepare_end(run, inference))
            step = outcome.step
            if outcome.stopped_by is not None:
                log.warning("stopped by %s at step %d; the same command continues there", outcome.stopped_by.name, step)
                return FineTuned(run, step, outcome.stopped_by)
            for part in run.parts.values() if run.machine.is_chief else ():
                part.trained(run, step)
        if not run.machine.is_chief:
            log.info("the chief evaluates and predicts; this worker is done")
            return FineTuned(run, step)
        run_folder.refuse_lost(run.output_dir)
        evaluations = inference.evaluate() if actions.do_eval else {}
        if run.spec.deciding is not None:
            inference.decide(run.parts[run.spec.deciding])
        predictions = inference.predict() if actions.do_predict else {}
        step, averages = inference.step or step, inference.averages
        return FineTuned(inference.run, step, None, evaluations, averages, predictions, inference.outputs)


def _keep_account(run: Run) -> bool:
    """Writes the time account of a training run; false if there is none or it could not be written."""
    account = WALL.account()
    try:
        if account.trained:
            timing_file.add_account(run.output_dir, account)
    except OutputError as error:  # the model is already saved
        log.warning("%s", error)
        return False
    return account.trained


def _report(run: Run) -> None:
    """Has the report made, and tells wall time: in the report, in the log, and in timing.json after training."""
    if run.machine.is_chief:
        recorded = _keep_account(run)
        results.write_page(run.output_dir)
        if recorded:
            _keep_account(run)
    log.info("%s", WALL.account().text)


@WALL.run()
def fine_tune(spec: RunSpec, *, environment: Mapping[str, str], task: Task | None = None) -> FineTuned:
    """Trains, evaluates and predicts as asked; `task` replaces the task of the settings."""
    with WALL.span(DEVICES):
        spec = dataclasses.replace(spec, speed=speed.continued(spec))
        speed.set_up(spec.speed)
        machine = set_up(spec.devices, environment=environment, xla=spec.speed.xla)
        describe_machine(machine, spec.devices, environment)
        speed.warn(spec.speed)
        if spec.actions.do_train:
            spec = _deferring(spec, machine)
    with run_folder.writing(spec.output.folder) if machine.is_chief else contextlib.nullcontext():
        run = check(prepare(spec, machine, environment=environment, task=task))
        with WALL.span(KERNELS):  # after the checks, since building takes a while
            run = dataclasses.replace(run, machine=speed.with_kernels(run.spec.speed, machine, environment))
        if spec.actions.do_train:
            run = _fitted(run)
        trained = _carried_out(run)
        _report(trained.run)
    return trained

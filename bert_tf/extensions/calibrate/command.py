"""Calibrate: fits temperatures, so that a trained model's probabilities match its accuracy."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
from typing import TYPE_CHECKING, Any

from bert_tf import extension, extras
from bert_tf.batch.job import LabelledColumns, ModelOverrides, as_trained
from bert_tf.checkpoints.prefixes import refuse_missing_model
from bert_tf.errors import CheckpointError, FlagError
from bert_tf.extensions.calibrate import RuleSettings
from bert_tf.io import files
from bert_tf.library.keywords import takes
from bert_tf.operations.command import Call, Command
from bert_tf.settings import MOST_EXAMPLES, group, read_settings, refuse_taken, setting, setting_names
from bert_tf.training.settings import MachineSettings

extension.needed("evaluate", "calibrate")
from bert_tf.extensions.evaluate.command import Evaluator, TaskEntry, datasets_of, refuse_both  # noqa: E402

if TYPE_CHECKING:  # lazy import of TensorFlow: --help stays fast
    from bert_tf.batch.session import Predictor
    from bert_tf.batch.trained import Trained
    from bert_tf.extensions.calibrate.fit import Calibrated, Checked
    from bert_tf.tasks.base import Family

_SEED = 1


@dataclasses.dataclass(frozen=True)
class CalibrateSettings:
    checkpoint: str = setting(
        None,
        "folder of a run (its best, else newest checkpoint), or a checkpoint",
        positional=True,
        required=True,
        refuse_missing=refuse_missing_model,
    )
    data: str | None = setting(
        None,
        "file of labelled examples; default: the dev splits of the task, or --dev_file of the run",
        refuse_missing=files.refuse_missing,
    )
    data_dir: str | None = setting(
        None,
        "folder of the task's files; default: $GLUE_DIR/TASK, data/TASK or the sample",
        refuse_missing=files.refuse_missing_folder,
    )
    task_name: str | None = setting(None, "task of the model, if it has no run_config.json")
    check: bool = setting(False, "only measure the probabilities as they are, on all examples; writes nothing")
    seed: int = setting(_SEED, "random seed of the half to fit on; the other half is reported", lowest=0)
    eval_batch_size: int | None = setting(
        None, "batch size per device; default: by length and GPU memory", lowest=1, highest=MOST_EXAMPLES
    )
    rules: RuleSettings = group(RuleSettings)
    columns: LabelledColumns = group(LabelledColumns, **as_trained())
    model: ModelOverrides = group(ModelOverrides)
    machine: MachineSettings = group(MachineSettings)

    def __post_init__(self) -> None:
        refuse_both(self.data, self.data_dir)
        chosen = [name for name in setting_names(RuleSettings) if getattr(self.rules, name) is not None]
        if self.check and (chosen or self.seed != _SEED):
            raise FlagError(f"--{(*chosen, 'seed')[0]}: --check chooses no rule; leave one of both out")


refuse_taken(CalibrateSettings, {name: one.of_tasks for name, one in extension.installed().items()})


@takes(CalibrateSettings)
def calibrate(checkpoint: str | os.PathLike[str], **settings: Any) -> Calibrated | Checked:
    """Fits a decision rule on half of labelled examples, and writes decision.json; as `python -m bert_tf calibrate`.

    Predictions, the service and exports follow it from then on. Temperatures (Guo et al., 2017) change no predicted label;
    `threshold`, `abstain` and `sets` do.

    Args:
      checkpoint: a run folder (its best or newest checkpoint), or a checkpoint.
      **settings: the command's flags, by name.

    Returns:
      The rule, and calibration error, likelihood and Brier score of the other half, before and after; with `check` these of
      the model as it is, on all examples.

    Raises:
      BertError: invalid settings or data, or a model without probabilities.
    """
    return calibrated(read_settings(CalibrateSettings, {"checkpoint": checkpoint, **settings}))


def calibrated(settings: CalibrateSettings) -> Calibrated | Checked:
    """Fits the rule, and writes it beside the checkpoint; or only measures."""
    from bert_tf.training import sources

    extras.refuse_missing_metrics()
    model = sources.find(settings.checkpoint, settings.model, environment=os.environ, task=settings.task_name)
    return _checked(settings, model) if settings.check else _fitted(settings, model)


def _checked(settings: CalibrateSettings, model: Trained) -> Checked:
    from bert_tf.extensions.calibrate import fit

    family, examples, name, _ = _labelled(settings, model)
    with _predictor(settings, model, family) as predictor:
        return fit.checked(family, predictor.predictions(examples), examples, data=name)


def _fitted(settings: CalibrateSettings, model: Trained) -> Calibrated:
    from bert_tf.estimator import run_folder
    from bert_tf.extensions.calibrate import fit

    if not model.has_checkpoint:
        raise CheckpointError(
            f"{model.prefix}: the rule of an exported model is in its files; calibrate the run, and export it again"
            " (--check measures without fitting)"
        )
    model = model.undecided
    family, examples, name, digests = _labelled(settings, model)
    with run_folder.writing_where_a_run_is([os.path.dirname(model.prefix)]):
        with _predictor(settings, model, family) as predictor:
            calibration = fit.calibrate(
                family, predictor.predictions, examples, data=name, seed=settings.seed, rules=settings.rules
            )
        fit.write(model.prefix, calibration, digests)
    return calibration


def _labelled(settings: CalibrateSettings, model: Trained) -> tuple[Family, list[Any], str, list[str]]:
    """The family, the examples of all splits, what messages call them, and the digest of each split."""
    from bert_tf.batch.checkpoints import Named
    from bert_tf.extensions.calibrate import fit
    from bert_tf.tasks.settings import CUSTOM

    task_name = settings.task_name or model.record.get("task_name") or CUSTOM
    entry = TaskEntry(task_name, settings.data_dir, None, settings.data, settings.columns)
    datasets = list(datasets_of(entry, [Named(model.prefix)], {}, Evaluator()))
    family = datasets[0].family(model)
    model.refuse(family)
    for dataset in datasets:
        model.warn_if_fitted_on(functools.partial(getattr, dataset, "digest"), f"{dataset.task.name} {dataset.split}")
    examples = [example for dataset in datasets for example in dataset.examples]
    name = f"{datasets[0].task.name} {', '.join(dataset.split for dataset in datasets)}"
    fit.check(family, len(examples), data=name, rules=settings.rules)
    return family, examples, name, [dataset.digest for dataset in datasets]


def _predictor(settings: CalibrateSettings, model: Trained, family: Family) -> contextlib.closing[Predictor]:
    from bert_tf.batch.session import Predictor
    from bert_tf.training import batch_machine

    inference = batch_machine.inference(settings.machine, settings.eval_batch_size, [model.prefix], environment=os.environ)
    return contextlib.closing(Predictor(model, family, inference))


def _run(call: Call) -> None:
    print(calibrated(call.settings))


COMMAND = Command(
    "Fits temperatures of a trained model, so that probabilities match accuracy (docs/calibration.md).",
    CalibrateSettings,
    _run,
    example="python -m bert_tf calibrate out/mrpc --threshold=f1",
    first=("data", "check", *setting_names(RuleSettings)),
    stopped="stopped; nothing was changed",
)

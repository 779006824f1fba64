"""Reproduces a published run, from its settings to the report."""

from __future__ import annotations

import contextlib
import dataclasses
import logging as python_logging
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from absl import logging

from bert_tf import run_layout
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.checkpoints.restore import plan_restore
from bert_tf.errors import OutputError
from bert_tf.estimator.run import require_checkpoint
from bert_tf.estimator.run_folder import writing
from bert_tf.extensions.reproduce import report, verdicts
from bert_tf.extensions.reproduce.facts import INPUT_IDS, TOKENS, Published, Variable
from bert_tf.extensions.reproduce.report import Distribution, Report
from bert_tf.extensions.reproduce.verdicts import FormFound, Measured, Outcome
from bert_tf.extensions.series.seeds import SeedResult, train_each
from bert_tf.extensions.series.table import spread
from bert_tf.io import atomic, documents, files, log_form
from bert_tf.runtime import diagnosis, inventory, nvidia
from bert_tf.runtime.nvidia import System
from bert_tf.tasks.base import DEV, TRAIN, Limits
from bert_tf.tokenization.wordpiece import WordPieceTokenizer
from bert_tf.training.record import command
from bert_tf.training.run import Run
from bert_tf.training.run_spec import RunSpec, configured

if TYPE_CHECKING:
    from bert_tf.extensions.reproduce.command import ReproduceSettings

LOG = "log.txt"

_CONDITIONS = "conditions.json"
_AS_PUBLISHED = {"freeze", "label_smoothing"}  # their defaults stay: the recipe of the bundled sample has others


def reproduce(settings: ReproduceSettings, *, environment: Mapping[str, str]) -> Report | None:
    """Returns the comparison, already written; None if training was stopped, which the same settings resume."""
    if settings.bert_base_dir:
        environment = {**environment, "BERT_BASE_DIR": settings.bert_base_dir}
    system = nvidia.survey()  # before TensorFlow takes the memory of the GPU
    training, folder, published = fine_tune_config(settings, system, environment), settings.folder, settings.published
    with writing(folder):
        _keep_conditions(folder, training, system, environment)
        with _kept_log(folder / LOG):
            series = train_each(training, environment=environment)
        if series.first is None or series.stopped_by is not None:
            return None
        run, results = series.first.run, series.results
        device = _device(run.machine.plan.devices[0], system, environment)
        lines = verdicts.found_in((folder / LOG).read_text(encoding="utf-8").splitlines())
        rows = verdicts.compare(published, _measured(run, folder, results, lines, device))
        collapsed = {result.seed: result.collapsed for result in results if result.collapsed}
        compared = Report(published, command(run), rows, distributions(published, results), collapsed, lines)
        report.write(folder, compared)
    return compared


def fine_tune_config(chosen: ReproduceSettings, system: System, environment: Mapping[str, str]) -> RunSpec:
    """Training settings; GPU memory is limited to the published amount. `environment` may hide GPUs."""
    published, limit = chosen.published, chosen.gpu_memory_limit_mb
    gpus = nvidia.listed(system.offered, environment.get(diagnosis.HIDING))
    # TensorFlow's order has the fastest first, unlike the driver's; a smaller first one has that much anyway.
    if limit is None and max((gpu.memory_total_mb or 0 for gpu in gpus), default=0) > published.gpu_total_mb:
        limit = published.gpu_limit_mb
    settings = {**published.settings, "task_name": published.task, "seeds": chosen.seeds, "output_dir": str(chosen.folder)}
    if chosen.num_train_steps is not None:
        settings.pop("num_train_epochs", None)
    settings |= {
        "data_dir": Path(chosen.glue_dir) / published.task if chosen.glue_dir else None,
        "gpu_memory_limit_mb": limit,
        "published_layout": chosen.published_layout or None,
        "num_train_steps": chosen.num_train_steps,
        "log_form": log_form.PUBLISHED,
    }
    made = configured(**{name: value for name, value in settings.items() if value is not None})
    return dataclasses.replace(made, given=made.given | _AS_PUBLISHED)


def _keep_conditions(folder: Path, config: RunSpec, system: System, environment: Mapping[str, str]) -> None:
    """Raises OutputError if the folder has runs made under other conditions than this process's."""
    now = {
        "computed as": "published" if not config.speed.pack_tokens else "by default",
        "GPUs": [gpu.model for gpu in nvidia.listed(system.offered, environment.get(diagnosis.HIDING))],
        "memory limit in MiB": config.devices.gpu_memory_limit_mb,
        "steps": config.train.num_train_steps,
    }
    path = atomic.make_folder(folder) / _CONDITIONS
    if not path.exists():
        atomic.write_text(path, documents.to_json(now, indent=1) + "\n")
        return
    try:
        earlier = documents.parse_json(files.read_text(path))
        differences = [f"{key}: {earlier.get(key)}, now {now[key]}" for key in now if earlier.get(key) != now[key]]
    except (OSError, ValueError, AttributeError) as error:
        raise OutputError(f"{path}: unreadable; name another --output_dir") from error
    if differences:
        raise OutputError(f"{folder}: holds runs with other conditions ({'; '.join(differences)}); name another --output_dir")


def distributions(published: Published, results: Sequence[SeedResult]) -> dict[str, Distribution]:
    """Ranks published accuracy and loss within their distribution over seeds; empty for one seed."""
    by_metric = {}
    for metric, value in (("eval_accuracy", published.accuracy), ("eval_loss", published.loss)):
        values = [result.metrics[metric] for result in results]
        mean, sd, lowest, highest = spread(values)
        if sd is not None:
            below = sum(v < value for v in values)
            by_metric[metric] = Distribution(value, mean, sd, lowest, highest, below, len(values))
    return by_metric


@contextlib.contextmanager
def _kept_log(path: Path) -> Iterator[None]:
    """Appends the log of the block to a file that an interrupted command may have begun."""
    with atomic.readable_errors(path):
        handler = _Keeper(path, encoding="utf-8", errors="backslashreplace")
    handler.setFormatter(logging.PythonFormatter())
    root = python_logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()


class _Keeper(python_logging.FileHandler):
    def handleError(self, record: python_logging.LogRecord) -> None:  # noqa: N802  (logging's name)
        """Drops a line that cannot be written: a full disk must fail the run at its results, not at its log."""


def _device(name: str, system: System, environment: Mapping[str, str]) -> tuple[str, str, int | None]:
    """Kind, model and memory limit."""
    taken = inventory.take(system, environment)
    kind = name.split(":")[1]
    physical = next(device for device in taken.physical_devices if device.kind == kind)
    limits = {device.name: device.memory_limit_mb for device in taken.logical_devices}
    return kind, physical.model or kind, limits.get(name)


def _measured(
    run: Run,
    folder: Path,
    results: Sequence[SeedResult],
    forms_found: Sequence[FormFound],
    device: tuple[str, str, int | None],
) -> Measured:
    settings, tokens = run.spec, run.vocabulary.tokens
    length, batch_size = settings.data.max_seq_length, settings.train.train_batch_size
    examples = {purpose: run.examples[run.splits[purpose][0]] for purpose in (TRAIN, DEV)}
    tokenizer = WordPieceTokenizer(run.vocabulary, lower_case=True)
    features = run.task.family.features(examples[DEV], tokenizer, Limits(length))
    batch = features.batch(np.arange(len(examples[DEV])), length)
    ids = {example.guid: row.tolist() for example, row in zip(examples[DEV], batch["input_ids"])}
    real = dict(zip(ids, features.lengths.tolist()))
    return Measured(
        outcomes=tuple(_outcome(folder, result, batch_size) for result in results),
        config=run.config,
        vocabulary=run.vocabulary.fingerprint,
        examples={purpose: len(of_purpose) for purpose, of_purpose in examples.items()},
        shown={guid: {TOKENS: [tokens[i] for i in row[: real[guid]]], INPUT_IDS: row} for guid, row in ids.items()},
        labels={
            example.guid: f"{example.label} (id = {label})"
            for example, label in zip(examples[DEV], batch["label_ids"].tolist())
        },
        features={field.name: field.shape(None, length) for field in features.batch_fields},
        variables=_variables(run),
        forms=forms_found,
        device=device,
        num_train_steps=settings.train.num_train_steps,
    )


def _variables(run: Run) -> dict[str, Variable]:
    """Variables of the trained model, which of them came from the first checkpoint."""
    loaded = set(plan_restore(CheckpointReader(run.source.checkpoint), run.config, ()).loaded)
    shapes = CheckpointReader(require_checkpoint(run.output_dir)).shapes
    return {name: Variable(shape, name in loaded) for name, shape in shapes.items() if name != "global_step"}


def _outcome(folder: Path, result: SeedResult, batch_size: int) -> Outcome:
    """Speed is the median of the logged ones, lines of earlier commands included."""
    lines = (folder / result.folder / run_layout.METRICS).read_text(encoding="utf-8").splitlines()
    speeds = [documents.json_value(line)["examples_per_second"] for line in lines]
    speed = float(statistics.median(speeds[1:] or speeds))  # the first includes the first step, which is slow
    accuracy, loss = result.metrics["eval_accuracy"], result.metrics["eval_loss"]
    return Outcome(result.seed, result.steps, accuracy, loss, speed, speed / batch_size, result.collapsed)

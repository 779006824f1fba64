"""A published run again, from its settings to the report."""

from __future__ import annotations

import contextlib
import dataclasses
import logging as python_logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from absl import logging

from bert_tf import atomic, documents, log_form
from bert_tf.commands import classifier_flags, seeds
from bert_tf.commands.reproduction_settings import Settings
from bert_tf.commands.seeds import SeedResult
from bert_tf.commands.sources import find_data, find_model
from bert_tf.config import BertConfig
from bert_tf.errors import OutputError
from bert_tf.estimator.run import require_checkpoint
from bert_tf.estimator.run_folder import load_record, writing
from bert_tf.reproduction import forms, measured, report, verdicts
from bert_tf.reproduction.facts import Published
from bert_tf.reproduction.forms import FormFound
from bert_tf.reproduction.measured import Device, Measured
from bert_tf.reproduction.report import Distribution, Report
from bert_tf.runtime import diagnosis, inventory, nvidia
from bert_tf.runtime.nvidia import System
from bert_tf.tasks.base import DEV, TRAIN
from bert_tf.tasks.registry import get_task
from bert_tf.tokenization.vocabulary import Vocabulary

OUTSIDE = 1
LOG = "log.txt"

_CONDITIONS = "conditions.json"
_AS_PUBLISHED = {"freeze", "label_smoothing"}  # their defaults stay: the recipe of the bundled sample has others


def run(settings: Settings, *, environment: Mapping[str, str]) -> int:
    """Trains and evaluates with each seed, compares, writes and prints the report.

    Returns:
      Exit status: 0 done, 1 something that is comparable is outside of what was published, 130 stopped by a signal.

    Raises:
      BertError: something that the user can fix.
    """
    if settings.bert_base_dir:
        environment = {**environment, "BERT_BASE_DIR": settings.bert_base_dir}
    system = nvidia.survey()  # before TensorFlow takes the memory of the GPU
    job = job_settings(settings, system, environment)
    with writing(job.job.output_dir):
        return _run(settings, job, system, environment)


def _run(settings: Settings, job: classifier_flags.Settings, system: System, environment: Mapping[str, str]) -> int:
    _keep_conditions(Path(job.job.output_dir), job, system, environment)
    log = Path(job.job.output_dir) / LOG
    with _kept_log(log):
        status = seeds.train_each(job, environment=environment)
    if status != 0:
        return status
    folder, results = Path(job.job.output_dir), seeds.collect(job)
    record = load_record(folder / results[0].folder)
    device = _device(record["machine"]["devices"][0], system, environment)
    found = _measured(job, results, forms.found_in(log.read_text(encoding="utf-8").splitlines()), device, environment)
    rows = verdicts.compare(settings.published, found)
    collapsed = {result.seed: result.collapsed for result in results if result.collapsed}
    spread = distributions(settings.published, results)
    compared = Report(settings.published, record["command"], rows, spread, collapsed, found.forms)
    report.write(folder, compared)
    print(report.to_markdown(compared), end="")
    return OUTSIDE if any(row.verdict == verdicts.OUTSIDE for row in rows) else 0


def job_settings(settings: Settings, system: System, environment: Mapping[str, str]) -> classifier_flags.Settings:
    """Returns the settings of the classifier; the memory of a GPU that is larger than the published one is limited."""
    published, limit = settings.published, settings.gpu_memory_limit_mb
    gpus = nvidia.listed(system.offered, environment.get(diagnosis.HIDING))
    # The driver's order is not TensorFlow's, which has the fastest first; a small one that is first has so much anyway.
    if limit is None and max((gpu.memory_total_mb or 0 for gpu in gpus), default=0) > published.gpu_total_mb:
        limit = published.gpu_limit_mb
    given = [f"--task_name={published.task}", f"--seeds={settings.seeds}", f"--output_dir={settings.output_dir}"]
    given += [f"--data_dir={Path(settings.glue_dir) / published.task}"] if settings.glue_dir else []
    given += [f"--gpu_memory_limit_mb={limit}"] if limit is not None else []
    given += ["--published_layout"] if settings.published_layout else []
    arguments = published.arguments
    if settings.num_train_steps is not None:
        arguments = tuple(argument for argument in arguments if not argument.startswith("--num_train_epochs="))
        given.append(f"--num_train_steps={settings.num_train_steps}")
    parsed = classifier_flags.parse(["run_classifier.py", *arguments, *given, f"--log_form={log_form.PUBLISHED}"])
    return dataclasses.replace(parsed, given=parsed.given | _AS_PUBLISHED)


def _keep_conditions(folder: Path, job: classifier_flags.Settings, system: System, environment: Mapping[str, str]) -> None:
    """Refuses a folder whose runs were made under other conditions: they would be judged by those of this process.

    Raises:
      OutputError: it is such a folder, or cannot be written.
    """
    now = {
        "computed as": "published" if not job.speed.pack_tokens else "by default",
        "GPUs": [gpu.model for gpu in nvidia.listed(system.offered, environment.get(diagnosis.HIDING))],
        "memory limit in MiB": job.devices.gpu_memory_limit_mb,
        "steps": job.train.num_train_steps,
    }
    path = atomic.make_folder(folder) / _CONDITIONS
    if not path.exists():
        atomic.write_text(path, documents.to_json(now, indent=1) + "\n")
        return
    try:
        earlier = documents.json_value(path.read_text(encoding="utf-8"))
        differences = [f"{key}: {earlier.get(key)}, now {now[key]}" for key in now if earlier.get(key) != now[key]]
    except (OSError, ValueError, AttributeError) as error:
        raise OutputError(f"{path}: unreadable; name another --output_dir") from error
    if differences:
        raise OutputError(f"{folder}: holds runs made otherwise ({'; '.join(differences)}); name another --output_dir")


def distributions(published: Published, results: Sequence[SeedResult]) -> dict[str, Distribution]:
    """Returns how accuracy and loss lie over the seeds, and the published ones among them; nothing of one seed."""
    if len(results) == 1:
        return {}
    found = {}
    for metric, value in (("eval_accuracy", published.accuracy), ("eval_loss", published.loss)):
        values = [result.metrics[metric] for result in results]
        found[metric] = Distribution(value, *seeds.spread(values), sum(v < value for v in values), len(values))
    return found


@contextlib.contextmanager
def _kept_log(path: Path) -> Iterator[None]:
    """Adds the log of the block to a file, where an earlier command that was stopped may have begun.

    Raises:
      OutputError: it cannot be written.
    """
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
        """Drops a line that cannot be written: a full disk ends a run where results are lost, not where its log is."""


def _device(name: str, system: System, environment: Mapping[str, str]) -> Device:
    """Describes a logical device of this process, /device:GPU:0."""
    taken = inventory.take(system, environment)
    kind = name.split(":")[1]
    physical = next(device for device in taken.physical_devices if device.kind == kind)
    limits = {device.name: device.memory_limit_mb for device in taken.logical_devices}
    return Device(kind, physical.model or kind, limits.get(name))


def _measured(
    job: classifier_flags.Settings,
    results: Sequence[SeedResult],
    found: Sequence[FormFound],
    device: Device,
    environment: Mapping[str, str],
) -> Measured:
    folder, limit = Path(job.job.output_dir), job.data.max_seq_length
    task = get_task(job.data.task_name)
    data = find_data(task, job.data.data_dir, environment=environment).folder
    source = find_model(job.model, environment=environment)
    config, vocabulary = BertConfig.from_json_file(source.config), Vocabulary.from_file(source.vocabulary)
    examples = {purpose: task.examples(data, task.splits(data, purpose)[0]) for purpose in (TRAIN, DEV)}
    features = measured.features_of(task, examples[DEV], vocabulary, max_seq_length=limit)
    batch_size = job.train.train_batch_size
    return Measured(
        outcomes=tuple(
            measured.outcome(folder / result.folder, result.seed, batch_size=batch_size, collapsed=result.collapsed)
            for result in results
        ),
        config=config,
        vocabulary=vocabulary.fingerprint,
        examples={purpose: len(of_purpose) for purpose, of_purpose in examples.items()},
        shown=measured.shown(examples[DEV], features, vocabulary, max_seq_length=limit),
        features={field.name: field.shape(None, limit) for field in features.batch_fields},
        variables=measured.variables(require_checkpoint(folder / results[0].folder), source.checkpoint, config),
        forms=found,
        device=device,
        num_train_steps=job.train.num_train_steps,
    )

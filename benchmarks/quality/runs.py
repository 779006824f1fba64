"""One training on either side and its result; each is kept as a file, so that an interrupted series resumes."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.numpy

import bert_tf
from benchmarks.comparisons import OWN
from benchmarks.materials import read_encoder, write_huggingface
from benchmarks.stage import LOSS_TOLERANCE
from benchmarks.workers import PEER_FOLDER, WorkerError, variables
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.config import BertConfig
from bert_tf.errors import OutputError
from bert_tf.features.columns import Features
from bert_tf.io import atomic, documents
from bert_tf.tasks.base import DEV, TRAIN, Task
from bert_tf.tasks.evaluation import Evaluation
from bert_tf.tasks.registry import get_task
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.training import sources
from bert_tf.training.settings import ModelSettings

PEER = "transformers"
START = "start"  # of both, before the first step

SCRIPT = PEER_FOLDER / "transformers_families.py"
WARMUP_PROPORTION = 0.1
_OUTPUTS = {"span": "span_logits", "tags": "logits", "choice": "logits"}  # of our heads, which the logits of the peer stand for
_STEPS = ("first_steps", "steps", "between")  # parts of the wall time in which steps are taken
_WITHOUT_DROPOUT: dict[str, Any] = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


@dataclasses.dataclass(frozen=True)
class Reached:
    """A training's results on dev."""

    metrics: Mapping[str, float]  # by name, and `loss`
    intervals: Mapping[str, Sequence[float]] = dataclasses.field(default_factory=dict)  # 95 %, by metric
    seconds: float = 0.0  # of the steps
    losses: Sequence[float] = ()  # of each step, if requested
    each: Sequence[float] = ()  # example's part of the first metric, if that is a mean


@dataclasses.dataclass(frozen=True)
class Series:
    """Trainings that differ by seed and side."""

    task: Task
    settings: Mapping[str, Any]  # of `bert_tf.fine_tune`: files and training
    folder: Path  # of the runs
    python: str  # of the peer
    threads: int
    curves: bool = False  # keep step losses; both count real tokens only

    def reached(self, side: str, seed: int) -> Reached:
        """Returns a training's result, training now if there is none; `side` is a key of `SIDES`."""
        path = self.folder / f"{side}-{seed}.json"
        if not path.is_file():
            found = SIDES[side](self, seed)
            atomic.write_text(path, documents.to_json(dataclasses.asdict(found)) + "\n")
        return Reached(**json.loads(path.read_text(encoding="utf-8")))

    @functools.cached_property
    def examples(self) -> list[Any]:
        return list(self.task.examples(self.settings.get("data_dir") or "", DEV))

    def run_folder(self, side: str, seed: int) -> Path:
        return self.folder / f"run-{side}-{seed}"

    def fine_tuned(self, side: str, seed: int, **changes: Any) -> bert_tf.Model:
        """Trains on our side, or resumes."""
        settings = {**self.settings, "adam_bias_correction": True, "seed": seed, **changes}
        threads = {"intra_op_threads": self.threads, "inter_op_threads": self.threads}
        values: dict[str, Any] = {**settings, **threads, "do_train": True}
        model: bert_tf.Model = bert_tf.fine_tune(self.task.name, output_dir=self.run_folder(side, seed), **values)
        return model


def prepare(settings: SimpleNamespace) -> Series:
    """Returns a command line's series; BertError if a file is missing or the runs' folder has other settings."""
    task = get_task(settings.task)
    data = sources.find_data(task, settings.data_dir, environment={})
    folder = Path(settings.runs_dir) / (f"{task.name}-curves" if settings.curves else task.name)
    training = {**settings.training, "data_dir": os.fspath(data.folder)}
    if settings.curves:
        training.update(without_dropout(folder, ModelSettings(), os.environ))
    path, text = atomic.make_folder(folder) / "series.json", documents.to_json(training, indent=1) + "\n"
    if not path.is_file():
        atomic.write_text(path, text)
    if path.read_text(encoding="utf-8") != text:
        raise OutputError(f"{folder}: holds runs with other settings; name another --runs_dir")
    return Series(task, training, folder, settings.peer_python, settings.threads, settings.curves)


def without_dropout(folder: Path, settings: ModelSettings, environment: Mapping[str, str]) -> dict[str, str]:
    """Writes a model's configuration, dropout taken out, to a folder; returns the settings that name its files."""
    model = sources.find_model(settings, environment=environment)
    config = dataclasses.replace(BertConfig.from_json_file(model.config), **_WITHOUT_DROPOUT)
    path = atomic.make_folder(folder) / "bert_config.json"
    atomic.write_text(path, config.to_json())
    files: dict[str, str | Path] = {
        "init_checkpoint": model.checkpoint,
        "bert_config_file": path,
        "vocab_file": model.vocabulary,
    }
    return {name: os.fspath(file) for name, file in files.items()}


def steps_of(folder: Path) -> tuple[float, list[float]]:
    """Returns the seconds in which a run's steps were taken, and their losses, those that were logged."""
    parts = json.loads((folder / "timing.json").read_text(encoding="utf-8"))["wall"]["parts"]
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return sum(parts.get(name, 0.0) for name in _STEPS), [json.loads(line)["loss"] for line in lines]


def _start(series: Series, seed: int) -> Reached:
    """Takes one step at rate 0: the run then holds features, the new head, and the evaluation of these weights."""
    settings = {name: value for name, value in series.settings.items() if name != "num_train_epochs"}
    at_rest = dataclasses.replace(series, settings={**settings, "learning_rate": 0.0, "num_train_steps": 1})
    at_rest.fine_tuned(START, seed, do_eval=True).close()
    details = json.loads((series.run_folder(START, seed) / "eval_results.json").read_text(encoding="utf-8"))
    return Reached({"loss": details["splits"][DEV]["loss"]})


def _ours(series: Series, seed: int) -> Reached:
    with series.fine_tuned(OWN, seed, **({"log_every_n_steps": 1} if series.curves else {})) as model:
        evaluation = model.evaluate(DEV).evaluation
    seconds, losses = steps_of(series.run_folder(OWN, seed))
    return _of(evaluation, seconds=seconds, losses=losses if series.curves else ())


def _theirs(series: Series, seed: int) -> Reached:
    """Trains on the other side from our start; WorkerError if it fails or its initial logits are not ours."""
    start = series.reached(START, seed)
    folder = series.folder / f"run-{PEER}-{seed}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    answer = run_peer(series.python, folder, _job(series, seed, folder), f"{PEER} with seed {seed}")
    logits = safetensors.numpy.load_file(folder / "output.safetensors")
    columns = features(series, seed, DEV)
    before, after = (_evaluation(series, columns, logits[name]) for name in ("before", "after"))
    if not abs(before.values["loss"] - start.metrics["loss"]) <= LOSS_TOLERANCE:
        raise WorkerError(f"{PEER}: loss on dev before training is {before.values['loss']}, not {start.metrics['loss']}")
    return _of(after, seconds=answer["seconds"], losses=answer["losses"] if series.curves else ())


SIDES: Mapping[str, Callable[[Series, int], Reached]] = {START: _start, OWN: _ours, PEER: _theirs}


def _features_file(series: Series, seed: int, split: str) -> Path:
    folder = series.run_folder(START, seed) / "features"
    (found,) = folder.glob(f"{series.task.name}-{split}-*.safetensors")
    return found


def features(series: Series, seed: int, split: str) -> Features:
    """Returns both sides' features of a split (train or dev), as the first run of a seed has left them."""
    family = series.task.family
    columns = safetensors.numpy.load_file(_features_file(series, seed, split))
    return Features.from_columns(columns, family.targets, truncated=0, together=family.trains_together)


def run_peer(python: str, folder: Path, job: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Runs the script of the peer on a job and returns its answer; WorkerError if it fails."""
    path, output = folder / "job.json", folder / "output.json"
    path.write_text(documents.to_json({**job, "output": os.fspath(output)}, indent=1), encoding="utf-8")
    done = subprocess.run([python, str(SCRIPT), str(path)], env=variables(PEER, job["threads"]), check=False)
    if done.returncode:
        raise WorkerError(f"{name} ended with status {done.returncode}")
    answer: dict[str, Any] = json.loads(output.read_text(encoding="utf-8"))
    return answer


def _job(series: Series, seed: int, folder: Path) -> dict[str, Any]:
    settings, family = series.settings, series.task.family
    _write_weights(series.run_folder(START, seed), folder / "model", family.head.num_labels)
    units = features(series, seed, TRAIN).units
    batch_size = settings["train_batch_size"]
    steps = settings.get("num_train_steps") or int(units / batch_size * settings["num_train_epochs"])
    return {
        "kind": family.kind,
        "model": os.fspath(folder / "model"),
        "num_labels": family.head.num_labels,
        "train": os.fspath(_features_file(series, seed, TRAIN)),
        "dev": os.fspath(_features_file(series, seed, DEV)),
        "batch_size": batch_size,
        "steps": steps,
        "every": steps,
        "learning_rate": settings["learning_rate"],
        "warmup_proportion": settings.get("warmup_proportion", WARMUP_PROPORTION),
        "of_tokens": series.curves,
        "seed": seed,
        "threads": series.threads,
    }


def _write_weights(run: Path, folder: Path, num_labels: int) -> None:
    """Writes a run's initial weights in the other side's layout; the last layer has its own file."""
    prefix = str(sources.checkpoint_of(run, environment={}))
    config = BertConfig.from_json_file(run / "bert_config.json")
    vocabulary = Vocabulary.from_file(run / "vocab.txt")
    write_huggingface(folder, config, vocabulary, read_encoder(prefix, config), num_labels=num_labels)
    reader = CheckpointReader(prefix)
    ends = {"weight": "output_weights", "bias": "output_bias"}
    head = {name: reader[found] for name, end in ends.items() for found in reader.shapes if found.endswith(end)}
    safetensors.numpy.save_file(head, folder / "head.safetensors")


def _evaluation(series: Series, features: Features, logits: npt.NDArray[np.float32]) -> Evaluation:
    family, output = series.task.family, _OUTPUTS[series.task.family.kind]
    predictions = family.predictions({output: logits}, features, series.examples)
    return family.evaluation(predictions, series.examples)


def _of(evaluation: Evaluation, *, seconds: float = 0.0, losses: Sequence[float] = ()) -> Reached:
    metrics = {name: float(value) for name, value in evaluation.values.items()}
    intervals = {name: (float(low), float(high)) for name, (low, high) in evaluation.intervals.items()}
    return Reached(metrics, intervals, seconds, losses, () if evaluation.each is None else evaluation.each.tolist())

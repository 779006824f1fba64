"""This package as a contender of the benchmark: python -m benchmarks.worker WORKLOAD.json

Speaks the protocol of `benchmarks.peers.protocol` and runs what the classifier command runs: the same input
functions, hooks and graphs.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from bert_tf.runtime import noise, quick_import

noise.quiet_before_import()
quick_import.load_ahead()

import numpy as np

import bert_tf
from benchmarks.peers import protocol
from benchmarks.texts import family_of
from bert_tf.config import BertConfig
from bert_tf.features.columns import Features, TrainingRows
from bert_tf.features.long_text import TRUNCATE
from bert_tf.head_spec import CLASSIFICATION, PRETRAINING
from bert_tf.tasks.base import TRAIN, Limits, OnDisk, Opening, Task
from bert_tf.tasks.registry import get_task
from bert_tf.tasks.sentence.rows import SentenceExample
from bert_tf.tasks.settings import CUSTOM, of_values
from bert_tf.tokenization import casing
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer
from bert_tf.training.run_spec import configured

quick_import.collect_rarely()
quick_import.install()
noise.quiet_python()

import tensorflow as tf

from bert_tf.checkpoints.names import encoder_shapes
from bert_tf.checkpoints.prefixes import CHECKPOINT_NAME
from bert_tf.checkpoints.reader import CheckpointReader, write_checkpoint
from bert_tf.checkpoints.restore import RestorePlan, plan_restore
from bert_tf.estimator import run
from bert_tf.estimator.forward import Forward
from bert_tf.estimator.model_fn import Model
from bert_tf.estimator.update import LOSS, Optimization
from bert_tf.extensions.profile.matmul_peak import MatmulPeak
from bert_tf.features import cache
from bert_tf.features.batching import Schedule
from bert_tf.modeling.heads import registry as heads
from bert_tf.optimization.optimizers import AdamWConfig
from bert_tf.runtime.machine import set_up
from bert_tf.runtime.settings import DeviceSettings
from bert_tf.training import speed

tf1 = tf.compat.v1

_WAYS = {"max": {"pad_to_longest": False}, "dynamic": {}, "grouped": {"group_by_length": True}}
_PRECISION = "float32"
_ALONE = {"strategy": "one_device"}  # as the others, whatever there is
_NEVER = 10**9
_COMMON = "MRPC"  # task of settings that do not depend on it
_WITHOUT_LOSS = ("features", "encode")


class _Contender:
    """A loaded workload."""

    def __init__(self, workload: SimpleNamespace) -> None:
        self.workload = workload
        given = {**_ALONE, **_WAYS[workload.way]}
        if workload.suite != "encode":  # it opens an encoder with its own settings
            precision = getattr(workload, "precision", _PRECISION)  # PyTorch has no TF32 by default
            given = {**given, "precision": precision, **getattr(workload, "flags", {})}
        settings = configured(task_name=_COMMON if workload.kind == PRETRAINING else workload.task, **given)
        self.speed = settings.speed
        speed.set_up(self.speed)
        machine = set_up(settings.devices, environment={}, xla=self.speed.xla)
        self.machine = speed.with_kernels(self.speed, machine, os.environ)
        self.folder = Path(workload.checkpoint)
        self.config = BertConfig.from_json_file(self.folder / "bert_config.json")
        self.vocabulary = Vocabulary.from_file(self.folder / "vocab.txt")
        self.lower_case = casing.find(self.vocabulary).lower_case
        self.tokenizer = WordPieceTokenizer(self.vocabulary, lower_case=self.lower_case)
        self.examples = self.read()
        self.family = family_of(_task(workload))
        self.plan: RestorePlan | None = None
        if not workload.random_weights:
            reader = CheckpointReader(str(self.folder / CHECKPOINT_NAME))
            self.plan = plan_restore(reader, self.config, tuple(heads.make_head(self.family.head).variables(self.config)))

    @functools.cached_property
    def features(self) -> Features:
        return self.build_features()

    @property
    def training_rows(self) -> TrainingRows:
        return self.examples.rows if isinstance(self.examples, OnDisk) else self.features

    def read(self) -> Sequence[Any]:
        workload = self.workload
        if workload.kind == PRETRAINING:
            unopened: Any = _task(workload).examples(workload.data, TRAIN)
            return cast("OnDisk", unopened.opened(Opening(self.tokenizer, workload.max_seq_length, Path(workload.scratch))))
        if workload.kind != CLASSIFICATION:
            return _task(workload).examples("", TRAIN)
        texts = protocol.read_texts(workload.texts)
        rows = zip(texts.first, texts.second or itertools.repeat(None), texts.labels)
        return [SentenceExample(str(n), first, second, workload.labels[label]) for n, (first, second, label) in enumerate(rows)]

    def build_features(self, count: int | None = None) -> Features:
        return self.family.features(self.examples[:count], self.tokenizer, Limits(self.workload.max_seq_length))

    def model(self, optimization: Optimization | None = None) -> Model:
        return Model(
            self.config,
            self.family.head,
            execution=speed.execution(self.speed, self.machine),
            dropout=getattr(self.workload, "dropout", None) != 0.0,
            seed=self.workload.seed,
            optimization=optimization,
            restore=self.plan if optimization else None,
        )

    def check(self, count: int) -> protocol.Reply:
        """Answers "check"; the loss is None without a model or with random weights."""
        few = self.build_features(count)
        ids = [row.tolist() for row in np.split(few.token_ids, np.cumsum(few.lengths)[:-1])]
        if self.workload.suite in _WITHOUT_LOSS or self.plan is None:
            return {"ids": ids, "loss": None}
        with self.loaded() as engine:
            examples = self.examples[:count]
            predictions = self.family.predictions(engine.outputs(few), few, examples)
            return {"ids": ids, "loss": self.family.evaluation(predictions, examples).loss}

    @contextlib.contextmanager
    def loaded(self) -> Iterator[Forward]:
        """Yields the inference graph with the pretrained weights and the common head, or with random ones."""
        with contextlib.closing(Forward(self.model(), self.machine)) as engine:
            engine.load(self.random_checkpoint if self.plan is None else str(self.folder / CHECKPOINT_NAME))
            yield engine

    @functools.cached_property
    def random_checkpoint(self) -> str:
        prefix, draw = str(Path(self.workload.scratch) / "random" / CHECKPOINT_NAME), np.random.default_rng(0).standard_normal
        shapes = {**encoder_shapes(self.config), **heads.make_head(self.family.head).variables(self.config)}
        write_checkpoint(prefix, {name: 0.02 * draw(shape, np.float32) for name, shape in shapes.items()})
        return prefix


def _task(workload: SimpleNamespace) -> Task:
    """Returns a workload's task; one with a file per split reads the workload's file."""
    problem = {"problem": workload.kind} if workload.task == CUSTOM else {}
    return get_task(workload.task, of_values({"train_file": workload.texts, **problem}))


class _PiecesHook(tf1.train.SessionRunHook):
    """Trains in pieces, as the orchestrator requests."""

    def __init__(self, pieces: protocol.Pieces, batch_size: int) -> None:
        self._pieces = pieces
        self._batch_size = batch_size

    def after_create_session(self, session: tf1.Session, coord: object) -> None:
        del session, coord
        self._pieces.wait()

    def before_run(self, run_context: tf1.train.SessionRunContext) -> tf1.train.SessionRunArgs:
        return tf1.train.SessionRunArgs(run_context.session.graph.get_tensor_by_name(f"{LOSS}:0"))

    def after_run(self, run_context: tf1.train.SessionRunContext, run_values: tf1.train.SessionRunValues) -> None:
        del run_context
        self._pieces.stepped(self._batch_size, lambda: float(run_values.results))


def train(contender: _Contender, channel: protocol.Channel) -> None:
    workload, rows = contender.workload, contender.training_rows
    epochs = (workload.total_steps + 0.5) * workload.batch_size / rows.units
    schedule = Schedule(rows.units, workload.batch_size, epochs)
    optimization = Optimization(
        learning_rate=workload.learning_rate,
        warmup_steps=workload.warmup_steps,
        total_steps=schedule.steps,
        defer_embeddings=contender.speed.defer_embeddings,
        adamw=AdamWConfig(  # bias correction as torch's AdamW
            bias_correction=True, fused=contender.speed.fused_adam, native=contender.machine.native_kernels
        ),
    )
    batching = speed.batching(contender.speed, workload.max_seq_length)
    training = run.Training(schedule, _NEVER, batching=batching)
    hook = _PiecesHook(protocol.Pieces(channel, workload, contender.check), workload.batch_size)
    estimator = run.make_estimator(contender.model(optimization), Path(workload.scratch) / "run", contender.machine)
    run.train(estimator, rows, training, seed=workload.seed, hooks=[hook])


def predict(contender: _Contender, channel: protocol.Channel) -> None:
    """Serves the suite "predict", with one graph for all passes."""
    workload, features = contender.workload, contender.features
    batching = speed.batching(contender.speed, workload.max_seq_length)
    with contender.loaded() as engine:
        once = functools.partial(engine.outputs, features, batch_size=workload.batch_size or None, batching=batching)
        channel.serve({"check": contender.check, "run": lambda passes: protocol.timed(passes, once, len(features))})


def build_features(contender: _Contender, channel: protocol.Channel) -> None:
    """Serves the suite "features": from texts, or from a file of a task, to the cache file."""
    workload, family = contender.workload, contender.family
    folder = Path(workload.scratch) / "features"
    key = cache.CacheKey(
        task="benchmark",
        split="texts",
        labels=(),
        kind=family.kind,
        examples="",
        vocabulary=contender.vocabulary.fingerprint,
        lower_case=contender.lower_case,
        max_seq_length=workload.max_seq_length,
        long_text=TRUNCATE,
    )

    def once() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        if getattr(workload, "reads_file", False):
            contender.examples = contender.read()
        cache.load_or_build(folder, key, family.targets, contender.build_features)

    channel.serve({"check": contender.check, "run": lambda passes: protocol.timed(passes, once, len(contender.examples))})


def encode(contender: _Contender, channel: protocol.Channel) -> None:
    texts = [example.text_a for example in contender.examples]
    workload = contender.workload
    settings = {"max_seq_length": workload.max_seq_length, "precision": workload.precision, **workload.flags}
    with bert_tf.encoder(contender.folder, **settings) as encoder:

        def check(count: int) -> protocol.Reply:
            return {**contender.check(count), "vectors": np.asarray(encoder.encode(texts[:count])).tolist()}

        run = functools.partial(protocol.timed, work=functools.partial(encoder.encode, texts), examples=len(texts))
        channel.serve({"check": check, "run": run})


def peak(channel: protocol.Channel, precision: str) -> None:
    """Serves this machine's matrix products through TensorFlow; {"run": n} answers the fastest of n in GFLOP/s."""
    machine = set_up(DeviceSettings(strategy="one_device"), environment={})
    with tf.Graph().as_default() as graph, tf1.Session(config=machine.session_config) as session:
        one = tf.ones([1, 1], tf.as_dtype(precision))
        tf.matmul(one, one)  # what is measured are products such as the graph's own
        measured = MatmulPeak(graph)
        channel.ready({"tensorflow": tf.__version__})
        channel.serve({"run": lambda times: {"gflops": max(measured.measure(session)[precision] for _ in range(times))}})


_SUITES = {"train": train, "start": train, "predict": predict, "features": build_features, "encode": encode}


def work(workload: SimpleNamespace, channel: protocol.Channel) -> None:
    if workload.suite == "peak":
        return peak(channel, workload.precision)
    contender = _Contender(workload)
    if workload.suite != "start":
        channel.ready({"tensorflow": tf.__version__, "python": sys.version.split()[0]})
    return _SUITES[workload.suite](contender, channel)


if __name__ == "__main__":
    protocol.run_worker(work)

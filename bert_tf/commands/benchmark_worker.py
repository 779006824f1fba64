"""This package as a contender of the benchmark: python -m bert_tf.commands.benchmark_worker WORKLOAD.json

Speaks the protocol of `bert_tf.benchmark.peers.protocol`. What is measured is what the classifier command runs: the same
input functions, hooks and graphs.
"""

from __future__ import annotations

import contextlib
import functools
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from bert_tf.runtime import collector, noise

collector.collect_rarely()
noise.quiet_before_import()
noise.quiet_python()

import tensorflow as tf  # noqa: E402 (after the noise is off)

from bert_tf.benchmark.peers import protocol  # noqa: E402
from bert_tf.checkpoints.reader import CheckpointReader  # noqa: E402
from bert_tf.checkpoints.restore import RestorePlan, initialize_from, plan_restore  # noqa: E402
from bert_tf.commands import classifier_flags, speed  # noqa: E402
from bert_tf.config import BertConfig  # noqa: E402
from bert_tf.estimator import run  # noqa: E402
from bert_tf.estimator.model_fn import Model  # noqa: E402
from bert_tf.estimator.update import LOSS, Optimization  # noqa: E402
from bert_tf.features import sentences  # noqa: E402
from bert_tf.features.long_text import TRUNCATE  # noqa: E402
from bert_tf.features.spec import SentenceFeatures  # noqa: E402
from bert_tf.inputs import cache  # noqa: E402
from bert_tf.inputs.pipeline import Schedule  # noqa: E402
from bert_tf.modeling import heads  # noqa: E402
from bert_tf.modeling.encoder import bert  # noqa: E402
from bert_tf.optimization.adamw import AdamWConfig  # noqa: E402
from bert_tf.runtime.machine import set_up  # noqa: E402
from bert_tf.tasks.base import CLASSIFICATION, HeadSpec  # noqa: E402
from bert_tf.tokenization import casing  # noqa: E402
from bert_tf.tokenization.vocabulary import Vocabulary  # noqa: E402
from bert_tf.tokenization.wordpiece import WordPieceTokenizer  # noqa: E402

tf1 = tf.compat.v1

_WAYS = {"max": {"pad_to_longest": False}, "dynamic": {}, "grouped": {"group_by_length": True}}
_ALONE = {"strategy": "one_device", "precision": "float32"}  # as the others, whatever there is; PyTorch has no TF32 by default
_NEVER = 10**9


class _Contender:
    """A workload, loaded."""

    def __init__(self, workload: SimpleNamespace) -> None:
        self.workload = workload
        given = {**_ALONE, **_WAYS[workload.way], **getattr(workload, "flags", {})}
        lines = [f"--{name}={value}" for name, value in given.items()]
        settings = classifier_flags.parse(["benchmark_worker", "--task_name=MRPC", *lines])
        self.speed = settings.speed
        speed.set_up(self.speed)
        self.machine = set_up(settings.devices, environment={}, xla=self.speed.xla)
        self.folder = Path(workload.checkpoint)
        self.config = BertConfig.from_json_file(self.folder / "bert_config.json")
        self.vocabulary = Vocabulary.from_file(self.folder / "vocab.txt")
        self.lower_case = casing.find(self.vocabulary).lower_case
        self.texts = protocol.read_texts(workload.texts)
        self.plan: RestorePlan | None = None
        if not workload.random_weights:
            reader = CheckpointReader(str(self.folder / "bert_model.ckpt"))
            self.plan = plan_restore(reader, self.config, heads.CLASSIFICATION_VARIABLES)

    @functools.cached_property
    def features(self) -> SentenceFeatures:
        return self.build_features()

    def build_features(self) -> SentenceFeatures:
        second = self.texts.second or [None] * len(self.texts.first)
        return sentences.build(
            zip(self.texts.first, second),
            np.array(self.texts.labels, np.int32),
            WordPieceTokenizer(self.vocabulary, lower_case=self.lower_case),
            max_seq_length=self.workload.max_seq_length,
        )

    def estimator(self, folder: Path, optimization: Optimization | None = None) -> run.Estimator:
        model = Model(
            self.config,
            HeadSpec(self.workload.num_labels),
            execution=speed.execution(self.speed),
            dropout=getattr(self.workload, "dropout", None) != 0.0,
            seed=self.workload.seed,
            optimization=optimization,
            restore=self.plan if optimization else None,
        )
        return run.make_estimator(model, folder, self.machine)

    def token_ids(self, count: int) -> list[list[int]]:
        ends = np.cumsum(self.features.lengths[:count])
        return [self.features.token_ids[end - length : end].tolist() for end, length in zip(ends, self.features.lengths)]

    def check(self, count: int) -> protocol.Reply:
        """Answers "check", with a head that every contender can make."""
        features = self.features
        with self._initial() as (session, logits, inputs):
            batch = features.batch(np.arange(count), int(features.lengths[:count].max()))
            losses = heads.classification_loss(logits, batch["label_ids"])
            return {
                "ids": self.token_ids(count),
                "loss": float(np.mean(session.run(losses, {inputs[name]: batch[name] for name in inputs}))),
            }

    def save_initial(self, folder: Path) -> None:
        """Writes a checkpoint of the weights before training."""
        with self._initial() as (session, _, _):
            tf1.train.Saver().save(session, str(folder / "model.ckpt"), global_step=0)

    @contextlib.contextmanager
    def _initial(self) -> Iterator[tuple[tf1.Session, tf.Tensor, dict[str, tf.Tensor]]]:
        """A session with the pretrained weights and the head that all contenders have; its logits and inputs."""
        labels, execution = self.workload.num_labels, speed.execution(self.speed)
        drawn = np.random.default_rng(self.workload.seed).normal(0, 0.02, [self.config.hidden_size, labels])
        with tf.Graph().as_default(), tf1.Session() as session:
            names = ("input_ids", "input_mask", "segment_ids")
            inputs = {name: tf1.placeholder(tf.int32, [None, None], name) for name in names}
            encoded = bert(*inputs.values(), self.config, execution, first_only=True)
            logits = heads.classification(encoded.pooled, labels, self.config, execution)
            tf1.train.get_or_create_global_step()
            if self.plan is not None:
                initialize_from(self.plan)
            (head,) = (v for v in tf1.global_variables() if v.op.name == "output_weights")
            assign = head.assign(drawn.T.astype(np.float32))
            session.run(tf1.global_variables_initializer())
            session.run(assign)
            yield session, logits, inputs


class _PiecesHook(tf1.train.SessionRunHook):
    """Trains in pieces, as the orchestrator asks."""

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
    """Serves the suites "train" and "start"."""
    workload, features = contender.workload, contender.features
    epochs = (workload.total_steps + 0.5) * workload.batch_size / len(features)
    schedule = Schedule(len(features), workload.batch_size, epochs)
    optimization = Optimization(
        learning_rate=workload.learning_rate,
        warmup_steps=workload.warmup_steps,
        total_steps=schedule.steps,
        defer_embeddings=contender.speed.defer_embeddings,
        adamw=AdamWConfig(bias_correction=True, fused=contender.speed.fused_adam),  # as torch's AdamW
    )
    batching = speed.batching(contender.speed, workload.max_seq_length)
    training = run.Training(schedule, _NEVER, batching=batching)
    hook = _PiecesHook(protocol.Pieces(channel, workload, contender.check), workload.batch_size)
    estimator = contender.estimator(Path(workload.scratch) / "run", optimization)
    run.train(estimator, features, training, seed=workload.seed, hooks=[hook])


def predict(contender: _Contender, channel: protocol.Channel) -> None:
    """Serves the suite "predict"; each pass builds its graph and reads its checkpoint, as the command does."""
    workload, features = contender.workload, contender.features
    folder = Path(workload.scratch) / "initial"
    folder.mkdir()
    contender.save_initial(folder)
    estimator = contender.estimator(folder)
    batching = speed.batching(contender.speed, workload.max_seq_length)

    def passes(count: int) -> protocol.Reply:
        began = time.perf_counter()
        for _ in range(count):
            run.forward(estimator, features, batch_size=workload.batch_size, batching=batching)
        return protocol.measured(time.perf_counter() - began, count * len(features))

    channel.serve({"check": contender.check, "run": passes})


def build_features(contender: _Contender, channel: protocol.Channel) -> None:
    """Serves the suite "features": from texts to the cache file, with a new tokenizer every time."""
    workload = contender.workload
    folder = Path(workload.scratch) / "features"
    key = cache.CacheKey(
        task="benchmark",
        split="texts",
        labels=(),
        kind=CLASSIFICATION,
        examples="",
        vocabulary=contender.vocabulary.fingerprint,
        lower_case=contender.lower_case,
        max_seq_length=workload.max_seq_length,
        long_text=TRUNCATE,
    )

    def passes(count: int) -> protocol.Reply:
        began = time.perf_counter()
        for _ in range(count):
            shutil.rmtree(folder, ignore_errors=True)
            cache.load_or_build(folder, key, contender.build_features)
        return protocol.measured(time.perf_counter() - began, count * len(contender.texts.first))

    channel.serve({"check": lambda count: {"ids": contender.token_ids(count), "loss": None}, "run": passes})


_SUITES = {"train": train, "start": train, "predict": predict, "features": build_features}


def work(workload: SimpleNamespace, channel: protocol.Channel) -> None:
    """Loads a workload and serves its suite."""
    contender = _Contender(workload)
    if workload.suite != "start":
        channel.ready({"tensorflow": tf.__version__, "python": sys.version.split()[0]})
    _SUITES[workload.suite](contender, channel)


if __name__ == "__main__":
    protocol.run_worker(work)

"""A classifier that trains in a second: the label of an example is told by one of its pieces."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import numpy as np
import tensorflow as tf

from bert_tf.checkpoints.reader import CheckpointReader, write_checkpoint
from bert_tf.checkpoints.restore import RestorePlan, plan_restore
from bert_tf.config import BertConfig
from bert_tf.estimator import run
from bert_tf.estimator.forward import Forward
from bert_tf.estimator.model_fn import PREDICT, Model, make_model_fn
from bert_tf.estimator.update import Optimization
from bert_tf.features.batching import Schedule
from bert_tf.features.columns import Features
from bert_tf.head_spec import HeadSpec
from bert_tf.modeling.execution import Execution
from bert_tf.runtime.devices import session_config
from bert_tf.runtime.machine import Machine
from bert_tf.tasks.sentence.evaluation import evaluate_logits
from tests.labelled import HEAD_VARIABLES, label_ids, labelled
from tests.tiny import held, random_weights

CONFIG = BertConfig(
    vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, max_position_embeddings=16
)
HEAD = HeadSpec(2)
EXECUTION = Execution()
SCHEDULE = Schedule(rows=24, batch_size=4, epochs=3)  # 18 steps, 6 an epoch
SEED = 11


def features(examples: int, seed: int = 0) -> Features:
    """[CLS] marker words [SEP] words [SEP], lengths of 6 to 12; the marker is 5 or 6, the label 0 or 1."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(6, 13, examples).astype(np.int32)
    labels = (np.arange(examples) % 2).astype(np.int32)
    ids = []
    for length, label in zip(lengths, labels):
        ids += [2, 5 + label, 7, 3, *rng.integers(7, 20, length - 5), 3]
    return labelled(np.array(ids, np.int32), lengths, np.full(examples, 4, np.int32), labels)


def restore_plan(folder: Path) -> RestorePlan:
    """A pretrained encoder."""
    folder.mkdir(parents=True, exist_ok=True)
    write_checkpoint(folder / "bert_model.ckpt", random_weights(CONFIG))
    return plan_restore(CheckpointReader(folder / "bert_model.ckpt"), CONFIG, HEAD_VARIABLES)


def make_estimator(
    folder: Path,
    *,
    seed: int = SEED,
    schedule: Schedule = SCHEDULE,
    config: BertConfig = CONFIG,
    execution: Execution = EXECUTION,
    restore: RestorePlan | None = None,
    xla: bool = False,
    rates: str | None = None,
    **optimization,
):
    """An Estimator of the toy's model; `rates` names the schedule of the learning rate."""
    settings = {"learning_rate": 0.003, "warmup_steps": 2, "total_steps": schedule.steps, **optimization}
    if rates is not None:
        settings["schedule"] = rates
    model = Model(config, HEAD, execution=execution, seed=seed, optimization=Optimization(**settings), restore=restore)
    return run.make_estimator(model, folder, Machine(session_config(xla=xla)))


def train(
    folder: Path,
    *,
    seed: int = SEED,
    schedule: Schedule = SCHEDULE,
    training: dict | None = None,
    data: Features | None = None,
    watchers: tuple = (),
    **model,
):
    """Trains, from the newest checkpoint in the folder where there is one, saving every 5 steps."""
    settings = run.Training(schedule, **{"save_checkpoints_steps": 5, "log_every_n_steps": 1, **(training or {})})
    estimator = make_estimator(folder, seed=seed, schedule=schedule, **model)
    return run.train(estimator, data or features(schedule.rows), settings, seed=seed, watchers=watchers)


def logits_alone(folder: Path, data: Features) -> np.ndarray:
    """[N, 2] logits of the newest checkpoint: the model_fn in a session of its own, one example at a time."""
    signature = {field.name: tf.TensorSpec(field.shape(None, None), tf.int32) for field in data.batch_fields}
    batches = [data.batch(np.array([row]), data.lengths[row]) for row in range(len(data.lengths))]
    with tf.Graph().as_default():
        examples = tf.data.Dataset.from_generator(lambda: iter(batches), output_signature=signature)
        features = tf.compat.v1.data.make_one_shot_iterator(examples).get_next()
        predictions = make_model_fn(Model(CONFIG, HEAD))(features=features, mode=PREDICT).predictions
        saver = tf.compat.v1.train.Saver(tf.compat.v1.trainable_variables())
        with tf.compat.v1.Session() as session:
            saver.restore(session, tf.train.latest_checkpoint(str(folder)))
            return np.concatenate([session.run(predictions["logits"]) for _ in batches])


def make_forward(machine: Machine | None = None) -> Forward:
    """The graph without training of the toy's model."""
    return Forward(Model(CONFIG, HEAD), machine or Machine(session_config()))


def measure(forward: Forward, data: Features) -> dict[str, float]:
    """Accuracy and loss of the weights that are loaded."""
    evaluation = evaluate_logits(HEAD, ("0", "1"), ("accuracy",), forward.outputs(data)["logits"], label_ids(data))
    return {f"eval_{name}": value for name, value in evaluation.values.items()}


def forward(folder: Path, data: Features) -> tuple[np.ndarray, int]:
    """[N, 2] logits and step, of the checkpoint that stands for a run."""
    with contextlib.closing(make_forward()) as engine:
        step = engine.load(run.require_checkpoint(folder))
        return engine.outputs(data)["logits"], step


def evaluate(folder: Path, data: Features) -> dict[str, float]:
    """Metrics, loss and step."""
    logits, step = forward(folder, data)
    return {**evaluate_logits(HEAD, ("0", "1"), ("accuracy", "f1"), logits, label_ids(data)).values, "global_step": step}


def entries(folder: Path, step: int = SCHEDULE.steps) -> dict[str, np.ndarray]:
    return held(folder / f"model.ckpt-{step}")


def metrics_lines(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


def summary_tags(folder: Path) -> set[str]:
    files = folder.glob("events.out.tfevents.*")
    events = (event for file in files for event in tf.compat.v1.train.summary_iterator(str(file)))
    return {value.tag for event in events for value in event.summary.value}

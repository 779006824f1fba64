"""Training steps with dropout masks that are laid out by token, so that every layout of a batch drops the same elements.

Shapes: B batch, T tokens of the longest sequence, L longest allowed, N rows, D width, H heads, Q queries of each sequence.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.estimator import model_fn
from bert_tf.estimator.model_fn import TRAIN, Model, make_model_fn
from bert_tf.estimator.update import Optimization
from bert_tf.features.columns import Features
from bert_tf.head_spec import HeadSpec
from bert_tf.inputs.pipeline import Batching, Schedule, train_input_fn
from bert_tf.modeling.execution import Execution
from bert_tf.optimization.adamw import AdamWConfig

tf1 = tf.compat.v1


@dataclasses.dataclass
class MasksByToken:
    """Takes the place of `Dropout`: the mask of a call is drawn for the padded batch, whatever part of it is asked for.

    Attributes:
      input_mask: [B, T] of the batch.
      longest: L.
      config: its layers say which call is whose: embeddings, three of each layer, head.
      execution: where the rows of a call lie.
      step: scalar int64.
    """

    input_mask: tf.Tensor
    longest: int
    config: BertConfig
    execution: Execution
    step: tf.Tensor
    calls: int = 0

    def __call__(self, x, rate):
        call, layers = self.calls, self.config.num_hidden_layers
        batch, tokens = tf.unstack(tf.shape(self.input_mask))
        if call == 3 * layers + 1:  # the head: one row a sequence
            return x * self._draw([batch, x.shape[-1]], rate)
        drawn = self._draw([batch, self.longest, x.shape[-1]], rate)
        if call > 3 * layers - 2 and self.execution.last_layer_cls_only:
            return x * drawn[:, 0]
        drawn = drawn[:, :tokens]
        return x * (
            tf.boolean_mask(drawn, self.input_mask > 0) if self.execution.pack_tokens else tf.reshape(drawn, tf.shape(x))
        )

    def mask(self, shape, rate, dtype):
        batch, heads, queries, tokens = tf.unstack(shape)
        drawn = self._draw([batch, heads, self.longest, self.longest], rate)
        return tf.cast(drawn[:, :, :queries, :tokens], dtype)

    def _draw(self, shape, rate):
        seed = tf.stack([self.step, tf.constant(self.calls, tf.int64)])
        self.calls += 1
        return tf.cast(tf.random.stateless_uniform(shape, seed) >= rate, tf.float32) / (1.0 - rate)


@dataclasses.dataclass(frozen=True)
class Case:
    """What to train."""

    config: BertConfig
    data: Features
    schedule: Schedule
    longest: int
    weights: Mapping[str, np.ndarray]
    learning_rate: float


def losses(case: Case, *, published: bool) -> list[float]:
    """The loss of every step: in the published layout, or with all that is faster."""
    execution = Execution(pack_tokens=not published, last_layer_cls_only=not published, custom_gradients=not published)
    optimization = Optimization(
        learning_rate=case.learning_rate,
        warmup_steps=4,
        total_steps=case.schedule.steps,
        defer_embeddings=not published,
        adamw=AdamWConfig(bias_correction=True, fused=not published),
    )
    batching = Batching(pad_to=case.longest if published else None)
    with tf.Graph().as_default(), tf1.Session() as session, pytest.MonkeyPatch.context() as patch:
        tf1.set_random_seed(1)
        inputs = train_input_fn(case.data, case.schedule, seed=4, batching=batching)()
        batch = tf1.data.make_one_shot_iterator(inputs).get_next()
        step = tf1.train.get_or_create_global_step()
        masks = MasksByToken(batch["input_mask"], case.longest, case.config, execution, step)
        patch.setattr(model_fn, "_dropout", lambda *_: masks)
        spec = make_model_fn(Model(case.config, HeadSpec(2), execution=execution, optimization=optimization))(batch, TRAIN)
        assert masks.calls == 3 * case.config.num_hidden_layers + 2
        session.run(tf1.global_variables_initializer())
        session.run(tf1.local_variables_initializer())
        for variable in tf1.trainable_variables():
            if variable.op.name in case.weights:
                variable.load(case.weights[variable.op.name], session)
        return [float(session.run([spec.loss, spec.train_op])[0]) for _ in range(case.schedule.steps)]


def distance(case: Case) -> float:
    """Returns the largest difference of the losses of a step, relative to the loss, where there was something to learn."""
    plain, fast = (np.array(losses(case, published=published)) for published in (True, False))
    assert plain.max() - plain.min() > 0.05
    return float((np.abs(fast - plain) / plain).max())

"""What is switched for speed alone changes no loss: packed, deferred, native, by hand-written gradients; dropout included.

Shapes: B batch, T tokens of the longest sequence, L longest allowed, N rows, D width, H heads, Q queries of each sequence.
"""

import dataclasses
import functools
import os
from collections.abc import Mapping

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import home
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.config import BertConfig
from bert_tf.estimator import model_fn
from bert_tf.estimator.model_fn import Model, make_model_fn
from bert_tf.estimator.pipeline import train_input_fn
from bert_tf.estimator.update import Optimization
from bert_tf.features.batching import Batching, Schedule
from bert_tf.features.columns import Features
from bert_tf.head_spec import HeadSpec
from bert_tf.modeling.execution import Execution
from bert_tf.optimization.optimizers import AdamWConfig
from bert_tf.tasks.base import TRAIN, Limits
from bert_tf.tasks.registry import get_task
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer
from bert_tf.training import sources
from bert_tf.training.settings import ModelSettings
from tests.estimator import wide
from tests.tiny import random_weights

tf1 = tf.compat.v1

EXECUTION = ("pack_tokens", "last_layer_cls_only", "custom_gradients", "native")
LEVERS = (*EXECUTION, "fused", "defer_embeddings", "pad_to_longest")


@dataclasses.dataclass(frozen=True)
class Case:
    """What to train."""

    config: BertConfig
    data: Features
    schedule: Schedule
    longest: int
    weights: Mapping[str, np.ndarray]
    learning_rate: float


def wide_case(config: BertConfig, schedule: Schedule) -> Case:
    head = np.random.default_rng(6).normal(0, 0.2, (2, config.hidden_size))
    return Case(config, wide.features(), schedule, wide.LONGEST, {**random_weights(config), "output_weights": head}, 0.003)


def losses(case: Case, *, off=(), bias_correction=False, same_masks=False) -> list[float]:
    """The loss of every step from the same weights, with some levers off; the head drops nothing unless masks are the same."""
    on = {name: name not in off for name in LEVERS}
    execution = Execution(**{name: on[name] for name in EXECUTION})
    adamw = AdamWConfig(bias_correction=bias_correction, fused=on["fused"], native=on["native"])
    steps, defers = case.schedule.steps, on["defer_embeddings"]
    optimization = Optimization(case.learning_rate, warmup_steps=4, total_steps=steps, defer_embeddings=defers, adamw=adamw)
    batching = Batching(pad_to=None if on["pad_to_longest"] else case.longest)
    with tf.Graph().as_default(), tf1.Session() as session, pytest.MonkeyPatch.context() as patch:
        tf1.set_random_seed(1)
        data = train_input_fn(case.data, case.schedule, seed=4, batching=batching)()
        batch = tf1.data.make_one_shot_iterator(data).get_next()
        if same_masks:
            masks = MasksByToken(batch["input_mask"], case, execution, tf1.train.get_or_create_global_step())
            patch.setattr(model_fn, "_dropout", lambda *_: masks)
        config = case.config if same_masks else dataclasses.replace(case.config, classifier_dropout_prob=0.0)
        model = Model(config, HeadSpec(2), execution=execution, seed=1, optimization=optimization)
        spec = make_model_fn(model)(batch, model_fn.TRAIN)
        assert not same_masks or masks.calls == 3 * case.config.num_hidden_layers + 2
        session.run(tf1.global_variables_initializer())
        session.run(tf1.local_variables_initializer())
        for variable in tf1.trainable_variables():
            if variable.op.name in case.weights:
                variable.load(case.weights[variable.op.name], session)
        return [float(session.run([spec.loss, spec.train_op])[0]) for _ in range(steps)]


@functools.cache
def published():
    """The losses with all levers off."""
    return losses(wide_case(wide.SURE, wide.SCHEDULE), off=LEVERS, bias_correction=True)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("off", [(), ("native", "fused"), ("defer_embeddings",)], ids=lambda off: "+".join(off) or "none")
def test_levers_change_no_loss(off):
    """What an encoder computes in each of its ways is compared in tests/modeling/test_encoder.py."""
    assert max(published()) - min(published()) > 0.05  # there was something to learn
    actual = losses(wide_case(wide.SURE, wide.SCHEDULE), off=off, bias_correction=True)
    np.testing.assert_allclose(actual, published(), atol=1e-5)


def test_native_kernels_drop_the_same_elements(kernels):
    assert kernels.is_loaded()
    case = wide_case(wide.CONFIG, wide.SCHEDULE)
    expected, actual = (losses(case, off=off) for off in (("native",), ()))
    assert abs(expected[0] - published()[0]) > 0.001  # it dropped, before the first update
    np.testing.assert_allclose(actual, expected, rtol=1e-5)  # TensorFlow's AdamW rounds 1 - beta to float32


@dataclasses.dataclass
class MasksByToken:
    """Takes the place of `Dropout`: the mask of a call is drawn for the padded batch, whatever part of it is asked for.

    Attributes:
      input_mask: [B, T] of the batch.
      case: its layers say which call is whose: embeddings, three of each layer, head.
      execution: where the rows of a call lie.
      step: scalar int64.
    """

    input_mask: tf.Tensor
    case: Case
    execution: Execution
    step: tf.Tensor
    calls: int = 0

    def __call__(self, x, rate):
        call, layers = self.calls, self.case.config.num_hidden_layers
        batch, tokens = tf.unstack(tf.shape(self.input_mask))
        if call == 3 * layers + 1:  # the head: one row a sequence
            return x * self._draw([batch, x.shape[-1]], rate)
        drawn = self._draw([batch, self.case.longest, x.shape[-1]], rate)
        if call > 3 * layers - 2 and self.execution.last_layer_cls_only:
            return x * drawn[:, 0]
        drawn = drawn[:, :tokens]
        return x * (
            tf.boolean_mask(drawn, self.input_mask > 0) if self.execution.pack_tokens else tf.reshape(drawn, tf.shape(x))
        )

    def mask(self, shape, rate, dtype):
        batch, heads, queries, tokens = tf.unstack(shape)
        drawn = self._draw([batch, heads, self.case.longest, self.case.longest], rate)
        return tf.cast(drawn[:, :, :queries, :tokens], dtype)

    def _draw(self, shape, rate):
        seed = tf.stack([self.step, tf.constant(self.calls, tf.int64)])
        self.calls += 1
        return tf.cast(tf.random.stateless_uniform(shape, seed) >= rate, tf.float32) / (1.0 - rate)


def distance(case: Case) -> float:
    """Returns the largest difference of the losses of a step, relative to the loss, where there was something to learn."""
    ways = (LEVERS, ("native",))
    plain, fast = (np.array(losses(case, off=off, bias_correction=True, same_masks=True)) for off in ways)
    assert plain.max() - plain.min() > 0.05
    return float((np.abs(fast - plain) / plain).max())


def test_the_same_masks_give_the_same_losses():
    config = dataclasses.replace(wide.CONFIG, num_hidden_layers=2)
    assert distance(wide_case(config, Schedule(wide.SCHEDULE.rows, 4, 1, fixed_steps=12))) < 1e-5


@pytest.mark.slow
def test_the_same_masks_give_the_same_40_losses_of_the_bundled_sample():
    """By the default checkpoint and the settings of its recipe."""
    model = sources.find_model(ModelSettings(None, None, None), environment=os.environ)
    config, reader = BertConfig.from_json_file(model.config), CheckpointReader(model.checkpoint)
    head = np.random.default_rng(6).normal(0, 0.02, (2, config.hidden_size))
    weights = {**{name: reader[name] for name in reader.shapes}, "output_weights": head}
    task = get_task("MRPC")
    examples = task.examples(home.SAMPLE / task.name, TRAIN)
    tokenizer = WordPieceTokenizer(Vocabulary.from_file(model.vocabulary))
    data = task.family.features(examples, tokenizer, Limits(64))
    assert distance(Case(config, data, Schedule(len(data), 16, 1, fixed_steps=40), 64, weights, 1e-4)) < 1e-5

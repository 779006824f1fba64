"""The parts that every room of the encoder uses.

Shapes: N rows (tokens or sequences), D width of the input, E width of the output. Rows are the leading axes.
"""

from __future__ import annotations

import tensorflow as tf

from bert_tf.config import BertConfig

tf1 = tf.compat.v1


class Dropout:
    """Drops elements in training, by a stream of random numbers that depends on (seed, step) alone.

    Stateless random numbers make a step repeatable: a run that continues from a checkpoint drops what the uninterrupted
    run would have dropped.
    """

    def __init__(self, seed: int, step: tf.Tensor, *, replica: int | tf.Tensor = 0) -> None:
        """Begins a stream.

        Args:
          seed: of the run.
          step: scalar int64, the training step.
          replica: number of the replica, so that replicas drop different elements.
        """
        self._first = tf.cast(replica, tf.int64) * (1 << 32) + seed
        self._step = tf.cast(step, tf.int64) * (1 << 16)
        self._calls = 0

    def __call__(self, x: tf.Tensor, rate: float) -> tf.Tensor:
        """Returns x with a share `rate` of its elements zero and the others scaled to keep the mean."""
        if rate == 0.0:
            return x
        seed = tf.stack([self._first, self._step + self._calls])
        self._calls += 1
        kept = tf.random.stateless_uniform(tf.shape(x), seed) >= rate
        return x * (tf.cast(kept, x.dtype) * (1.0 / (1.0 - rate)))


def no_dropout(x: tf.Tensor, rate: float) -> tf.Tensor:
    """Stands for `Dropout` outside of training: returns x."""
    del rate
    return x


def gelu_tanh(x: tf.Tensor) -> tf.Tensor:
    """Gaussian error linear unit by the tanh approximation (Hendrycks and Gimpel, 2016), as Google's BERT computes it."""
    return tf.nn.gelu(x, approximate=True)


def gelu_erf(x: tf.Tensor) -> tf.Tensor:
    """Gaussian error linear unit in its exact form, as Hugging Face's BERT computes it."""
    return tf.nn.gelu(x, approximate=False)


ACTIVATIONS = {
    "gelu_tanh": gelu_tanh,
    "gelu_erf": gelu_erf,
    "relu": tf.nn.relu,
    "tanh": tf.tanh,
    "linear": tf.identity,
}


def initializer(config: BertConfig) -> tf1.truncated_normal_initializer:
    """Returns the initializer of weights that no checkpoint provides."""
    return tf1.truncated_normal_initializer(stddev=config.initializer_range)


def dense(x: tf.Tensor, width: int, config: BertConfig, *, scope: str) -> tf.Tensor:
    """Multiplies rows with a kernel and adds a bias; owns the variable scope named by `scope`.

    Args:
      x: [N, D] rows.
      width: E.
      config: how to initialize.
      scope: name of the scope.

    Returns:
      [N, E].
    """
    with tf1.variable_scope(scope):
        kernel = tf1.get_variable("kernel", [x.shape[-1], width], initializer=initializer(config))
        bias = tf1.get_variable("bias", [width], initializer=tf1.zeros_initializer())
        return tf.nn.bias_add(tf.matmul(x, kernel), bias)  # [N, E]


def layer_norm(x: tf.Tensor, config: BertConfig) -> tf.Tensor:
    """Normalizes each row (Ba et al., 2016); owns the variable scope `LayerNorm`.

    Args:
      x: [N, D] rows.
      config: the number added to the variance.

    Returns:
      [N, D].
    """
    with tf1.variable_scope("LayerNorm"):
        beta = tf1.get_variable("beta", [x.shape[-1]], initializer=tf1.zeros_initializer())
        gamma = tf1.get_variable("gamma", [x.shape[-1]], initializer=tf1.ones_initializer())
        centered = x - tf.reduce_mean(x, axis=-1, keepdims=True)  # [N, D]
        variance = tf.reduce_mean(tf.square(centered), axis=-1, keepdims=True)  # [N, 1]
        return centered * tf.math.rsqrt(variance + config.layer_norm_eps) * gamma + beta

"""AdamW as BERT was published with (google-research/bert optimization.py; Loshchilov and Hutter, 2019)."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

import tensorflow as tf

tf1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class AdamWConfig:
    """Constants of the update; the defaults are the published ones."""

    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-6
    weight_decay: float = 0.01
    undecayed: str = "LayerNorm|layer_norm|bias"  # names of variables that do not decay
    bias_correction: bool = False  # arXiv 2006.05987 names its absence as a cause of unstable fine-tuning
    fused: bool = True  # one kernel a variable, in the place of a dozen element-wise operations


def is_decayed(variable: tf.Variable, config: AdamWConfig) -> bool:
    """Whether weight decay applies to a variable."""
    return bool(config.weight_decay) and not re.search(config.undecayed, variable.op.name)


def moment_names(variable_name: str) -> tuple[str, str]:
    """Returns the names of the first and second moment of a variable in checkpoints."""
    return f"{variable_name}/adam_m", f"{variable_name}/adam_v"


def zeros(shape: tf.TensorShape, dtype: tf.DType = tf.float32, **_: object) -> tf.Tensor:
    """Initializes moments.

    An ordinary tensor of zeros is a constant to the graph optimizer, which keeps it in memory beside the variable.
    """
    return tf.raw_ops.Empty(shape=tf.TensorShape(shape).as_list(), dtype=dtype, init=True)


def plain_update(
    weights: tf.Tensor,
    m: tf.Tensor,
    v: tf.Tensor,
    gradient: tf.Tensor,
    rate: tf.Tensor,
    step: tf.Tensor,
    config: AdamWConfig,
    *,
    decay: float,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """One update, operation by operation, of arrays of one shape.

    Args:
      weights: before the update.
      m: first moment.
      v: second moment.
      gradient: of the loss.
      rate: scalar, the rate of this step.
      step: scalar integer, steps taken before this one.
      config: constants.
      decay: weight decay of these weights.

    Returns:
      Weights, first and second moment after the update.
    """
    m = config.beta_1 * m + (1.0 - config.beta_1) * gradient
    v = config.beta_2 * v + (1.0 - config.beta_2) * tf.square(gradient)
    corrected_m, corrected_v = m, v
    if config.bias_correction:
        t = tf.cast(step, tf.float32) + 1.0
        corrected_m = m / (1.0 - tf.pow(config.beta_1, t))
        corrected_v = v / (1.0 - tf.pow(config.beta_2, t))
    update = corrected_m / (tf.sqrt(corrected_v) + config.epsilon)
    if decay:
        update += decay * weights
    return weights - rate * update, m, v


class AdamW(tf1.train.Optimizer):
    """Adam with decoupled weight decay; slots are named `<variable>/adam_m` and `<variable>/adam_v`.

    For a gradient g at step t, with rate r:

        m = b1 m + (1 - b1) g        v = b2 v + (1 - b2) g^2
        w = w - r (m / (sqrt(v) + epsilon) + decay w)

    and with bias correction m / (1 - b1^t) and v / (1 - b2^t) in the place of m and v.
    """

    def __init__(self, learning_rate: tf.Tensor, step: tf.Tensor, config: AdamWConfig) -> None:
        """Prepares the update.

        Args:
          learning_rate: scalar, the rate of this step.
          step: scalar integer, steps taken before this one.
          config: constants.
        """
        super().__init__(use_locking=False, name="AdamW")
        self._config = config
        self._rate = learning_rate
        self._step = step
        # The power of a beta that the fused kernel corrects by; 0 turns its correction off.
        self._beta_1_power = self._beta_2_power = tf.constant(0.0)
        self._epsilon = tf.constant(config.epsilon)
        if config.bias_correction:
            t = tf.cast(step, tf.float32) + 1.0
            self._beta_1_power = tf.pow(config.beta_1, t)
            self._beta_2_power = tf.pow(config.beta_2, t)
            # The kernel adds epsilon to sqrt(v), the definition to sqrt(v / (1 - b2^t)).
            self._epsilon = config.epsilon * tf.sqrt(1.0 - self._beta_2_power)

    def apply_dense_gradients(self, gradients: Sequence[tf.Tensor], variables: Sequence[tf.Variable]) -> tf.Operation:
        """Updates each variable by a gradient that is the same on all replicas.

        The base class adds up the gradients of the replicas, so each gives its share.
        """
        replicas = tf.distribute.get_replica_context().num_replicas_in_sync
        shares = gradients if replicas == 1 else [gradient / replicas for gradient in gradients]
        return self.apply_gradients(list(zip(shares, variables)))

    def _create_slots(self, var_list: Sequence[tf.Variable]) -> None:
        for variable in var_list:
            for slot in ("m", "v"):
                shape, dtype = variable.shape, variable.dtype.base_dtype
                self._get_or_make_slot_with_initializer(variable, zeros, shape, dtype, slot, f"adam_{slot}")

    def _resource_apply_dense(self, grad: tf.Tensor, handle: tf.Variable) -> tf.Operation:
        config = self._config
        m, v = self.get_slot(handle, "m"), self.get_slot(handle, "v")
        decay = config.weight_decay if is_decayed(handle, config) else 0.0
        if not config.fused:
            updated = plain_update(handle, m, v, grad, self._rate, self._step, config, decay=decay)
            return tf.group([x.assign(value, read_value=False) for x, value in zip((handle, m, v), updated)])
        decayed = tf.no_op()
        if decay:
            with tf.control_dependencies([grad]):
                decayed = handle.assign_sub(self._rate * decay * handle, read_value=False)
        with tf.control_dependencies([decayed]):
            return tf.raw_ops.ResourceApplyAdam(
                var=handle.handle,
                m=m.handle,
                v=v.handle,
                beta1_power=self._beta_1_power,
                beta2_power=self._beta_2_power,
                lr=self._rate,
                beta1=config.beta_1,
                beta2=config.beta_2,
                epsilon=self._epsilon,
                grad=grad,
            )

"""Layers shared by all parts of the encoder, and from token ids to vectors.

Shapes: N rows (tokens or sequences), D width of the input, E width of the output. Rows are the leading axes. Of embeddings: D
hidden size, E their width, A words, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.modeling import custom_gradients
from bert_tf.modeling.execution import Execution
from bert_tf.native import ops as native

tf1 = tf.compat.v1


def gelu_tanh(x: tf.Tensor) -> tf.Tensor:
    """Gaussian error linear unit, tanh approximation (Hendrycks and Gimpel, 2016), as in Google's BERT.

    Its cube and the cube's derivative exceed the range of float16 even if the function does not.
    """
    wide = tf.cast(x, tf.float32) if x.dtype == tf.float16 else x
    return tf.cast(tf.nn.gelu(wide, approximate=True), x.dtype)


def gelu_erf(x: tf.Tensor) -> tf.Tensor:
    """Gaussian error linear unit in its exact form, as in Hugging Face's BERT."""
    return tf.nn.gelu(x, approximate=False)


ACTIVATIONS: dict[str, Callable[[tf.Tensor], tf.Tensor]] = {
    "gelu_tanh": gelu_tanh,
    "gelu_erf": gelu_erf,
    "relu": tf.nn.relu,
    "tanh": tf.tanh,
    "linear": tf.identity,
}
_CUSTOM_ACTIVATIONS: dict[str, Callable[[tf.Tensor], tf.Tensor]] = {
    **ACTIVATIONS,
    "gelu_tanh": custom_gradients.gelu_tanh,
    "gelu_erf": custom_gradients.gelu_erf,
}

_NATIVE_ACTIVATIONS = {"gelu_tanh": False, "gelu_erf": True}  # whether exact


def activation(x: tf.Tensor, config: BertConfig, execution: Execution) -> tf.Tensor:
    table = _CUSTOM_ACTIVATIONS if execution.custom_gradients else ACTIVATIONS
    return table[config.hidden_act](x)


def initializer(config: BertConfig) -> tf1.truncated_normal_initializer:
    """Initializer of a matrix that no checkpoint provides.

    Seeded by the matrix's index in the model: TensorFlow's default counts random operations, and some strategies add more.
    """
    index = sum(len(variable.shape) == 2 for variable in tf1.trainable_variables())
    return tf1.truncated_normal_initializer(stddev=config.initializer_range, seed=index)


def product(x: tf.Tensor, width: int, config: BertConfig, execution: Execution, *, scope: str) -> tuple[tf.Tensor, tf.Tensor]:
    """As `dense`, but returns the bias [E] for a native kernel to add: x [N, D] to [N, E]."""
    with tf1.variable_scope(scope):
        kernel, bias = _kernel_and_bias(x, width, config)
        multiplied = execution.adaptation.product(native.product, x, kernel)
        return multiplied, tf.zeros([width]) if bias is None else bias


def dense(x: tf.Tensor, width: int, config: BertConfig, execution: Execution, *, scope: str) -> tf.Tensor:
    """Multiplies rows by a kernel and adds a bias: [N, D] to [N, E]; variable scope `scope`."""
    with tf1.variable_scope(scope):
        kernel, bias = _kernel_and_bias(x, width, config)
        multiplied = execution.adaptation.product(_plain_product, x, kernel)
        return multiplied if bias is None else tf.nn.bias_add(multiplied, tf.cast(bias, x.dtype))  # [N, E]


def _plain_product(x: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
    return tf.matmul(x, tf.cast(kernel, x.dtype))


def _kernel_and_bias(x: tf.Tensor, width: int, config: BertConfig) -> tuple[tf.Tensor, tf.Tensor | None]:
    """Kernel [D, E] and bias [E] of the current scope, which a model may not have."""
    kernel = read_weight("kernel", [x.shape[-1], width], initializer(config))
    return kernel, read_weight("bias", [width], tf1.zeros_initializer()) if config.biases else None


def read_weight(name: str, shape: Sequence[int], initializer: Callable[..., tf.Tensor]) -> tf.Tensor:
    """The value of a variable of the current scope, read once: functions that are given a variable read it twice."""
    variable = tf1.get_variable(name, shape, initializer=initializer)
    if isinstance(variable, tf.Tensor):  # where a layer is recomputed
        return variable
    with tf1.name_scope(f"{name}_read"):
        return variable.value()


def gated(x: tf.Tensor, width: int, config: BertConfig, execution: Execution, *, scope: str) -> tf.Tensor:
    """The activation of half of a dense layer, times the other half (Shazeer, 2020): [N, D] to [N, E]."""
    with tf1.variable_scope(scope):
        kernel = read_weight("kernel", [x.shape[-1], 2 * width], initializer(config))
        both = execution.adaptation.product(native.product if execution.native else _plain_product, x, kernel)
    wide, gate = tf.split(both, 2, axis=-1)
    if execution.native and config.hidden_act in _NATIVE_ACTIVATIONS:
        return native.gelu(wide, tf.zeros([width]), exact=_NATIVE_ACTIVATIONS[config.hidden_act]) * gate
    return activation(wide, config, execution) * gate


def activated(x: tf.Tensor, width: int, config: BertConfig, execution: Execution, *, scope: str) -> tf.Tensor:
    """The configured activation of a dense layer: [N, D] to [N, E]."""
    if execution.native and config.hidden_act in _NATIVE_ACTIVATIONS:
        multiplied, bias = product(x, width, config, execution, scope=scope)
        return native.gelu(multiplied, bias, exact=_NATIVE_ACTIVATIONS[config.hidden_act])
    return activation(dense(x, width, config, execution, scope=scope), config, execution)


def add_and_norm(x: tf.Tensor, residual: tf.Tensor, config: BertConfig, execution: Execution) -> tf.Tensor:
    """Dense layer, dropout, sum with the residual [N, D], LayerNorm: [N, E] to [N, D]."""
    if not execution.native:
        projected = dense(x, residual.shape[-1], config, execution, scope="dense")
        return layer_norm(execution.dropout(projected, config.hidden_dropout_prob) + residual, config, execution)
    multiplied, bias = product(x, residual.shape[-1], config, execution, scope="dense")
    mask, scale = execution.dropout.kept(tf.size(multiplied, tf.int64), config.hidden_dropout_prob)
    return _native_norm(multiplied, config, native.Added(bias, mask, scale, residual))


def add(x: tf.Tensor, residual: tf.Tensor, rate: float, config: BertConfig, execution: Execution) -> tf.Tensor:
    """Dense layer, dropout, sum with the residual [N, D]: [N, E] to [N, D]."""
    projected = dense(x, residual.shape[-1], config, execution, scope="dense")
    return execution.dropout(projected, rate) + residual


def _native_norm(x: tf.Tensor, config: BertConfig, added: native.Added | None = None) -> tf.Tensor:
    with tf1.variable_scope("LayerNorm"):
        gamma, beta = _norm_weights(x, config)
        return native.norm(x, gamma, beta, config.layer_norm_eps, added)


def _norm_weights(x: tf.Tensor, config: BertConfig) -> tuple[tf.Tensor, tf.Tensor]:
    shape = [x.shape[-1]]
    beta = read_weight("beta", shape, tf1.zeros_initializer()) if config.biases else tf.zeros(shape)
    return read_weight("gamma", shape, tf1.ones_initializer()), beta


def layer_norm(x: tf.Tensor, config: BertConfig, execution: Execution) -> tf.Tensor:
    """Normalizes each row (Ba et al., 2016), [N, D] to [N, D]; variable scope `LayerNorm`."""
    if execution.native:
        return _native_norm(x, config)
    with tf1.variable_scope("LayerNorm"):
        gamma, beta = _norm_weights(x, config)
        normalize = custom_gradients.layer_norm if execution.custom_gradients else _layer_norm
        return tf.cast(normalize(tf.cast(x, tf.float32), gamma, beta, config.layer_norm_eps), x.dtype)


def _layer_norm(x: tf.Tensor, gamma: custom_gradients.Weights, beta: custom_gradients.Weights, epsilon: float) -> tf.Tensor:
    centered = x - tf.reduce_mean(x, axis=-1, keepdims=True)  # [N, D]
    variance = tf.reduce_mean(tf.square(centered), axis=-1, keepdims=True)  # [N, 1]
    return centered * tf.math.rsqrt(variance + epsilon) * gamma + beta


def mean(tokens: tf.Tensor, input_mask: tf.Tensor) -> tf.Tensor:
    """Means of real tokens, [B, T, D] and [B, T] to [B, D]; vectors of padding must be finite."""
    real = tf.cast(input_mask, tokens.dtype)[:, :, None]  # [B, T, 1]
    return tf.reduce_sum(tokens * real, axis=1) / tf.reduce_sum(real, axis=1)


def scorer(
    config: BertConfig, kernel_name: str, bias_name: str, labels: int, temperatures: Sequence[float] = ()
) -> Callable[[tf.Tensor], tf.Tensor]:
    """Makes the output variables of a head, [labels, D] and [labels]; returns a function from [N, D] to [N, labels].

    Its results are divided by `temperatures`: one for all labels, or one for each; empty for 1.
    """
    kernel = read_weight(kernel_name, [labels, config.hidden_size], initializer(config))
    offsets = read_weight(bias_name, [labels], tf1.zeros_initializer())

    def scores(vectors: tf.Tensor) -> tf.Tensor:
        logits = tf.nn.bias_add(tf.matmul(vectors, kernel, transpose_b=True), offsets)
        return logits / tf.constant(temperatures, tf.float32) if temperatures else logits

    return scores


WORDS = "bert/embeddings/word_embeddings"  # the variable


class Words(NamedTuple):
    """Some words of the vocabulary."""

    ids: tf.Tensor  # [A]
    vectors: tf.Tensor  # [A, D]


Lookup = Callable[[tf.Variable, tf.Tensor], tf.Tensor]


def embeddings(
    token_ids: tf.Tensor,
    segment_ids: tf.Tensor,
    positions: tf.Tensor,
    config: BertConfig,
    execution: Execution,
    *,
    lookup: Lookup = tf.gather,
) -> tf.Tensor:
    """Adds word, segment and position vectors: three [N] ids to [N, E]; variable scope `embeddings`, of the caller.

    `lookup` reads rows of the word table: [V, E] and [N] to [N, E]. Narrower embeddings are projected afterwards, in the
    variable scope `embeddings_project` (ELECTRA, Clark et al., 2020).
    """
    words = _table("word_embeddings", config.vocab_size, config)
    rows = lookup(words, token_ids)  # [N, E]
    if config.type_vocab_size:
        segments = _table("token_type_embeddings", config.type_vocab_size, config)
        # A product with one-hot rows gives two rows a dense gradient without a scatter. A single row is every token's.
        several = config.type_vocab_size > 1
        rows += tf.matmul(tf.one_hot(segment_ids, config.type_vocab_size), segments) if several else segments
    if config.position_kind.has_table:
        places = _table("position_embeddings", config.max_position_embeddings, config)
        rows += tf.gather(places, positions)
    rows = layer_norm(rows, config, execution)
    return execution.dropout(tf.cast(rows, execution.dtype), config.hidden_dropout_prob)


def _table(name: str, entries: int, config: BertConfig) -> tf.Variable:
    return tf1.get_variable(name, [entries, config.embedding_width], initializer=initializer(config))


class JointLookup:
    """Reads further words together with the inputs: a deferred update must know all at once."""

    words: Words  # the further words, once inputs are read

    def __init__(self, lookup: Lookup, ids: tf.Tensor) -> None:
        """`ids` [A] are the further words."""
        self._lookup, self._ids = lookup, ids

    def __call__(self, table: tf.Variable, ids: tf.Tensor) -> tf.Tensor:
        """Reads input vectors: table [V, D] and ids [N] to [N, D]."""
        rows = self._lookup(table, tf.concat([ids, self._ids], axis=0))
        inputs = tf.size(ids)
        self.words = Words(self._ids, rows[inputs:])
        return rows[:inputs]

"""The BERT encoder (Devlin et al., 2018), as graph functions.

Shapes: B batch, T tokens, S slots, N rows of tokens, D hidden size; M rows that a layer computes, P rows that are read.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from bert_tf.config import MEAN, BertConfig
from bert_tf.graphs import Gradient, with_gradient
from bert_tf.modeling import layers
from bert_tf.modeling.attention import Sequences, mask_bias, self_attention
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.layers import Lookup, Words, embeddings
from bert_tf.modeling.packing import (
    Layout,
    MakeLayout,
    Packed,
    Padded,
    Places,
    Reads,
    Selection,
    Tokens,
    all_tokens,
    last_queries,
    of_slots,
)
from bert_tf.modeling.positions import Positions, of_model

tf1 = tf.compat.v1


class LayerPlan(NamedTuple):
    """What a layer computes: its number, and the tokens that attend and are attended to."""

    number: int
    bias: tf.Tensor  # from `attention.mask_bias`
    layout: Layout  # of all tokens
    queries: Selection  # tokens that it computes
    positions: Positions


Block = Callable[[LayerPlan, BertConfig, tf.Tensor, Execution], tf.Tensor]


def norm_last(plan: LayerPlan, config: BertConfig, rows: tf.Tensor, execution: Execution) -> tf.Tensor:
    """Normalizes each sum (Devlin et al., 2018): [N, D] to [M, D]; variable scope of a layer."""
    queries = plan.queries.take(rows)
    with tf1.variable_scope("attention"):
        context = self_attention(_sequences(plan, config, queries, rows), config, execution)
        with tf1.variable_scope("output"):
            attended = layers.add_and_norm(context, queries, config, execution)  # [M, D]
    wide = _wide(attended, config, execution)
    with tf1.variable_scope("output"):
        return layers.add_and_norm(wide, attended, config, execution)


def norm_first(plan: LayerPlan, config: BertConfig, rows: tf.Tensor, execution: Execution) -> tf.Tensor:
    """Normalizes what is read, not the sums, and not twice before the first layer (Xiong et al., 2020; Warner et al., 2024)."""
    residual = plan.queries.take(rows)
    with tf1.variable_scope("attention"):
        normal = layers.layer_norm(rows, config, execution) if plan.number else rows
        context = self_attention(_sequences(plan, config, plan.queries.take(normal), normal), config, execution)
        with tf1.variable_scope("output"):
            attended = layers.add(context, residual, config.attention_probs_dropout_prob, config, execution)  # [M, D]
    with tf1.variable_scope("intermediate"):
        normal = layers.layer_norm(attended, config, execution)
    wide = execution.dropout(_wide(normal, config, execution), config.hidden_dropout_prob)
    with tf1.variable_scope("output"):
        return layers.add(wide, attended, 0.0, config, execution)


BLOCKS: Mapping[bool, Block] = {False: norm_last, True: norm_first}  # by `BertConfig.norm_first`


def _sequences(plan: LayerPlan, config: BertConfig, queries: tf.Tensor, rows: tf.Tensor) -> Sequences:
    window = config.window_of_layer(plan.number)
    return Sequences(queries, rows, plan.bias, plan.queries, plan.layout, plan.positions, window)


def _wide(rows: tf.Tensor, config: BertConfig, execution: Execution) -> tf.Tensor:
    """The first half of the feed-forward layer, [M, D] to [M, intermediate size]."""
    activated = layers.gated if config.gated else layers.activated
    with tf1.variable_scope("intermediate"):
        return activated(rows, config.intermediate_size, config, execution, scope="dense")


class Encoded(NamedTuple):
    """Encoder outputs of a batch."""

    pooled: tf.Tensor  # [B, D] one vector a sequence, from [CLS]
    sequence: tf.Tensor | None  # [B, T, D] one vector a token; its padding has no meaning
    layers: tuple[tf.Tensor, ...] = ()  # the same after each layer; the last may compute fewer tokens
    rows: tf.Tensor | None = None  # [P, D] vectors of all tokens, or of the places read, without padding
    layout: Layout | None = None  # of `rows`: [B, T] or [B, S]
    words: Words | None = None  # sample of the vocabulary that trains the head
    transform: Callable[[tf.Tensor], tf.Tensor] = tf.identity  # before an output layer of tokens: [P, D] to [P, D]

    @property
    def token_rows(self) -> tuple[tf.Tensor, Layout]:
        """`rows` and their layout; ValueError if only the first tokens were computed."""
        if self.rows is None or self.layout is None:
            raise ValueError("the encoder computed only the first tokens")
        return self.rows, self.layout

    def of_tokens(self, compute: Callable[[tf.Tensor], tf.Tensor]) -> tf.Tensor:
        """Applies `compute`, [P, D] to [P, ...], to each token; returns [B, T, ...], or [B, S, ...] at selected places.

        Packed tokens are computed without padding, whose values have no meaning. Raises ValueError if only the first tokens
        were computed.
        """
        rows, layout = self.token_rows
        return tf.gather(compute(rows), layout.row_of())


def bert(
    input_ids: tf.Tensor,
    input_mask: tf.Tensor,
    segment_ids: tf.Tensor,
    config: BertConfig,
    execution: Execution,
    *,
    reads: Reads = Tokens.ALL,
    lookup: Lookup = tf.gather,
) -> Encoded:
    """Encodes a batch: ids, mask (0 for padding) and segment ids, each [B, T]; variable scope `bert`.

    `reads` says what the caller reads besides `pooled`: unless it is all tokens, `sequence` is None. For `lookup` see
    `embeddings`.
    """
    # A fully masked sequence is not masked at all: softmax ignores an equal offset of all scores.
    input_mask = tf.maximum(input_mask, 1 - tf.reduce_max(input_mask, axis=1, keepdims=True))
    make_layout = Packed if execution.pack_tokens else Padded
    layout = make_layout(input_mask)
    with tf1.variable_scope("bert"):
        tokens = (layout.pack(input_ids), layout.pack(segment_ids), layout.positions())
        with tf1.variable_scope("embeddings"):
            embed = functools.partial(embeddings, *tokens, config, execution, lookup=lookup)
            rows = execution.once("embeddings", None, embed)  # [N, E]
            positions = execution.once("positions", None, lambda: of_model(config, layout, execution))
        if config.projects_embeddings:
            project = functools.partial(layers.dense, rows, config.hidden_size, config, execution, scope="embeddings_project")
            rows = execution.once("projection", None, project)  # [N, D]
        computed = _computed(reads, positions, config, execution)
        queries = last_queries(computed, layout, input_mask, make_layout)
        bias = mask_bias(input_mask, layout, positions, execution)
        with tf1.variable_scope("encoder"):
            rows, states = _layers(rows, bias, layout, queries, positions, config, execution, computed)
        with tf1.variable_scope("pooler"):
            pooled = _pool(_pooled(rows, queries.layout, input_mask, config), config, execution)
        encoded = _encoded(pooled, states, rows, queries.layout, reads, make_layout, computed)
        if config.output_transform:
            return encoded._replace(transform=functools.partial(_pool_again, config, execution))
        return encoded


def _computed(reads: Reads, positions: Positions, config: BertConfig, execution: Execution) -> Reads:
    """The tokens that the last layer computes."""
    relative = isinstance(reads, Places) and positions.adds_scores
    spares = execution.last_layer_cls_only and not (relative or config.has_whole_last_layer)
    return reads if spares else Tokens.ALL


def _pooled(rows: tf.Tensor, layout: Layout, input_mask: tf.Tensor, config: BertConfig) -> tf.Tensor:
    """What the pooler reads, [M, D] to [B, D] in float32."""
    if config.pooling == MEAN:
        return layers.mean(tf.cast(layout.unpack(rows), tf.float32), input_mask)
    return tf.cast(layout.first(rows), tf.float32)


def _pool(rows: tf.Tensor, config: BertConfig, execution: Execution) -> tf.Tensor:
    """The dense layer before an output layer, [N, D] to [N, D]; variable scope `pooler`."""
    rows = layers.ACTIVATIONS[config.pooler_act](layers.dense(rows, config.hidden_size, config, execution, scope="dense"))
    return layers.layer_norm(rows, config, Execution()) if config.output_transform else rows


def _pool_again(config: BertConfig, execution: Execution, rows: tf.Tensor) -> tf.Tensor:
    with tf1.variable_scope("bert/pooler", reuse=True, auxiliary_name_scope=False):
        return _pool(rows, config, execution)


def _layers(
    rows: tf.Tensor,
    bias: tf.Tensor,
    layout: Layout,
    last: Selection,
    positions: Positions,
    config: BertConfig,
    execution: Execution,
    reads: Reads,
) -> tuple[tf.Tensor, list[tf.Tensor]]:
    """Computes all layers, `last` tokens only, which are `reads`, in the last: rows [N, D] and `attention.mask_bias` to [M, D].

    Also returns each layer's [B, T, D], the last one's [B, Q, D].
    """
    top = config.num_hidden_layers - 1
    states = []
    for number in range(config.num_hidden_layers):
        queries = last if number == top else all_tokens(layout)
        plan = LayerPlan(number, bias, layout, queries, positions)
        layer = functools.partial(BLOCKS[config.norm_first], plan, config)
        with _scope(number, config):
            # The last layer's tensors still exist when the backward pass begins.
            again = execution.recompute and number < top
            shared = positions.shared()
            compute = (
                functools.partial(recomputed, layer, rows, execution, shared)
                if again
                else functools.partial(layer, rows, execution)
            )
            rows = execution.once(number, reads if number == top else None, compute)
        states.append(queries.layout.unpack(rows))
    if config.norm_first:
        rows = layers.layer_norm(rows, config, execution)
        states[-1] = last.layout.unpack(rows)
    return rows, states


@contextlib.contextmanager
def _scope(number: int, config: BertConfig) -> Iterator[None]:
    """The scope of a layer: its number in names of operations; that of its weights in names of variables."""
    if not config.layer_groups:
        with tf1.variable_scope(f"layer_{number}"):
            yield
        return
    weights = config.weights_of_layer(number)
    shares = number > 0 and weights == config.weights_of_layer(number - 1)
    reuse = tf1.AUTO_REUSE if shares else None  # the layer below may be another model's (`Execution.once`)
    of_weights = tf1.variable_scope(f"layer_{weights}", reuse=reuse, auxiliary_name_scope=False)
    with tf1.name_scope(f"layer_{number}"), of_weights:
        yield


def _encoded(
    pooled: tf.Tensor,
    states: Sequence[tf.Tensor],
    rows: tf.Tensor,
    layout: Layout,
    reads: Reads,
    make_layout: MakeLayout,
    computed: Reads,
) -> Encoded:
    """Selects the outputs: pooled [B, D], states [B, T, D] per layer, rows [M, D] of the last layer, which `computed` some."""
    # States that no head reads are not computed: the graph is pruned.
    sequences = tuple(tf.cast(state, tf.float32) for state in states)
    if reads is Tokens.FIRST:
        return Encoded(pooled, None, sequences)
    if isinstance(reads, Places):
        slots = of_slots(reads, layout, make_layout, behind_first=computed is reads)
        return Encoded(pooled, None, sequences, tf.cast(slots.take(rows), tf.float32), slots.layout)
    return Encoded(pooled, sequences[-1], sequences, tf.cast(rows, tf.float32), layout)


def recomputed(
    layer: Callable[[tf.Tensor, Execution], tf.Tensor], rows: tf.Tensor, execution: Execution, shared: Sequence[tf.Tensor] = ()
) -> tf.Tensor:
    """Computes a layer, [N, D] to [M, D], keeping only its input (Chen et al., 2016); call it in the layer's variable scope.

    `shared` are tensors that it reads besides, and that have a gradient.

    The gradient builds the layer a second time, from the same weights and random numbers, so it is identical to the last bit.
    The layer must create its variables by `get_variable`.
    """
    scope = tf1.get_variable_scope()
    weights: dict[str, tf.Tensor] = {}
    dropout = copy.copy(execution.dropout)  # its state before the layer draws

    def remember(getter: Callable[..., tf.Variable], name: str, *args: Any, **options: Any) -> tf.Tensor:
        weights[name] = getter(name, *args, **options).value()
        return weights[name]

    def recall(getter: Callable[..., tf.Variable], name: str, *args: Any, **options: Any) -> tf.Tensor:
        del getter, args, options
        return weights[name]

    with tf1.variable_scope(scope, custom_getter=remember, auxiliary_name_scope=False):
        result = layer(rows, execution)  # [M, D]

    @with_gradient
    def keep(rows: tf.Tensor, *others: tf.Tensor) -> tuple[tf.Tensor, Gradient]:
        def gradient(upstream: tf.Tensor) -> list[tf.Tensor]:  # [M, D]
            # Otherwise, operations independent of the gradient would run at once, or be merged with the forward pass.
            with tf.control_dependencies([upstream]):
                again = tf.identity(rows)
            way = dataclasses.replace(execution, dropout=dropout.after(upstream))
            with tf1.variable_scope(scope, custom_getter=recall, auxiliary_name_scope=False):
                inputs = [again, *others]
                return tf.gradients(layer(again, way), inputs, upstream, stop_gradients=inputs)  # `upstream` has the same

        return tf.identity(result), gradient

    return keep(rows, *weights.values(), *shared)

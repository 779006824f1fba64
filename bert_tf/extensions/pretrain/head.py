"""Pre-training head: words covered by [MASK], and whether the second text follows the first.

Shapes: B rows, T tokens, S slots of the row that has most, P real slots of all rows, D hidden size, V words, K best words, n
words drawn.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import tensorflow as tf

from bert_tf.checkpoints.names import pretraining_shapes
from bert_tf.config import BertConfig
from bert_tf.encoders import ENCODERS
from bert_tf.errors import ConfigError
from bert_tf.fields import GLOBAL_ROWS, GLOBAL_WEIGHT, SLOT, SLOTS, Field
from bert_tf.graphs import HOST
from bert_tf.head_spec import BEST_WORDS, HeadMemory, Sizes
from bert_tf.modeling import layers
from bert_tf.modeling.encoder import Encoded
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads.base import SCOPE, Features, Head, LossOptions, Outputs
from bert_tf.modeling.layers import Words

tf1 = tf.compat.v1

_POSITIONS, _IDS = Field("masked_lm_positions", SLOT), Field("masked_lm_ids", SLOT)
_LABELS = "next_sentence_labels"
_LOG_PROBS, _TOP_IDS, _TOP_LOG_PROBS = "masked_lm_log_probs", "masked_lm_top_ids", "masked_lm_top_log_probs"
_NEXT_LOGITS = "next_sentence_logits"

# Published names.
_WORDS = "bert/embeddings/word_embeddings"
_TRANSFORM, _WORD_BIAS = "cls/predictions/transform", "cls/predictions/output_bias"
_NEXT_WEIGHTS, _NEXT_BIAS = "cls/seq_relationship/output_weights", "cls/seq_relationship/output_bias"

_FLAT = 1 / 30  # share of the vocabulary over which probabilities halve: as many entries of BERT's are not words
_NEVER = -1e30  # score of words not drawn


@dataclasses.dataclass(frozen=True)
class PretrainingHead(Head):
    """Word logits at the places that a row names, and two logits of the pair."""

    num_labels: int = 2  # of the pair
    next_sentence: bool = True  # computes pair logits
    sampled_softmax: int = 0  # words sampled per batch for training; 0 for all

    inputs = (SLOTS, _POSITIONS, _IDS)
    reads_places = _POSITIONS.name
    transforms_tokens = True  # where the encoder has a layer for that; BERT's head has its own

    @property
    def outputs(self) -> tuple[Field, ...]:
        """Per slot the true word's log-probability in nats and the K best words with theirs; [B, 2] pair logits."""
        of_words = (
            Field(_LOG_PROBS, SLOT, np.float32),
            Field(_TOP_IDS, SLOT, np.int32, width=BEST_WORDS),
            Field(_TOP_LOG_PROBS, SLOT, np.float32, width=BEST_WORDS),
        )
        return (*of_words, Field(_NEXT_LOGITS, dtype=np.float32, width=self.num_labels)) if self.next_sentence else of_words

    @property
    def memory(self) -> HeadMemory:
        """Transformed states, and logits, which their gradient replaces in place."""
        of_words = {"place_numbers": self.sampled_softmax} if self.sampled_softmax else {"scores": 1}
        return HeadMemory(Sizes(rows=3, places=5, **of_words), Sizes(places=2), Sizes(places=2))

    @property
    def targets(self) -> tuple[str, ...]:
        return (_LABELS,) if self.next_sentence else ()

    @property
    def reads_pooled(self) -> bool:
        return self.next_sentence

    @property
    def reads_word_table(self) -> bool:
        return not self.sampled_softmax

    def variables(self, config: BertConfig) -> dict[str, tuple[int, ...]]:
        width = config.hidden_size
        if config.projects_embeddings:
            sizes = f"embedding_size {config.embedding_size}, hidden_size {width}"
            raise ConfigError(
                f"a head of masked words reads word embeddings of the hidden size: {sizes}; pre-train another model"
            )
        shapes = pretraining_shapes(config)
        of_pairs = {_NEXT_WEIGHTS: (self.num_labels, width), _NEXT_BIAS: (self.num_labels,)}
        of_words = {name: shape for name, shape in shapes.items() if name not in of_pairs}
        return {**of_words, **of_pairs} if self.next_sentence else of_words

    def compute(self, encoded: Encoded, features: Features, config: BertConfig, execution: Execution) -> dict[str, tf.Tensor]:
        with tf1.name_scope(SCOPE):
            rows, layout = encoded.token_rows
            rows = encoded.transform(rows) if config.output_transform else _transformed(rows, config, execution)  # [P, D]
            bias = tf1.get_variable(_WORD_BIAS, [config.vocab_size], initializer=tf1.zeros_initializer())
            ids = tf.reshape(features[_IDS.name], [-1])  # [B S]
            if encoded.words is None:
                with tf1.variable_scope(tf1.get_variable_scope(), reuse=True):
                    words = tf1.get_variable(_WORDS, [config.vocab_size, config.hidden_size])  # those of the inputs
                of_places = _of_all_words(rows, layout.pack(ids), words, bias, execution.dtype)
            else:
                true, drawn = _true_and_drawn(encoded.words, layout.pack(tf.range(tf.size(ids))), self.sampled_softmax)
                of_places = {_LOG_PROBS: sampled_log_probabilities(rows, true, drawn, bias, execution.dtype)}
            outputs = {name: tf.gather(value, layout.row_of()) for name, value in of_places.items()}  # [B, S, ...]
            if self.next_sentence:
                outputs[_NEXT_LOGITS] = layers.scorer(config, _NEXT_WEIGHTS, _NEXT_BIAS, self.num_labels)(encoded.pooled)
            return outputs

    def draw(self, features: Features, config: BertConfig, seed: tf.Tensor) -> tf.Tensor | None:
        """Ids of the n drawn and the true words: [n + B S]."""
        if not self.sampled_softmax:
            return None
        with tf.device(HOST):
            drawn = draw_words(self.sampled_softmax, config.vocab_size, seed)
            return tf.concat([drawn, tf.reshape(features[_IDS.name], [-1])], axis=0)

    def losses(self, outputs: Outputs, features: Features, options: LossOptions) -> tf.Tensor:
        """[B] word cross-entropy of each row in nats, plus its share of the pair loss.

        A step divides all by its number of words, so a row's pair loss is scaled by words / rows.
        """
        del options
        with tf1.name_scope(SCOPE):
            log_probs = outputs[_LOG_PROBS]  # [B, S]
            real = tf.sequence_mask(features[SLOTS.name], tf.shape(log_probs)[1])
            of_words = -tf.reduce_sum(tf.where(real, log_probs, tf.zeros_like(log_probs)), axis=1)
            if not self.next_sentence:
                return of_words
            of_pairs = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=features[_LABELS], logits=outputs[_NEXT_LOGITS])
            return of_words + of_pairs * tf.cast(features[GLOBAL_WEIGHT], tf.float32) / tf.cast(
                features[GLOBAL_ROWS], tf.float32
            )

    def serving(self, outputs: Outputs) -> dict[str, tf.Tensor]:
        """[B, S, K] ids and probabilities of the best words, [B, 2] probabilities that the text follows or not."""
        served = {"word_ids": outputs[_TOP_IDS], "word_probabilities": tf.exp(outputs[_TOP_LOG_PROBS])}
        if self.next_sentence:
            served["next_sentence_probabilities"] = tf.nn.softmax(outputs[_NEXT_LOGITS])
        return served


def _transformed(rows: tf.Tensor, config: BertConfig, execution: Execution) -> tf.Tensor:
    with tf1.variable_scope(_TRANSFORM):
        rows = layers.dense(rows, config.hidden_size, config, execution, scope="dense")
        of_head = dataclasses.replace(config, hidden_act=ENCODERS[config.model_type].masked_words_act or config.hidden_act)
        return layers.layer_norm(layers.activation(rows, of_head, execution), config, execution)


def _of_all_words(
    rows: tf.Tensor, ids: tf.Tensor, words: tf.Variable, bias: tf.Variable, dtype: tf.DType
) -> dict[str, tf.Tensor]:
    """Outputs of P places by name: rows [P, D], true ids [P], words [V, D], bias [V]; training uses only the first.

    The kernel of the loss overwrites the logits with their gradient, so that [P, V] is in memory once.
    """
    product = tf.matmul(tf.cast(rows, dtype), tf.cast(words, dtype), transpose_b=True)
    logits = tf.nn.bias_add(tf.cast(product, tf.float32), bias)  # [P, V]
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=ids, logits=logits)
    best, best_ids = tf.math.top_k(logits, BEST_WORDS)
    true = tf.gather(logits, ids, batch_dims=1)
    return {_LOG_PROBS: -losses, _TOP_IDS: best_ids, _TOP_LOG_PROBS: best - (true + losses)[:, None]}


def _true_and_drawn(words: Words, places: tf.Tensor, count: int) -> tuple[Words, Words]:
    """Splits the words of `PretrainingHead.draw` into those of P places (`places` [P] within [B S]) and those drawn."""
    (drawn_ids, ids), (drawn, vectors) = ((values[:count], values[count:]) for values in words)
    return Words(tf.gather(ids, places), tf.gather(vectors, places)), Words(drawn_ids, drawn)


def draw_words(count: int, words: int, seed: tf.Tensor) -> tf.Tensor:
    """Draws [count] ids with replacement by `sampling_probability`; the seed is [2]."""
    flat = _FLAT * words
    with tf.device(HOST):
        share = tf.random.stateless_uniform([count], seed)
        places = flat * tf.math.expm1(share * math.log1p(words / flat))
        return tf.minimum(tf.cast(places, tf.int32), words - 1)


def sampling_probability(ids: tf.Tensor, words: int) -> tf.Tensor:
    """Sampling probability of ids of any shape: frequent words come first in a vocabulary and are drawn more often."""
    flat = _FLAT * words
    return tf.math.log1p(1.0 / (tf.cast(ids, tf.float32) + flat)) / math.log1p(words / flat)


def sampled_log_probabilities(
    rows: tf.Tensor, true: Words, drawn: Words, bias: tf.Tensor | tf.Variable, dtype: tf.DType
) -> tf.Tensor:
    """Estimates [P] log-probabilities of the true words in nats, from rows [P, D] and bias [V] (Bengio and Senécal, 2008).

    The sum over all words but the true one is estimated by those drawn, each divided by its expected count: of a score s and
    n draws with probability q, exp(s - log(n q)). The mean of that over draws is the sum itself. All places share the words.
    """
    expected = tf.cast(tf.size(drawn.ids), tf.float32) * sampling_probability(drawn.ids, bias.shape[0])
    true_scores = tf.reduce_sum(rows * true.vectors, axis=-1) + tf.gather(bias, true.ids)  # [P]
    scores = tf.matmul(tf.cast(rows, dtype), tf.cast(drawn.vectors, dtype), transpose_b=True)  # [P, n]
    scores = tf.cast(scores, tf.float32) + (tf.gather(bias, drawn.ids) - tf.math.log(expected))
    others = tf.where(tf.equal(drawn.ids, true.ids[:, None]), _NEVER, scores)
    every = tf.concat([true_scores[:, None], others], axis=1)  # [P, 1 + n]
    return -tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.zeros_like(true.ids), logits=every)

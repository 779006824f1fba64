"""Sampled softmax (Bengio and Senécal, 2008): a sample of words instead of all; only those get a gradient.

The sum over all words but the true one is estimated by those drawn, each divided by its expected count: of a score s and
n draws with probability q, exp(s - log(n q)). The mean of that over draws is the sum itself. All places share the words drawn.

Shapes: P places, D hidden size, V words, n words drawn.
"""

from __future__ import annotations

import math

import tensorflow as tf

from bert_tf.host import HOST
from bert_tf.modeling.embeddings import Words

_FLAT = 1 / 30  # share of the vocabulary over which probabilities fall to a half: as many entries of BERT's are no words
_NEVER = -1e30  # score of what is not drawn


def draw(count: int, words: int, seed: tf.Tensor) -> tf.Tensor:
    """Draws [count] ids with replacement by `probability`; the seed is [2]."""
    flat = _FLAT * words
    with tf.device(HOST):
        share = tf.random.stateless_uniform([count], seed)
        places = flat * tf.math.expm1(share * math.log1p(words / flat))
        return tf.minimum(tf.cast(places, tf.int32), words - 1)


def probability(ids: tf.Tensor, words: int) -> tf.Tensor:
    """Sampling probability of ids of any shape: frequent words come first in a vocabulary and are drawn more often."""
    flat = _FLAT * words
    return tf.math.log1p(1.0 / (tf.cast(ids, tf.float32) + flat)) / math.log1p(words / flat)


def log_probabilities(rows: tf.Tensor, true: Words, drawn: Words, bias: tf.Tensor | tf.Variable, dtype: tf.DType) -> tf.Tensor:
    """Estimates [P] log-probabilities of the true words in nats, from rows [P, D] and bias [V]."""
    expected = tf.cast(tf.size(drawn.ids), tf.float32) * probability(drawn.ids, bias.shape[0])
    true_scores = tf.reduce_sum(rows * true.vectors, axis=-1) + tf.gather(bias, true.ids)  # [P]
    scores = tf.matmul(tf.cast(rows, dtype), tf.cast(drawn.vectors, dtype), transpose_b=True)  # [P, n]
    scores = tf.cast(scores, tf.float32) + (tf.gather(bias, drawn.ids) - tf.math.log(expected))
    others = tf.where(tf.equal(drawn.ids, true.ids[:, None]), _NEVER, scores)
    every = tf.concat([true_scores[:, None], others], axis=1)  # [P, 1 + n]
    return -tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.zeros_like(true.ids), logits=every)

"""Head of pre-training: the words that [MASK] covers, and whether the second text follows the first.

Shapes: B rows, T tokens, S slots of the row that has most, P real slots of all rows, D hidden size, V words, K best words.
"""

from __future__ import annotations

import dataclasses
from typing import cast

import numpy as np
import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.fields import GLOBAL_ROWS, GLOBAL_WEIGHT, SLOT, SLOTS, Field
from bert_tf.head_spec import HeadMemory
from bert_tf.modeling import layers
from bert_tf.modeling.encoder import Encoded
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads.base import SCOPE, Features, LossOptions, Outputs

tf1 = tf.compat.v1

BEST = 10  # words of a place that are put out

_POSITIONS, _IDS = Field("masked_lm_positions", SLOT), Field("masked_lm_ids", SLOT)
_LABELS = "next_sentence_labels"
_LOG_PROBS, _TOP_IDS, _TOP_LOG_PROBS = "masked_lm_log_probs", "masked_lm_top_ids", "masked_lm_top_log_probs"
_NEXT_LOGITS = "next_sentence_logits"

# Published names.
_WORDS = "bert/embeddings/word_embeddings"
_TRANSFORM, _WORD_BIAS = "cls/predictions/transform", "cls/predictions/output_bias"
_NEXT_WEIGHTS, _NEXT_BIAS = "cls/seq_relationship/output_weights", "cls/seq_relationship/output_bias"


@dataclasses.dataclass(frozen=True)
class PretrainingHead:
    """Logits of all words at the places that a row names, and two of the pair.

    Attributes:
      num_labels: of the pair.
      next_sentence: whether there are such logits.
      sampled_softmax: how many words training draws for the whole batch, in the place of all; 0 for all.
    """

    num_labels: int = 2
    next_sentence: bool = True
    sampled_softmax: int = 0

    inputs = (SLOTS, _POSITIONS, _IDS)
    reads_tokens = True
    reads_word_table = True
    memory = HeadMemory()
    fewest_examples = 1
    loss_options = frozenset[str]()

    @property
    def outputs(self) -> tuple[Field, ...]:
        """Of each slot the log-probability of its word, in nats, and the best K with theirs; [B, 2] logits of the pair."""
        of_words = (
            Field(_LOG_PROBS, SLOT, np.float32),
            Field(_TOP_IDS, SLOT, np.int32, width=BEST),
            Field(_TOP_LOG_PROBS, SLOT, np.float32, width=BEST),
        )
        return (*of_words, Field(_NEXT_LOGITS, dtype=np.float32, width=self.num_labels)) if self.next_sentence else of_words

    @property
    def targets(self) -> tuple[str, ...]:
        """The label of the pair; words are among `inputs`."""
        return (_LABELS,) if self.next_sentence else ()

    @property
    def reads_pooled(self) -> bool:
        """Whether the vector of the pair is read."""
        return self.next_sentence

    def variables(self, config: BertConfig) -> dict[str, tuple[int, ...]]:
        """Returns the shapes of the published variables."""
        width = config.hidden_size
        of_words: dict[str, tuple[int, ...]] = {
            _WORD_BIAS: (config.vocab_size,),
            f"{_TRANSFORM}/dense/kernel": (width, width),
            f"{_TRANSFORM}/dense/bias": (width,),
            f"{_TRANSFORM}/LayerNorm/beta": (width,),
            f"{_TRANSFORM}/LayerNorm/gamma": (width,),
        }
        of_pairs = {_NEXT_WEIGHTS: (self.num_labels, width), _NEXT_BIAS: (self.num_labels,)}
        return {**of_words, **of_pairs} if self.next_sentence else of_words

    def compute(self, encoded: Encoded, features: Features, config: BertConfig, execution: Execution) -> dict[str, tf.Tensor]:
        """Scores words and pairs; see `base.Head`."""
        with tf1.name_scope(SCOPE):
            sequence = cast("tf.Tensor", encoded.sequence)
            at_places = tf.gather(sequence, features[_POSITIONS.name], batch_dims=1)  # [B, S, D]
            rows = tf.reshape(at_places, [-1, config.hidden_size])
            with tf1.variable_scope(_TRANSFORM):
                rows = layers.activation(layers.dense(rows, config.hidden_size, config, scope="dense"), config, execution)
                rows = layers.layer_norm(rows, config, execution)
            bias = tf1.get_variable(_WORD_BIAS, [config.vocab_size], initializer=tf1.zeros_initializer())
            with tf1.variable_scope(tf1.get_variable_scope(), reuse=True):
                words = tf1.get_variable(_WORDS, [config.vocab_size, config.hidden_size])
            logits = tf.nn.bias_add(tf.matmul(rows, words, transpose_b=True), bias)  # [B S, V]
            ids = features[_IDS.name]
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(ids, [-1]), logits=logits)
            best, best_ids = tf.math.top_k(logits, BEST)
            best -= tf.math.reduce_logsumexp(logits, axis=-1, keepdims=True)
            shape = tf.concat([tf.shape(ids), [BEST]], axis=0)
            found = {
                _LOG_PROBS: tf.reshape(-losses, tf.shape(ids)),
                _TOP_IDS: tf.reshape(best_ids, shape),
                _TOP_LOG_PROBS: tf.reshape(best, shape),
            }
            if self.next_sentence:
                found[_NEXT_LOGITS] = layers.scorer(config, _NEXT_WEIGHTS, _NEXT_BIAS, self.num_labels)(encoded.pooled)
            return found

    def losses(self, outputs: Outputs, features: Features, options: LossOptions) -> tf.Tensor:
        """Returns [B] the cross-entropy of the words of each row, in nats, and its share of the mean of pairs.

        A step divides all by how many words it has; what a row adds of its pair is as much larger as words are more than rows.
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
        """Returns [B, S, K] ids and probabilities of the best words, and [B, 2] probabilities that the text follows, or not."""
        served = {"word_ids": outputs[_TOP_IDS], "word_probabilities": tf.exp(outputs[_TOP_LOG_PROBS])}
        if self.next_sentence:
            served["next_sentence_probabilities"] = tf.nn.softmax(outputs[_NEXT_LOGITS])
        return served

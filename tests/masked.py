"""Rows for pre-training: some of their words are hidden, and the second text follows the first or does not."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.estimator.model_fn import Model, compute_outputs
from bert_tf.features.columns import Features
from bert_tf.fields import GLOBAL_ROWS, GLOBAL_WEIGHT, SLOT, Field
from bert_tf.head_spec import PRETRAINING, HeadSpec
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads import registry as heads
from bert_tf.modeling.heads.base import LossOptions, part_of_mean

tf1 = tf.compat.v1

HEAD = HeadSpec(2, PRETRAINING)
FIELDS = (Field("masked_lm_positions", SLOT), Field("masked_lm_ids", SLOT), Field("next_sentence_labels"))
_CLS, _SEP, _MASK, _FIRST_WORD = 2, 3, 4, 5


def features(rows: int, seed: int = 0, *, words: int = 20, longest: int = 12) -> Features:
    """[CLS] words [SEP] words [SEP], of different lengths; of each row 0 to 3 words are hidden."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(8, longest + 1, rows).astype(np.int32)
    slots = (np.arange(rows) % 4).astype(np.int32)
    ids, positions, true = [], [], []
    for length, count in zip(lengths, slots):
        row = rng.integers(_FIRST_WORD, words, length)
        row[[0, 4, length - 1]] = _CLS, _SEP, _SEP
        places = np.sort(rng.choice([place for place in range(1, length - 1) if place != 4], count, replace=False))
        true.append(row[places])
        row[places] = _MASK
        ids.append(row)
        positions.append(places)
    columns = (np.concatenate(positions), np.concatenate(true), rng.integers(0, 2, rows))
    return Features(
        token_ids=np.concatenate(ids).astype(np.int32),
        lengths=lengths,
        first_lengths=np.full(rows, 5, np.int32),
        targets={field.name: column.astype(np.int32) for field, column in zip(FIELDS, columns)},
        fields=FIELDS,
        slots=slots,
        weights=slots,
    )


def batch(data: Features, rows: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """All rows, or some of them, as a replica gets them of a step that has all."""
    numbers = np.arange(len(data)) if rows is None else rows
    step = {GLOBAL_WEIGHT: np.int32(data.weight(np.arange(len(data)))), GLOBAL_ROWS: np.int32(len(data))}
    return {**data.batch(numbers, int(data.lengths.max())), **step}


def learn(
    batch: Mapping[str, np.ndarray],
    weights: Mapping[str, np.ndarray],
    config: BertConfig,
    head: HeadSpec = HEAD,
    execution: Execution = Execution(),  # noqa: B008 (it is frozen)
    *,
    draws: bool = False,
) -> tuple[dict[str, np.ndarray], float, dict[str, np.ndarray]]:
    """Returns outputs, loss, and gradients by name."""
    made = heads.make_head(head)
    with tf.Graph().as_default(), tf1.Session() as session:
        tf1.train.get_or_create_global_step()
        features = {name: tf1.placeholder_with_default(value, [None] * value.ndim) for name, value in batch.items()}
        outputs = compute_outputs(Model(config, head), made, features, execution, draws=draws)
        loss = part_of_mean(made.losses(outputs, features, LossOptions()), features[GLOBAL_WEIGHT])
        variables = {variable.op.name: variable for variable in tf1.trainable_variables()}
        gradients = zip(variables, tf.gradients(loss, list(variables.values())))
        dense = {name: tf.convert_to_tensor(gradient) for name, gradient in gradients if gradient is not None}
        starts = {variable.initial_value: weights[name] for name, variable in variables.items()}
        session.run(tf1.global_variables_initializer(), starts)
        return session.run((outputs, loss, dense))

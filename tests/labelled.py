"""Features with labels, from arrays."""

import dataclasses

import numpy as np

from bert_tf.features.columns import Features
from bert_tf.fields import Field

HEAD_VARIABLES = ("output_weights", "output_bias")  # of the published classifier


def labelled(token_ids, lengths, first_lengths, label_ids, example_ids=None, truncated=0) -> Features:
    """Returns features with one target, as those of sentences have it."""
    columns = (token_ids, lengths, first_lengths)
    return Features(*map(np.asarray, columns), *_target(label_ids), example_ids=example_ids, truncated=truncated)


def relabelled(features: Features, label_ids) -> Features:
    """Returns the same features with other labels."""
    targets, fields = _target(label_ids)
    return dataclasses.replace(features, targets=targets, fields=fields)


def label_ids(features: Features) -> np.ndarray:
    return features.targets["label_ids"]


def _target(label_ids):
    values = np.asarray(label_ids)
    field = Field("label_ids", dtype=values.dtype, width=values.shape[1] if values.ndim == 2 else None)
    return {field.name: values}, (field,)

"""What the log says of examples, features and variables, in the form of the published script."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import tensorflow as tf
from absl import logging

from bert_tf.features.spec import SentenceFeatures
from bert_tf.tasks.base import SentenceExample
from bert_tf.tokenization.vocabulary import Vocabulary


def log_examples(
    examples: Sequence[SentenceExample],
    features: SentenceFeatures,
    vocabulary: Vocabulary,
    *,
    max_seq_length: int,
    count: int = 5,
) -> None:
    """Logs the first examples with their tokens and padded ids, of a text in windows those of the first."""
    shown = min(count, len(examples))
    batch = features.batch(features.first_rows[:shown], max_seq_length)
    has_ids = np.issubdtype(batch["label_ids"].dtype, np.integer)
    for row, example in enumerate(examples[:shown]):
        ids = batch["input_ids"][row][batch["input_mask"][row] == 1]
        logging.info("*** Example ***")
        logging.info("guid: %s", example.guid)
        logging.info("tokens: %s", " ".join(vocabulary.tokens[i] for i in ids))
        for name in ("input_ids", "input_mask", "segment_ids"):
            logging.info("%s: %s", name, " ".join(map(str, batch[name][row])))
        if example.label is not None:
            logging.info("label: %s%s", example.label, f" (id = {batch['label_ids'][row]})" if has_ids else "")


def log_graph(features: Mapping[str, tf.Tensor], variables: Sequence[tf.Variable], loaded: Collection[str]) -> None:
    """Logs the features of a batch and the variables to be trained, those from a checkpoint marked."""
    logging.info("*** Features ***")
    for name in sorted(features):
        logging.info("  name = %s, shape = %s", name, _shape(features[name]))
    logging.info("**** Trainable Variables ****")
    for variable in variables:
        mark = ", *INIT_FROM_CKPT*" if variable.op.name in loaded else ""
        logging.info("  name = %s, shape = %s%s", variable.name, _shape(variable), mark)


def _shape(tensor: tf.Tensor | tf.Variable) -> str:
    sizes = ["?" if size is None else str(size) for size in tensor.shape.as_list()]
    return f"({sizes[0]},)" if len(sizes) == 1 else f"({', '.join(sizes)})"

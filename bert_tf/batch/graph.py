"""The inference graph of a trained model with its weights: any number of rows, any length."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeVar

import tensorflow as tf

from bert_tf.batch.trained import Trained
from bert_tf.checkpoints.reader import as_float32, model_reader, refuse_unusable
from bert_tf.estimator.failures import readable_errors
from bert_tf.estimator.model_fn import Model, compute_outputs
from bert_tf.fields import INPUTS
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads import registry as heads
from bert_tf.modeling.layers import Lookup
from bert_tf.runtime import forks
from bert_tf.runtime.devices import session_config

tf1 = tf.compat.v1

Tensors = Mapping[str, tf.Tensor]
T = TypeVar("T")

# Without hand-written gradients: exports are not trained, and other software does not support these operations.
PACKED = Execution(custom_gradients=False)
PLAIN = Execution(custom_gradients=False, pack_tokens=False)


class Computed(NamedTuple):
    """Outputs of a batch."""

    logits: Tensors  # head outputs with padding: [B, ...] or [B, T, ...]
    served: Tensors  # the same in the client's form, see `Head.serving`


def inputs(trained: Trained) -> dict[str, tf.Tensor]:
    """Placeholders of the model's inputs: [B, T] for tokens, both dimensions dynamic."""
    fields = (*INPUTS, *heads.make_head(trained.head).inputs)
    return {field.name: tf1.placeholder(field.dtype, field.shape(None, None), field.name) for field in fields}


def compute(trained: Trained, features: Tensors, execution: Execution = PACKED, lookup: Lookup = tf.gather) -> Computed:
    """Builds the model in the default graph; variables have the checkpoint's names and are shared between calls.

    `execution` is `PACKED`, or `PLAIN` for operations that all software supports; `lookup` reads rows of the word table.
    """
    head = heads.make_head(trained.head)
    shaped = {name: tf.ensure_shape(tensor, tensor.shape) for name, tensor in features.items()}
    with tf1.variable_scope(tf1.get_variable_scope(), reuse=tf1.AUTO_REUSE):
        logits = compute_outputs(Model(trained.config, trained.head), head, shaped, execution, lookup)
    return Computed(logits, head.serving(logits))


@contextlib.contextmanager
def loaded(trained: Trained, build: Callable[[], T]) -> Iterator[tuple[tf1.Session, T]]:
    """Yields a session with the weights and the result of `build`, which builds its graph with `compute`; both are the default.

    Raises CheckpointError if the weights are damaged, not finite, or belong to another model.
    """
    forks.begin()
    with tf.Graph().as_default() as graph:
        built = build()
        variables = tf1.trainable_variables()
        shapes = {variable.op.name: tuple(variable.shape.as_list()) for variable in variables}
        refuse_unusable(model_reader(trained.prefix), shapes)
        with tf1.Session(graph=graph, config=session_config()) as session:
            with readable_errors(trained.prefix), as_float32(trained.prefix) as prefix:
                tf1.train.Saver(variables).restore(session, prefix)
            yield session, built

"""The inference graph of a trained model: any number of rows, of any length, with weights."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

import tensorflow as tf

from bert_tf.batch.trained import Trained
from bert_tf.checkpoints import values
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.errors import CheckpointError
from bert_tf.estimator.failures import readable_errors
from bert_tf.estimator.model_fn import Model, compute_outputs
from bert_tf.fields import INPUTS
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads import registry as heads
from bert_tf.runtime import forks
from bert_tf.runtime.devices import session_config

tf1 = tf.compat.v1

Tensors = Mapping[str, tf.Tensor]
T = TypeVar("T")

# Without hand-written gradients: nobody trains what is exported, and other software knows no such operations.
PACKED = Execution(custom_gradients=False)
PLAIN = Execution(custom_gradients=False, pack_tokens=False)


class Computed(NamedTuple):
    """What a model says of a batch.

    Attributes:
      logits: outputs of the head by name, with padding: [B, ...] or [B, T, ...].
      served: the same as a client wants it, see `Head.serving`.
    """

    logits: Tensors
    served: Tensors


def inputs(trained: Trained) -> dict[str, tf.Tensor]:
    """Returns placeholders for what the model reads, [B, T] for tokens, of open sizes."""
    fields = (*INPUTS, *heads.of(trained.head).inputs)
    return {field.name: tf1.placeholder(field.dtype, field.shape(None, None), field.name) for field in fields}


def compute(trained: Trained, features: Tensors, execution: Execution = PACKED) -> Computed:
    """Builds the model in the default graph; its variables have the names of the checkpoint, and are shared by all calls.

    Args:
      trained: the model.
      features: of `INPUTS` and what the head reads besides.
      execution: how to compute: `PACKED`, or `PLAIN` with operations that all software knows.
    """
    head = heads.of(trained.head)
    shaped = {name: tf.ensure_shape(tensor, tensor.shape) for name, tensor in features.items()}
    with tf1.variable_scope(tf1.get_variable_scope(), reuse=tf1.AUTO_REUSE):
        logits = compute_outputs(Model(trained.config, trained.head), head, shaped, execution)
    return Computed(logits, head.serving(logits))


@contextlib.contextmanager
def loaded(trained: Trained, build: Callable[[], T]) -> Iterator[tuple[tf1.Session, T]]:
    """Yields a session with the weights of a model, and what was built in its graph.

    Args:
      trained: the model.
      build: builds in the default graph, by `compute`.

    Raises:
      CheckpointError: the weights are damaged, not finite, or of another model.
    """
    forks.begin()
    with tf.Graph().as_default() as graph:
        built = build()
        variables = tf1.trainable_variables()
        _refuse_unusable(CheckpointReader(trained.prefix), variables)
        with tf1.Session(graph=graph, config=session_config()) as session:
            with readable_errors(trained.prefix), values.as_float32(trained.prefix) as prefix:
                tf1.train.Saver(variables).restore(session, prefix)
            yield session, built


def _refuse_unusable(reader: CheckpointReader, variables: Sequence[tf.Variable]) -> None:
    shapes = {variable.op.name: tuple(variable.shape.as_list()) for variable in variables}
    values.refuse_misfits(reader, shapes)
    problem = values.problem_of_weights(reader, shapes)
    if problem:
        raise CheckpointError(problem)

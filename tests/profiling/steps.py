"""Real steps of training, with the records of what they allocate."""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.estimator.model_fn import TRAIN, Model, make_model_fn
from bert_tf.estimator.pipeline import train_input_fn
from bert_tf.estimator.update import Optimization
from bert_tf.extensions.memory_trace.live_memory import LiveMemory
from bert_tf.features.batching import Schedule
from bert_tf.features.columns import Features
from bert_tf.fields import TOKEN
from bert_tf.head_spec import CHOICE, CONTRASTIVE, PRETRAINING, SIMILARITY, SPAN, TAGS, HeadSpec
from bert_tf.modeling.execution import WHOLE, Adaptation, Execution
from bert_tf.optimization.averaging import MovingAverage
from bert_tf.optimization.optimizers import AdamWConfig
from bert_tf.profiling.forecast.compute_options import ComputeOptions
from bert_tf.runtime.devices import session_config
from bert_tf.runtime.precision import PRECISIONS
from bert_tf.tasks import families
from tests import masked
from tests.graphs import whole_step
from tests.labelled import labelled

tf1 = tf.compat.v1

CLASSIFIER = HeadSpec(2)
RECORDS = {
    SPAN: {"kind": SPAN},
    TAGS: {"kind": TAGS, "labels": ["O", *(f"{place}-{kind}" for place in "BI" for kind in ("LOC", "MISC", "ORG", "PER"))]},
    CHOICE: {"kind": CHOICE},
    SIMILARITY: {"kind": SIMILARITY, "highest_score": 1.0},
    CONTRASTIVE: {"kind": CONTRASTIVE, "temperature": 0.05},
}
_ROWS_TOGETHER = {SPAN: 1, TAGS: 1, CHOICE: 4, SIMILARITY: 2, CONTRASTIVE: 2}


def config(hidden: int, layers: int, **sizes: Any) -> BertConfig:
    """A model with heads of 64 numbers."""
    return BertConfig(
        **{
            "vocab_size": 3000,
            "hidden_size": hidden,
            "num_hidden_layers": layers,
            "num_attention_heads": hidden // 64,
            "intermediate_size": 4 * hidden,
            **sizes,
        }
    )


def traced(
    model: BertConfig,
    tokens: int,
    batch_size: int,
    options: ComputeOptions,
    head: HeadSpec,
    *,
    count: int,
    in_turn: bool,
    adaptation: Adaptation = WHOLE,
) -> tuple[list[Any], int]:
    """Trains for a step, then for others that are recorded; returns their `RunMetadata`, and the bytes of all variables.

    Of all sequences but the longest a share of `options.padding` is padding.
    """
    features = _features(model, tokens, batch_size, options, head)
    way = {"in_turn": in_turn, "adaptation": adaptation}
    with training(model, features, batch_size, options, head, **way) as (session, train_op):
        session.run(train_op)
        recorded = [tf1.RunMetadata() for _ in range(count)]
        for metadata in recorded:
            session.run(train_op, options=tf1.RunOptions(trace_level=tf1.RunOptions.SOFTWARE_TRACE), run_metadata=metadata)
        variables = tf1.global_variables() + tf1.local_variables()
        return recorded, sum(int(np.prod(variable.shape)) * variable.dtype.size for variable in variables)


@contextlib.contextmanager
def training(
    model: BertConfig,
    features: Features,
    batch_size: int,
    options: ComputeOptions,
    head: HeadSpec,
    *,
    in_turn: bool,
    adaptation: Adaptation = WHOLE,
) -> Iterator[tuple[tf1.Session, tf.Operation]]:
    """Builds training from initial weights; gives the session, whose variables are there, and the operation of a step."""
    execution = Execution(
        pack_tokens=options.pack_tokens,
        last_layer_cls_only=options.last_layer_cls_only,
        custom_gradients=options.custom_gradients,
        recompute=options.recompute,
        dtype=PRECISIONS[options.precision].dtype,
        adaptation=adaptation,
    ).for_rows(model, int(features.lengths.max()))
    optimization = Optimization(
        learning_rate=1e-4,
        warmup_steps=10,
        total_steps=300,
        micro_batches=options.micro_batches,
        frozen=options.frozen if adaptation is WHOLE else frozenset(),
        defer_embeddings=options.defer_embeddings,
        loss_scaling=options.precision == "float16",
        adamw=AdamWConfig(fused=options.fused_adam),
        average=MovingAverage(0.999) if options.averages else None,
        optimizer="lamb" if options.lamb else "adamw",
    )
    settings = session_config()
    if in_turn:
        settings.inter_op_parallelism_threads = -1  # in the thread that calls: what is alive at once is no chance
    with tf.Graph().as_default(), tf1.Session(config=settings) as session:
        pipeline = train_input_fn(features, Schedule(features.units, batch_size // int(features.unit_rows[0]), 10), seed=1)
        batch = tf1.data.make_one_shot_iterator(pipeline()).get_next()
        spec = make_model_fn(Model(model, head, execution=execution, seed=1, optimization=optimization))(batch, TRAIN)
        session.run(tf1.global_variables_initializer())
        session.run(tf1.local_variables_initializer())
        yield session, spec.train_op


def memory_of(
    model: BertConfig,
    tokens: int,
    batch_size: int,
    options: ComputeOptions,
    head: HeadSpec,
    *,
    in_turn: bool,
    adaptation: Adaptation = WHOLE,
) -> tuple[LiveMemory, int]:
    """Returns the memory of a step of training, and the bytes of all variables.

    Unless operations run in turn, it is of nine steps that with the median peak: threads that the machine holds up change which
    tensors are alive at once.
    """
    way = {"count": 1 if in_turn else 9, "in_turn": in_turn, "adaptation": adaptation}
    recorded, state = traced(model, tokens, batch_size, options, head, **way)
    return sorted((whole_step(metadata) for metadata in recorded), key=lambda memory: memory.peak)[len(recorded) // 2], state


def _features(model: BertConfig, tokens: int, batch_size: int, options: ComputeOptions, head: HeadSpec) -> Features:
    lengths = np.full(batch_size, round(tokens * (1.0 - options.padding)), np.int32)
    lengths[0] = tokens
    ids = np.random.default_rng(0).integers(0, model.vocab_size, lengths.sum()).astype(np.int32)
    if head == CLASSIFIER:
        return labelled(ids, lengths, lengths // 2, (np.arange(batch_size) % 2).astype(np.int32))
    if head.kind == PRETRAINING:
        return _hidden(ids, lengths, options.places)
    fields = [field for field in families.of_record(RECORDS[head.kind]).targets if field.in_batches]
    targets = {field.name: np.arange(len(ids if field.axis == TOKEN else lengths)) % 2 for field in fields}
    return Features(
        *(ids, lengths, lengths // 2),
        {field.name: targets[field.name].astype(field.dtype) for field in fields},
        tuple(fields),
        example_ids=(np.arange(batch_size) // _ROWS_TOGETHER[head.kind]).astype(np.int32),
        together=_ROWS_TOGETHER[head.kind] > 1,
    )


def _hidden(ids: np.ndarray, lengths: np.ndarray, places: int) -> Features:
    """Rows of which the same number of words is hidden."""
    slots = np.full(len(lengths), places, np.int32)
    columns = (
        np.tile(np.arange(1, places + 1), len(lengths)),
        np.arange(places * len(lengths)) % 7,
        np.arange(len(lengths)) % 2,
    )
    return Features(
        *(ids, lengths, lengths // 2),
        {field.name: column.astype(np.int32) for field, column in zip(masked.FIELDS, columns)},
        masked.FIELDS,
        slots=slots,
        weights=slots,
    )

"""What a step copies between GPU and host, by TensorFlow's kernel registry: the same on any machine."""

import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.estimator.model_fn import PREDICT, TRAIN, Model, make_model_fn
from bert_tf.estimator.pipeline import train_input_fn
from bert_tf.estimator.stamps import StepTimingHook
from bert_tf.estimator.update import GRADIENT_NORM, LEARNING_RATE, LOSS, SKIPPED_STEPS, Optimization
from bert_tf.features.batching import Schedule
from bert_tf.features.columns import Features
from bert_tf.head_spec import CLASSIFICATION, MULTI_LABEL, REGRESSION, HeadSpec
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads.base import LossOptions
from bert_tf.optimization.optimizers import AdamWConfig
from bert_tf.optimization.parts import LayerDecay
from bert_tf.profiling.diagnosis import Setting
from bert_tf.profiling.step_timer import StepTimer
from bert_tf.runtime.placement import device_function, parse, whole
from bert_tf.tasks.names import KINDS
from tests.estimator import gpu_placement, wide
from tests.estimator.gpu_placement import Copies
from tests.labelled import label_ids, relabelled

tf1 = tf.compat.v1

MOST = 16
DEFAULT, PLAIN = Execution(), LossOptions()
PUBLISHED = Execution(pack_tokens=False, last_layer_cls_only=False, custom_gradients=False)
HEADS = {
    CLASSIFICATION: (HeadSpec(2), lambda labels: labels),
    REGRESSION: (HeadSpec(1, REGRESSION), lambda labels: labels.astype(np.float32)),
    MULTI_LABEL: (HeadSpec(2, MULTI_LABEL), lambda labels: np.eye(2, dtype=np.float32)[labels]),
}


def config(layers: int):
    return dataclasses.replace(wide.CONFIG, num_hidden_layers=layers)


def head_and_data(kind: str) -> tuple[HeadSpec, Features]:
    head, convert = HEADS[kind]
    data = wide.features()
    return head, relabelled(data, convert(label_ids(data)))


def training(*, layers=2, kind=CLASSIFICATION, loss=PLAIN, execution=DEFAULT, device=None, **optimization) -> Copies:
    """Returns what a step copies, with all that hooks ask for."""
    settings = {"learning_rate": 0.003, "warmup_steps": 2, "total_steps": 60, **optimization}
    head, data = head_and_data(kind)
    model = Model(config(layers), head, loss, execution, seed=1, optimization=Optimization(**settings))
    with tf.Graph().as_default() as graph, tf1.device(device):
        step = tf1.train.get_or_create_global_step()
        batch = tf1.data.make_initializable_iterator(train_input_fn(data, Schedule(len(data), 6, 5), seed=4)()).get_next()
        spec = make_model_fn(model)(batch, TRAIN)
        timing = StepTimingHook(StepTimer(batch_size=6, replicas=1), Setting(gpu=True))
        timing.begin()
        watched = [LOSS, LEARNING_RATE, GRADIENT_NORM, *([SKIPPED_STEPS] if settings.get("loss_scaling") else [])]
        reported = [graph.get_tensor_by_name(f"{name}:0") for name in watched]
        timed = tf.nest.flatten(timing._fetched)
        return gpu_placement.copies(graph, [spec.train_op, spec.loss, step.read_value(), *reported, *timed])


def evaluation(*, kind=CLASSIFICATION, execution=DEFAULT) -> Copies:
    """Returns what a batch of evaluation or prediction copies."""
    head, _ = head_and_data(kind)
    with tf.Graph().as_default() as graph:
        batch = {name: tf1.placeholder(tf.int32, [None, None]) for name in ("input_ids", "input_mask", "segment_ids")}
        outputs = make_model_fn(Model(config(2), head, execution=execution))(batch, PREDICT).predictions
        return gpu_placement.copies(graph, [outputs["logits"]])


HALF = Execution(dtype=tf.float16)
FLAGS = {
    "published_layout": {"execution": PUBLISHED, "defer_embeddings": False, "adamw": AdamWConfig(fused=False)},
    "gradient_accumulation_steps recompute": {"micro_batches": 3, "execution": Execution(recompute=True)},
    "gradient_accumulation_steps float16": {"micro_batches": 3, "execution": HALF, "loss_scaling": True},
    "bfloat16 adam_bias_correction layer_decay cosine": {
        "execution": Execution(dtype=tf.bfloat16),
        "adamw": AdamWConfig(bias_correction=True),
        "layer_decay": LayerDecay(0.9, layers=2),
        "schedule": "cosine",
    },
    "float16 freeze=embeddings,0 class_weights label_smoothing": {
        "execution": HALF,
        "loss_scaling": True,
        "frozen": frozenset({"embeddings", 0}),
        "loss": LossOptions((1.0, 2.0), 0.1),
        "schedule": "constant",
    },
    "several labels, class_weights label_smoothing": {"kind": MULTI_LABEL, "loss": LossOptions((1.0, 2.0), 0.1)},
    "regression, freeze=pooler polynomial": {"kind": REGRESSION, "frozen": frozenset({"pooler"}), "schedule": "polynomial"},
    "device=/GPU:0": {"device": whole("/GPU:0", ["/device:GPU:0"])},
    "place=embeddings:/CPU:0": {"device": device_function(parse("embeddings:/CPU:0"), ["/device:CPU:0", "/device:GPU:0"])},
}  # fmt: skip


@functools.cache
def default() -> Copies:
    return training(layers=1)


def test_how_often_the_host_waits_does_not_depend_on_the_depth():
    assert len(default().to_host) == len(training(layers=2).to_host) <= MOST


def test_within_a_step_the_host_waits_for_the_step_number_and_for_whether_all_is_finite():
    within = [copy for copy in default().to_host if copy.readers]
    assert sorted(copy.kind for copy in within) == ["IsFinite", "IsFinite", "ReadVariableOp"]


@pytest.mark.parametrize("flags", FLAGS)
def test_a_step_waits_for_the_gpu_a_few_times(flags):
    layers = 2 if "recompute" in flags or "freeze=embeddings" in flags else 1
    to_host = training(layers=layers, **FLAGS[flags]).to_host
    assert len(to_host) <= MOST, to_host
    assert not [copy for copy in to_host if "layer_" in copy.source]  # there would be one of each


@pytest.mark.parametrize(("execution", "kind"), [*((DEFAULT, kind) for kind in KINDS), (PUBLISHED, CLASSIFICATION)])
def test_a_batch_of_evaluation_waits_for_its_result_alone(execution, kind):
    assert [copy.source for copy in evaluation(kind=kind, execution=execution).to_host] == ["Identity"]


def test_what_is_pinned_to_the_host_is_found_with_all_that_is_bound_to_it():
    with tf.Graph().as_default() as graph:
        first, second = tf.random.uniform([3], name="first"), tf.random.uniform([3], name="second")
        with tf.device("/CPU:0"):
            pinned = tf.exp(first)
        with graph.colocate_with(pinned.op):
            bound = tf.exp(second)
        copied = gpu_placement.copies(graph, [pinned, bound])
    assert [copy.source for copy in copied.to_host] == ["first/RandomUniform", "second/RandomUniform"]

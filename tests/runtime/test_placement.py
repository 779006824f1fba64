import dataclasses
import types

import pytest
import tensorflow as tf
from tensorflow.python.framework import kernels

from bert_tf.config import BertConfig
from bert_tf.errors import DeviceError
from bert_tf.estimator import pipeline
from bert_tf.estimator.model_fn import Model, make_model_fn
from bert_tf.estimator.update import Optimization
from bert_tf.fields import GLOBAL_WEIGHT, INPUTS, Field
from bert_tf.head_spec import HeadSpec
from bert_tf.optimization.optimizers import AdamWConfig
from bert_tf.runtime.placement import (
    Rule,
    device_function,
    normalized,
    parse,
    part_of,
    require_device,
    short,
    whole,
)

tf1 = tf.compat.v1

CPU_0, CPU_1, GPU_0, GPU_1 = "/device:CPU:0", "/device:CPU:1", "/device:GPU:0", "/device:GPU:1"
DEVICES = (CPU_0, GPU_0, GPU_1)
PLACE = "embeddings:/CPU:0,encoder/layer_0:/GPU:0,encoder/layer_1-11:/GPU:1,head:/GPU:1"


def operation(name: str, device: str = ""):
    """What a device function sees of an operation."""
    return types.SimpleNamespace(name=name, device=device, type="MatMul", inputs=(), outputs=())


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("embeddings:/CPU:0", [Rule("embeddings", CPU_0)]),
        ("pooler:GPU:1", [Rule("pooler", GPU_1)]),
        ("head:/device:GPU:0", [Rule("head", GPU_0)]),
        ("encoder:/gpu:1", [Rule("encoder", GPU_1)]),
        ("encoder/layer_3:/GPU:0", [Rule("encoder/layer_3", GPU_0, range(3, 4))]),
        ("encoder/layer_0-5:/GPU:0", [Rule("encoder/layer_0-5", GPU_0, range(6))]),
        (
            "encoder/layer_0-1:/GPU:0, encoder/layer_2-2:/GPU:1",
            [Rule("encoder/layer_0-1", GPU_0, range(2)), Rule("encoder/layer_2-2", GPU_1, range(2, 3))],
        ),
    ],
)
def test_reads_parts_and_devices(text, rules):
    assert parse(text) == tuple(rules)


PARTS = "(known: embeddings, encoder, encoder/layer_N, encoder/layer_N-M, head, pooler)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "--place: '' is not PART:DEVICE, as in encoder/layer_0-5:/GPU:0"),
        ("embeddings", "--place: 'embeddings' is not PART:DEVICE, as in encoder/layer_0-5:/GPU:0"),
        ("head:/CPU:0,", "--place: '' is not PART:DEVICE, as in encoder/layer_0-5:/GPU:0"),
        ("embedings:/CPU:0", f"--place: unknown part 'embedings'; did you mean embeddings? {PARTS}"),
        ("layer_3:/CPU:0", f"--place: unknown part 'layer_3' {PARTS}"),
        ("encoder/layer_:/CPU:0", f"--place: unknown part 'encoder/layer_'; did you mean encoder/layer_N? {PARTS}"),
        ("head/layer_0:/CPU:0", f"--place: unknown part 'head/layer_0'; did you mean encoder/layer_N? {PARTS}"),
        *(
            (f"head:{device}", f"--place: {device!r} is not a device: devices are written /CPU:0, /GPU:0, /GPU:1")
            for device in ("/CPU", "/TPU:0", "", "GPU1", "/GPU:-1", "/GPU:0/GPU:1", "/job:worker/task:0/device:GPU:0")
        ),
        ("encoder/layer_5-2:/CPU:0", "--place: encoder/layer_5-2: the lower layer comes first, as in encoder/layer_2-5"),
        ("head:/CPU:0,head:/CPU:1", "--place: head is named twice"),
        ("encoder:/CPU:0,encoder:/CPU:0", "--place: encoder is named twice"),
        ("encoder/layer_0-5:/CPU:0,encoder/layer_5-7:/CPU:1", "--place: encoder/layer_5 is named twice"),
        ("encoder/layer_4:/CPU:0,encoder/layer_2-9:/CPU:1", "--place: encoder/layer_4 is named twice"),
        ("encoder:/CPU:0,encoder/layer_2:/CPU:1", "--place: encoder/layer_2 is named twice"),
        ("encoder/layer_2-3:/CPU:0,encoder:/CPU:1", "--place: encoder/layer_2 is named twice"),
    ],
)
def test_what_cannot_be_read_ends_in_one_line(text, message):
    with pytest.raises(DeviceError) as error:
        parse(text)
    assert str(error.value) == message


def test_a_layer_beyond_the_model_ends_in_one_line():
    for rule in parse("embeddings:/CPU:0,encoder:/CPU:0"):
        rule.check_layers(1)
    parse("encoder/layer_0-3:/CPU:0")[0].check_layers(4)
    with pytest.raises(DeviceError, match=r"^--place: encoder/layer_2-4: the model has 4 layers, 0 to 3$"):
        parse("encoder/layer_2-4:/CPU:0")[0].check_layers(4)


@pytest.mark.parametrize("name", ["/GPU:1", "GPU:1", "/gpu:1", "gpu:1", "/device:GPU:1", "device:gpu:01"])
def test_a_device_has_one_name(name):
    assert normalized(name) == GPU_1
    assert require_device(name, DEVICES) == GPU_1
    with pytest.raises(DeviceError, match="^'/GPU' is not a device"):
        require_device("/GPU", DEVICES)


@pytest.mark.parametrize(
    "make",
    [
        lambda name: require_device(name, DEVICES),
        lambda name: whole(name, DEVICES),
        lambda name: device_function(parse(f"embeddings:/CPU:0,head:{name}"), DEVICES),
    ],
    ids=["by itself", "--device", "--place"],
)
def test_a_device_that_does_not_exist_ends_in_one_line(make):
    with pytest.raises(DeviceError, match=r"^no device /GPU:2; available: /CPU:0, /GPU:0, /GPU:1$"):
        make("/gpu:2")


@pytest.mark.parametrize("name", ["/job:localhost/replica:0/task:0/device:GPU:1", "/replica:0/task:0/device:GPU:1", GPU_1])
def test_users_see_short_names(name):
    assert short(name) == "/GPU:1"


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("bert/embeddings/word_embeddings", ("embeddings", None)),
        ("bert/embeddings/word_embeddings/current_at", ("embeddings", None)),
        ("bert/encoder/layer_11/attention/self/query/MatMul", ("encoder", 11)),
        ("bert/encoder/layer_1/output/dense/kernel/adam_m", ("encoder", 1)),
        ("gradients/bert/encoder/layer_1/output/dense/MatMul_grad/MatMul", ("encoder", 1)),
        ("gradients_1/bert/embeddings/LayerNorm/IdentityN_grad/mul", ("embeddings", None)),
        ("update/bert/encoder/layer_1/output/dense/kernel/ResourceApplyAdam", ("encoder", 1)),
        ("cond/then/_0/update/bert/pooler/dense/bias/mul", ("pooler", None)),
        ("bert/pooler/Tanh", ("pooler", None)),
        ("output_weights", ("head", None)),
        ("output_bias/adam_v", ("head", None)),
        ("update/output_bias/ResourceApplyAdam", ("head", None)),
        ("head/MatMul", ("head", None)),
        ("head_1/SparseSoftmaxCrossEntropyWithLogits", ("head", None)),
        ("gradients/head/MatMul_grad/MatMul", ("head", None)),
        ("bert/GatherV2", ("", None)),
        ("bert/encoder", ("", None)),
        ("bert/embeddings_like/mul", ("", None)),
        ("overhead/mul", ("", None)),
        ("output_weights_too", ("", None)),
        ("global_step", ("", None)),
        ("save/SaveV2", ("", None)),
        ("IteratorGetNext", ("", None)),
    ],
)
def test_a_name_tells_the_part(name, part):
    assert part_of(name) == part


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("bert/embeddings/MatMul", CPU_0),
        ("bert/encoder/layer_0/output/dense/MatMul", GPU_0),
        ("bert/encoder/layer_1/output/dense/MatMul", GPU_1),
        ("bert/encoder/layer_10/output/dense/MatMul", GPU_1),
        ("gradients/head/MatMul_grad/MatMul", GPU_1),
        ("bert/encoder/layer_12/output/dense/MatMul", ""),
        ("bert/pooler/dense/MatMul", ""),
        ("global_step", ""),
    ],
)
def test_parts_go_to_their_devices_and_the_rest_to_none(name, device):
    assert device_function(parse(PLACE), DEVICES)(operation(name)) == device


@pytest.mark.parametrize("function", [whole("/GPU:1", DEVICES), device_function(parse("encoder:/GPU:1"), DEVICES)])
def test_a_device_that_the_graph_asks_for_stays(function):
    assert function(operation("bert/encoder/layer_0/mul", device=CPU_0)) == CPU_0


def test_one_device_gets_everything_but_input_files_and_text():
    with tf.Graph().as_default() as graph, graph.device(whole("/GPU:1", DEVICES)):
        batch = tf1.data.make_initializable_iterator(tf.data.Dataset.from_tensors({"x": 2.0})).get_next()
        weight = tf1.get_variable("weight", initializer=3.0)
        step = tf1.train.create_global_step()
        product = weight * batch["x"]
        tf.debugging.Assert(product > 0.0, ["negative"])
        tf1.train.Saver()
    assert {weight.device, step.device, product.device} == {GPU_1}
    on_host = {op.type for op in graph.get_operations() if op.device == CPU_0}
    assert on_host >= {"TensorDataset", "IteratorV2", "MakeIterator", "IteratorGetNext", "Assert", "SaveV2", "RestoreV2"}


def lacks_kernel(node: tf1.NodeDef) -> bool:
    """Whether no kernel runs an operation on a GPU."""
    candidates = kernels.get_registered_kernels_for_op(node.op).kernel
    on_gpu = (kernel for kernel in candidates if kernel.device_type in ("GPU", "DEFAULT"))

    def takes(attribute: str, allowed: list[int]) -> bool:
        value = node.attr[attribute]
        return set([value.type] if value.type else value.list.type) <= set(allowed)

    return not any(all(takes(rule.name, rule.allowed_values.list.type) for rule in kernel.constraint) for kernel in on_gpu)


@pytest.mark.skipif(
    not any(kernel.device_type == "GPU" for kernel in kernels.get_registered_kernels_for_op("MatMul").kernel),
    reason="this TensorFlow is built without kernels for a GPU",
)
@pytest.mark.parametrize(
    "optimization", [{}, {"defer_embeddings": False, "adamw": AdamWConfig(fused=False), "loss_scaling": True}]
)
def test_a_gpu_has_kernels_for_all_of_training(optimization):
    """Without soft placement an operation without a kernel ends the run; nothing here needs a GPU."""
    config = dataclasses.replace(BertConfig.tiny(), num_hidden_layers=1)
    model = Model(config, HeadSpec(2), optimization=Optimization(0.1, 2, 9, **optimization))
    with tf.Graph().as_default() as graph, graph.device(whole("/GPU:1", DEVICES)):
        shapes = {field.name: field.shape(None, None) for field in (*INPUTS, Field("label_ids"))}
        shapes |= {pipeline.ROWS: [None], GLOBAL_WEIGHT: [], pipeline.GLOBAL_TOKENS: []}
        with tf.device("/cpu:0"):
            batch = {name: tf1.placeholder(tf.int32, shape) for name, shape in shapes.items()}
            batch[pipeline.READY] = tf1.placeholder(tf.float64, [])
        make_model_fn(model)(batch, "train")
        tf1.train.Saver()
        definition = graph.as_graph_def()
    bodies = [definition.node, *(body.node_def for body in definition.library.function)]
    on_gpu = [node for nodes in bodies for node in nodes if "GPU" in node.device]
    assert len(on_gpu) > 700
    assert not [(node.name, node.op) for node in on_gpu if lacks_kernel(node)]

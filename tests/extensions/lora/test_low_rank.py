"""Low-rank updates: a matrix by hand, what is differentiated, what is trained and how it is merged."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.errors import FlagError
from bert_tf.estimator.model_fn import TRAIN
from bert_tf.extensions.lora import names
from bert_tf.extensions.lora.composed import product
from bert_tf.extensions.lora.part import LowRank
from bert_tf.modeling import layers
from bert_tf.modeling.execution import Execution
from bert_tf.tasks.registry import get_task
from tests.classifier import mrpc, with_recipe
from tests.estimator import toy
from tests.estimator.test_model_fn import build
from tests.graphs import evaluate

pytestmark = pytest.mark.versions

tf1 = tf.compat.v1
CONFIG = BertConfig.tiny()
X, KERNEL, BIAS = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 3.0]]), np.array([0.5, 0.0, 0.0])
DOWN, UP = np.array([[1.0], [-2.0]]), np.array([[2.0, 0.0, 4.0]])
WEIGHTS = {"m/kernel": KERNEL, "m/bias": BIAS, f"m/{names.DOWN}": DOWN, f"m/{names.UP}": UP}
# X KERNEL + BIAS is [[1.5, 2, 8], [3.5, 4, 18]]. X DOWN is [-3, -5]; half of it times UP is [[-3, 0, -6], [-5, 0, -10]].
EXPECTED = [[-1.5, 2.0, 2.0], [-1.5, 4.0, 8.0]]


def adaptation(
    *matrices: str, rank: int = 1, scaling: float = 0.5, unchanged: frozenset[str] = frozenset(), **ways: bool
) -> LowRank:
    return LowRank(rank, scaling, frozenset(matrices), unchanged, **ways)


def computed(apply, execution):
    return evaluate(lambda: apply(tf.constant(X, tf.float32), 3, CONFIG, execution, scope="m"), WEIGHTS)


def test_a_matrix_by_hand():
    np.testing.assert_allclose(computed(layers.dense, Execution(adaptation=adaptation("m"))), EXPECTED)


@pytest.mark.usefixtures("kernels")
def test_the_bias_of_a_native_kernel_is_added_later():
    product, bias = computed(layers.product, Execution(adaptation=adaptation("m", native=True)))
    np.testing.assert_allclose(product + bias, EXPECTED)


def test_other_matrices_have_none():
    with tf.Graph().as_default():
        layers.dense(tf.constant(X, tf.float32), 3, CONFIG, Execution(adaptation=adaptation("other")), scope="m")
        assert len(tf1.trainable_variables()) == 2


def test_merged_it_is_the_same_matrix():
    merged = KERNEL + product(DOWN.astype(np.float32), 0.5 * UP.astype(np.float32))
    np.testing.assert_allclose(X @ merged + BIAS, EXPECTED)


def test_an_update_starts_at_zero():
    def build():
        execution = Execution(adaptation=adaptation("m"))
        rows = tf.constant(X, tf.float32)
        output = layers.dense(rows, 3, CONFIG, execution, scope="m")
        kernel, bias, down, _ = tf1.trainable_variables()
        return output - (tf.matmul(rows, kernel) + bias), down

    difference, down = evaluate(build)
    assert not difference.any()
    assert 0.0 < np.abs(down).max() <= 0.5**0.5  # 1 / root of the width


def ancestors(operation):
    seen, waiting = set(), [operation]
    while waiting:
        one = waiting.pop()
        if one not in seen:
            seen.add(one)
            waiting += [tensor.op for tensor in one.inputs] + list(one.control_inputs)
    return seen


def products(execution):
    """Shapes of the gradients of matrices that a training step computes, and names of what it changes."""
    with tf.Graph().as_default():
        spec = build(TRAIN, execution=execution)
        needed = ancestors(spec.train_op.op if hasattr(spec.train_op, "op") else spec.train_op)
        of_weights = (op for op in needed if op.type == "MatMul" and op.get_attr("transpose_a"))
        shapes = {tuple(op.outputs[0].shape.as_list()) for op in of_weights}
        changed = {one.name.partition("/adam_m")[0] for one in needed if one.type == "VarHandleOp" and "/adam_m" in one.name}
        return shapes, changed


WIDTHS = {(8, 8), (8, 16), (16, 8)}  # of the toy's matrices
MATRICES = [
    f"bert/encoder/layer_{n}/attention/self/{name}" for n in range(toy.CONFIG.num_hidden_layers) for name in ("query", "value")
]


@functools.cache
def of_encoder() -> frozenset[str]:
    with tf.Graph().as_default():
        build(TRAIN)
        return frozenset(one.op.name for one in tf1.trainable_variables() if one.op.name.startswith("bert/"))


@pytest.mark.parametrize(
    "ways", [{}, {"custom_gradients": False}, {"recompute": True}, {"pack_tokens": False}, {"native": True}]
)
def test_no_gradient_of_a_frozen_matrix_is_computed(ways, request):
    if "native" in ways:
        request.getfixturevalue("kernels")
    if not ways:
        assert products(Execution())[0] >= WIDTHS  # the check sees them
    adapted = adaptation(*MATRICES, rank=2, unchanged=of_encoder(), native="native" in ways)
    lean, changed = products(Execution(adaptation=adapted, **ways))
    assert WIDTHS.isdisjoint(lean)
    if "native" not in ways:
        assert lean >= {(8, 2), (2, 8)}  # of updates
    of_updates = {f"{scope}/{part}" for scope in MATRICES for part in (names.DOWN, names.UP)}
    assert changed == of_updates | {"output_weights", "output_bias"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("query,value", ["attention/self/query", "attention/self/value"]),
        ("output, attention output", ["attention/output/dense", "output/dense"]),
        ("all", list(names.TARGETS.values())),
    ],
)
def test_targets(text, expected):
    assert list(names.parse_targets(text)) == expected


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--lora_rank=8 --lora_targets=quary", "--lora_targets: unknown matrix 'quary'; did you mean query"),
        ("--lora_rank=8 --lora_targets=,", "--lora_targets=,: names no matrix"),
        ("--lora_rank=8 --lora_train=bias", "--lora_train: unknown part 'bias'"),
        ("--lora_alpha=16", "--lora_alpha: needs --lora_rank, such as --lora_rank=8"),
        ("--lora_rank=8 --lora_alpha=0", "--lora_alpha"),
    ],
)
def test_flags_are_checked(flags, message):
    with pytest.raises(FlagError, match=message):
        mrpc(*flags.split())


def test_updates_have_a_recipe_which_flags_override():
    before = mrpc("--lora_rank=4", "--learning_rate=1e-4")
    _, recipe = with_recipe(before, get_task("MRPC").family, default_checkpoint=False, sample_data=False)
    assert recipe == {"train_batch_size": 16, "adam_bias_correction": True}
    _, recipe = with_recipe(mrpc("--lora_rank=4"), get_task("MRPC").family, default_checkpoint=True, sample_data=True)
    assert recipe["learning_rate"] == 1e-3


def test_alpha_is_divided_by_the_rank():
    assert mrpc("--lora_rank=4", "--lora_alpha=6").extensions.lora.scaling == 1.5
    assert mrpc("--lora_rank=4").extensions.lora.scaling == 1.0

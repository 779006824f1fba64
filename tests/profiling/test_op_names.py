from __future__ import annotations

import pytest

from bert_tf.profiling import op_names


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        ("bert/pooler/dense/kernel", "weights"),
        ("bert/pooler/dense/kernel/read", "weights"),
        ("bert/pooler/dense/MatMul/ReadVariableOp", "weights"),
        ("bert/embeddings/LayerNorm/ReadVariableOp_1", "weights"),
        ("output_weights", "weights"),
        ("bert/pooler/dense/kernel/adam_m", "optimizer_state"),
        ("bert/pooler/dense/kernel/adam_v/read", "optimizer_state"),
        ("bert/embeddings/word_embeddings/current_at", "optimizer_state"),
        ("bert/pooler/dense/kernel/ema", "optimizer_state"),
        ("update/bert/pooler/dense/kernel/ResourceApplyGradientDescent", "update"),
        ("bert/pooler/dense/MatMul", "forward"),
        ("bert/embeddings/assert_less_equal/Assert/Assert/_25", "forward"),
        ("Reshape", "forward"),
        ("IteratorGetNext", "forward"),
        ("gradients/bert/pooler/dense/MatMul_grad/MatMul_1", "backward"),
        ("ConstantFolding/gradients/bert/embeddings/add_1_grad/BroadcastGradientArgs-folded-1", "backward"),
        ("replica_1/gradients/AddN_3", "backward"),
        ("AddN_3", "backward"),
        ("UnsortedSegmentSum_1", "backward"),
        ("while/body/_10/bert/pooler/dense/MatMul", "forward"),
        ("while/body/_10/gradients/AddN", "backward"),
        ("while/body/_10/add_3", "backward"),
        ("while/next_iteration/_12", "backward"),
        ("clip_by_global_norm/mul_17", "clip"),
        ("clip_by_global_norm/global_norm/L2Loss", "clip"),
        ("global_norm/L2Loss_3", "clip"),
        ("VerifyFinite/CheckNumerics", "clip"),
        ("Mul_270", "update"),
        ("Mul_270/x", "update"),
        ("sub_3", "update"),
        ("Assign_617", "update"),
        ("PolynomialDecay/Cast_2/ReadVariableOp", "update"),
        ("update/bert/pooler/dense/kernel/Read/ReadVariableOp", "update"),
        ("update/bert/pooler/dense/kernel/ResourceApplyAdam", "update"),
    ],
)
def test_phase(name, phase):
    assert op_names.phase_of(name) == phase


@pytest.mark.parametrize(
    ("name", "scope"),
    [
        ("bert/pooler/dense/MatMul", "bert/pooler/dense"),
        ("gradients/bert/pooler/dense/MatMul_grad/MatMul_1", "bert/pooler/dense"),
        ("ConstantFolding/gradients/bert/embeddings/add_1_grad/Shape", "bert/embeddings"),
        ("update/bert/pooler/dense/kernel/ResourceApplyAdam", "bert/pooler/dense/kernel"),
        ("while/body/_10/gradients/bert/pooler/dense/MatMul_grad/MatMul_1", "bert/pooler/dense"),
        ("while/next_iteration/_12", "(backward)"),
        ("gradients/AddN_3", "(backward)"),
        ("clip_by_global_norm/mul_17", "(clip)"),
        ("Mul_270/x", "(update)"),
        ("Reshape_2", "(forward)"),
    ],
)
def test_scope(name, scope):
    assert "/".join(op_names.scope_of(name)) == scope


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("gradients/bert/encoder/layer_11/output/add_grad/Sum", "layer 11"),
        ("update/bert/encoder/layer_1/output/dense/kernel/mul", "layer 1"),
        ("bert/encoder/Cast", "bert/encoder"),
        ("bert/embeddings/LayerNorm/beta/adam_m", "bert/embeddings"),
        ("Square_3", "(update)"),
    ],
)
def test_layer(name, layer):
    assert op_names.layer_of(name) == layer


def test_layers_stand_in_the_order_of_the_network():
    mixed = ["(update)", "layer 10", "bert/pooler", "layer 2", "bert/encoder", "bert/embeddings"]
    ordered = ["bert/embeddings", "bert/encoder", "layer 2", "layer 10", "bert/pooler", "(update)"]
    assert sorted(mixed, key=op_names.layer_order) == ordered


def test_tells_variables_from_what_reads_them():
    kernel = "bert/pooler/dense/kernel"
    assert op_names.is_variable(kernel)
    assert op_names.is_slot(f"{kernel}/adam_m")
    assert not op_names.is_variable(f"{kernel}/read")
    assert not op_names.is_variable(f"{kernel}/adam_m")
    assert not op_names.is_slot(f"{kernel}/adam_m/read")

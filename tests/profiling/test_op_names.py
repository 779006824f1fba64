import pytest

from bert_tf.profiling import op_names


@pytest.mark.parametrize(
    ("name", "phase", "scope", "layer"),
    [
        ("bert/pooler/dense/kernel", "weights", "bert/pooler/dense", "bert/pooler"),
        ("bert/pooler/dense/kernel/read", "weights", "bert/pooler/dense/kernel", "bert/pooler"),
        ("bert/embeddings/LayerNorm/ReadVariableOp_1", "weights", "bert/embeddings/LayerNorm", "bert/embeddings"),
        ("output_weights", "weights", "(weights)", "(weights)"),
        ("bert/pooler/dense/kernel/adam_m", "optimizer_state", "bert/pooler/dense/kernel", "bert/pooler"),
        ("bert/pooler/dense/kernel/adam_v/read", "optimizer_state", "bert/pooler/dense/kernel/adam_v", "bert/pooler"),
        ("bert/embeddings/word_embeddings/current_at", "optimizer_state", "bert/embeddings/word_embeddings", "bert/embeddings"),
        ("bert/pooler/dense/kernel/ema", "optimizer_state", "bert/pooler/dense/kernel", "bert/pooler"),
        ("bert/embeddings/LayerNorm/beta/adam_m", "optimizer_state", "bert/embeddings/LayerNorm/beta", "bert/embeddings"),
        ("bert/pooler/dense/MatMul", "forward", "bert/pooler/dense", "bert/pooler"),
        ("bert/assert_less_equal/Assert/Assert/_25", "forward", "bert/assert_less_equal/Assert", "bert/assert_less_equal"),
        ("bert/encoder/Cast", "forward", "bert/encoder", "bert/encoder"),
        ("Reshape_2", "forward", "(forward)", "(forward)"),
        ("IteratorGetNext", "forward", "(forward)", "(forward)"),
        ("gradients/bert/pooler/dense/MatMul_grad/MatMul_1", "backward", "bert/pooler/dense", "bert/pooler"),
        ("gradients/bert/encoder/layer_11/output/add_grad/Sum", "backward", "bert/encoder/layer_11/output", "layer 11"),
        ("ConstantFolding/gradients/bert/embeddings/add_grad/Args-1", "backward", "bert/embeddings", "bert/embeddings"),
        ("replica_1/gradients/AddN_3", "backward", "(backward)", "(backward)"),
        ("UnsortedSegmentSum_1", "backward", "(backward)", "(backward)"),
        ("while/body/_10/bert/pooler/dense/MatMul", "forward", "bert/pooler/dense", "bert/pooler"),
        ("while/body/_10/gradients/bert/pooler/dense/MatMul_grad/MatMul_1", "backward", "bert/pooler/dense", "bert/pooler"),
        ("while/body/_10/add_3", "backward", "(backward)", "(backward)"),
        ("while/next_iteration/_12", "backward", "(backward)", "(backward)"),
        ("clip_by_global_norm/mul_17", "clip", "(clip)", "(clip)"),
        ("global_norm/L2Loss_3", "clip", "(clip)", "(clip)"),
        ("VerifyFinite/CheckNumerics", "clip", "(clip)", "(clip)"),
        ("Mul_270/x", "update", "(update)", "(update)"),
        ("Assign_617", "update", "(update)", "(update)"),
        ("PolynomialDecay/Cast_2/ReadVariableOp", "update", "(update)", "(update)"),
        ("update/bert/pooler/dense/kernel/Read/ReadVariableOp", "update", "bert/pooler/dense/kernel/Read", "bert/pooler"),
        ("update/bert/encoder/layer_1/dense/kernel/mul", "update", "bert/encoder/layer_1/dense/kernel", "layer 1"),
    ],
)
def test_phase_scope_and_layer_of_a_name(name, phase, scope, layer):
    assert (op_names.phase_of(name), "/".join(op_names.scope_of(name)), op_names.layer_of(name)) == (phase, scope, layer)


def test_layers_stand_in_the_order_of_the_network():
    mixed = ["(update)", "layer 10", "bert/pooler", "layer 2", "bert/encoder", "bert/embeddings"]
    ordered = ["bert/embeddings", "bert/encoder", "layer 2", "layer 10", "bert/pooler", "(update)"]
    assert sorted(mixed, key=op_names.layer_order) == ordered


def test_tells_variables_from_what_reads_them():
    kernel = "bert/pooler/dense/kernel"
    names = (kernel, f"{kernel}/read", f"{kernel}/adam_m", f"{kernel}/adam_m/read")
    assert [(op_names.is_variable(name), op_names.is_slot(name)) for name in names] == [
        (True, False), (False, False), (False, True), (False, False),
    ]  # fmt: skip

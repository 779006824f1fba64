"""Variables made together are those that `get_variable` makes one by one."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import variables

pytestmark = pytest.mark.versions

tf1 = tf.compat.v1

SHAPES = {"a/kernel": (2, 3), "a/bias": (3,), "b/kernel": (2, 3)}
VALUES = {name: np.arange(np.prod(shape), dtype=np.float32).reshape(shape) for name, shape in SHAPES.items()}


@pytest.fixture
def graph():
    with tf.Graph().as_default() as made:
        yield made


def test_a_block_gets_them_in_its_own_order_with_their_initial_values(graph):
    constants = {name: tf.constant(value) for name, value in VALUES.items()}
    with variables.made_at_once(SHAPES, constants) as taken:
        bias = tf1.get_variable("a/bias", [3])
        other = tf1.get_variable("c", [2], initializer=tf1.ones_initializer())
        with tf1.variable_scope("a"):
            kernel = tf1.get_variable("kernel", [2, 3])
        with tf1.variable_scope(tf1.get_variable_scope(), reuse=True):
            assert tf1.get_variable("a/bias", [3]) is bias
    assert taken == {"a/bias", "a/kernel"}
    for name in (tf1.GraphKeys.GLOBAL_VARIABLES, tf1.GraphKeys.TRAINABLE_VARIABLES):
        assert [variable.name for variable in graph.get_collection(name)] == ["a/bias:0", "c:0", "a/kernel:0"]
    with tf1.Session() as session:
        session.run(tf1.global_variables_initializer())
        values = session.run([bias, other, kernel])
    for value, expected in zip(values, (VALUES["a/bias"], np.ones(2), VALUES["a/kernel"])):
        np.testing.assert_array_equal(value, expected)


def test_zeros_are_no_constants_and_can_be_updated(graph):
    kernel, bias, other = variables.make_zeros(SHAPES).values()
    assert {op.outputs[0].dtype for op in graph.get_operations() if op.type == "Const"} == {tf.int32}  # shapes
    with tf1.Session() as session:
        session.run([variable.initializer for variable in (kernel, bias, other)])
        session.run(kernel.assign_add(np.ones([2, 3])))
        values = session.run([kernel, bias, other])
    for value, expected in zip(values, (np.ones([2, 3]), np.zeros(3), np.zeros([2, 3]))):
        np.testing.assert_array_equal(value, expected)
    assert not kernel.trainable
    assert kernel.initial_value.op.colocation_groups() == [b"loc:@a/kernel"]


@pytest.mark.usefixtures("graph")
def test_they_are_saved_and_restored_by_name(tmp_path):
    with variables.made_at_once(SHAPES):
        filled = [tf1.get_variable(name, shape).assign(VALUES[name]) for name, shape in SHAPES.items()]
    saver = tf1.train.Saver()
    with tf1.Session() as session:
        session.run(filled)
        prefix = saver.save(session, str(tmp_path / "model"))
    with tf1.Session() as session:
        saver.restore(session, prefix)
        for name, value in zip(SHAPES, session.run(tf1.global_variables())):
            np.testing.assert_array_equal(value, VALUES[name])
    assert dict(tf.train.list_variables(prefix)) == {name: list(shape) for name, shape in SHAPES.items()}


def test_operations_are_named_as_get_variable_names_them(graph):
    variables.make_zeros({"a/kernel": (2, 3)})
    made = {(op.name, op.type) for op in graph.get_operations() if op.type != "Const"}
    with tf.Graph().as_default() as expected:
        tf1.get_variable("a/kernel", [2, 3], initializer=tf1.zeros_initializer())
    usual = {(op.name, op.type) for op in expected.get_operations()}
    assert made - usual == {("a/kernel/Initializer/Empty", "Empty")}
    assert {kind for _, kind in usual - made} == {"Const", "VarIsInitializedOp"}


def test_a_name_that_is_taken_or_another_shape_is_refused_and_the_graph_keeps_its_version(graph):
    version = graph.graph_def_versions.producer
    variables.make_zeros({"a/kernel": (2, 3)})
    assert graph.graph_def_versions.producer == version
    with pytest.raises(ValueError, match="the graph has an operation a/kernel already"):
        variables.make({"a/kernel": (2, 3)})
    with variables.made_at_once({"b": (2,)}), pytest.raises(ValueError, match=r"b has shape \(2,\), not \[3\]"):
        tf1.get_variable("b", [3])


def test_with_a_strategy_tensorflow_makes_them():
    assert variables.can_make()
    with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
        assert not variables.can_make()

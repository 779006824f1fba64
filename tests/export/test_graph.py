"""What is exported holds no operation that other software does not know, whatever this process has loaded."""

from __future__ import annotations

import pytest
import tensorflow as tf

from bert_tf.export import graph
from tests.engines.models import trained


@pytest.mark.parametrize("execution", [graph.PACKED, graph.PLAIN], ids=["packed", "plain"])
def test_no_native_kernels(kernels, tmp_path, execution):
    assert kernels.is_loaded()
    model = trained(tmp_path)
    with tf.Graph().as_default() as built:
        graph.compute(model, graph.inputs(model), execution)
    assert "MatMul" in {op.type for op in built.get_operations()}
    assert not [op.type for op in built.get_operations() if op.type.startswith("BertTf")]

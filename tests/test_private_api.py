"""Private names of TensorFlow that we use still exist; each module of `test_architecture.PRIVATE` has a fallback."""

import pytest
import tensorflow as tf

from bert_tf.estimator import pipeline
from bert_tf.estimator.saver import save_only
from bert_tf.extensions.profile import step_stats
from bert_tf.runtime import devices

pytestmark = pytest.mark.versions

tf1 = tf.compat.v1


def test_savers_can_be_built_without_operations_that_restore():
    with tf.Graph().as_default() as graph:
        tf1.get_variable("weights", [3])
        tf1.train.Saver(sharded=True, builder=save_only())
    assert "RestoreV2" not in {op.type for op in graph.get_operations()}


def test_names_that_are_called_or_overridden_are_there():
    assert pipeline.CONTROLS_REPLICAS  # `tests/estimator/test_autotune.py` shows that it has an effect
    assert step_stats.chrome_trace(tf1.RunMetadata().step_stats) is not None
    assert hasattr(tf1.train.Saver, "_MaybeDeleteOldCheckpoints")  # `saver.RunSaver` puts checkpoints on the disk before it
    assert hasattr(tf.Operation, "_add_control_input")  # `stamps.wait_at_gate`
    assert {"_save", "_get_saver"} <= set(dir(tf1.train.CheckpointSaverHook))  # `saver.CheckpointHook`
    assert not devices.demands_determinism()

from __future__ import annotations

import os

import pytest
import tensorflow as tf

from bert_tf.runtime.devices import allow_xla_on_cpu, session_config

tf1 = tf.compat.v1

ON_CPU = "--tf_xla_cpu_global_jit"


def test_what_a_device_cannot_run_is_placed_elsewhere():
    with tf.Graph().as_default(), tf1.Session(config=session_config()) as session:
        with tf.device("/GPU:7"):
            text = tf.strings.upper(tf.constant("no device runs this"))
        assert session.run(text) == b"NO DEVICE RUNS THIS"


@pytest.mark.parametrize(("xla", "level"), [(False, tf1.OptimizerOptions.DEFAULT), (True, tf1.OptimizerOptions.ON_2)])
def test_only_xla_compiles(xla, level):
    config = session_config(xla=xla)
    assert config.graph_options.optimizer_options.global_jit_level == level
    assert config.allow_soft_placement


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, ON_CPU),
        ("", ON_CPU),
        ("--tf_xla_min_cluster_size=1", f"--tf_xla_min_cluster_size=1 {ON_CPU}"),
        (ON_CPU, ON_CPU),
        (f"{ON_CPU}=false --tf_xla_min_cluster_size=1", f"{ON_CPU}=false --tf_xla_min_cluster_size=1"),
    ],
    ids=["unset", "empty", "another flag", "the flag itself", "refused by the user"],
)
def test_what_the_user_tells_xla_is_kept(monkeypatch, before, after):
    monkeypatch.setenv("TF_XLA_FLAGS", before or "")
    if before is None:
        monkeypatch.delenv("TF_XLA_FLAGS")
    for _ in range(2):  # the second time changes nothing
        allow_xla_on_cpu()
        assert os.environ["TF_XLA_FLAGS"] == after

from __future__ import annotations

import tensorflow as tf

from bert_tf.runtime.devices import session_config

tf1 = tf.compat.v1


def test_what_a_device_cannot_run_is_placed_elsewhere():
    with tf.Graph().as_default(), tf1.Session(config=session_config()) as session:
        with tf.device("/GPU:7"):
            text = tf.strings.upper(tf.constant("no device runs this"))
        assert session.run(text) == b"NO DEVICE RUNS THIS"

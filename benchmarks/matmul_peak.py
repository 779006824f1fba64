"""A worker that measures this machine's float32 matrix products through TensorFlow, as profiles do.

    python -m benchmarks.matmul_peak WORKLOAD.json

It speaks the workers' protocol; {"run": n} answers the fastest of n measurements in GFLOP/s.
"""

from __future__ import annotations

from types import SimpleNamespace

import tensorflow as tf

from benchmarks.peers import protocol
from bert_tf.profiling.operations.matmul_peak import MatmulPeak
from bert_tf.runtime.machine import set_up
from bert_tf.runtime.settings import DeviceSettings

tf1 = tf.compat.v1


def work(workload: SimpleNamespace, channel: protocol.Channel) -> None:
    del workload
    machine = set_up(DeviceSettings(strategy="one_device"), environment={})
    with tf.Graph().as_default() as graph, tf1.Session(config=machine.session_config) as session:
        tf.matmul([[1.0]], [[1.0]])  # what is measured are products such as the graph's own
        peak = MatmulPeak(graph)
        channel.ready({"tensorflow": tf.__version__})
        channel.serve({"run": lambda times: {"gflops": max(peak.measure(session)["float32"] for _ in range(times))}})


if __name__ == "__main__":
    protocol.run_worker(work)

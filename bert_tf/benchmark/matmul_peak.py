"""A worker that measures how fast this machine multiplies float32 matrices through TensorFlow.

    python -m bert_tf.benchmark.matmul_peak WORKLOAD.json

Of the workload it reads `threads`. It speaks the protocol of the workers; {"run": n} answers the fastest of some shapes,
each by its median of n times 5.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

# [M, K] times [K, N]: squares, and the feed-forward products of BERT-Base for one and for many examples' tokens.
SHAPES = ((1024, 1024, 1024), (2048, 2048, 2048), (640, 768, 3072), (640, 3072, 768), (2048, 768, 3072), (2048, 3072, 768))
_REPETITIONS = 5


def measure(repetitions: int) -> dict[str, Any]:
    """Returns gflops, shape and seconds of the fastest shape."""
    import tensorflow as tf

    best: dict[str, Any] = {"gflops": 0.0}
    begin = time.perf_counter()
    for m, k, n in SHAPES:
        a, b = tf.random.normal([m, k], seed=1), tf.random.normal([k, n], seed=2)
        times = []
        for number in range(repetitions + 2):
            start = time.perf_counter()
            tf.linalg.matmul(a, b)[0, 0].numpy()  # one number: waits for a GPU, copies nothing
            if number > 1:  # the first ones find memory and start threads
                times.append(time.perf_counter() - start)
        gflops = 2e-9 * m * k * n / statistics.median(times)
        if gflops > best["gflops"]:
            best = {"gflops": gflops, "shape": [m, k, n]}
    return {**best, "seconds": time.perf_counter() - begin}


def main(argv: list[str]) -> int:
    """Answers requests until it is told to quit."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if hasattr(os, "sched_setaffinity"):  # TensorFlow makes as many threads as it may use cores
        threads = json.loads(Path(argv[1]).read_text(encoding="utf-8"))["threads"]
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    import tensorflow as tf

    answers.write(json.dumps({"ready": True, "versions": {"tensorflow": tf.__version__}}) + "\n")
    for line in sys.stdin:
        request = json.loads(line)
        if "quit" in request:
            break
        answers.write(json.dumps(measure(_REPETITIONS * request["run"])) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))

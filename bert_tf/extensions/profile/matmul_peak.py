"""Peak speed of large matrix products in the session, on the device and in the dtype of training.

Chains of products in a loop of the graph exclude the time of Python and the session. The result is what a library
call reaches, not the data sheet's figure.
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import time

import tensorflow as tf

from bert_tf.extensions.profile.flops import is_product

tf1 = tf.compat.v1

# Rows that go through a chain, and the widths it alternates between: squares, and the feed-forward part of BERT.
_CHAINS = {"CPU": ((1024, (1024, 1024)), (1024, (768, 3072))), "GPU": ((4096, (4096, 4096)), (8192, (1024, 4096)))}
_REPETITIONS = 3
_SECONDS = 0.15  # per run of a chain


# Number format, kind of device that it is large enough for, operations per turn, one number of the last product.
_Chain = tuple[str, str, int, tf.Tensor]


class MatmulPeak:
    """Products in the training graph that run only for measurement."""

    def __init__(self, graph: tf.Graph) -> None:
        """Adds the chains, in the dtypes and on the device of the graph's own products."""
        definition = graph.as_graph_def()
        in_functions = (node for function in definition.library.function for node in function.node_def)  # for micro-batches
        products = [node for node in itertools.chain(definition.node, in_functions) if is_product(node.op)]
        devices = collections.Counter(node.device for node in products).most_common(1)
        self._device = devices[0][0] if devices else ""
        dtypes = (tf.as_dtype(number) for number in sorted({node.attr["T"].type for node in products}))
        with graph.as_default(), tf.device(self._device), tf.name_scope("matmul_peak"):
            self._turns = tf1.placeholder(tf.int32, [], name="turns")
            self._chains: list[_Chain] = [
                (dtype.name, kind, 2 * 2 * rows * widths[0] * widths[1], self._result(rows, widths, dtype))
                for dtype in dtypes
                for kind, sizes in _CHAINS.items()
                for rows, widths in sizes
            ]

    def _result(self, rows: int, widths: tuple[int, int], dtype: tf.DType) -> tf.Tensor:
        """Returns one number of `turns` times two products, whose factors are cheap to make."""
        shapes = ((rows, widths[0]), widths, widths[::-1])
        x, up, down = (
            tf.cast(tf.random.normal([m, 1], seed=1) * tf.random.normal([1, n], seed=2) * m**-0.5, dtype) for m, n in shapes
        )
        _, x = tf.while_loop(
            lambda turn, _: turn < self._turns,
            lambda turn, x: (turn + 1, tf.matmul(tf.matmul(x, up), down)),
            (0, x),
            parallel_iterations=1,
        )
        return x[0, 0]

    def measure(self, session: tf1.Session) -> dict[str, float]:
        """Returns the fastest chain in GFLOP/s by dtype; empty if memory is insufficient."""
        device_kinds = {device.device_type for device in session.list_devices()}
        here = "CPU" if "CPU" in self._device.upper() or "GPU" not in device_kinds else "GPU"
        best: dict[str, float] = {}
        for dtype, kind, flops, result in self._chains:
            if kind == here:
                with contextlib.suppress(tf.errors.ResourceExhaustedError, tf.errors.UnimplementedError):
                    self._seconds(session, result, 1)  # warm-up: allocates memory, starts threads
                    turns = max(1, round(_SECONDS / self._seconds(session, result, 1)))
                    fastest = min(self._seconds(session, result, turns) for _ in range(_REPETITIONS))
                    best[dtype] = max(best.get(dtype, 0.0), flops * (turns / fastest) / 1e9)
        return best

    def _seconds(self, session: tf1.Session, result: tf.Tensor, turns: int) -> float:
        begin = time.perf_counter()
        session.run(result, {self._turns: turns})
        return time.perf_counter() - begin

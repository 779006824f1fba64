"""Two recorded steps of a dense layer, written by hand.

A step takes 100 us. It reads a batch of 4 rows, the second of 5, multiplies them with a kernel [8, 16], and trains it. Counted
by hand, for both steps together:

    operation            us             multiplies                                FLOPs
    kernel               1 + 1
    kernel's value       2 + 2
    rows                 3 + 3
    product and bias     10 + 30        [4, 8] [8, 16], [5, 8] [8, 16]            1024 + 1280
    kernel's gradient    20 + 20        [8, 4] [4, 16], [8, 5] [5, 16]            1024 + 1280
    scaled by its norm   4 + 4
    update               6 + 6
                         46 + 66 = 112: 56 us a step                              4608
    next batch           100 + 100, waits
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import step_stats_pb2
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from bert_tf.extensions.profile import step_stats
from bert_tf.extensions.profile.operations_file import Record

DENSE = "bert/pooler/dense"
KERNEL, READ, ROWS = f"{DENSE}/kernel", f"{DENSE}/MatMul/ReadVariableOp", "bert/pooler/strided_slice"
PRODUCT, GRADIENT = f"{DENSE}/BiasAdd", f"gradients/{DENSE}/MatMul_grad/MatMul_1"
UPSTREAM = "gradients/bert/pooler/Tanh_grad/TanhGrad"  # from another device: it has no record of its own
CLIP, UPDATE, BATCH = "clip_by_global_norm/mul_1", f"update/{KERNEL}/ResourceApplyAdam", "IteratorGetNext"
STEP_US = 100.0
CPU, GPU = "CPU:0", "GPU:0"


def step(rows: int, product_us: float, *, dtype: tf.DType = tf.float32, device: str = CPU) -> Any:
    """Returns `StepStats` of one step."""
    stats = step_stats_pb2.StepStats()
    records = stats.dev_stats.add(device=f"/job:localhost/replica:0/task:0/device:{device}").node_stats
    clock = 1_000_000_000

    def add(name: str, label: str, micros: float, *shapes: Sequence[int]) -> None:
        nonlocal clock
        nanos = round(1000 * micros)
        # The runtime spends 500 ns before an operation and 700 ns after it.
        node = records.add(node_name=name, timeline_label=label, all_start_nanos=clock)
        node.op_start_rel_nanos, node.op_end_rel_nanos, node.all_end_rel_nanos = 500, 500 + nanos, 1200 + nanos
        clock += 1200 + nanos
        for slot, shape in enumerate(shapes):
            description = node.output.add(slot=slot).tensor_description
            description.dtype = dtype.as_datatype_enum
            for size in shape:
                description.shape.dim.add(size=size)

    add(KERNEL, f"{KERNEL} = VarHandleOp()", 1, ())
    add(READ, f"{READ} = ReadVariableOp({KERNEL})", 2, (8, 16))
    add(BATCH, f"{BATCH} = IteratorGetNext(OneShotIterator)", 100, (rows,), (rows, 8))
    add(ROWS, f"{ROWS} = StridedSlice({BATCH}:1, ^{READ})", 3, (rows, 8))
    add(UPSTREAM, f"{UPSTREAM} = _Recv()", 0, (rows, 16))
    add(PRODUCT, f"[cpu 0.1MB 0.1MB] {PRODUCT} = _FusedMatMul({ROWS}, {READ}, {DENSE}/bias/Read)", product_us, (rows, 16))
    add(GRADIENT, f"{GRADIENT} = MatMul({BATCH}:1, {UPSTREAM})", 20, (8, 16))
    add(CLIP, f"{CLIP} = Mul({GRADIENT}, x)", 4, (8, 16))
    add(UPDATE, f"{UPDATE} = ResourceApplyAdam({KERNEL}, {CLIP})", 6)
    return stats


def steps(**kind: Any) -> list[Any]:
    """Returns both steps."""
    return [step(4, 10, **kind), step(5, 30, **kind)]


def record(*, peak: float | None = None, **kind: Any) -> Record:
    """Returns both steps as they are written down, without a trace of a GPU."""
    dtype = kind.get("dtype", tf.float32).name
    return Record(2, STEP_US, step_stats.operations(steps(**kind)), matmul_peak_gflops={dtype: peak} if peak else {})


def space() -> Any:
    """Returns what TensorFlow's profiler says of a GPU that computed both steps, as an `XSpace`.

    In a step the product launches a kernel of 5 us that uses Tensor Cores and one of 1 us, the clipping one of 4 us at the same
    time as the last; 1 us of memory is copied. The GPU computes for 5 + 4 us.
    """
    recorded = xplane_pb2.XSpace()
    recorded.planes.add(name="/host:CPU").lines.add(name="python")
    plane = recorded.planes.add(name="/device:GPU:0")
    for number, name in enumerate(("tf_op", "kernel_details", "memcpy_details", "regs:128 grid:8,1,1"), 1):
        plane.stat_metadata[number].id, plane.stat_metadata[number].name = number, name
    names = (
        "volta_fp16_s884gemm_fp16_64x64_ldg8_f2f_nn",
        "void splitKreduce_kernel(int, float*)",
        "void Mul<float>",
        "MemcpyH2D",
    )
    for number, name in enumerate(names):
        plane.event_metadata[number].id, plane.event_metadata[number].name = number, name
    line = plane.lines.add(name="Stream #14", timestamp_ns=1_700_000_000_000_000_000)

    def add(kernel: int, operation: str, begin: float, micros: float, details: int = 2) -> None:
        event = line.events.add(metadata_id=kernel, offset_ps=round(begin * 1e6), duration_ps=round(micros * 1e6))
        event.stats.add(metadata_id=details, ref_value=4)  # a reference, as the profiler writes repeated text
        event.stats.add(metadata_id=1, str_value=operation)

    for begin in (10, 110):
        add(3, "", begin - 5, 1, details=3)
        add(0, f"{PRODUCT}:_FusedMatMul", begin, 5)
        add(1, f"outer::{PRODUCT}:_FusedMatMul#id=1#", begin + 10, 1)
        add(2, f"{CLIP}:Mul", begin + 10, 4)
    return recorded


def on_gpu() -> Record:
    """Returns both steps of a GPU in float16, with its trace."""
    kernels, gpus = step_stats.kernels_of_space(space(), 2)
    return Record(2, STEP_US, step_stats.operations(steps(dtype=tf.float16, device=GPU), kernels), gpus, {"float16": 1.0})

import json

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.errors import DataError
from bert_tf.extensions.profile import operations_file, step_stats
from bert_tf.extensions.profile.flops import Product
from bert_tf.extensions.profile.operations_file import Gpu, Kernel
from tests.profiling import recorded

pytestmark = pytest.mark.versions


def by_name(operations):
    return {operation.name: operation for operation in operations}


def test_an_operation_over_all_steps():
    named = by_name(step_stats.operations(recorded.steps()))
    product = named[recorded.PRODUCT]
    assert (product.type, product.device, product.dtype) == ("_FusedMatMul", "CPU:0", "float32")
    assert (product.calls, product.total_us, product.min_us, product.max_us) == (2, 40, 10, 30)
    assert product.inputs == ((5, 8), (8, 16), None)  # of the longest call; the bias has no record
    assert product.outputs == ((5, 16),)
    assert product.products == ((Product(1, 4, 8, 16), 1, 10), (Product(1, 5, 8, 16), 1, 30))
    assert product.flops == 1024 + 1280
    # An input may be the second output of another.
    assert named[recorded.ROWS].inputs == ((4, 8),)  # of the first of equals; a control input is none
    assert named[recorded.GRADIENT].flops == 1024 + 1280
    # What has no output and no label is still counted.
    assert (named[recorded.UPDATE].total_us, named[recorded.UPDATE].dtype, named[recorded.UPDATE].outputs) == (12, "", ())
    bare = recorded.step(4, 10)
    bare.dev_stats[0].node_stats[0].timeline_label = "something else"
    assert {call.name: call.type for call in step_stats.calls(bare)}[recorded.KERNEL] == ""


def test_in_a_loop_an_input_is_that_of_the_same_turn():
    loop, second = recorded.steps()
    for node in second.dev_stats[0].node_stats:
        node.all_start_nanos += 1_000_000
        loop.dev_stats[0].node_stats.append(node)
    named = by_name(step_stats.operations([loop]))
    assert [product.m for product, _, _ in named[recorded.PRODUCT].products] == [4, 5]


def test_operations_have_the_devices_of_their_kernels_on_several_machines_and_records_of_streams_are_none():
    stats = recorded.step(4, 10, device="GPU:0")
    stats.dev_stats[0].device = "/job:worker/replica:0/task:1/device:GPU:0"
    kernels, _ = step_stats.kernels_of_space(recorded.space(), steps=2)
    named = by_name(step_stats.operations([stats], kernels))
    assert (named[recorded.PRODUCT].device, len(named[recorded.PRODUCT].kernels)) == ("GPU:0", 2)
    stats = recorded.step(4, 10)
    stats.dev_stats.add(device="/device:GPU:0/stream:all").node_stats.add(node_name=recorded.PRODUCT)
    assert {call.device for call in step_stats.calls(stats)} == {"CPU:0"}


def test_kernels_of_a_gpu_belong_to_their_operations():
    kernels, gpus = step_stats.kernels_of_space(recorded.space(), steps=2)
    assert gpus == {"GPU:0": Gpu(steps=2, busy_us=18.0)}  # what runs at the same time counts once
    assert set(kernels) == {("GPU:0", recorded.PRODUCT), ("GPU:0", recorded.CLIP)}
    assert kernels["GPU:0", recorded.PRODUCT] == [
        Kernel("volta_fp16_s884gemm_fp16_64x64_ldg8_f2f_nn", 2, 10.0, 5.0, 5.0),
        Kernel("void splitKreduce_kernel(int, float*)", 2, 2.0, 1.0, 1.0),
    ]
    named = by_name(step_stats.operations(recorded.steps(dtype=tf.float16, device="GPU:0"), kernels))
    assert [kernel.calls for kernel in named[recorded.CLIP].kernels] == [2]


def test_a_profile_is_read_from_where_tensorflow_writes_it(tmp_path):
    assert step_stats.gpu_kernels(tmp_path, 2) == ({}, {})
    folder = tmp_path / "plugins" / "profile" / "2026_01_01"
    folder.mkdir(parents=True)
    (folder / "host.xplane.pb").write_bytes(recorded.space().SerializeToString())
    assert step_stats.gpu_kernels(tmp_path, 2) == step_stats.kernels_of_space(recorded.space(), 2)


def test_what_is_read_back_is_what_was_written(tmp_path):
    record = recorded.on_gpu()
    operations_file.write(tmp_path / "operations.json", record)
    assert operations_file.read_record(tmp_path / "operations.json") == record
    assert json.loads((tmp_path / "operations.json").read_text())["operations"][0]["name"] == recorded.BATCH


@pytest.mark.parametrize(
    "edit",
    [
        *[("steps", 0), ("steps", "2"), ("step_us", -1.0), ("step_us", 0), ("calls", None), ("calls", 0), ("total_us", "a")],
        *[("type", 7), ("matmul_peak_gflops", {"float32": 0}), ("gpus", {"GPU:0": {"steps": 0, "busy_us": 1.0}})],
    ],
)
def test_a_file_with_a_value_of_another_kind_is_a_problem_of_one_line(tmp_path, edit):
    path, (name, value) = tmp_path / "operations.json", edit
    operations_file.write(path, recorded.on_gpu())
    values = json.loads(path.read_text())
    (values if name in values else values["operations"][0])[name] = value
    path.write_text(json.dumps(values))
    with pytest.raises(DataError, match="this is not a list of operations as --profile_steps writes it; record it again"):
        operations_file.read_record(path)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"operations": [{}], "gpus": {}}', '{"operations": [], "gpus": {}, "more": 1}']
)
def test_another_file_is_a_problem_of_one_line(tmp_path, text):
    path = tmp_path / "operations.json"
    path.write_text(text)
    with pytest.raises(DataError, match="this is not a list of operations as --profile_steps writes it; record it again"):
        operations_file.read_record(path)


@pytest.mark.parametrize(
    ("intervals", "expected"),
    [
        ([], 0),
        ([(5, 7)], 2),
        ([(5, 7), (6, 9), (1, 2)], 5),  # 1-2 and 5-9
        ([(0, 10), (2, 3), (4, 12)], 12),  # the second lies within the first
        ([(3, 3), (0, 1)], 1),
        ([(1_700_000_000_123_456_789, 1_700_000_000_123_456_790)], 1),  # nanoseconds since 1970
    ],
)
def test_what_intervals_cover_counts_once(intervals, expected):
    starts, ends = np.array(intervals, np.int64).reshape(-1, 2).T
    assert step_stats.covered(starts, ends) == expected

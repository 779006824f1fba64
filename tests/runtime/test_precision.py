"""Which formats there are, and what is said of each on which machine."""

from __future__ import annotations

import pytest
import tensorflow as tf

from bert_tf.runtime import precision

CPUS = {
    "old": "flags\t\t: fpu sse4_2 avx2 avx512f\nbugs\t\t: spectre_v1\n",
    "avx512_bf16": "flags\t\t: fpu avx512f avx512_bf16\n",
    "amx_bf16": "flags\t\t: fpu avx512f amx_bf16 amx_tile\n",
    "none": None,
}


@pytest.fixture
def cpu(monkeypatch, tmp_path):
    """A machine without GPU whose processor is a row of `CPUS`."""

    def arrange(name):
        monkeypatch.setattr(tf.config, "get_visible_devices", lambda _: [])
        monkeypatch.setattr(precision, "_CPU_INFO", tmp_path / "cpuinfo")
        if CPUS[name] is not None:
            (tmp_path / "cpuinfo").write_text(CPUS[name])

    return arrange


@pytest.fixture
def gpu(monkeypatch, tmp_path):
    """A machine with a GPU of a compute capability, and an old processor."""

    def arrange(capability):
        details = {} if capability is None else {"compute_capability": capability}
        monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: ["a GPU"] if kind == "GPU" else [])
        monkeypatch.setattr(tf.config.experimental, "get_device_details", lambda _: details)
        monkeypatch.setattr(precision, "_CPU_INFO", tmp_path / "none")

    return arrange


@pytest.mark.parametrize("name", ["old", "avx512_bf16", "amx_bf16", "none"])
@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("tf32", "tf32 is a format of GPUs; the CPU computes in float32"),
        ("float16", "this CPU has no instructions for float16; float32 is faster"),
    ],
)
def test_no_cpu_computes_in_formats_of_gpus(cpu, name, wanted, said):
    cpu(name)
    assert precision.slow_reason(wanted) == said


@pytest.mark.parametrize(("name", "fast"), [("old", False), ("none", False), ("avx512_bf16", True), ("amx_bf16", True)])
def test_some_cpus_compute_in_bfloat16(cpu, name, fast):
    cpu(name)
    assert precision.slow_reason("bfloat16") == (
        None if fast else "this CPU has no instructions for bfloat16; float32 is faster"
    )


@pytest.mark.parametrize(
    ("capability", "slow"),
    [
        ((6, 1), {"tf32", "bfloat16", "float16"}),
        ((7, 0), {"tf32", "bfloat16"}),
        ((7, 5), {"tf32", "bfloat16"}),
        ((8, 0), set()),
        ((10, 0), set()),
        (None, {"tf32", "bfloat16", "float16"}),
    ],
)
def test_the_capability_of_a_gpu_decides(gpu, capability, slow):
    gpu(capability)
    assert {name for name in precision.PRECISIONS if precision.slow_reason(name)} == slow


def test_a_misgiving_names_what_the_gpu_is_and_what_it_should_be(gpu):
    gpu((6, 1))
    assert precision.slow_reason("float16") == "GPU of compute capability 6.1 has no matrix units for float16 (from 7.0)"


@pytest.mark.parametrize("name", ["default", "float32"])
def test_nothing_is_said_of_float32(cpu, name):
    cpu("old")
    assert precision.slow_reason(name) is None
    assert precision.remark(name) is None


@pytest.mark.parametrize(
    ("capability", "computed", "said"),
    [((6, 1), "float32", None), ((7, 5), "float32", None), ((8, 0), "tf32", "TF32"), ((9, 0), "tf32", "TF32")],
)
def test_the_default_is_that_of_tensorflow(gpu, capability, computed, said):
    gpu(capability)
    assert precision.computed("default") == precision.computed("tf32") == computed
    assert (said in precision.remark("default")) if said else precision.remark("default") is None
    assert precision.computed("float32") == "float32"
    assert (precision.remark("float32") is None) == (said is None)


def test_what_is_recorded_is_what_was_computed(cpu):
    cpu("old")
    found = {name: precision.computed(name) for name in precision.PRECISIONS}
    half = {"bfloat16": "bfloat16", "float16": "float16"}
    assert found == {"default": "float32", "float32": "float32", "tf32": "float32", **half}


@pytest.fixture
def _tensor_float_32():
    before = tf.config.experimental.tensor_float_32_execution_enabled()
    yield
    tf.config.experimental.enable_tensor_float_32_execution(before)


@pytest.mark.usefixtures("_tensor_float_32")
@pytest.mark.parametrize(
    ("name", "on"), [("default", True), ("float32", False), ("tf32", True), ("bfloat16", False), ("float16", False)]
)
@pytest.mark.parametrize("before", [False, True])
def test_tensor_float_32_is_on_unless_another_format_is_asked_for(name, on, before):
    tf.config.experimental.enable_tensor_float_32_execution(before)
    assert precision.use(name) is precision.PRECISIONS[name]
    assert tf.config.experimental.tensor_float_32_execution_enabled() == on


def test_only_float16_scales_the_loss():
    assert {name for name, row in precision.PRECISIONS.items() if row.loss_scaling} == {"float16"}

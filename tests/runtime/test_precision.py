"""Which formats there are, and what is said of each on which machine."""

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


@pytest.mark.parametrize(("name", "fast"), [("old", False), ("none", False), ("avx512_bf16", True), ("amx_bf16", True)])
def test_formats_of_cpus(cpu, name, fast):
    cpu(name)
    slow = "this CPU has no instructions for {}; float32 is faster"
    assert {key: precision.slow_reason(key) for key in precision.PRECISIONS} == {
        "default": None,
        "float32": None,
        "tf32": "tf32 is a format of GPUs; the CPU computes in float32",
        "float16": slow.format("float16"),
        "bfloat16": None if fast else slow.format("bfloat16"),
    }
    assert precision.remark("default") is precision.remark("float32") is None
    computed = {key: precision.computed(key) for key in precision.PRECISIONS}
    assert computed == {**dict.fromkeys(precision.PRECISIONS, "float32"), "bfloat16": "bfloat16", "float16": "float16"}


@pytest.mark.parametrize(
    ("capability", "slow", "computed"),
    [
        ((6, 1), {"tf32", "bfloat16", "float16"}, "float32"),
        ((7, 0), {"tf32", "bfloat16"}, "float32"),
        ((7, 5), {"tf32", "bfloat16"}, "float32"),
        ((8, 0), set(), "tf32"),
        ((10, 0), set(), "tf32"),
        (None, {"tf32", "bfloat16", "float16"}, "float32"),
    ],
)
def test_formats_of_gpus(monkeypatch, tmp_path, capability, slow, computed):
    details = {} if capability is None else {"compute_capability": capability}
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: ["a GPU"] if kind == "GPU" else [])
    monkeypatch.setattr(tf.config.experimental, "get_device_details", lambda _: details)
    monkeypatch.setattr(precision, "_CPU_INFO", tmp_path / "none")
    reasons = {name: precision.slow_reason(name) for name in precision.PRECISIONS}
    assert {name for name, reason in reasons.items() if reason} == slow
    if capability == (6, 1):
        assert reasons["float16"] == "GPU of compute capability 6.1 has no matrix units for float16 (from 7.0)"
    assert [precision.computed(name) for name in ("default", "tf32", "float32")] == [computed, computed, "float32"]
    assert ["TF32" in (precision.remark(name) or "") for name in ("default", "float32")] == [computed == "tf32"] * 2


@pytest.mark.parametrize(
    ("name", "on"), [("default", True), ("float32", False), ("tf32", True), ("bfloat16", False), ("float16", False)]
)
@pytest.mark.parametrize("before", [False, True])
def test_tensor_float_32_is_on_unless_another_format_is_asked_for(name, on, before):
    usual = tf.config.experimental.tensor_float_32_execution_enabled()
    try:
        tf.config.experimental.enable_tensor_float_32_execution(before)
        assert precision.use(name) is precision.PRECISIONS[name]
        assert tf.config.experimental.tensor_float_32_execution_enabled() == on
    finally:
        tf.config.experimental.enable_tensor_float_32_execution(usual)


def test_only_float16_scales_the_loss():
    assert {name for name, row in precision.PRECISIONS.items() if row.loss_scaling} == {"float16"}

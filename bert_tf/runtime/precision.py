"""Number formats of matrix products, and whether this machine supports them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import tensorflow as tf

_CPU_INFO = Path("/proc/cpuinfo")
# By format: CPU instructions for matrix products, and the compute capability from which NVIDIA's matrix units support it.
_INSTRUCTIONS = {"bfloat16": ("amx_bf16", "avx512_bf16"), "int8": ("amx_int8", "avx512_vnni", "avx_vnni")}
_TENSOR_CORES = {"float16": (7, 0), "bfloat16": (8, 0), "tf32": (8, 0)}


class Precision(NamedTuple):
    """The meaning of one value of the flag."""

    dtype: tf.DType  # of activations and matrix products
    loss_scaling: bool = False
    tensor_float_32: bool = False


DEFAULT = "default"  # TensorFlow's own

PRECISIONS = {
    DEFAULT: Precision(tf.float32, tensor_float_32=True),
    "float32": Precision(tf.float32),
    "tf32": Precision(tf.float32, tensor_float_32=True),
    "bfloat16": Precision(tf.bfloat16),
    "float16": Precision(tf.float16, loss_scaling=True),
}


def use(name: str) -> Precision:
    precision = PRECISIONS[name]
    tf.config.experimental.enable_tensor_float_32_execution(precision.tensor_float_32)
    return precision


def slow_reason(name: str) -> str | None:
    if name in (DEFAULT, "float32"):
        return None
    gpus = tf.config.get_visible_devices("GPU")
    if gpus:
        needed = _TENSOR_CORES[name]
        capability = _capability(gpus[0])
        if capability >= needed:
            return None
        return "GPU of compute capability %d.%d has no matrix units for %s (from %d.%d)" % (*capability, name, *needed)
    if name == "tf32":
        return "tf32 is a format of GPUs; the CPU computes in float32"
    if name == "bfloat16" and cpu_computes(name):
        return None
    return f"this CPU has no instructions for {name}; float32 is faster"


def remark(name: str) -> str | None:
    if computed(DEFAULT) != "tf32":  # no choice
        return None
    return {
        DEFAULT: "matrix products in TF32, TensorFlow's default; --precision=float32 computes them in full precision",
        "float32": "matrix products in strict float32; TensorFlow's default here is TF32, several times as fast",
    }.get(name)


def computed(name: str) -> str:
    """Actual format of matrix products: the flag's, or TF32 if a GPU uses it by itself."""
    if not PRECISIONS[name].tensor_float_32:
        return name
    gpus = tf.config.get_visible_devices("GPU")
    return "tf32" if gpus and _capability(gpus[0]) >= _TENSOR_CORES["tf32"] else "float32"


def cpu_computes(name: str) -> bool:
    return name == "float32" or bool(_of_cpu(name))


def cpu_units() -> str:
    units = [*_of_cpu("bfloat16"), *_of_cpu("int8")]
    return ", ".join(units).upper().replace("_", "-") or "nothing for bfloat16 or int8"


def _of_cpu(name: str) -> list[str]:
    flags = _CPU_INFO.read_text(encoding="utf-8").split() if _CPU_INFO.exists() else ()
    return [flag for flag in _INSTRUCTIONS.get(name, ()) if flag in flags]


def _capability(gpu: tf.config.PhysicalDevice) -> tuple[int, int]:
    capability: tuple[int, int] = tf.config.experimental.get_device_details(gpu).get("compute_capability", (0, 0))
    return capability

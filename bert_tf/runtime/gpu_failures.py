"""Explains failures of GPU, driver and libraries in one line. Does not import TensorFlow.

TensorFlow reports lack of memory as `ResourceExhaustedError`. Other GPU failures are internal errors in CUDA's words;
few causes are behind most of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from bert_tf import extension
from bert_tf.runtime import nvidia

_SHOWN = 200  # characters of TensorFlow's own message
_NAMED = 3  # processes listed
_ON_CPU = "--visible_gpus=none computes on the CPU"


def explain(message: str) -> str | None:
    """Explanation of TensorFlow's message; None if the failure is not about a GPU."""
    for pattern, meaning, remedy in _KINDS:
        match = re.search(pattern, message, re.IGNORECASE)
        if match:
            return f"GPU: {_line_around(message, match.start())}: {meaning}; {remedy() if callable(remedy) else remedy}"
    return None


def others() -> str:
    """Other processes with most GPU memory, according to nvidia-smi; "" if none."""
    most = sorted(nvidia.other_processes(), key=lambda process: process.memory_mb or 0, reverse=True)[:_NAMED]
    return ", ".join(f"{p.name} (PID {p.pid}) has {p.memory_mb or '?'} MiB of the GPU at {p.address}" for p in most)


def _line_around(message: str, position: int) -> str:
    line = message[message.rfind("\n", 0, position) + 1 :].partition("\n")[0].strip()
    start = max(0, position - message.rfind("\n", 0, position) - _SHOWN // 2)
    return line if len(line) <= _SHOWN else f"...{line[start : start + _SHOWN]}..."


def _make_room() -> str:
    users = others()
    if users:
        return f"{users}: end it, wait, or take another GPU with --visible_gpus"
    return "nvidia-smi lists who has it: end them, take another GPU (--visible_gpus), or lower batch or --gpu_memory_limit_mb"


# Patterns of messages, their meaning and remedy. The first match counts; the last covers all else that CUDA and its libraries
# report. The wording is that of the libraries of TensorFlow 2.15 and CUDA 12.
_KINDS: tuple[tuple[str, str, str | Callable[[], str]], ...] = (
    (
        r"no kernel image is available|device kernel image is invalid|unsupported toolchain|CUDNN_STATUS_ARCH_MISMATCH"
        r"|CUDA_ERROR_(NO_BINARY_FOR_GPU|INVALID_PTX|UNSUPPORTED_PTX_VERSION|INVALID_IMAGE|JIT_COMPILER_NOT_FOUND)"
        r"|CUBLAS_STATUS_ARCH_MISMATCH",
        "TensorFlow has no code for this GPU that its driver can use",
        f"install a newer driver, take another GPU with --visible_gpus, or {_ON_CPU}",
    ),
    (
        r"devices are busy or unavailable|CUDA_ERROR_DEVICE_UNAVAILABLE",
        "another process has it to itself",
        lambda: f"{others() or 'nvidia-smi lists which'}: end it, or share the GPU (sudo nvidia-smi -c DEFAULT)",
    ),
    (
        r"illegal (memory access|instruction|address)|unspecified launch failure|launch timed out|misaligned address"
        r"|GPU sync failed|uncorrectable (ECC|NVLink)|device-side assert|Unexpected Event status|fallen off the bus|GPU is lost"
        r"|CUDA_ERROR_(ILLEGAL_\w+|LAUNCH_\w+|MISALIGNED_ADDRESS|ECC_UNCORRECTABLE|NVLINK_UNCORRECTABLE"
        r"|HARDWARE_STACK_ERROR|ASSERT|EXTERNAL_DEVICE)|CU(DNN|BLAS)_STATUS_(EXECUTION_FAILED|MAPPING_ERROR)",
        "it failed while it computed",
        "the same command continues from the last checkpoint; if it fails again, dmesg (Xid) says why",
    ),
    (
        r"\bNCCL operation\b|\binvoking NCCL\b|\bnccl\w+Error|unhandled (cuda|system) error|NCCL error",
        "GPUs cannot reach each other",
        "NCCL_DEBUG=INFO shows why; a container may lack room in /dev/shm (--ipc=host);"
        " without NCCL: --cross_device_ops=reduce_to_one, of several machines --all_reduce_alg=ring",
    ),
    (
        r"Status: out of memory|CUDA_ERROR_OUT_OF_MEMORY|CU\w+_STATUS_(ALLOC_FAILED|NOT_INITIALIZED|INTERNAL_ERROR)"
        r"|(create|initialize) (an instance of the )?(cublas|cudnn|cusolver|cufft|blas)|without (BLAS|DNN|FFT) support"
        r"|DNN library is not found|no DNN in stream executor|Blas \w+ launch failed|failed to create CUDA context"
        r"|Dst tensor is not initialized|EigenAllocator for GPU ran out of memory|Failed to alloc scratch buffer"
        r"|Failed to get memory allocator for TF GPU",
        "no GPU memory is left, for example because another process uses it",
        _make_room,
    ),
    (
        r"\bcuda(Get|Set)Device(Count)?\(\)|implicit initialization|driver version is insufficient|no CUDA-capable device"
        r"|system not yet initialized|forward compatibility was attempted|unsupported display driver"
        r"|Failed to get the number of GPU devices|Failed to initialize GPU device|\bCUDA_ERROR_\w|\bCU(DNN|BLAS)_STATUS_\w",
        "its driver or its libraries refuse to work",
        lambda: extension.advice("devices", "python -m bert_tf devices says more; ") + _ON_CPU,
    ),
)

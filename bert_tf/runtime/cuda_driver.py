"""Starts the CUDA driver to learn whether it works: cuInit is the first call of every GPU program."""

from __future__ import annotations

import contextlib
import ctypes
from typing import NamedTuple

LIBRARY = "libcuda.so.1"


class Answer(NamedTuple):
    """The meaning of a cuInit result other than 0."""

    name: str
    meaning: str
    remedy: str


_AGAIN = "restart the machine, so that its kernel loads the driver that is installed"
_SHOWN = "look at CUDA_VISIBLE_DEVICES; start a container with --gpus all"
_MPS = "start nvidia-cuda-mps-control -d again, or unset CUDA_MPS_PIPE_DIRECTORY"
# By number: cuda.h of CUDA 12.2.140, and for 35 driver_types.h. The meanings are those found in users' reports.
_ANSWERS = {
    2: Answer("CUDA_ERROR_OUT_OF_MEMORY", "no memory of the GPU is left", "end other processes: nvidia-smi lists them"),
    3: Answer(
        "CUDA_ERROR_NOT_INITIALIZED", "the driver's device files are missing", "sudo nvidia-modprobe -u -c=0 creates them"
    ),
    34: Answer(
        "CUDA_ERROR_STUB_LIBRARY", "the stub of CUDA's toolkit was loaded, not the driver", "take stubs/ out of LD_LIBRARY_PATH"
    ),
    35: Answer("cudaErrorInsufficientDriver", "the driver is too old", "install a newer driver"),
    46: Answer(
        "CUDA_ERROR_DEVICE_UNAVAILABLE",
        "another process has the GPU to itself",
        "end it, or share the GPU: sudo nvidia-smi -c DEFAULT",
    ),
    100: Answer("CUDA_ERROR_NO_DEVICE", "no GPU is shown to this process", _SHOWN),
    101: Answer(
        "CUDA_ERROR_INVALID_DEVICE",
        "there is no such GPU, or it is split by MIG and has no part yet",
        "nvidia-smi -L lists them",
    ),
    214: Answer(
        "CUDA_ERROR_ECC_UNCORRECTABLE", "the GPU's memory has an error", "restart the machine; if it stays, replace it"
    ),
    304: Answer("CUDA_ERROR_OPERATING_SYSTEM", "the system refused a call", "ask for read and write access to /dev/nvidia*"),
    802: Answer(
        "CUDA_ERROR_SYSTEM_NOT_READY",
        "the fabric manager of GPUs with NVSwitch does not run",
        "sudo systemctl start nvidia-fabricmanager on the host, in exactly the driver's version",
    ),
    803: Answer("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", f"{LIBRARY} and the kernel's driver differ in version", _AGAIN),
    804: Answer(
        "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
        "the driver is too old, and this GPU cannot use the compatibility package that was loaded instead",
        "install a newer driver, or take cuda-compat out of LD_LIBRARY_PATH",
    ),
    805: Answer("CUDA_ERROR_MPS_CONNECTION_FAILED", "the server that shares GPUs (MPS) does not answer", _MPS),
    807: Answer("CUDA_ERROR_MPS_SERVER_NOT_READY", "the server that shares GPUs (MPS) is not ready", _MPS),
    999: Answer(
        "CUDA_ERROR_UNKNOWN",
        "often after the machine was suspended",
        "sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm, or restart the machine",
    ),
}


def status() -> int | None:
    """Result of cuInit, 0 for success; None without a driver."""
    with contextlib.suppress(OSError, AttributeError):
        return int(ctypes.CDLL(LIBRARY).cuInit(0))
    return None


def answer(number: int) -> Answer:
    unknown = Answer(f"error {number}", "no reason is known", f"look for CUresult {number} in CUDA's manual, or in dmesg")
    return _ANSWERS.get(number, unknown)


def described(number: int) -> str:
    return f"cuInit returns {number}, {answer(number).name}"

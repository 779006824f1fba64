"""CUDA versions and architectures of the installed TensorFlow."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf

Capability = tuple[int, int]  # of a GPU: 8.6 is (8, 6)


@dataclasses.dataclass(frozen=True)
class Build:
    """The installed TensorFlow."""

    version: str
    is_cuda_build: bool  # can compute on NVIDIA GPUs
    cuda_version: str | None = None  # None without CUDA libraries
    cudnn_version: str | None = None  # None without cuDNN
    cuda_compute_capabilities: tuple[str, ...] = ()  # sm_50 (compiled) or compute_80 (PTX, also for newer GPUs)
    folder: str = ""  # of the package

    @property
    def lowest_capability(self) -> tuple[int, ...]:
        return min((found for _, found in self._targets()), default=(0, 0))

    def has_code_for(self, capability: Capability) -> bool:
        """Whether a GPU runs the compiled kernels: same major number, equal or later minor number."""
        return any(found[0] == capability[0] and found <= capability for _, found in self._targets())

    def has_source_for(self, capability: Capability) -> bool:
        """Whether the GPU's driver can compile the kernels from PTX."""
        return any(kind == "compute" and found <= capability for kind, found in self._targets())

    def _targets(self) -> Iterator[tuple[str, Capability]]:
        for name in self.cuda_compute_capabilities:
            kind, _, digits = name.rpartition("_")
            if len(digits) > 1 and digits.isdecimal():
                yield kind, (int(digits[:-1]), int(digits[-1]))


def installed() -> Build:
    info = tf.sysconfig.get_build_info()
    return Build(
        version=tf.__version__,
        is_cuda_build=bool(info.get("is_cuda_build")),
        cuda_version=info.get("cuda_version"),
        cudnn_version=info.get("cudnn_version"),
        cuda_compute_capabilities=tuple(info.get("cuda_compute_capabilities", ())),
        folder=str(Path(tf.__file__).parent),
    )

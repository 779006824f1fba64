"""CUDA versions and architectures of the installed TensorFlow."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf

Capability = tuple[int, int]  # of a GPU: 8.6 is (8, 6)


@dataclasses.dataclass(frozen=True)
class Build:
    """TensorFlow.

    Attributes:
      version: of TensorFlow.
      is_cuda_build: whether it can compute on NVIDIA's GPUs.
      cuda_version: of the libraries that it loads; None where it loads none.
      cudnn_version: of cuDNN; None where it loads none.
      cuda_compute_capabilities: of GPUs, as sm_50 (compiled for) or compute_80 (with PTX, for newer ones, too).
      folder: of the package.
    """

    version: str
    is_cuda_build: bool
    cuda_version: str | None = None
    cudnn_version: str | None = None
    cuda_compute_capabilities: tuple[str, ...] = ()
    folder: str = ""

    @property
    def lowest_capability(self) -> tuple[int, ...]:
        """The compute capability that a GPU must have."""
        return min((found for _, found in self._targets()), default=(0, 0))

    def has_code_for(self, capability: Capability) -> bool:
        """Whether a GPU runs kernels as they were compiled: they run on later ones with the same major number."""
        return any(found[0] == capability[0] and found <= capability for _, found in self._targets())

    def has_source_for(self, capability: Capability) -> bool:
        """Whether the driver of a GPU can compile the kernels for it, from PTX."""
        return any(kind == "compute" and found <= capability for kind, found in self._targets())

    def _targets(self) -> Iterator[tuple[str, Capability]]:
        for name in self.cuda_compute_capabilities:
            kind, _, digits = name.rpartition("_")
            if len(digits) > 1 and digits.isdecimal():
                yield kind, (int(digits[:-1]), int(digits[-1]))


def installed() -> Build:
    """Returns the build of the TensorFlow that runs."""
    info = tf.sysconfig.get_build_info()
    return Build(
        version=tf.__version__,
        is_cuda_build=bool(info.get("is_cuda_build")),
        cuda_version=info.get("cuda_version"),
        cudnn_version=info.get("cudnn_version"),
        cuda_compute_capabilities=tuple(info.get("cuda_compute_capabilities", ())),
        folder=str(Path(tf.__file__).parent),
    )

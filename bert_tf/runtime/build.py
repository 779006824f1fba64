"""What the installed TensorFlow was built for."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Build:
    """TensorFlow.

    Attributes:
      version: of TensorFlow.
      is_cuda_build: whether it can compute on NVIDIA's GPUs.
      cuda_version: of the libraries that it loads; None where it loads none.
      cudnn_version: likewise.
      cuda_compute_capabilities: of GPUs, as sm_50 (compiled for) or compute_80 (and newer).
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
        digits = [name.rpartition("_")[2] for name in self.cuda_compute_capabilities]
        return min(((int(text[:-1]), int(text[-1])) for text in digits if len(text) > 1 and text.isdecimal()), default=(0, 0))


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

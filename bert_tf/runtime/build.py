"""CUDA versions and architectures of the installed TensorFlow, and GPUs that are newer: the driver must compile its kernels."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path

import tensorflow as tf

from bert_tf.io.log_form import log

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
        return min((capability for _, capability in self._targets()), default=(0, 0))

    def has_code_for(self, capability: Capability) -> bool:
        """Whether a GPU runs the compiled kernels: same major number, equal or later minor number."""
        return any(compiled[0] == capability[0] and compiled <= capability for _, compiled in self._targets())

    def has_source_for(self, capability: Capability) -> bool:
        """Whether the GPU's driver can compile the kernels from PTX."""
        return any(kind == "compute" and compiled <= capability for kind, compiled in self._targets())

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


CACHE_SIZE, NO_CACHE = "CUDA_CACHE_MAXSIZE", "CUDA_CACHE_DISABLE"
ALL_KERNELS = 2 << 30  # bytes; what does not fit is compiled at each start

# The newest GPUs that cuBLAS and cuDNN have kernels for, by lowest CUDA version (release notes).
_LIBRARIES = (((12, 8), (12, 0)), ((11, 8), (9, 0)))


def warn(environment: Mapping[str, str]) -> None:
    build = installed()
    for gpu in tf.config.get_visible_devices("GPU"):
        details = tf.config.experimental.get_device_details(gpu)
        warning = compile_warning(details.get("compute_capability"), build, environment)
        if warning:
            log.warning("%s: %s", details.get("device_name", gpu.name), warning)


def compile_warning(capability: Capability | None, build: Build, environment: Mapping[str, str]) -> str | None:
    """Warning about a GPU that TensorFlow has no code for, else None; capability None if unknown."""
    if capability is None or capability < build.lowest_capability or build.has_code_for(capability):
        return None
    warning = "its compute capability {}.{} is newer than this TensorFlow {}".format(*capability, build.version)
    if not build.has_source_for(capability):
        return f"{warning}, which has no code for it: expect errors; --visible_gpus=none computes on the CPU"
    disabled = environment.get(NO_CACHE, "0") not in ("", "0")
    each = "at each start, since CUDA_CACHE_DISABLE is set" if disabled else "once for each user and driver"
    warning += f": its driver compiles the kernels, {each}, which takes minutes to half an hour without any output"
    if capability > _newest_of_libraries(build):
        return (
            f"{warning}, and may fail with CUDA_ERROR_INVALID_PTX, since this TensorFlow was built with"
            f" CUDA {build.cuda_version}, older than the GPU (tensorflow#89272); --visible_gpus=none computes on the CPU"
        )
    return f"{warning}; in a container keep ~/.nv/ComputeCache, or CUDA_CACHE_PATH, on a volume"


def _newest_of_libraries(build: Build) -> Capability:
    version = tuple(int(part) for part in (build.cuda_version or "").split(".") if part.isdecimal())
    return next((newest for since, newest in _LIBRARIES if version >= since), (0, 0))

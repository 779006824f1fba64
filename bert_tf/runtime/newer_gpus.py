"""GPUs newer than the installed TensorFlow: the driver must compile its kernels first, if it can."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

import tensorflow as tf

from bert_tf.log_form import log
from bert_tf.runtime import build
from bert_tf.runtime.build import Build, Capability

CACHE_SIZE, NO_CACHE = "CUDA_CACHE_MAXSIZE", "CUDA_CACHE_DISABLE"
_ALL_KERNELS = 2 << 30  # bytes; what does not fit is compiled at each start

# The newest GPUs that cuBLAS and cuDNN have kernels for, from a version of CUDA on (its release notes).
_LIBRARIES = (((12, 8), (12, 0)), ((11, 8), (9, 0)))


def keep_compiled(environment: MutableMapping[str, str]) -> None:
    """Enlarges the driver's kernel cache unless the user set its size; must run before the driver starts."""
    environment.setdefault(CACHE_SIZE, str(_ALL_KERNELS))


def warn(environment: Mapping[str, str]) -> None:
    installed = build.installed()
    for gpu in tf.config.get_visible_devices("GPU"):
        details = tf.config.experimental.get_device_details(gpu)
        said = compile_warning(details.get("compute_capability"), installed, environment)
        if said:
            log.warning("%s: %s", details.get("device_name", gpu.name), said)


def compile_warning(capability: Capability | None, installed: Build, environment: Mapping[str, str]) -> str | None:
    """Warning about a GPU that TensorFlow has no code for, else None; capability None if unknown."""
    if capability is None or capability < installed.lowest_capability or installed.has_code_for(capability):
        return None
    said = "its compute capability {}.{} is newer than this TensorFlow {}".format(*capability, installed.version)
    if not installed.has_source_for(capability):
        return f"{said}, which has no code for it: expect errors; --visible_gpus=none computes on the CPU"
    each = "at each start, since CUDA_CACHE_DISABLE is set" if _disabled(environment) else "once for each user and driver"
    said += f": its driver compiles the kernels, {each}, which takes minutes to half an hour without a word"
    if capability > _newest_of_libraries(installed):
        return (
            f"{said}, and may fail with CUDA_ERROR_INVALID_PTX, since this TensorFlow was built with"
            f" CUDA {installed.cuda_version}, older than the GPU (tensorflow#89272); --visible_gpus=none computes on the CPU"
        )
    return f"{said}; in a container keep ~/.nv/ComputeCache, or CUDA_CACHE_PATH, on a volume"


def _disabled(environment: Mapping[str, str]) -> bool:
    return environment.get(NO_CACHE, "0") not in ("", "0")


def _newest_of_libraries(installed: Build) -> Capability:
    version = tuple(int(part) for part in (installed.cuda_version or "").split(".") if part.isdecimal())
    return next((newest for since, newest in _LIBRARIES if version >= since), (0, 0))

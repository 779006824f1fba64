"""Why TensorFlow does not use a GPU of the machine, and the remedy."""

from __future__ import annotations

import dataclasses
import shlex
import sys
from typing import NamedTuple

from bert_tf.runtime import nvidia
from bert_tf.runtime.build import Build
from bert_tf.runtime.nvidia import Gpu, System

HIDING = "CUDA_VISIBLE_DEVICES"

_NO_DEVICE = 100  # of cuInit
# By CUDA's major version: libraries, cuDNN included, that TensorFlow 2.15 and 2.21 load before they use a GPU (seen with
# LD_DEBUG=libs and a stub driver); if one is missing, they use no GPU. libcurand is not required.
CUDA_LIBRARIES = {
    "12": (
        "libcudart.so.12",
        "libcublas.so.12",
        "libcublasLt.so.12",
        "libcufft.so.11",
        "libcusolver.so.11",
        "libcusparse.so.12",
    )
}
_LOWEST_OF_2_15 = (5, 0)  # compute capability; wheels since 2.17 have none of 5.x
_REPAIRED = {"2.15.0": "2.15.1"}  # the first's and-cuda requires TensorRT wheels that are unavailable (tensorflow#66517)
_OLDEST_DRIVER = {"11": 450, "12": 525}  # docs.nvidia.com/deploy/cuda-compatibility, table 1


@dataclasses.dataclass(frozen=True)
class Cause:
    code: str  # machine-readable reason, stable when texts change
    reason: str
    remedy: str


_CHOOSING = "--visible_gpus, --num_gpus, --device, --place or --strategy=one_device"
LEFT_OUT = Cause("hidden_by_flags", f"left out by {_CHOOSING}", "omit the flag, or include the GPU in it")
_UNKNOWN = Cause("unknown", "TensorFlow does not list it", "set TF_CPP_MIN_LOG_LEVEL=0: TensorFlow says why")
_NOT_FOUND = Cause(
    "no_gpu_found",
    "neither nvidia-smi, the driver nor the PCI bus knows an NVIDIA GPU",
    "if the host has one, start the container with --gpus all",
)


class Facts(NamedTuple):
    """Evidence for a diagnosis."""

    system: System
    build: Build
    hiding: str | None  # CUDA_VISIBLE_DEVICES; None if unset
    sees_another: bool  # TensorFlow uses another GPU: driver, libraries work


def causes(gpus: tuple[Gpu, ...], facts: Facts) -> list[tuple[Cause, ...]]:
    """All causes for each GPU that TensorFlow does not list, at least one per GPU."""
    common = _of_the_machine(facts) if gpus and not facts.sees_another else ()
    by_gpu = [_of_a_gpu(gpu, facts) + common for gpu in gpus]
    return [those or (_UNKNOWN,) for those in by_gpu]


def causes_of_none(facts: Facts) -> tuple[Cause, ...]:
    """Why no GPU is found at all; only the first missing piece, as libraries matter little without a driver."""
    hides_all = facts.hiding is not None and facts.hiding.strip().partition(",")[0] in ("", "-1")
    return (*([_hidden_by(facts.hiding)] if hides_all else []), _NOT_FOUND, *_of_the_machine(facts)[:1])


def _of_a_gpu(gpu: Gpu, facts: Facts) -> tuple[Cause, ...]:
    candidates = (_hidden(gpu, facts), _not_offered(gpu, facts), _too_old(gpu, facts), _forbidden())
    return tuple(cause for cause in candidates if cause)


def _hidden(gpu: Gpu, facts: Facts) -> Cause | None:
    if gpu in _shown(facts) or (facts.system.offered and gpu.number is None):
        return None
    return _hidden_by(facts.hiding)


def _shown(facts: Facts) -> tuple[Gpu, ...]:
    return nvidia.listed(facts.system.offered or facts.system.gpus, facts.hiding)


def _hidden_by(value: str | None) -> Cause:
    return Cause("hidden_by_environment", f"hidden by {HIDING}={value!r}", f"unset {HIDING}, or name the GPU in it")


def _not_offered(gpu: Gpu, facts: Facts) -> Cause | None:
    if gpu.number is not None or not facts.system.offered:
        return None
    return Cause("not_offered", "nvidia-smi does not list it", "give it to this container, or bind it to NVIDIA's driver")


def _too_old(gpu: Gpu, facts: Facts) -> Cause | None:
    needed = facts.build.lowest_capability
    if gpu.compute_capability is None:
        return None
    capability = tuple(map(int, gpu.compute_capability.split(".")))
    if capability >= needed:
        return None
    lowest = "{}.{}".format(*needed)
    reason = f"its compute capability is {gpu.compute_capability}, TensorFlow {facts.build.version} needs {lowest} or higher"
    if capability >= _LOWEST_OF_2_15 and not facts.build.version.startswith("2.15."):
        return Cause(
            "gpu_too_old",
            reason,
            "use TensorFlow 2.15, which supports it: pip install -r requirements-2.15.txt on Python 3.9 to 3.11",
        )
    return Cause("gpu_too_old", reason, "use a newer GPU")


def _forbidden() -> Cause | None:
    files = nvidia.forbidden_files()
    if not files:
        return None
    return Cause("no_permission", f"no permission to use {', '.join(files)}", "ask for read and write access to them")


def _of_the_machine(facts: Facts) -> tuple[Cause, ...]:
    if not facts.build.is_cuda_build:
        return (Cause("no_cuda_build", "this TensorFlow is built without CUDA", _install(facts)),)
    candidates = (_no_driver(facts), _driver_down(facts), _old_driver(facts), _not_started(facts), _no_libraries(facts))
    return tuple(cause for cause in candidates if cause)


def _install(facts: Facts) -> str:
    version = _REPAIRED.get(facts.build.version, facts.build.version)
    return f"{shlex.quote(sys.executable)} -m pip install 'tensorflow[and-cuda]=={version}'"


def _no_driver(facts: Facts) -> Cause | None:
    problems = nvidia.not_loaded([nvidia.LIBRARY], facts.build.folder)
    if not problems:
        return None
    reason = f"no NVIDIA driver: cannot load {problems[0]}"
    return Cause("no_driver", reason, "install the driver, or start the container with --gpus all")


def _driver_down(facts: Facts) -> Cause | None:
    if facts.system.driver_problem:
        return Cause("driver_not_running", facts.system.driver_problem, "restart the machine, or install the driver again")
    if nvidia.has_device_files() or facts.system.offered:
        return None
    remedy = "load the driver's kernel module, or start the container with --gpus all"
    return Cause("driver_not_running", "no /dev/nvidiactl", remedy)


def _old_driver(facts: Facts) -> Cause | None:
    cuda = facts.build.cuda_version or ""
    oldest, version = _OLDEST_DRIVER.get(cuda.partition(".")[0]), (facts.system.driver_version or "").partition(".")[0]
    if oldest is None or not version.isdecimal() or int(version) >= oldest:
        return None
    reason = f"the driver is {facts.system.driver_version}, CUDA {cuda} needs {oldest} or newer"
    return Cause("driver_too_old", reason, f"install driver {oldest} or newer")


def _not_started(facts: Facts) -> Cause | None:
    number = nvidia.status()
    if not number or (number == _NO_DEVICE and not _shown(facts)):  # all hidden or none present: reported elsewhere
        return None
    _, meaning, remedy = nvidia.answer(number)
    return Cause("driver_does_not_start", f"{nvidia.describe_status(number)}: {meaning}", remedy)


def libraries(build: Build) -> tuple[str, ...]:
    """File names of the CUDA and cuDNN libraries that a build loads; empty for an unknown CUDA version."""
    of_cuda = CUDA_LIBRARIES.get((build.cuda_version or "").partition(".")[0], ())
    cudnn = (build.cudnn_version or "").partition(".")[0]
    return (*of_cuda, f"libcudnn.so.{cudnn}") if of_cuda and cudnn else of_cuda


def _no_libraries(facts: Facts) -> Cause | None:
    needed = libraries(facts.build)
    problems = nvidia.not_loaded(needed, facts.build.folder)
    return Cause("no_cuda_libraries", f"cannot load {', '.join(problems)}", _install(facts)) if problems else None

"""What TensorFlow was built for, why it does not use a GPU of the machine, and the remedy."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf

from bert_tf.io.log_form import log
from bert_tf.runtime import nvidia
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
CACHE_SIZE, NO_CACHE = "CUDA_CACHE_MAXSIZE", "CUDA_CACHE_DISABLE"
ALL_KERNELS = 2 << 30  # bytes; what does not fit is compiled at each start

# The newest GPUs that cuBLAS and cuDNN have kernels for, by lowest CUDA version (release notes).
_LIBRARIES = (((12, 8), (12, 0)), ((11, 8), (9, 0)))

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


def installed_build() -> Build:
    info = tf.sysconfig.get_build_info()
    return Build(
        version=tf.__version__,
        is_cuda_build=bool(info.get("is_cuda_build")),
        cuda_version=info.get("cuda_version"),
        cudnn_version=info.get("cudnn_version"),
        cuda_compute_capabilities=tuple(info.get("cuda_compute_capabilities", ())),
        folder=str(Path(tf.__file__).parent),
    )


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


def unused_gpu_warning() -> str | None:
    """Warns that the CPU computes although there is a GPU; None without a GPU, or if TensorFlow lists one."""
    with contextlib.suppress(RuntimeError, ValueError, tf.errors.OpError):
        if tf.config.list_physical_devices("GPU"):
            return None
    system = nvidia.survey()
    if not system.gpus:
        return None
    facts = Facts(system, installed_build(), os.environ.get(HIDING), sees_another=False)
    names, of_first = ", ".join(map(str, system.gpus)), causes(system.gpus, facts)[0]
    reasons = "; ".join(cause.reason for cause in of_first)
    remedies = "; ".join(dict.fromkeys(cause.remedy for cause in of_first))
    return " ".join(f"computing on the CPU, although there is {names}: {reasons}. To use it: {remedies}".split())


def causes(gpus: tuple[Gpu, ...], facts: Facts) -> list[tuple[Cause, ...]]:
    """All causes for each GPU that TensorFlow does not list, at least one per GPU."""
    common = _of_the_machine(facts) if gpus and not facts.sees_another else ()
    of_each = ((_hidden(gpu, facts), _not_offered(gpu, facts), _too_old(gpu, facts), _forbidden(), *common) for gpu in gpus)
    return [tuple(filter(None, candidates)) or (_UNKNOWN,) for candidates in of_each]


def causes_of_none(facts: Facts) -> tuple[Cause, ...]:
    """Why no GPU is found at all; only the first missing piece, as libraries matter little without a driver."""
    hides_all = facts.hiding is not None and facts.hiding.strip().partition(",")[0] in ("", "-1")
    return (*([_hidden_by(facts.hiding)] if hides_all else []), _NOT_FOUND, *_of_the_machine(facts)[:1])


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


def warn_of_compilation(environment: Mapping[str, str]) -> None:
    build = installed_build()
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
    version = tuple(int(part) for part in (build.cuda_version or "").split(".") if part.isdecimal())
    newest = next((newest for since, newest in _LIBRARIES if version >= since), (0, 0))
    if capability > newest:
        return (
            f"{warning}, and may fail with CUDA_ERROR_INVALID_PTX, since this TensorFlow was built with"
            f" CUDA {build.cuda_version}, older than the GPU (tensorflow#89272); --visible_gpus=none computes on the CPU"
        )
    return f"{warning}; in a container keep ~/.nv/ComputeCache, or CUDA_CACHE_PATH, on a volume"

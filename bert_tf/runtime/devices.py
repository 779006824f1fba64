"""Devices that TensorFlow sees and their memory: the sole owner of tf.config and session configurations."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
from collections.abc import Mapping, Sequence

import tensorflow as tf
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig

from bert_tf import extension
from bert_tf.errors import DeviceError
from bert_tf.io.log_form import log
from bert_tf.runtime import cgroup
from bert_tf.runtime.diagnosis import HIDING
from bert_tf.runtime.settings import ONE_DEVICE, DeviceSettings

try:  # the setter is public, the getter is private
    from tensorflow.python.framework.config import is_op_determinism_enabled
except ImportError:

    def is_op_determinism_enabled() -> bool:
        """True as the safe default if TensorFlow cannot tell: always correct, slightly slower."""
        return True


tf1 = tf.compat.v1

_XLA_ON_CPU = "--tf_xla_cpu_global_jit"
FORCED_GROWTH = "TF_FORCE_GPU_ALLOW_GROWTH"


def demands_determinism() -> bool:
    """Whether operations must be deterministic."""
    return bool(is_op_determinism_enabled())


def narrowed(settings: DeviceSettings, environment: Mapping[str, str]) -> DeviceSettings:
    """Hides GPUs that a single model copy does not use, since TensorFlow takes memory on all it sees.

    A GPU named by --device becomes the only one, so its number changes. `placement` rejects devices that do not exist.
    """
    numbers = _named_gpus(settings)
    if numbers is None:
        return settings
    if not numbers:  # the CPU
        return dataclasses.replace(settings, visible_gpus="none", num_gpus=None)
    gpus = _chosen_gpus(settings, environment)
    if max(numbers) >= len(gpus):
        return settings
    everyone = tf.config.list_physical_devices("GPU")
    visible = ",".join(str(everyone.index(gpu)) for gpu in gpus[min(numbers) : max(numbers) + 1])
    device = settings.device_name and f"/device:GPU:{_number(settings.device_name) % settings.virtual_devices}"
    return dataclasses.replace(settings, visible_gpus=visible, num_gpus=None, device=device)


def configure(settings: DeviceSettings, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Sets up the devices of this process, before TensorFlow uses them; respects TensorFlow's own variables.

    Returns the logical devices to compute on: all visible GPUs, else the CPUs. Raises DeviceError if a device does not exist,
    settings exclude each other, or TensorFlow already uses its devices.
    """
    gpus = _chosen_gpus(settings, environment)
    _refuse_contradictions(settings, gpus, environment)
    limit = settings.gpu_memory_limit_mb
    try:
        tf.config.set_visible_devices(gpus, "GPU")
        for gpu in gpus:
            if limit is None and _grows(settings, environment):
                tf.config.experimental.set_memory_growth(gpu, True)
            if limit is not None:
                part = tf.config.LogicalDeviceConfiguration(memory_limit=limit // settings.virtual_devices)
                tf.config.set_logical_device_configuration(gpu, [part] * settings.virtual_devices)
        if not gpus and settings.virtual_devices > 1:
            logical = [tf.config.LogicalDeviceConfiguration()] * settings.virtual_devices
            tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], logical)
        if settings.deterministic:
            tf.config.experimental.enable_op_determinism()
        _set_threads(settings)
    except RuntimeError as error:  # not every message names the setting
        raise DeviceError(f"devices must be set up before TensorFlow first uses them: {error}") from error
    kind, count = ("GPU", len(gpus)) if gpus else ("CPU", 1)
    return tuple(f"/device:{kind}:{number}" for number in range(count * settings.virtual_devices))


def session_config(settings: DeviceSettings | None = None, *, xla: bool = False) -> tf1.ConfigProto:
    """Configuration required by every session: without it, a session ignores `configure`."""
    settings = settings or DeviceSettings()
    intra, inter = _threads(settings)
    config = tf1.ConfigProto(
        allow_soft_placement=settings.soft_placement,
        intra_op_parallelism_threads=intra,
        inter_op_parallelism_threads=inter,
    )
    gpus = tf.config.get_visible_devices("GPU")
    if gpus:
        everyone = tf.config.list_physical_devices("GPU")
        options = config.gpu_options
        options.visible_device_list = ",".join(str(everyone.index(gpu)) for gpu in gpus)
        options.allow_growth = _grows(settings, os.environ)
        if settings.gpu_memory_limit_mb is not None:
            part = settings.gpu_memory_limit_mb // settings.virtual_devices
            for _ in gpus:
                options.experimental.virtual_devices.add(memory_limit_mb=[part] * settings.virtual_devices)
    else:
        config.device_count["GPU"] = 0
        config.device_count["CPU"] = settings.virtual_devices
    # Turns off graph passes that find nothing in an encoder, and the second round: half of the first step's time.
    rewrites = config.graph_options.rewrite_options
    if not gpus:  # with GPUs, it moves tensors to the host
        rewrites.memory_optimization = RewriterConfig.NO_MEM_OPT
    rewrites.meta_optimizer_iterations = RewriterConfig.ONE
    rewrites.layout_optimizer = rewrites.loop_optimization = rewrites.shape_optimization = RewriterConfig.OFF
    if xla:
        config.graph_options.optimizer_options.global_jit_level = tf1.OptimizerOptions.ON_2
    return config


def allow_xla_on_cpu() -> None:
    """Lets sessions compile for the CPU as well; only effective before the first session."""
    flags = os.environ.get("TF_XLA_FLAGS", "")
    if _XLA_ON_CPU not in flags:
        os.environ["TF_XLA_FLAGS"] = f"{flags} {_XLA_ON_CPU}".strip()


def _named_gpus(settings: DeviceSettings) -> set[int] | None:
    """Chosen GPUs that one model copy computes on; None if each has a copy."""
    if settings.place:
        devices = [rule.device for rule in settings.rules]
        return {0, *(_number(name) // settings.virtual_devices for name in devices if "GPU" in name)}
    device = settings.device_name
    if device:
        return {_number(device) // settings.virtual_devices} if "GPU" in device else set()
    return {0} if settings.strategy == ONE_DEVICE else None


def _number(device: str) -> int:
    return int(device.rpartition(":")[2])


def _chosen_gpus(settings: DeviceSettings, environment: Mapping[str, str]) -> list[tf.config.PhysicalDevice]:
    gpus = tf.config.list_physical_devices("GPU")
    chosen = gpus if settings.visible_gpus is None else [gpus[i] for i in _numbers(settings.visible_gpus, gpus, environment)]
    if settings.num_gpus is not None:
        if settings.num_gpus > len(chosen):
            fewer = f"{len(chosen)} visible (--visible_gpus={settings.visible_gpus})"
            problem = fewer if len(chosen) < len(gpus) else _seen(gpus, environment)
            raise DeviceError(f"--num_gpus={settings.num_gpus}: {problem}")
        chosen = chosen[: settings.num_gpus]
    return chosen


def _numbers(text: str, gpus: Sequence[tf.config.PhysicalDevice], environment: Mapping[str, str]) -> list[int]:
    if text.strip().lower() == "none":
        return []
    numbers = []
    for part in text.split(","):
        if not re.fullmatch(r"\s*\d{1,9}\s*", part):
            raise DeviceError(f"--visible_gpus={text}: write numbers with commas, as in 0,2, or none")
        numbers.append(int(part))
    if len(set(numbers)) < len(numbers):
        raise DeviceError(f"--visible_gpus={text}: a GPU is named twice")
    if max(numbers) >= len(gpus):
        raise DeviceError(f"--visible_gpus={text}: {_seen(gpus, environment)}")
    return sorted(numbers)  # as TensorFlow counts them, whatever their order here


def _seen(gpus: Sequence[tf.config.PhysicalDevice], environment: Mapping[str, str]) -> str:
    numbers = ", ".join(map(str, range(len(gpus))))
    why = extension.advice("devices", " (python -m bert_tf devices says why)")
    message = f"TensorFlow sees GPU {numbers}" if gpus else f"TensorFlow sees no GPU{why}"
    if HIDING in environment:
        message += f"; {HIDING}={environment[HIDING]} in the environment, and numbers count from 0 within it"
    return message


def _grows(settings: DeviceSettings, environment: Mapping[str, str]) -> bool:
    """TensorFlow's own variable takes precedence, as in TensorFlow."""
    forced = environment.get(FORCED_GROWTH, "").lower()
    return settings.gpu_memory_growth if forced not in ("true", "false") else forced == "true"


def ignored_growth(environment: Mapping[str, str]) -> str | None:
    """Warning about an unsupported value of TensorFlow's own variable; None if it is valid."""
    value = environment.get(FORCED_GROWTH)
    if value is None or value.lower() in ("true", "false"):
        return None
    return f"{FORCED_GROWTH}={value} in the environment has no effect: TensorFlow takes true or false"


def _refuse_contradictions(
    settings: DeviceSettings, gpus: Sequence[tf.config.PhysicalDevice], environment: Mapping[str, str]
) -> None:
    limit = settings.gpu_memory_limit_mb
    if limit is not None and settings.gpu_memory_growth:
        raise DeviceError("--gpu_memory_growth and --gpu_memory_limit_mb exclude each other: a limit is taken at once")
    if settings.gpu_memory_growth and environment.get(FORCED_GROWTH, "").lower() == "false":
        raise DeviceError(f"--gpu_memory_growth contradicts {FORCED_GROWTH}=false in the environment: unset one of them")
    if (limit is not None or settings.gpu_memory_growth) and not gpus:
        name = "gpu_memory_growth" if limit is None else "gpu_memory_limit_mb"
        log.warning("--%s has no effect: %s", name, _seen(gpus, environment))
    if gpus and settings.virtual_devices > 1 and limit is None:
        raise DeviceError("--virtual_devices splits the memory of a GPU: add --gpu_memory_limit_mb")


def _threads(settings: DeviceSettings) -> tuple[int, int]:
    """Intra-op and inter-op threads; TensorFlow's own variables override the default."""
    return (
        settings.intra_op_threads or _default_threads("TF_NUM_INTRAOP_THREADS"),
        settings.inter_op_threads or _default_threads("TF_NUM_INTEROP_THREADS"),
    )


def _default_threads(variable: str) -> int:
    text = os.environ.get(variable, "")
    return int(text) if text.isdecimal() and int(text) else cgroup.granted_cpus()


def _set_threads(settings: DeviceSettings) -> None:
    """Sizes the thread pools of this process, created by the first user of a device, not always a session."""
    is_asked = settings.intra_op_threads or settings.inter_op_threads
    intra, inter = _threads(settings)
    with contextlib.nullcontext() if is_asked else contextlib.suppress(RuntimeError):
        tf.config.threading.set_intra_op_parallelism_threads(intra)
        tf.config.threading.set_inter_op_parallelism_threads(inter)

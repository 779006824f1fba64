"""Devices: available, unusable by TensorFlow, and chosen by settings."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bert_tf.errors import DeviceError
from bert_tf.io import documents
from bert_tf.io.text_table import Printed, counted, table
from bert_tf.library.keywords import takes
from bert_tf.operations.command import Call, Command, warnings_only
from bert_tf.runtime import gpu_failures, nvidia
from bert_tf.runtime.settings import DeviceSettings
from bert_tf.settings import Setting, read_settings

if TYPE_CHECKING:  # lazy import of TensorFlow: --help stays fast
    from bert_tf.runtime.diagnosis import Cause
    from bert_tf.runtime.inventory import Inventory

VARIABLES = (
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "NVIDIA_VISIBLE_DEVICES",
    "LD_LIBRARY_PATH",
    "TF_CONFIG",
    "TF_FORCE_GPU_ALLOW_GROWTH",
    "TF_XLA_FLAGS",
)


@dataclasses.dataclass(frozen=True)
class Choice:
    """Devices that a run with these settings would use."""

    strategy: str  # its name
    devices: tuple[str, ...]  # on this machine
    replicas: int  # on all machines, assumed to be like this one

    def __str__(self) -> str:
        return f"with these flags: strategy {self.strategy}, {counted(self.replicas, 'replica')} on {', '.join(self.devices)}"


@dataclasses.dataclass(frozen=True)
class Report(Printed):
    inventory: Inventory
    environment: Mapping[str, str]  # relevant variables
    choice: Choice | None  # None if setting up a GPU fails
    native_kernels: str = ""  # availability of CPU kernels, or why not
    problem: str | None = None  # why set-up fails

    def __str__(self) -> str:
        return "\n".join(_lines(self)) + "\n"


@takes(DeviceSettings)
def devices(**settings: Any) -> Report:
    """Reports the devices and what a run with these settings would use; as `python -m bert_tf devices`.

    It sets devices up, which happens once per process.

    Args:
      **settings: device flags, by name.

    Raises:
      BertError: the machine does not meet the settings.
    """
    return survey(read_settings(DeviceSettings, settings), environment=os.environ)


def survey(settings: DeviceSettings, *, environment: Mapping[str, str]) -> Report:
    from bert_tf.native import loading
    from bert_tf.runtime import inventory

    system = nvidia.survey()  # before TensorFlow takes the memory of the GPUs
    choice, problem = _plan(settings, environment)
    return Report(
        inventory=inventory.take(system, environment, left_out=settings.asks_for_cpu),
        environment={name: environment[name] for name in VARIABLES if name in environment},
        choice=choice,
        native_kernels=loading.state(environment),
        problem=problem,
    )


def _plan(settings: DeviceSettings, environment: Mapping[str, str]) -> tuple[Choice | None, str | None]:
    """Returns the choice, or why setting up a GPU fails; then the rest of the report helps."""
    from bert_tf.runtime import machine

    try:
        chosen = machine.plan(settings, environment=environment)
    except Exception as error:
        problem = gpu_failures.explain(str(error))
        if problem is None:
            raise
        return None, problem
    return Choice(chosen.strategy, chosen.devices, chosen.replicas), None


def as_json(report: Report) -> str:
    parts = {**dataclasses.asdict(report.inventory), "environment": dict(report.environment)}
    parts["native_kernels"] = report.native_kernels
    return documents.to_json({**parts, "choice": report.choice and dataclasses.asdict(report.choice)}, indent=2)


def _lines(report: Report) -> Iterator[str]:
    inventory = report.inventory
    yield f"TensorFlow {_build(inventory)}"
    yield f"CPU cores  {inventory.cpus_granted} granted, {inventory.cpus_present} present"
    yield f"native kernels  {report.native_kernels}"
    yield ""
    yield from _table(
        ("physical device", "model", "memory, MiB", "free", "compute capability"),
        [(d.name, d.model, d.memory_total_mb, d.memory_free_mb, d.compute_capability) for d in inventory.physical_devices],
    )
    yield ""
    yield from _table(("logical device", "memory limit, MiB"), [(d.name, d.memory_limit_mb) for d in inventory.logical_devices])
    yield ""
    unusable = [line for gpu in inventory.unusable_gpus for line in (gpu.name, *(f"  {text}" for text in _causes(gpu.causes)))]
    yield from _block("GPUs that TensorFlow does not use", unusable)
    yield from _block("no GPU is used", () if unusable else _causes(inventory.no_gpu))
    yield from _block("environment", [f"{name}={value}" for name, value in report.environment.items()])
    if report.choice is not None:
        yield str(report.choice)


def _build(inventory: Inventory) -> str:
    build = inventory.tensorflow
    parts = [build.version, "built without CUDA"]
    if build.is_cuda_build:
        parts[1] = f"built for CUDA {build.cuda_version} and cuDNN {build.cudnn_version}"
    if inventory.driver_version:
        parts.append(f"NVIDIA driver {inventory.driver_version}")
    if inventory.driver_status:
        parts.append(nvidia.describe_status(inventory.driver_status))
    return ", ".join(parts)


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    texts = [column for column in range(len(head)) if not any(isinstance(row[column], int) for row in rows)]
    return table(head, (["-" if value is None else str(value) for value in row] for row in rows), left=texts)


def _causes(causes: Iterable[Cause]) -> list[str]:
    return [line for cause in causes for line in (cause.reason, f"  -> {cause.remedy}")]


def _block(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield title
        yield from (f"  {line}" for line in lines)
        yield ""


def _print(call: Call) -> None:
    report = survey(call.settings, environment=os.environ)
    print(f"{as_json(report)}\n" if call.own["json"] else report, end="")
    if report.problem:
        raise DeviceError(report.problem)


COMMAND = Command(
    "Lists devices, and those that a run with the same flags would use (docs/devices.md).",
    DeviceSettings,
    _print,
    example="python -m bert_tf devices --num_gpus=2",
    first=("visible_gpus", "num_gpus", "strategy", "gpu_memory_limit_mb", "json"),
    own=(Setting("json", bool, False, "print one JSON object instead"),),
    log=warnings_only,
)

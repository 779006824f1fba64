"""Lists devices: available, unusable by TensorFlow, and chosen by settings."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bert_tf import documents
from bert_tf.runtime import gpu_failures, nvidia
from bert_tf.runtime.settings import DeviceSettings
from bert_tf.text_table import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from bert_tf.runtime.diagnosis import Cause
    from bert_tf.runtime.inventory import Inventory
    from bert_tf.runtime.machine import Plan

VARIABLES = (
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "NVIDIA_VISIBLE_DEVICES",
    "LD_LIBRARY_PATH",
    "TF_CONFIG",
    "TF_FORCE_GPU_ALLOW_GROWTH",
    "TF_XLA_FLAGS",
)

_NONE = "-"


@dataclasses.dataclass(frozen=True)
class Choice:
    """What a run with these settings would compute on."""

    strategy: str  # its name
    devices: tuple[str, ...]  # on this machine
    replicas: int  # on all machines, assumed to be like this one


@dataclasses.dataclass(frozen=True)
class Report:
    inventory: Inventory
    environment: Mapping[str, str]  # relevant variables
    choice: Choice | None  # None if setting up a GPU fails
    native_kernels: str = ""  # availability of CPU kernels, or why not
    problem: str | None = None  # why set-up fails

    def __str__(self) -> str:
        return describe(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(describe(self))}</pre>"


def survey(settings: DeviceSettings, *, environment: Mapping[str, str]) -> Report:
    from bert_tf.native import loading  # TensorFlow waits until it is needed: --help is quick
    from bert_tf.runtime import inventory, machine, nvidia

    system = nvidia.survey()  # before TensorFlow takes the memory of the GPUs
    choice, problem = _plan(settings, machine.plan, environment)
    return Report(
        inventory=inventory.take(system, environment, left_out=settings.asks_for_cpu),
        environment={name: environment[name] for name in VARIABLES if name in environment},
        choice=choice,
        native_kernels=loading.state(environment),
        problem=problem,
    )


def as_json(report: Report) -> str:
    parts = {**dataclasses.asdict(report.inventory), "environment": dict(report.environment)}
    parts["native_kernels"] = report.native_kernels
    return documents.to_json({**parts, "choice": report.choice and dataclasses.asdict(report.choice)}, indent=2)


def describe(report: Report) -> str:
    inventory = report.inventory
    lines = [
        f"TensorFlow {_built(inventory)}",
        f"CPU cores  {inventory.cpus_granted} granted, {inventory.cpus_present} present",
        f"native kernels  {report.native_kernels}",
        "",
        *_table(
            ("physical device", "model", "memory, MiB", "free", "compute capability"),
            [
                (device.name, device.model, device.memory_total_mb, device.memory_free_mb, device.compute_capability)
                for device in inventory.physical_devices
            ],
        ),
        "",
        *_table(
            ("logical device", "memory limit, MiB"),
            [(device.name, device.memory_limit_mb) for device in inventory.logical_devices],
        ),
        "",
        *_unusable(inventory),
        *_no_gpu(inventory),
        *_environment(report.environment),
        *_chosen(report.choice),
    ]
    return "\n".join(lines) + "\n"


def _plan(
    settings: DeviceSettings, make: Callable[..., Plan], environment: Mapping[str, str]
) -> tuple[Choice | None, str | None]:
    """Returns the choice, or why setting up a GPU fails; then the rest of the report helps."""
    try:
        chosen = make(settings, environment=environment)
    except Exception as error:
        problem = gpu_failures.explain(str(error))
        if problem is None:
            raise
        return None, problem
    return Choice(chosen.strategy, chosen.devices, chosen.replicas), None


def _built(inventory: Inventory) -> str:
    build = inventory.tensorflow
    parts = [build.version, "built without CUDA"]
    if build.is_cuda_build:
        parts[1] = f"built for CUDA {build.cuda_version} and cuDNN {build.cudnn_version}"
    if inventory.driver_version:
        parts.append(f"NVIDIA driver {inventory.driver_version}")
    if inventory.driver_status:
        parts.append(nvidia.described(inventory.driver_status))
    return ", ".join(parts)


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    texts = [column for column in range(len(head)) if not any(isinstance(row[column], int) for row in rows)]
    return table(head, ([_NONE if value is None else str(value) for value in row] for row in rows), left=texts)


def _unusable(inventory: Inventory) -> Iterator[str]:
    if not inventory.unusable_gpus:
        return
    yield "GPUs that TensorFlow does not use"
    for gpu in inventory.unusable_gpus:
        yield f"  {gpu.name}"
        yield from (f"    {line}" for line in _causes(gpu.causes))
    yield ""


def _no_gpu(inventory: Inventory) -> Iterator[str]:
    if not inventory.no_gpu or inventory.unusable_gpus:
        return
    yield "no GPU is used"
    yield from (f"  {line}" for line in _causes(inventory.no_gpu))
    yield ""


def _causes(causes: Sequence[Cause]) -> Iterator[str]:
    for cause in causes:
        yield cause.reason
        yield f"  -> {cause.remedy}"


def _chosen(choice: Choice | None) -> Iterator[str]:
    if choice is not None:
        replicas = f"{choice.replicas} replica{'' if choice.replicas == 1 else 's'}"
        yield f"with these flags: strategy {choice.strategy}, {replicas} on {', '.join(choice.devices)}"


def _environment(variables: Mapping[str, str]) -> Iterator[str]:
    if not variables:
        return
    yield "environment"
    yield from (f"  {name}={value}" for name, value in variables.items())
    yield ""

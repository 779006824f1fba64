"""The devices command: what this machine has to compute on, what TensorFlow cannot use, and what these flags would choose."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from absl import flags as absl_flags
from absl import logging

from bert_tf import documents
from bert_tf.commands.classifier_flags import DEVICES
from bert_tf.commands.ending import ended
from bert_tf.commands.flags import Flag, help_line, read
from bert_tf.errors import DeviceError
from bert_tf.runtime import cuda_driver, gpu_failures
from bert_tf.runtime.settings import DeviceSettings
from bert_tf.text_table import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from bert_tf.runtime.diagnosis import Cause
    from bert_tf.runtime.inventory import Inventory
    from bert_tf.runtime.machine import Plan

FLAGS = (Flag("json", bool, False, "print one JSON object instead"),)
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


class Settings(NamedTuple):
    """The flags."""

    devices: DeviceSettings
    json: bool


@dataclasses.dataclass(frozen=True)
class Choice:
    """What a run with these flags would compute on.

    Attributes:
      strategy: its name.
      devices: of this machine.
      replicas: of all machines, each taken to have as many devices as this one.
    """

    strategy: str
    devices: tuple[str, ...]
    replicas: int


@dataclasses.dataclass(frozen=True)
class Report:
    """All that is printed; no choice where a GPU fails when devices are set up."""

    inventory: Inventory
    environment: Mapping[str, str]
    choice: Choice | None


def main(argv: Sequence[str]) -> int:
    """Runs a command line; returns the exit status, see `ending.ended`."""
    return ended(lambda: _run(parse(argv)), help_text=help_text, stopped="stopped")


def parse(argv: Sequence[str]) -> Settings:
    """Reads a command line.

    Args:
      argv: name and arguments.

    Raises:
      FlagError: a flag is unknown or has an unusable value.
      HelpAsked: instead of settings.
    """
    values = read(argv, (*DEVICES, *FLAGS))
    return Settings(DeviceSettings(**{row.name: values[row.name].value for row in DEVICES}), values["json"].value)


def help_text() -> str:
    """Returns what --help prints."""
    lines = [
        "Shows what there is to compute on, and what a run with the same flags would use: python -m bert_tf devices",
        "",
        *map(help_line, (*FLAGS, *DEVICES)),
    ]
    return "\n".join(lines) + "\n"


def as_json(report: Report) -> str:
    """Returns the report as one JSON object."""
    parts = {**dataclasses.asdict(report.inventory), "environment": dict(report.environment)}
    return documents.to_json({**parts, "choice": report.choice and dataclasses.asdict(report.choice)}, indent=2)


def describe(report: Report) -> str:
    """Returns the report for people."""
    inventory = report.inventory
    lines = [
        f"TensorFlow {_built(inventory)}",
        f"CPU cores  {inventory.cpus_granted} granted, {inventory.cpus_present} present",
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


def _run(settings: Settings) -> int:
    from bert_tf.runtime import noise  # TensorFlow, and what imports it, waits until it is needed: --help is quick

    logging.set_verbosity(logging.WARNING)
    logging.use_absl_handler()
    absl_flags.FLAGS.mark_as_parsed()
    noise.quiet_before_import()
    noise.quiet_python()
    from bert_tf.runtime import inventory, machine, nvidia

    system = nvidia.survey()  # before TensorFlow takes the memory of the GPUs
    choice, problem = _plan(settings.devices, machine.plan)
    report = Report(
        inventory=inventory.take(system, os.environ, left_out=settings.devices.asks_for_cpu),
        environment={name: os.environ[name] for name in VARIABLES if name in os.environ},
        choice=choice,
    )
    print(as_json(report) + "\n" if settings.json else describe(report), end="")
    if problem:
        raise DeviceError(problem)
    return 0


def _plan(settings: DeviceSettings, make: Callable[..., Plan]) -> tuple[Choice | None, str | None]:
    """Returns the choice, or why a GPU fails when devices are set up: then the rest of the report tells more."""
    try:
        chosen = make(settings, environment=os.environ)
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
        parts.append(cuda_driver.described(inventory.driver_status))
    return ", ".join(parts)


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    """Returns lines with the columns one under the other, numbers to the right."""
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
    """Says why there is no GPU, where no GPU has been named that could be used."""
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

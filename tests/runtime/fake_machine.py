"""A machine made of a folder: PCI bus, driver, device files, nvidia-smi, CUDA's libraries, and what TensorFlow sees."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import psutil
import pytest
import tensorflow as tf

from bert_tf.runtime import cgroup, diagnosis, inventory, nvidia
from bert_tf.runtime.diagnosis import Build

CUDA_12 = (*diagnosis.CUDA_LIBRARIES["12"], "libcudnn.so.8")
DRIVER = "libcuda.so.1"
RTX = "NVIDIA GeForce RTX 3060 Laptop GPU"
SMI_RTX = (
    f"0, {RTX}, GPU-aaaa1111, 00000000:01:00.0, 6144, 5900, 535.183.01, 8.6",
    f"1, {RTX}, GPU-bbbb2222, 00000000:02:00.0, 6144, 6000, 535.183.01, 8.6",
)


class FakeMachine:
    """At first a machine without GPU, whose TensorFlow is built for CUDA 12.2."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch):
        self.folder, self.site = folder, folder / "site"
        self._patch = monkeypatch
        for name in ("bin", "pci", "driver", "dev", "site/tensorflow"):
            (folder / name).mkdir(parents=True)
        for module, name, path in (
            *((nvidia, "_PCI", "pci"), (nvidia, "_DRIVER", "driver"), (nvidia, "_DEVICES", "dev")),
            *((cgroup, "_ROOT", "cgroup"), (cgroup, "_MEMBERSHIP", "membership"), (inventory, "_CPU_INFO", "cpuinfo")),
        ):
            monkeypatch.setattr(module, name, folder / path)
        monkeypatch.setenv("PATH", os.fspath(folder / "bin"))
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        self.built(Build("2.15.1", True, "12.2", "8", ("sm_50", "sm_60", "compute_80"), os.fspath(self.site / "tensorflow")))
        self.loads()
        self.tensorflow_sees()

    def built(self, made: Build) -> None:
        self._patch.setattr(diagnosis, "installed_build", lambda: made)

    def memory(self, total: int, available: int) -> None:
        """In MiB."""
        told = SimpleNamespace(total=total << 20, available=available << 20)
        self._patch.setattr(psutil, "virtual_memory", lambda: told)

    def pci(self, address: str, vendor: str = "0x10de", kind: str = "0x030000") -> None:
        self.write(f"pci/{address}/vendor", f"{vendor}\n")
        self.write(f"pci/{address}/class", f"{kind}\n")

    def driver(self, address: str, model: str) -> None:
        self.write(f"driver/{address}/information", f"Model: \t\t {model}\nIRQ:   \t\t 150\nBus Location: \t {address}\n")
        self.write("dev/nvidiactl", "")

    def smi(self, *lines: str, status: int = 0, before: str = "") -> None:
        """Installs an nvidia-smi that prints these lines."""
        text = "\n".join(["#!/bin/sh", before, *(f"echo '{line}'" for line in lines), f"exit {status}", ""])
        self.write("bin/nvidia-smi", text).chmod(0o755)

    def loads(self, libraries: Iterable[str] = ()) -> None:
        """The system's own libraries; no other is found."""
        known = frozenset(libraries)

        def load(name: str) -> str:
            if name not in known:
                raise OSError(f"{name}: cannot open shared object file: No such file or directory")
            return name

        self._patch.setattr(ctypes, "CDLL", load)

    def tensorflow_sees(self, *gpus: dict[str, object], visible: Sequence[int] | None = None) -> None:
        """Makes TensorFlow list a CPU and GPUs, each with what it says of it."""
        devices = {f"/physical_device:GPU:{number}": details for number, details in enumerate(gpus)}
        listed = [tf.config.PhysicalDevice("/physical_device:CPU:0", "CPU")]
        listed += [tf.config.PhysicalDevice(name, "GPU") for name in devices]
        shown = [listed[0], *(listed[1 + n] for n in (range(len(gpus)) if visible is None else visible))]

        def chosen(which: list[tf.config.PhysicalDevice], kind: str | None) -> list[tf.config.PhysicalDevice]:
            return [device for device in which if kind in (None, device.device_type)]

        self._patch.setattr(tf.config, "list_physical_devices", lambda kind=None: chosen(listed, kind))
        self._patch.setattr(tf.config, "get_visible_devices", lambda kind=None: chosen(shown, kind))
        self._patch.setattr(tf.config.experimental, "get_device_details", lambda device: devices[device.name])
        self.splits({})

    def accepts_settings(self) -> None:
        """Makes TensorFlow take what is set: which GPUs are seen, how they are split, how memory grows."""
        listed = tf.config.list_physical_devices()
        seen: dict[str, list[tf.config.PhysicalDevice]] = {"CPU": listed[:1], "GPU": listed[1:]}
        self.parts: dict[str, list[int]] = {}
        self.growing: list[str] = []
        self.deterministic, self.threading = False, mock.Mock()

        def show(chosen: list[tf.config.PhysicalDevice], kind: str) -> None:
            seen[kind] = list(chosen)

        def split(device: tf.config.PhysicalDevice, parts: list[tf.config.LogicalDeviceConfiguration]) -> None:
            self.parts[device.name] = [part.memory_limit for part in parts]
            self.splits(self.parts)

        def be_deterministic() -> None:
            self.deterministic = True

        self._patch.setattr(tf.config, "set_visible_devices", show)
        self._patch.setattr(
            tf.config,
            "get_visible_devices",
            lambda kind=None: [device for key in seen for device in seen[key] if kind in (None, key)],
        )
        self._patch.setattr(tf.config, "set_logical_device_configuration", split)
        self._patch.setattr(tf.config, "threading", self.threading)
        self._patch.setattr(tf.config.experimental, "enable_op_determinism", be_deterministic)
        self._patch.setattr(tf.config.experimental, "set_memory_growth", lambda device, _: self.growing.append(device.name))

    def splits(self, limits: dict[str, Sequence[int]]) -> None:
        """Splits devices into logical ones with these limits."""

        def parts(device: tf.config.PhysicalDevice) -> list[tf.config.LogicalDeviceConfiguration] | None:
            return [tf.config.LogicalDeviceConfiguration(memory_limit=n) for n in limits.get(device.name, ())] or None

        def logical() -> list[tf.config.LogicalDevice]:
            devices = []
            for kind in ("CPU", "GPU"):
                count = sum(len(parts(device) or "1") for device in tf.config.get_visible_devices(kind))
                devices += [tf.config.LogicalDevice(f"/device:{kind}:{number}", kind) for number in range(count)]
            return devices

        self._patch.setattr(tf.config, "get_logical_device_configuration", parts)
        self._patch.setattr(tf.config, "list_logical_devices", logical)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

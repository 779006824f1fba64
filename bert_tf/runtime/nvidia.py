"""NVIDIA GPUs known to the system, with or without TensorFlow. Never raises on an odd machine."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

_SMI = "nvidia-smi"
_SMI_SECONDS = 30  # it wakes up the driver, once for each GPU
_FIELDS = ("index", "name", "uuid", "pci.bus_id", "memory.total", "memory.free", "driver_version", "compute_cap")
_FIELDS_OF_OLD = _FIELDS[:-1]  # drivers before 510 do not know compute_cap
_OF_PROCESSES = ("pid", "gpu_bus_id", "process_name", "used_memory")

_DRIVER = Path("/proc/driver/nvidia/gpus")
_PCI = Path("/sys/bus/pci/devices")
_DEVICES = Path("/dev")
_VENDOR, _DISPLAY = "0x10de", "0x03"

_WHEELS = "nvidia/*/lib"  # beside TensorFlow and one folder up, as its runpath has it


@dataclasses.dataclass(frozen=True)
class Gpu:
    address: str | None = None  # on the PCI bus
    model: str | None = None
    number: int | None = None  # in nvidia-smi; None if not offered to this process
    uuid: str = ""
    memory_total_mb: int | None = None  # in MiB
    memory_free_mb: int | None = None  # in MiB
    compute_capability: str | None = None  # as 8.6

    def __str__(self) -> str:
        return f"{self.model or 'NVIDIA GPU'}{f' at {self.address}' if self.address else ''}"


@dataclasses.dataclass(frozen=True)
class System:
    """All GPUs of the machine."""

    gpus: tuple[Gpu, ...] = ()  # in nvidia-smi's order, then others by address
    driver_version: str | None = None  # None if no driver runs
    driver_problem: str | None = None  # nvidia-smi's complaint

    @property
    def offered(self) -> tuple[Gpu, ...]:
        return tuple(gpu for gpu in self.gpus if gpu.number is not None)


@dataclasses.dataclass(frozen=True)
class Process:
    """A process that computes on a GPU."""

    pid: int
    name: str
    address: str  # of the GPU on the PCI bus
    memory_mb: int | None = None  # on the GPU, in MiB; None if unknown


def other_processes() -> tuple[Process, ...]:
    """Other processes that compute on GPUs; processes of the host are invisible in a container."""
    output = ""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        output = _query("compute-apps", _OF_PROCESSES).stdout
    rows = re.findall(r"^(\d+), *([^,\n]+), *(.*), *([^,\n]+)$", output, re.MULTILINE)  # a name may have commas
    processes = (Process(int(pid), Path(name).name, _address(bus), _number(memory)) for pid, bus, name, memory in rows)
    return tuple(process for process in processes if process.pid != os.getpid())


def survey() -> System:
    """GPUs found by nvidia-smi, the driver and the PCI bus."""
    rows, problem = _ask_driver()
    offered = [_gpu(row) for row in rows]
    models = {**dict.fromkeys(_on_bus()), **dict(_of_driver())}
    known = {gpu.address for gpu in offered}
    others = (Gpu(address, models[address]) for address in sorted(models) if address not in known)
    return System((*offered, *others), rows[0]["driver_version"] if rows else _driver_version(), problem)


def listed(gpus: Sequence[Gpu], text: str | None) -> tuple[Gpu, ...]:
    """GPUs selected by CUDA_VISIBLE_DEVICES (numbers or UUID prefixes), in its order; None if it is unset."""
    if text is None or parts(text):
        return tuple(gpus)
    chosen: list[Gpu] = []
    for entry in map(str.strip, text.split(",")):
        by_name = entry if entry.startswith("GPU-") else "nothing"
        match = [gpu for number, gpu in enumerate(gpus) if entry == str(number) or gpu.uuid.startswith(by_name)]
        if not match:  # CUDA ignores what follows an entry that it does not know, such as -1
            break
        chosen += match[:1]
    return tuple(dict.fromkeys(chosen))


def parts(text: str | None) -> list[str]:
    """MIG devices in CUDA_VISIBLE_DEVICES, whose GPUs are unknown; empty unless the first entry is one."""
    entries = [entry.strip() for entry in (text or "").split(",")]
    return list(dict.fromkeys(entries)) if entries[0].startswith("MIG-") else []


def not_loaded(libraries: Iterable[str], tensorflow: str) -> tuple[str, ...]:
    """Libraries that cannot be loaded, with the reason unless simply missing; `tensorflow` is its package folder."""
    packages = Path(tensorflow).parent
    folders = [folder for around in (packages, packages.parent) for folder in _glob(around, _WHEELS)]
    problems = (_problem(name, folders) for name in libraries)
    return tuple(problem for problem in problems if problem)


def forbidden_files() -> tuple[str, ...]:
    """The driver's device files that this user may not open."""
    files = [path for pattern in ("nvidia[0-9]*", "nvidiactl", "nvidia-uvm") for path in _glob(_DEVICES, pattern)]
    return tuple(os.fspath(path) for path in files if not os.access(path, os.R_OK | os.W_OK))


def has_device_files() -> bool:
    """Whether the driver is reachable, under WSL through the DirectX driver."""
    return (_DEVICES / "nvidiactl").exists() or (_DEVICES / "dxg").exists()


def _ask_driver() -> tuple[list[dict[str, str]], str | None]:
    answer = ""
    for fields in (_FIELDS, _FIELDS_OF_OLD):
        try:
            result = _query("gpu", fields)
        except FileNotFoundError:
            return [], None
        except (OSError, subprocess.SubprocessError) as error:
            return [], f"{_SMI}: {error}"
        lines = [[word.strip() for word in line.split(",")] for line in result.stdout.splitlines()]
        rows = [dict(zip(fields, words)) for words in lines if len(words) == len(fields) and words[0].isdecimal()]
        if rows:
            return rows, None
        answer = " ".join(f"{result.stdout} {result.stderr}".split("\n")).strip()
        if "not a valid field" not in answer:
            break
    return [], f"{_SMI}: {answer or 'no answer'}"


def _query(subject: str, fields: Sequence[str]) -> subprocess.CompletedProcess[str]:
    command = [_SMI, f"--query-{subject}={','.join(fields)}", "--format=csv,noheader,nounits"]
    return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_SMI_SECONDS, check=False)


def _gpu(row: dict[str, str]) -> Gpu:
    capability = row.get("compute_cap", "")
    return Gpu(
        address=_address(row["pci.bus_id"]),
        model=row["name"],
        number=int(row["index"]),
        uuid=row["uuid"],
        memory_total_mb=_number(row["memory.total"]),
        memory_free_mb=_number(row["memory.free"]),
        compute_capability=capability if re.fullmatch(r"\d+\.\d+", capability) else None,
    )


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None  # else it says [N/A]


def _address(text: str) -> str:
    """Converts nvidia-smi's 00000000:01:00.0 to 0000:01:00.0."""
    domain, colon, rest = text.lower().partition(":")
    return f"{domain[-4:]}{colon}{rest}"


def _on_bus() -> Iterator[str]:
    for folder in _glob(_PCI, "*"):
        if _read(folder / "vendor").strip() == _VENDOR and _read(folder / "class").startswith(_DISPLAY):
            yield _address(folder.name)


def _of_driver() -> Iterator[tuple[str, str | None]]:
    for folder in _glob(_DRIVER, "*"):
        model = re.search(r"^Model:\s*(.+?)\s*$", _read(folder / "information"), re.MULTILINE)
        yield _address(folder.name), model and model.group(1)


def _driver_version() -> str | None:
    """Version reported by the kernel module, for systems without nvidia-smi."""
    match = re.search(r"^NVRM version:.*?(\d+\.\d+(?:\.\d+)?)", _read(_DRIVER.parent / "version"), re.MULTILINE)
    return match and match.group(1)


def _problem(name: str, folders: Iterable[Path]) -> str | None:
    message = ""
    for path in (name, *(os.fspath(folder / name) for folder in folders if (folder / name).exists())):
        try:
            ctypes.CDLL(path)
        except OSError as error:  # an installed library may lack a dependency
            message = str(error)
        else:
            return None
    return name if message.startswith(f"{name}: cannot open") else f"{name} ({message})"


def _glob(folder: Path, pattern: str) -> list[Path]:
    with contextlib.suppress(OSError):
        return sorted(folder.glob(pattern))
    return []


def _read(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace")
    return ""


LIBRARY = "libcuda.so.1"


_AGAIN = "restart the machine, so that its kernel loads the driver that is installed"
_SHOWN = "check CUDA_VISIBLE_DEVICES; start a container with --gpus all"
_MPS = "start nvidia-cuda-mps-control -d again, or unset CUDA_MPS_PIPE_DIRECTORY"
# Name, meaning and remedy by cuInit's result: cuda.h of CUDA 12.2.140, and driver_types.h for 35. The meanings follow
# users' reports.
_ANSWERS = {
    2: ("CUDA_ERROR_OUT_OF_MEMORY", "no GPU memory is left", "end other processes: nvidia-smi lists them"),
    3: ("CUDA_ERROR_NOT_INITIALIZED", "the driver's device files are missing", "sudo nvidia-modprobe -u -c=0 creates them"),
    34: (
        "CUDA_ERROR_STUB_LIBRARY",
        "the stub of CUDA's toolkit was loaded, not the driver",
        "take stubs/ out of LD_LIBRARY_PATH",
    ),
    35: ("cudaErrorInsufficientDriver", "the driver is too old", "install a newer driver"),
    46: (
        "CUDA_ERROR_DEVICE_UNAVAILABLE",
        "another process has the GPU to itself",
        "end it, or share the GPU: sudo nvidia-smi -c DEFAULT",
    ),
    100: ("CUDA_ERROR_NO_DEVICE", "no GPU is visible to this process", _SHOWN),
    101: (
        "CUDA_ERROR_INVALID_DEVICE",
        "there is no such GPU, or it is split by MIG and has no part yet",
        "nvidia-smi -L lists them",
    ),
    214: ("CUDA_ERROR_ECC_UNCORRECTABLE", "the GPU's memory has an error", "restart the machine; if it stays, replace it"),
    304: ("CUDA_ERROR_OPERATING_SYSTEM", "the system refused a call", "ask for read and write access to /dev/nvidia*"),
    802: (
        "CUDA_ERROR_SYSTEM_NOT_READY",
        "the fabric manager of GPUs with NVSwitch does not run",
        "sudo systemctl start nvidia-fabricmanager on the host, in exactly the driver's version",
    ),
    803: ("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", f"{LIBRARY} and the kernel's driver differ in version", _AGAIN),
    804: (
        "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
        "the driver is too old, and this GPU cannot use the compatibility package that was loaded instead",
        "install a newer driver, or take cuda-compat out of LD_LIBRARY_PATH",
    ),
    805: ("CUDA_ERROR_MPS_CONNECTION_FAILED", "the server that shares GPUs (MPS) does not answer", _MPS),
    807: ("CUDA_ERROR_MPS_SERVER_NOT_READY", "the server that shares GPUs (MPS) is not ready", _MPS),
    999: (
        "CUDA_ERROR_UNKNOWN",
        "often after the machine was suspended",
        "sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm, or restart the machine",
    ),
}


def status() -> int | None:
    """Result of cuInit, 0 for success; None without a driver."""
    with contextlib.suppress(OSError, AttributeError):
        return int(ctypes.CDLL(LIBRARY).cuInit(0))
    return None


def answer(number: int) -> tuple[str, str, str]:
    """Name, meaning and remedy of a result of cuInit."""
    unknown = (f"error {number}", "no reason is known", f"look for CUresult {number} in CUDA's manual, or in dmesg")
    return _ANSWERS.get(number, unknown)


def describe_status(number: int) -> str:
    return f"cuInit returns {number}, {answer(number)[0]}"

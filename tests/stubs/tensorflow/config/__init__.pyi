from collections.abc import Sequence

from tensorflow.config import experimental as experimental
from tensorflow.config import threading as threading

class PhysicalDevice:
    name: str
    device_type: str

class LogicalDevice:
    name: str
    device_type: str

class LogicalDeviceConfiguration:
    memory_limit: float | None
    def __init__(self, memory_limit: float | None = None) -> None: ...

def get_logical_device_configuration(device: PhysicalDevice) -> list[LogicalDeviceConfiguration] | None: ...
def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]: ...
def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]: ...
def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]: ...
def set_logical_device_configuration(
    device: PhysicalDevice, logical_devices: Sequence[LogicalDeviceConfiguration] | None
) -> None: ...
def set_visible_devices(devices: Sequence[PhysicalDevice], device_type: str | None = None) -> None: ...

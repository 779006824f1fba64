from collections.abc import Sequence
from enum import Enum

from tensorflow.distribute import Strategy

class CommunicationImplementation(Enum):
    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"

class CommunicationOptions:
    def __init__(self, *, implementation: CommunicationImplementation = ...) -> None: ...

class CentralStorageStrategy(Strategy):
    def __init__(self, compute_devices: Sequence[str] | None = None, parameter_device: str | None = None) -> None: ...

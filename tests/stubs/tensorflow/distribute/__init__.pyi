from collections.abc import Callable, Sequence
from enum import Enum
from typing import TypeVar

from tensorflow import Tensor
from tensorflow.distribute import experimental as experimental

_T = TypeVar("_T")

class ReduceOp(Enum):
    SUM = "SUM"
    MEAN = "MEAN"

class CrossDeviceOps: ...

class HierarchicalCopyAllReduce(CrossDeviceOps):
    def __init__(self, num_packs: int = 1) -> None: ...

class NcclAllReduce(CrossDeviceOps):
    def __init__(self, num_packs: int = 1) -> None: ...

class ReductionToOneDevice(CrossDeviceOps):
    def __init__(self, reduce_to_device: str | None = None) -> None: ...

class InputContext:
    num_input_pipelines: int
    input_pipeline_id: int
    num_replicas_in_sync: int
    def __init__(self, num_input_pipelines: int = 1, input_pipeline_id: int = 0, num_replicas_in_sync: int = 1) -> None: ...

class StrategyExtended:
    worker_devices: tuple[str, ...]
    call_for_each_replica: Callable[..., object]
    def batch_reduce_to(
        self, reduce_op: ReduceOp, value_destination_pairs: Sequence[tuple[Tensor, Tensor]]
    ) -> list[Tensor]: ...

class Strategy:
    extended: StrategyExtended
    num_replicas_in_sync: int
    def experimental_local_results(self, value: _T) -> tuple[_T, ...]: ...

class MirroredStrategy(Strategy):
    def __init__(self, devices: Sequence[str] | None = None, cross_device_ops: CrossDeviceOps | None = None) -> None: ...

class MultiWorkerMirroredStrategy(Strategy):
    def __init__(self, *, communication_options: experimental.CommunicationOptions | None = None) -> None: ...

class ReplicaContext:
    num_replicas_in_sync: int
    replica_id_in_sync_group: Tensor
    def merge_call(self, merge_fn: Callable[..., _T], args: tuple[object, ...] = ()) -> _T: ...

def get_replica_context() -> ReplicaContext: ...
def get_strategy() -> Strategy: ...
def has_strategy() -> bool: ...

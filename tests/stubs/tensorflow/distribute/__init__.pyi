from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from enum import Enum
from typing import Any, TypeVar

from tensorflow import Tensor
from tensorflow.compat.v1 import ConfigProto
from tensorflow.data import Dataset
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
    cluster_resolver: Any
    def scope(self) -> AbstractContextManager[None]: ...
    def run(self, fn: Callable[..., _T], args: tuple[object, ...] = ()) -> _T: ...
    def make_input_fn_iterator(self, input_fn: Callable[[InputContext], Dataset]) -> Any: ...
    def update_config_proto(self, config_proto: ConfigProto) -> ConfigProto: ...
    def experimental_local_results(self, value: _T) -> tuple[_T, ...]: ...

class Server:
    target: str
    def __init__(
        self,
        server_or_cluster_def: object,
        job_name: str | None = None,
        task_index: int | None = None,
        *,
        config: ConfigProto | None = None,
    ) -> None: ...

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

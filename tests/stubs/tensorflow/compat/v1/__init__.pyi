from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from tensorflow import Graph, Operation, Tensor, Variable
from tensorflow._values import DTypeLike, ShapeLike, TensorLike
from tensorflow.compat.v1 import saved_model as saved_model
from tensorflow.compat.v1 import summary as summary
from tensorflow.compat.v1 import train as train

AUTO_REUSE: object

class _Initializer:
    def __call__(self, shape: ShapeLike, dtype: DTypeLike | None = None) -> Tensor: ...

class constant_initializer(_Initializer):
    def __init__(self, value: TensorLike = 0) -> None: ...

class ones_initializer(_Initializer): ...
class zeros_initializer(_Initializer): ...

class truncated_normal_initializer(_Initializer):
    def __init__(self, mean: float = 0.0, stddev: float = 1.0, seed: int | None = None) -> None: ...

class GraphKeys:
    GLOBAL_VARIABLES: str
    LOCAL_VARIABLES: str
    SAVERS: str

class OptimizerOptions:
    ON_1: int
    ON_2: int
    OFF: int

# Messages of protocol buffers.
class ConfigProto:
    gpu_options: Any
    graph_options: Any
    inter_op_parallelism_threads: int
    intra_op_parallelism_threads: int
    device_count: Any
    def __init__(self, **fields: object) -> None: ...

class RunOptions:
    NO_TRACE: int
    SOFTWARE_TRACE: int
    FULL_TRACE: int
    trace_level: int
    def __init__(self, *, trace_level: int = 0, output_partition_graphs: bool = False, **fields: object) -> None: ...

class RunMetadata:
    step_stats: Any
    partition_graphs: Sequence[Any]
    def SerializeToString(self) -> bytes: ...

class Summary:
    class Value:
        def __init__(self, *, tag: str, simple_value: float = 0.0, tensor: Any = None) -> None: ...

    def __init__(self, *, value: Sequence[Summary.Value]) -> None: ...

class Session:
    graph: Graph
    def __init__(self, target: str = "", graph: Graph | None = None, config: ConfigProto | None = None) -> None: ...
    def __enter__(self) -> Session: ...
    def __exit__(self, *exc: object) -> None: ...
    def run(
        self,
        fetches: object,
        feed_dict: dict[Any, Any] | None = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any: ...
    def make_callable(self, fetches: object, feed_list: Sequence[Tensor] | None = None) -> Callable[..., Any]: ...
    def list_devices(self) -> Sequence[Any]: ...
    def close(self) -> None: ...

class VariableScope:
    name: str

def add_to_collection(name: str, value: object) -> None: ...
def device(device_name_or_function: str | Callable[[Operation], str] | None) -> AbstractContextManager[None]: ...
def disable_eager_execution() -> None: ...
def get_collection(key: str) -> list[Any]: ...
def get_collection_ref(key: str) -> list[Any]: ...
def get_default_graph() -> Graph: ...
def get_variable(
    name: str,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    initializer: _Initializer | Callable[..., Tensor] | TensorLike | None = None,
    *,
    trainable: bool | None = None,
    collections: Sequence[str] | None = None,
) -> Variable: ...
def get_variable_scope() -> VariableScope: ...
def global_variables() -> list[Variable]: ...
def name_scope(name: str | None) -> AbstractContextManager[str]: ...
def placeholder(dtype: DTypeLike, shape: ShapeLike | None = None, name: str | None = None) -> Tensor: ...
def placeholder_with_default(input: TensorLike, shape: ShapeLike, name: str | None = None) -> Tensor: ...
def tables_initializer() -> Operation: ...
def trainable_variables() -> list[Variable]: ...
def variable_scope(
    name_or_scope: str | VariableScope,
    *,
    reuse: object = None,
    custom_getter: Callable[..., Tensor | Variable] | None = None,
    auxiliary_name_scope: bool = True,
) -> AbstractContextManager[VariableScope]: ...

from collections.abc import Mapping, Sequence
from typing import Any

from tensorflow import Graph, Tensor, Variable
from tensorflow.compat.v1 import ConfigProto, RunMetadata, RunOptions, Session
from tensorflow.python.training.saver import BulkSaverBuilder

class SessionRunArgs:
    fetches: Any
    feed_dict: Any
    options: RunOptions | None
    def __init__(
        self, fetches: object, feed_dict: Mapping[Tensor, object] | None = None, options: RunOptions | None = None
    ) -> None: ...

class SessionRunContext:
    session: Session
    stop_requested: bool
    original_args: SessionRunArgs
    def request_stop(self) -> None: ...

class SessionRunValues:
    results: Any
    options: RunOptions
    run_metadata: RunMetadata

class SessionRunHook:
    def begin(self) -> None: ...
    def after_create_session(self, session: Session, coord: Any) -> None: ...
    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None: ...
    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None: ...
    def end(self, session: Session) -> None: ...

class StopAtStepHook(SessionRunHook):
    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None: ...

class SessionCreator: ...

class ChiefSessionCreator(SessionCreator):
    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: ConfigProto | None = None,
        checkpoint_dir: str | None = None,
    ) -> None: ...

class MonitoredSession:
    def __init__(
        self, session_creator: SessionCreator | None = None, hooks: Sequence[SessionRunHook] | None = None
    ) -> None: ...
    def __enter__(self) -> MonitoredSession: ...
    def __exit__(self, *exc: object) -> None: ...
    def run(self, fetches: object) -> Any: ...
    def should_stop(self) -> bool: ...

class SecondOrStepTimer:
    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]: ...

class CheckpointSaverListener:
    def begin(self) -> None: ...
    def before_save(self, session: Session, global_step_value: int) -> None: ...
    def after_save(self, session: Session, global_step_value: int) -> bool | None: ...
    def end(self, session: Session, global_step_value: int) -> None: ...

class Saver:
    saver_def: Any
    last_checkpoints: list[str]
    def __init__(
        self,
        var_list: Sequence[Variable] | Mapping[str, Variable] | None = None,
        *,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        allow_empty: bool = False,
        save_relative_paths: bool = False,
        builder: BulkSaverBuilder | None = None,
    ) -> None: ...
    def _MaybeDeleteOldCheckpoints(self, *arguments: Any, **settings: Any) -> None: ...
    def save(self, sess: Session, save_path: str, global_step: int | None = None, **options: Any) -> str: ...
    def restore(self, sess: Session, save_path: str) -> None: ...

class CheckpointSaverHook(SessionRunHook):
    _checkpoint_dir: str
    _global_step_tensor: Tensor | Variable
    _timer: SecondOrStepTimer
    def __init__(
        self,
        checkpoint_dir: str,
        *,
        save_steps: int | None = None,
        save_graph_def: bool = True,
        listeners: list[CheckpointSaverListener] | None = None,
    ) -> None: ...
    def _get_saver(self) -> Any: ...  # whatever the collection of the graph holds
    def _save(self, session: Session, step: int) -> bool: ...

class Scaffold:
    def __init__(self, *, ready_op: Tensor | None = None, ready_for_local_init_op: Tensor | None = None) -> None: ...

def create_global_step(graph: Graph | None = None) -> Variable: ...
def get_global_step(graph: Graph | None = None) -> Variable: ...
def get_or_create_global_step() -> Variable: ...
def init_from_checkpoint(ckpt_dir_or_file: str, assignment_map: Mapping[str, Variable]) -> None: ...

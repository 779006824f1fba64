from collections.abc import Callable, Mapping, Sequence

from tensorflow import Operation, Tensor
from tensorflow.compat.v1 import ConfigProto
from tensorflow.compat.v1.train import Scaffold, SessionRunHook
from tensorflow.data import Dataset
from tensorflow.distribute import Strategy

_InputFn = Callable[..., Dataset]

class ModeKeys:
    TRAIN: str
    PREDICT: str

class EstimatorSpec:
    mode: str
    loss: Tensor | None
    predictions: Mapping[str, Tensor] | None
    train_op: Operation | None
    scaffold: Scaffold | None
    def __init__(
        self,
        mode: str,
        predictions: Mapping[str, Tensor] | None = None,
        loss: Tensor | None = None,
        train_op: Operation | None = None,
        *,
        scaffold: Scaffold | None = None,
    ) -> None: ...

class RunConfig:
    session_config: ConfigProto | None
    def __init__(
        self,
        model_dir: str | None = None,
        tf_random_seed: int | None = None,
        *,
        save_summary_steps: int | None = 100,
        session_config: ConfigProto | None = None,
        log_step_count_steps: int | None = 100,
        train_distribute: Strategy | None = None,
        eval_distribute: Strategy | None = None,
        device_fn: Callable[[Operation], str] | None = None,
    ) -> None: ...

class Estimator:
    model_dir: str
    config: RunConfig
    def __init__(
        self, model_fn: Callable[..., EstimatorSpec], model_dir: str | None = None, config: RunConfig | None = None
    ) -> None: ...
    def train(
        self,
        input_fn: _InputFn,
        hooks: Sequence[SessionRunHook] | None = None,
        steps: int | None = None,
        max_steps: int | None = None,
    ) -> Estimator: ...

class TrainSpec:
    def __init__(
        self, input_fn: _InputFn, max_steps: int | None = None, hooks: Sequence[SessionRunHook] | None = None
    ) -> None: ...

class EvalSpec:
    def __init__(self, input_fn: _InputFn, steps: int | None = 100) -> None: ...

def train_and_evaluate(estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec) -> object: ...

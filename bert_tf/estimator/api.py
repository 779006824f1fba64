"""The Estimator API: tf.estimator up to TensorFlow 2.15, since then the substitute here. No other module knows which.

The substitute trains a model_fn on one device, replicas or machines. It has the part of tf.estimator's interface that this
package uses, on TensorFlow's public sessions and strategies. Up to the model_fn it adds the same operations to the graph: seeds
of initial weights depend on their number.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import tensorflow as tf

from bert_tf.runtime import machine

tf1 = tf.compat.v1

SUBSTITUTE = "BERT_TF_ESTIMATOR_SUBSTITUTE"  # environment variable; if it is 1, the substitute is used on 2.15 too (tests)

_STEP_READ = "global_step_read_op_cache"  # the collection where TensorFlow's hooks look up the step

Hooks = Sequence[tf1.train.SessionRunHook]
InputFn = Callable[..., tf.data.Dataset]


class ModeKeys:
    TRAIN = "train"
    PREDICT = "infer"


class EstimatorSpec(NamedTuple):
    """A model_fn's result: `predictions`, or `loss` and `train_op`."""

    mode: str
    predictions: Mapping[str, tf.Tensor] | None = None
    loss: tf.Tensor | None = None
    train_op: Any = None  # an operation, or its copies on replicas
    scaffold: tf1.train.Scaffold | None = None  # for a single replica; several use TensorFlow's default


@dataclasses.dataclass(frozen=True)
class RunConfig:
    model_dir: str
    session_config: Any  # a `ConfigProto`
    tf_random_seed: int | None = None
    train_distribute: tf.distribute.Strategy | None = None
    device_fn: Callable[[tf.Operation], str] | None = None


class Estimator:
    """Trains the weights that `model_fn` defines; checkpoints are in `model_dir`."""

    def __init__(self, model_fn: Callable[..., EstimatorSpec], config: RunConfig) -> None:
        self._model_fn = model_fn
        self.config = config
        self.model_dir = config.model_dir

    def train(self, input_fn: InputFn, hooks: Hooks = (), *, max_steps: int | None = None) -> Estimator:
        """Continues from the newest checkpoint, which must precede step `max_steps`."""
        strategy = self.config.train_distribute
        with tf.Graph().as_default() as graph:
            if strategy is None:
                with graph.device(self.config.device_fn):
                    spec, reader = self._build_on_one_device(input_fn)
                    _run(spec, self._creator(spec), [reader, *hooks], max_steps)
            else:
                with strategy.scope():
                    spec, reader = self._build_on_replicas(input_fn, strategy)
                    _run(spec, self._creator(spec), [reader, *hooks], max_steps)
        return self

    def _build_on_one_device(self, input_fn: InputFn) -> tuple[EstimatorSpec, tf1.train.SessionRunHook]:
        tf1.set_random_seed(self.config.tf_random_seed)
        step = tf1.train.create_global_step()
        with tf.name_scope(f"{step.op.name}/"):  # the copy of the step that TensorFlow's hooks would add later
            value = tf.cond(tf1.is_variable_initialized(step), step.read_value, lambda: step.initial_value)
            tf1.add_to_collection(_STEP_READ, value + 0)
        with tf.device("/cpu:0"):
            dataset = input_fn()
        iterator = tf1.data.make_initializable_iterator(dataset)
        return self._call_model_fn(iterator.get_next()), _InitializerHook(iterator.initializer)

    def _build_on_replicas(
        self, input_fn: InputFn, strategy: tf.distribute.Strategy
    ) -> tuple[EstimatorSpec, tf1.train.SessionRunHook]:
        def on_host(context: tf.distribute.InputContext) -> tf.data.Dataset:
            with tf.device("/cpu:0"):
                return input_fn(input_context=context)

        tf1.set_random_seed(self.config.tf_random_seed)
        iterator = strategy.make_input_fn_iterator(on_host)
        step = tf1.train.create_global_step()
        tf1.add_to_collection(_STEP_READ, tf.identity(step))
        specs = strategy.run(self._call_model_fn, args=(iterator.get_next(),))
        train_op = tf.group(*strategy.experimental_local_results(specs.train_op))
        return EstimatorSpec(ModeKeys.TRAIN, train_op=train_op), _InitializerHook(iterator.initializer)

    @tf.autograph.experimental.do_not_convert
    def _call_model_fn(self, features: Mapping[str, tf.Tensor]) -> EstimatorSpec:
        tf1.logging.info("Calling model_fn.")
        spec = self._model_fn(features=features, mode=ModeKeys.TRAIN)
        tf1.logging.info("Done calling model_fn.")
        return spec

    def _creator(self, spec: EstimatorSpec) -> tf1.train.ChiefSessionCreator:
        """Returns the session creator; each of several machines initializes and restores its own replicas."""
        config, strategy, master = self.config.session_config, self.config.train_distribute, ""
        if strategy is not None:
            config = strategy.update_config_proto(config)
            master = machine.server_address(strategy, config)
        return tf1.train.ChiefSessionCreator(spec.scaffold, master, config, checkpoint_dir=self.model_dir)


def train_together(estimator: Estimator, input_fn: InputFn, hooks: Hooks, *, max_steps: int) -> None:
    """Trains with the other machines of TF_CONFIG."""
    estimator.train(input_fn, hooks, max_steps=max_steps)


def _run(spec: EstimatorSpec, creator: tf1.train.SessionCreator, hooks: Hooks, max_steps: int | None) -> None:
    stop = [] if max_steps is None else [tf1.train.StopAtStepHook(last_step=max_steps)]
    with tf1.train.MonitoredSession(creator, [*hooks, *stop]) as session:
        while not session.should_stop():
            session.run(spec.train_op)


class _InitializerHook(tf1.train.SessionRunHook):
    """Initializes the input iterator once the session exists."""

    def __init__(self, initializer: Any) -> None:
        self._initializer = initializer

    def after_create_session(self, session: tf1.Session, coord: Any) -> None:
        session.run(self._initializer)


if not TYPE_CHECKING and hasattr(tf, "estimator") and os.environ.get(SUBSTITUTE) != "1":
    Estimator = tf.estimator.Estimator
    EstimatorSpec = tf.estimator.EstimatorSpec
    ModeKeys = tf.estimator.ModeKeys

    def RunConfig(*, train_distribute: tf.distribute.Strategy | None = None, **settings: Any) -> Any:  # noqa: N802
        """Returns a configuration without tf.estimator's default hooks, which `progress_hook.ProgressHook` replaces."""
        return tf.estimator.RunConfig(
            train_distribute=train_distribute,
            eval_distribute=train_distribute,  # nothing is evaluated, but with several machines TensorFlow warns without it
            log_step_count_steps=None,
            save_summary_steps=None,  # another set of fetches would trigger another graph optimization
            **settings,
        )

    def train_together(estimator: Any, input_fn: Any, hooks: Any, *, max_steps: int) -> None:
        """Trains with the other machines of TF_CONFIG; none evaluates."""
        spec = tf.estimator.TrainSpec(input_fn, max_steps=max_steps, hooks=hooks)
        tf.estimator.train_and_evaluate(estimator, spec, tf.estimator.EvalSpec(input_fn))

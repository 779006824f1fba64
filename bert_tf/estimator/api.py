"""The Estimator API: tf.estimator up to TensorFlow 2.15, `substitute` since. No other module knows which."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import tensorflow as tf

SUBSTITUTE = "BERT_TF_ESTIMATOR_SUBSTITUTE"  # environment variable; if it is 1, the substitute is used on 2.15 too (tests)

if TYPE_CHECKING or os.environ.get(SUBSTITUTE) == "1" or not hasattr(tf, "estimator"):
    from bert_tf.estimator.substitute import Estimator, EstimatorSpec, ModeKeys, RunConfig, train_together
else:
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


__all__ = ["Estimator", "EstimatorSpec", "ModeKeys", "RunConfig", "train_together"]

"""tf.data without autotuning.

By default an iterator starts a thread that tunes its pipeline and then sleeps for up to a minute. Destroying the
iterator, for example by closing a session, has to wait for it: the wake-up call may come before the flag it checks
is set.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

_PREFETCHED = 2  # batches

try:
    from tensorflow.python.data.ops import multi_device_iterator_ops as per_replica

    _make_device_dataset = per_replica._create_device_dataset
    CONTROLS_REPLICAS = True
except (ImportError, AttributeError):  # the end of a run on replicas may take a minute then
    CONTROLS_REPLICAS = False


def options() -> tf.data.Options:
    untuned = tf.data.Options()
    untuned.autotune.enabled = False
    return untuned


def prefetched(dataset: tf.data.Dataset) -> tf.data.Dataset:
    switch_off_for_replicas()
    return dataset.prefetch(_PREFETCHED).with_options(options())


def switch_off_for_replicas() -> None:
    """Applies the options to the datasets that strategies insert between an input function and each replica.

    TensorFlow makes these without options and has no setting for it.
    """
    if CONTROLS_REPLICAS:
        per_replica._create_device_dataset = _untuned_device_dataset


def _untuned_device_dataset(*arguments: Any, **settings: Any) -> tf.data.Dataset:
    return _make_device_dataset(*arguments, **settings).with_options(options())

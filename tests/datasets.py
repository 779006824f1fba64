"""What TensorFlow's datasets are made with."""

import contextlib
from collections.abc import Iterator

import pytest
import tensorflow as tf
from tensorflow.core.framework import dataset_options_pb2
from tensorflow.python.ops import gen_dataset_ops

# Operations whose first argument is a dataset, and that start to read it.
_READERS = ("make_iterator", "multi_device_iterator_init")


@contextlib.contextmanager
def readers() -> Iterator[list[tuple[str, bool]]]:
    """Yields a list that is filled, while the block lasts, with the name of each reader and whether tf.data tunes it."""
    tuned: list[tuple[str, bool]] = []

    def watched(name, make):
        def made(dataset, *arguments, **options):
            tuned.append((name, is_tuned(dataset)))
            return make(dataset, *arguments, **options)

        return made

    with pytest.MonkeyPatch.context() as patched:
        for name in _READERS:
            patched.setattr(gen_dataset_ops, name, watched(name, getattr(gen_dataset_ops, name)))
        yield tuned


def is_tuned(dataset: tf.Tensor) -> bool:
    """Returns whether a graph's dataset is tuned: by any of the options laid around it, else by default."""
    while dataset.op.type == "OptionsDataset":
        said = dataset_options_pb2.Options.FromString(dataset.op.get_attr("serialized_options")).autotune_options
        if said.WhichOneof("optional_enabled"):
            return said.enabled
        dataset = dataset.op.inputs[0]
    return True

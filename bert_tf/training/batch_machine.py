"""Sets up the machine of a batch job from its flags; without TensorFlow if its models do without."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bert_tf.batch.engine import InferenceOptions
from bert_tf.checkpoints import model_formats
from bert_tf.errors import FlagError
from bert_tf.training.settings import MachineSettings


def inference(
    settings: MachineSettings, batch_size: int | None, checkpoints: Iterable[str], *, environment: Mapping[str, str]
) -> InferenceOptions:
    """Sets up the machine, once per process; `batch_size` is rows per device, None chooses by length.

    Raises FlagError if the flags do not suit the checkpoints, or some of them are exported models and others are not.
    """
    names = list(checkpoints)
    formats = {name: model_formats.of(name) for name in names}
    exported = next((name for name in names if formats[name] is not None), "")
    if not exported:
        from bert_tf.training import tensorflow_machine

        return tensorflow_machine.inference(settings, batch_size, environment=environment)
    other = next((name for name in names if formats[name] is not formats[exported]), None)
    if other is not None:
        raise FlagError(f"{exported} is an exported model, and {other} is not: name them in two commands")
    options: InferenceOptions = formats[exported].inference(settings, batch_size, names)  # type: ignore[union-attr]
    return options

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
    formats = {name: format_of_file for name in names if (format_of_file := model_formats.of(name)) is not None}
    if not formats:
        from bert_tf.training import tensorflow_machine

        return tensorflow_machine.inference(settings, batch_size, environment=environment)
    exported, model_format = next(iter(formats.items()))
    other = next((name for name in names if formats.get(name) is not model_format), None)
    if other is not None:
        raise FlagError(f"{exported} is an exported model, and {other} is none of its format: name them in two commands")
    options: InferenceOptions = model_format.inference(settings, batch_size, names)
    return options

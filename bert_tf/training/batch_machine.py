"""Sets up the machine of a batch job from its flags; without TensorFlow if its models are exported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bert_tf.batch.engine import InferenceOptions
from bert_tf.checkpoints import exported
from bert_tf.config import BertConfig
from bert_tf.engines.names import AUTO, ONNXRUNTIME, TENSORFLOW
from bert_tf.errors import FlagError
from bert_tf.inputs.batching import Batching
from bert_tf.runtime import cgroup
from bert_tf.training.settings import MachineSettings, SpeedSettings


def inference(
    settings: MachineSettings, batch_size: int | None, checkpoints: Iterable[str], *, environment: Mapping[str, str]
) -> InferenceOptions:
    """Sets up the machine, once per process; `batch_size` is rows per device, None chooses by length.

    Raises FlagError if the flags do not suit the checkpoints, or some of them are exported models and others are not.
    """
    names = list(checkpoints)
    graphs = [name for name in names if exported.is_exported(name)]
    if not graphs:
        from bert_tf.training import tensorflow_machine

        return tensorflow_machine.inference(settings, batch_size, environment=environment)
    others = [name for name in names if name not in graphs]
    if others:
        raise FlagError(f"{graphs[0]} is an exported model, and {others[0]} is not: name them in two commands")
    precisions = sorted({exported.precision_of(graph) for graph in graphs})
    if len(precisions) > 1:
        raise FlagError(f"the exported models are in {' and '.join(precisions)}: name them in two commands")
    return _of_graphs(settings, batch_size, precisions[0], graphs[0])


def _of_graphs(settings: MachineSettings, batch_size: int | None, precision: str, graph: str) -> InferenceOptions:
    from bert_tf.engines import exported as engine
    from bert_tf.engines.base import ConvertedEngine

    if settings.engine not in (TENSORFLOW, ONNXRUNTIME, AUTO):
        raise FlagError(f"--engine={settings.engine}: {graph} is computed by {ONNXRUNTIME}; leave the flag out")
    if settings.precision not in (SpeedSettings.precision, precision):
        raise FlagError(f"--precision={settings.precision}: {graph} was exported in {precision}; leave the flag out")
    if settings.devices.are_chosen and not settings.devices.asks_for_cpu:
        raise FlagError(f"{graph} is computed on the CPU: leave out the flags that choose devices")

    def batching(config: BertConfig, max_seq_length: int) -> Batching:
        del config
        return Batching(longest=max_seq_length)

    return InferenceOptions(
        lambda inference: ConvertedEngine(inference, precision, engine.opened),
        batching,
        f"{ONNXRUNTIME} {precision}",
        settings.devices.intra_op_threads or cgroup.granted_cpus(),
        batch_size,
    )

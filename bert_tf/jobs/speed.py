"""Speed flags, turned into the settings of model, input and optimizer."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from bert_tf.config import BertConfig
from bert_tf.estimator import run_folder
from bert_tf.inputs.pipeline import Batching
from bert_tf.jobs.settings import SpeedSettings
from bert_tf.log_form import log
from bert_tf.modeling.execution import Execution
from bert_tf.native import loading
from bert_tf.native import ops as native
from bert_tf.profiling.forecast import forward_peak
from bert_tf.profiling.forecast.compute_options import BYTES
from bert_tf.runtime import devices, precision
from bert_tf.runtime.machine import Machine

_XLA_MULTIPLE = 32  # lengths are rounded up to it: XLA compiles once for each
_HALF_MULTIPLE = 8  # what Tensor Cores want


def set_up(speed: SpeedSettings) -> None:
    """Prepares the machine, before the first session."""
    if speed.xla:
        devices.allow_xla_on_cpu()
    precision.use(speed.precision)


def warn(speed: SpeedSettings) -> None:
    """Says what --xla switches off, and if a number format will not be fast here; after the devices are set up."""
    if speed.xla:
        log.info("--xla compiles once for each shape: --nopack_tokens, --nodefer_embeddings")
    remark = precision.remark(speed.precision)
    if remark:
        log.info("%s", remark)
    slow_reason = precision.slow_reason(speed.precision)
    if slow_reason:
        log.warning("--precision=%s: %s", speed.precision, slow_reason)


def continued(speed: SpeedSettings, output_dir: Path) -> SpeedSettings:
    """Returns the settings, where the flag is left out with the precision that the run in a folder has had so far.

    Runs of earlier versions were strictly float32 by default.

    Args:
      speed: as the flags are.
      output_dir: folder of the run.

    Raises:
      OutputError: the record of the run is damaged.
    """
    if not output_dir.is_dir():  # what else it may be, `run_folder` says
        return speed
    before = run_folder.trained(output_dir).get("precision")
    strict = speed.precision == precision.DEFAULT and before == "float32"
    return dataclasses.replace(speed, precision="float32") if strict else speed


def deferring(speed: SpeedSettings, *, deterministic: bool, on_gpu: bool) -> SpeedSettings:
    """Returns the settings, without deferral of embeddings where it would be slow; that changes no result.

    Args:
      speed: as the flags are.
      deterministic: --deterministic.
      on_gpu: whether the table of words is on a GPU.
    """
    if not (speed.defer_embeddings and deterministic and on_gpu):
        return speed
    log.info("--nodefer_embeddings: with --deterministic the host would write to the table, not the GPU")
    return dataclasses.replace(speed, defer_embeddings=False)


def with_kernels(speed: SpeedSettings, machine: Machine, environment: Mapping[str, str]) -> Machine:
    """Returns the machine with native kernels, which are loaded, where it has them and they compute what is asked for.

    Args:
      speed: the settings.
      machine: that computes.
      environment: names the folder of the kernels, and the compiler.
    """
    wanted = speed.native_kernels and _suits_kernels(speed, machine)
    return dataclasses.replace(machine, native_kernels=wanted and loading.use(environment))


def _suits_kernels(speed: SpeedSettings, machine: Machine) -> bool:
    """Whether there are kernels for what is computed; machines that train together compute alike, whatever they are."""
    suits = speed.pack_tokens and speed.custom_gradients and not speed.xla
    on_cpu = not machine.sees_gpu and machine.plan.cluster is None
    return suits and on_cpu and native.covers(precision.PRECISIONS[speed.precision].dtype)


def execution(speed: SpeedSettings, machine: Machine, *, recompute: bool = False) -> Execution:
    """Returns how the encoder is computed.

    Args:
      speed: the settings.
      machine: that computes, see `with_kernels`.
      recompute: whether layers are computed again for their gradients.
    """
    return Execution(
        pack_tokens=speed.pack_tokens,
        last_layer_cls_only=speed.last_layer_cls_only,
        custom_gradients=speed.custom_gradients,
        recompute=recompute,
        native=machine.native_kernels,
        dtype=precision.PRECISIONS[speed.precision].dtype,
    )


def batching(speed: SpeedSettings, max_seq_length: int) -> Batching:
    """Returns how examples become batches.

    Args:
      speed: the settings.
      max_seq_length: longest input in word pieces.
    """
    multiple = _XLA_MULTIPLE if speed.xla else _HALF_MULTIPLE if speed.precision in ("bfloat16", "float16") else 1
    return Batching(None if speed.pad_to_longest else max_seq_length, multiple, max_seq_length, speed.group_by_length)


def eval_batching(
    options: SpeedSettings, max_seq_length: int, config: BertConfig, machine: Machine, *, trains: bool = False
) -> Batching:
    """Returns how examples become batches without training: on a GPU as many at a time as its memory holds.

    Args:
      options: padding, number format.
      max_seq_length: the longest input allowed.
      config: of the model.
      machine: that computes.
      trains: whether another session trains the model meanwhile.
    """
    found = batching(options, max_seq_length)
    if machine.gpu_memory is None:
        return found
    number = BYTES[options.precision]
    tokens = forward_peak.tokens(config, length=max_seq_length, memory=machine.gpu_memory, number=number, trains=trains)
    return dataclasses.replace(found, eval_tokens=tokens)

"""Translates speed flags into settings of model, input and optimizer."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from bert_tf.config import BertConfig
from bert_tf.estimator import run_folder
from bert_tf.features.batching import Batching
from bert_tf.io.log_form import log
from bert_tf.modeling.execution import Execution
from bert_tf.native import loading
from bert_tf.native import ops as native
from bert_tf.runtime import devices, precision
from bert_tf.runtime.machine import Machine
from bert_tf.training.run_spec import RunSpec
from bert_tf.training.settings import SpeedSettings

_XLA_MULTIPLE = 32  # lengths are rounded up to it: XLA compiles once for each
_HALF_MULTIPLE = 8  # for Tensor Cores


def set_up(speed: SpeedSettings) -> None:
    """Prepares the machine; must precede the first session."""
    if speed.xla:
        devices.allow_xla_on_cpu()
    precision.use(speed.precision)


def warn(speed: SpeedSettings) -> None:
    """Warns about what --xla disables and slow number formats; call after devices are set up."""
    if speed.xla:
        log.info("--xla compiles once for each shape: --nopack_tokens, --nodefer_embeddings")
    remark = precision.remark(speed.precision)
    if remark:
        log.info("%s", remark)
    slow_reason = precision.slow_reason(speed.precision)
    if slow_reason:
        log.warning("--precision=%s: %s", speed.precision, slow_reason)


def continued(spec: RunSpec) -> SpeedSettings:
    """Without the flag, keeps the precision of the run in the folder.

    Runs of earlier versions were strictly float32 by default. A training that may replace the run inherits nothing.
    """
    speed, output_dir = spec.speed, spec.output.folder
    replaces = spec.actions.do_train and spec.output.overwrite_output_dir
    if replaces or not output_dir.is_dir():  # `run_folder` reports anything else
        return speed
    before = run_folder.trained(output_dir).get("precision")
    strict = speed.precision == precision.DEFAULT and before == "float32"
    return dataclasses.replace(speed, precision="float32") if strict else speed


def deferring(speed: SpeedSettings, *, deterministic: bool, on_gpu: bool) -> SpeedSettings:
    """Disables deferred embeddings where they would be slow; results do not change.

    `on_gpu` tells whether the word table is on a GPU.
    """
    if not (speed.defer_embeddings and deterministic and on_gpu):
        return speed
    log.info("--nodefer_embeddings: with --deterministic the host would write to the table, not the GPU")
    return dataclasses.replace(speed, defer_embeddings=False)


def with_kernels(speed: SpeedSettings, machine: Machine, environment: Mapping[str, str]) -> Machine:
    """Loads native kernels if the machine has them and they support the settings."""
    suits = speed.pack_tokens and speed.custom_gradients and not speed.xla
    on_cpu = not machine.sees_gpu and machine.plan.cluster is None  # all machines of a cluster must compute alike
    wanted = speed.native_kernels and suits and on_cpu and native.covers(precision.PRECISIONS[speed.precision].dtype)
    return dataclasses.replace(machine, native_kernels=wanted and loading.use(environment))


def execution(speed: SpeedSettings, machine: Machine, *, recompute: bool = False) -> Execution:
    """How the encoder is computed; `recompute` recomputes layers for their gradients."""
    return Execution(
        pack_tokens=speed.pack_tokens,
        last_layer_cls_only=speed.last_layer_cls_only,
        custom_gradients=speed.custom_gradients,
        recompute=recompute,
        native=machine.native_kernels,
        dtype=precision.PRECISIONS[speed.precision].dtype,
    )


def batching(speed: SpeedSettings, max_seq_length: int) -> Batching:
    multiple = _XLA_MULTIPLE if speed.xla else _HALF_MULTIPLE if speed.precision in ("bfloat16", "float16") else 1
    return Batching(None if speed.pad_to_longest else max_seq_length, multiple, max_seq_length, speed.group_by_length)


def eval_batching(
    options: SpeedSettings, max_seq_length: int, config: BertConfig, machine: Machine, *, trains: bool = False
) -> Batching:
    """How examples become batches in inference: as large as GPU memory allows, less while another session trains."""
    usual = batching(options, max_seq_length)
    if machine.gpu_memory is None:
        return usual
    from bert_tf.profiling.forecast import step_peak  # only GPUs have a forecast
    from bert_tf.profiling.forecast.compute_options import BYTES

    number = BYTES[options.precision]
    tokens = step_peak.inference_tokens(config, length=max_seq_length, memory=machine.gpu_memory, number=number, trains=trains)
    return dataclasses.replace(usual, eval_tokens=tokens)

"""Sets up the machine of a batch job that TensorFlow, or another engine for its checkpoints, computes."""

from __future__ import annotations

from collections.abc import Mapping

from bert_tf import home
from bert_tf.batch.engine import InferenceOptions
from bert_tf.config import BertConfig
from bert_tf.engines import registry as engines
from bert_tf.engines.names import AUTO, TENSORFLOW
from bert_tf.engines.registry import ENGINES
from bert_tf.inputs.batching import Batching
from bert_tf.io.log_form import log
from bert_tf.runtime import precision as formats
from bert_tf.runtime.machine import describe, set_up
from bert_tf.runtime.settings import TF_CONFIG
from bert_tf.training import speed
from bert_tf.training.settings import MachineSettings, SpeedSettings


def inference(settings: MachineSettings, batch_size: int | None, *, environment: Mapping[str, str]) -> InferenceOptions:
    """Sets up the machine, once per process; `batch_size` is rows per device, None chooses by length."""
    if settings.engine != AUTO:
        ENGINES[settings.engine].require(settings.precision)
    alone = {name: value for name, value in environment.items() if name != TF_CONFIG}
    machine = set_up(settings.devices, environment=alone)
    row, why = engines.choose(settings.engine, settings.precision, on_gpu=machine.sees_gpu)
    is_tensorflow = row.name == TENSORFLOW
    number = settings.precision if is_tensorflow else "float32"
    speed_settings = SpeedSettings(precision=number, native_kernels=settings.native_kernels and is_tensorflow)
    speed.set_up(speed_settings)
    describe(machine, settings.devices, alone)
    speed.warn(speed_settings)
    machine = speed.with_kernels(speed_settings, machine, environment)
    if why:
        log.info("--engine=%s: %s: %s", AUTO, row.name, why)
    if not (is_tensorflow or formats.cpu_computes(_number(settings.precision))):
        log.warning("--precision=%s: this CPU has no instructions for it; float32 may be faster", settings.precision)

    def batching(config: BertConfig, max_seq_length: int) -> Batching:
        return speed.eval_batching(speed_settings, max_seq_length, config, machine)

    return InferenceOptions(
        engines.make(row, settings.precision, home.folder(environment)),
        batching,
        formats.computed(settings.precision) if is_tensorflow else f"{row.name} {_number(settings.precision)}",
        machine.session_config.intra_op_parallelism_threads,
        batch_size,
        machine,
        speed.execution(speed_settings, machine),
    )


def _number(precision: str) -> str:
    return "float32" if precision == formats.DEFAULT else precision

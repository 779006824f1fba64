"""Sets up the machine of a batch job that TensorFlow, or another engine for its checkpoints, computes."""

from __future__ import annotations

from collections.abc import Mapping

from bert_tf import extension, home
from bert_tf.batch.engine import Chosen, EngineKind, InferenceOptions
from bert_tf.batch.tensorflow_engine import TensorFlowEngine
from bert_tf.config import BertConfig
from bert_tf.errors import FlagError
from bert_tf.features.batching import Batching
from bert_tf.io.log_form import log
from bert_tf.runtime import precision as formats
from bert_tf.runtime.machine import describe, set_up
from bert_tf.runtime.settings import TF_CONFIG
from bert_tf.training import speed
from bert_tf.training.settings import TENSORFLOW, MachineSettings, SpeedSettings


class TensorFlow:
    """See `batch.engine.EngineKind`."""

    def require(self, precision: str) -> None:
        if precision not in formats.PRECISIONS:
            known = ", ".join(formats.PRECISIONS)
            raise FlagError(f"--precision={precision}: --engine={TENSORFLOW} computes in {known}")

    def choose(self, *_: object, **__: object) -> Chosen:
        return Chosen(TENSORFLOW)


def inference(settings: MachineSettings, batch_size: int | None, *, environment: Mapping[str, str]) -> InferenceOptions:
    """Sets up the machine, once per process; `batch_size` is rows per device, None chooses by length."""
    own = TensorFlow()
    kind: EngineKind = own if settings.engine == TENSORFLOW else extension.load(extension.named("engines")[settings.engine])
    kind.require(settings.precision)
    alone = {name: value for name, value in environment.items() if name != TF_CONFIG}
    machine = set_up(settings.devices, environment=alone)
    engine = kind.choose(settings.precision, home.folder(environment), on_gpu=machine.sees_gpu)
    is_tensorflow = engine.make is None
    if is_tensorflow:
        own.require(settings.precision)
    number = settings.precision if is_tensorflow else "float32"
    speed_settings = SpeedSettings(precision=number, native_kernels=settings.native_kernels and is_tensorflow)
    speed.set_up(speed_settings)
    describe(machine, settings.devices, alone)
    speed.warn(speed_settings)
    machine = speed.with_kernels(speed_settings, machine, environment)
    if engine.why:
        log.info("--engine=%s: %s: %s", settings.engine, engine.name, engine.why)
    if not (is_tensorflow or formats.cpu_computes(_number(settings.precision))):
        log.warning("--precision=%s: this CPU has no instructions for it; float32 may be faster", settings.precision)

    def batching(config: BertConfig, max_seq_length: int) -> Batching:
        return speed.eval_batching(speed_settings, max_seq_length, config, machine)

    return InferenceOptions(
        engine.make or TensorFlowEngine,
        batching,
        formats.computed(settings.precision) if is_tensorflow else f"{engine.name} {_number(settings.precision)}",
        machine.session_config.intra_op_parallelism_threads,
        batch_size,
        machine,
        speed.execution(speed_settings, machine),
    )


def _number(precision: str) -> str:
    return "float32" if precision == formats.DEFAULT else precision

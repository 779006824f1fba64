"""Device settings of every computing command; avoids TensorFlow to keep --help quick."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, ClassVar

from bert_tf.settings import setting

if TYPE_CHECKING:
    from bert_tf.runtime.placement import Rule

TF_CONFIG = "TF_CONFIG"  # environment variable that names the machines of a job, see `cluster`
ONE_DEVICE = "one_device"
STRATEGIES = (ONE_DEVICE, "mirrored", "multi_worker", "central_storage")
CROSS_DEVICE_OPS = ("nccl", "hierarchical", "reduce_to_one")
ALL_REDUCE_ALGS = ("auto", "ring", "nccl")

_MOST_THREADS = 1024  # all are started, even without work
_MOST_DEVICES = 128


@dataclasses.dataclass(frozen=True)
class DeviceSettings:
    """Devices and distribution; None leaves the choice to `machine.set_up`."""

    TITLE: ClassVar[str] = "Devices"

    visible_gpus: str | None = setting(None, "GPUs to use by number, comma-separated, or none; default: all")
    gpu_memory_growth: bool = setting(False, "allocate GPU memory on demand instead of all at once")
    gpu_memory_limit_mb: int | None = setting(None, "memory limit for tensors per GPU in MiB; CUDA needs more", lowest=1)
    virtual_devices: int = setting(
        1, "split each GPU, or the CPU without GPUs, into N virtual devices", lowest=1, highest=_MOST_DEVICES
    )
    device: str | None = setting(None, "place the whole model on one device: /GPU:1, /CPU:0")
    place: str | None = setting(None, "place parts on devices: embeddings:/CPU:0,encoder/layer_6-11:/GPU:1")
    soft_placement: bool = setting(True, "fall back to another device if an operation has no kernel there; else fail")
    strategy: str | None = setting(
        None, f"{', '.join(STRATEGIES)}; default: by the visible devices", choices=STRATEGIES, of_training=True
    )
    num_gpus: int | None = setting(None, "number of visible GPUs to use; 0 for the CPU", lowest=0)
    cross_device_ops: str | None = setting(
        None, f"all-reduce between GPUs: {', '.join(CROSS_DEVICE_OPS)}", choices=CROSS_DEVICE_OPS, of_training=True
    )
    all_reduce_alg: str | None = setting(
        None, f"all-reduce between machines: {', '.join(ALL_REDUCE_ALGS)}", choices=ALL_REDUCE_ALGS, of_training=True
    )
    deterministic: bool = setting(False, "bit-identical runs on GPUs too; slower")
    intra_op_threads: int | None = setting(
        None, "CPU threads per operation; default: available cores", lowest=1, highest=_MOST_THREADS
    )
    inter_op_threads: int | None = setting(
        None, "concurrent operations on the CPU; default: available cores", lowest=1, highest=_MOST_THREADS
    )
    keep_memory: bool = setting(True, "keep freed memory for the next step; else it goes back to the system, which takes time")
    check_replicas_every_n_steps: int = setting(
        0, "steps between checks that replicas have equal weights; 0: off", lowest=0, of_training=True
    )

    @property
    def are_chosen(self) -> bool:
        chosen = (self.visible_gpus, self.device, self.place, self.strategy, self.num_gpus)
        return self.virtual_devices > 1 or any(value is not None for value in chosen)

    @property
    def asks_for_cpu(self) -> bool:
        hidden = self.num_gpus == 0 or (self.visible_gpus or "").strip().lower() == "none"
        return hidden or "cpu" in (self.device or "").lower()

    @functools.cached_property
    def rules(self) -> tuple[Rule, ...]:
        """Parsed `place`, empty if unset; DeviceError if it is malformed."""
        if not self.place:
            return ()
        from bert_tf.runtime import placement

        return placement.parse(self.place)

    @functools.cached_property
    def device_name(self) -> str | None:
        """TensorFlow's name of `device`, None if unset; DeviceError if it is malformed."""
        if not self.device:
            return None
        from bert_tf.runtime import placement

        return placement.normalized(self.device)

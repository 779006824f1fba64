"""Device settings of every computing command; avoids TensorFlow to keep --help quick."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING

from bert_tf.settings import setting

if TYPE_CHECKING:
    from bert_tf.runtime.placement import Rule

ONE_DEVICE = "one_device"
STRATEGIES = (ONE_DEVICE, "mirrored", "multi_worker", "central_storage")
CROSS_DEVICE_OPS = ("nccl", "hierarchical", "reduce_to_one")
ALL_REDUCE_ALGS = ("auto", "ring", "nccl")

_MOST_THREADS = 1024  # so many are started, whether they find work or not
_MOST_DEVICES = 128


@dataclasses.dataclass(frozen=True)
class DeviceSettings:
    """Devices and distribution; None leaves the choice to `machine.set_up`."""

    visible_gpus: str | None = setting(None, "numbers of the GPUs to see, with commas, or none; else all")
    gpu_memory_growth: bool = setting(False, "take GPU memory as it is needed, not all at once")
    gpu_memory_limit_mb: int | None = setting(None, "most memory for tensors on each GPU, in MiB; CUDA takes more", lowest=1)
    virtual_devices: int = setting(
        1, "split each GPU, or the CPU where there is none, into so many devices", lowest=1, highest=_MOST_DEVICES
    )
    device: str | None = setting(None, "the whole model on one device: /GPU:1, /CPU:0")
    place: str | None = setting(None, "parts on devices: embeddings:/CPU:0,encoder/layer_0-5:/GPU:0,encoder/layer_6-11:/GPU:1")
    soft_placement: bool = setting(True, "run elsewhere what a device has no kernel for; else fail")
    log_device_placement: bool = setting(False, "write where each operation of training runs to device_placement.tsv")
    strategy: str | None = setting(None, f"{', '.join(STRATEGIES)}; else by what is visible", choices=STRATEGIES)
    num_gpus: int | None = setting(None, "GPUs to use, of those that are visible; 0 for the CPU", lowest=0)
    cross_device_ops: str | None = setting(None, f"how GPUs add up: {', '.join(CROSS_DEVICE_OPS)}", choices=CROSS_DEVICE_OPS)
    all_reduce_alg: str | None = setting(None, f"how machines add up: {', '.join(ALL_REDUCE_ALGS)}", choices=ALL_REDUCE_ALGS)
    deterministic: bool = setting(False, "the same bits in every run on a GPU too; slower")
    intra_op_threads: int | None = setting(
        None, "CPU threads of one operation; else the cores that the machine grants", lowest=1, highest=_MOST_THREADS
    )
    inter_op_threads: int | None = setting(
        None, "operations at a time on the CPU; else the same", lowest=1, highest=_MOST_THREADS
    )
    check_replicas_every_n_steps: int = setting(0, "stop if the weights of the replicas differ; 0 does not look", lowest=0)

    @property
    def asks_for_cpu(self) -> bool:
        hidden = self.num_gpus == 0 or (self.visible_gpus or "").strip().lower() == "none"
        return hidden or "cpu" in (self.device or "").lower()

    @functools.cached_property
    def rules(self) -> tuple[Rule, ...]:
        """Parsed `place`, empty if unset; DeviceError if it is malformed."""
        from bert_tf.runtime import placement  # TensorFlow

        return placement.parse(self.place) if self.place else ()

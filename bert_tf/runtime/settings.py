"""What a user may say about the machine, as flags of every command that computes; no TensorFlow: --help is quick."""

from __future__ import annotations

import dataclasses

ONE_DEVICE = "one_device"
STRATEGIES = (ONE_DEVICE, "mirrored", "multi_worker", "central_storage")
CROSS_DEVICE_OPS = ("nccl", "hierarchical", "reduce_to_one")
ALL_REDUCE_ALGS = ("auto", "ring", "nccl")


@dataclasses.dataclass(frozen=True)
class DeviceSettings:
    """Devices and distribution; None leaves the choice to `machine.set_up`.

    Attributes:
      visible_gpus: numbers of the physical GPUs to see, with commas; "none" for none.
      gpu_memory_growth: takes memory as it is needed.
      gpu_memory_limit_mb: most memory of each GPU, in MiB.
      virtual_devices: logical devices to split each GPU into, or the CPU where no GPU is seen.
      device: the one device of the whole model.
      place: devices of its parts, as PART:DEVICE with commas.
      soft_placement: runs on another device what its own has no kernel for.
      log_device_placement: writes where operations run.
      strategy: one of `STRATEGIES`.
      num_gpus: GPUs to use, of those seen.
      cross_device_ops: how replicas of one machine add up, one of `CROSS_DEVICE_OPS`.
      all_reduce_alg: how machines add up, one of `ALL_REDUCE_ALGS`.
      deterministic: refuses operations whose result depends on the order of threads.
      intra_op_threads: CPU threads of one operation.
      inter_op_threads: operations at a time on the CPU.
      check_replicas_every_n_steps: how often to compare the weights of the replicas; 0 for never.
    """

    visible_gpus: str | None = None
    gpu_memory_growth: bool = False
    gpu_memory_limit_mb: int | None = None
    virtual_devices: int = 1
    device: str | None = None
    place: str | None = None
    soft_placement: bool = True
    log_device_placement: bool = False
    strategy: str | None = None
    num_gpus: int | None = None
    cross_device_ops: str | None = None
    all_reduce_alg: str | None = None
    deterministic: bool = False
    intra_op_threads: int | None = None
    inter_op_threads: int | None = None
    check_replicas_every_n_steps: int = 0

    @property
    def asks_for_cpu(self) -> bool:
        """Whether a flag says that no GPU is wanted."""
        hidden = self.num_gpus == 0 or (self.visible_gpus or "").strip().lower() == "none"
        return hidden or "cpu" in (self.device or "").lower()

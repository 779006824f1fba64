"""Devices: CPUs and GPUs, why a GPU is not used, and which devices a run would use (docs/devices.md)."""

from bert_tf.extension import Extension, NewCommand

EXTENSION = Extension(
    commands={
        "devices": NewCommand(
            f"{__name__}.command:COMMAND",
            "Data and machine",
            "lists CPUs and GPUs, why a GPU is not used, and which devices a run would use",
        )
    }
)

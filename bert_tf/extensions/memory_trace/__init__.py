"""Memory trace: what the memory of one training step holds, and its peak (docs/memory.md)."""

from __future__ import annotations

import dataclasses

from bert_tf.extension import Extension, NewCommand, Settings
from bert_tf.settings import training_setting

TRACE, LIVE = "memory_trace_step*.txt", "live_memory_step*.tsv"  # in a run's folder


@dataclasses.dataclass(frozen=True)
class MemoryTraceSettings(Settings):
    memory_trace_step: int | None = training_setting(
        None, "step whose memory to trace: memory_trace_stepN.txt, live_memory_stepN.tsv", lowest=1
    )


EXTENSION = Extension(
    settings=MemoryTraceSettings,
    section="Output",
    part=f"{__name__}.hook:MemoryTrace",
    panel=f"{__name__}.panel:of_runs",
    commands={
        "memory": NewCommand(f"{__name__}.command:MEMORY", "Look at runs", "reads memory traces of training steps"),
        **{f"memory {name.lower()}": NewCommand(f"{__name__}.command:{name}") for name in ("REPORT", "PEAK", "DIFF")},
    },
    files={(TRACE, LIVE): "memory of a step (docs/memory.md)"},
)

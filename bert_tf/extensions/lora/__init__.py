"""LoRA: trains low-rank updates of an encoder's matrices, and the head, instead of all weights (docs/lora.md)."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from bert_tf.errors import FlagError
from bert_tf.extension import Extension, Settings
from bert_tf.extensions.lora.names import ADAPTER, PEFT_CONFIG, PEFT_WEIGHTS, POOLER, parse_parts, parse_targets
from bert_tf.settings import changed, learned_setting

if TYPE_CHECKING:
    from bert_tf.training.run_spec import RunSpec


@dataclasses.dataclass(frozen=True)
class LoraSettings(Settings):
    lora_rank: int = learned_setting(
        0, "train updates of this rank of the encoder's matrices, and the head, instead of all weights; 0: off", lowest=0
    )
    lora_targets: str = learned_setting(
        "query,value",
        "matrices with an update: all, or query, key, value, attention_output, intermediate, output, with commas",
    )
    lora_alpha: float | None = learned_setting(None, "factor of the updates, divided by the rank; default: the rank", above=0.0)
    lora_train: str = learned_setting(
        POOLER, "what is trained in full beside the updates: head (always), pooler, norms, with commas"
    )

    @property
    def scaling(self) -> float:
        return (self.lora_alpha or self.lora_rank) / self.lora_rank

    def check(self, config: RunSpec) -> None:
        del config
        if not self.lora_rank:
            raise FlagError(f"--{next(iter(changed(self)))}: needs --lora_rank, such as --lora_rank=8")
        parse_targets(self.lora_targets)
        parse_parts(self.lora_train)


EXTENSION = Extension(
    settings=LoraSettings,
    programs=("fine-tune", "distill"),
    part=f"{__name__}.part:LowRankUpdates",
    adapts=f"{__name__}.chosen:forecast",
    composes=f"{__name__}.composed:composed",
    identifies=f"{__name__}.adapter:identity",
    opens=f"{__name__}.opening:opened",
    beside=(ADAPTER,),
    files={
        (
            ADAPTER,
            PEFT_CONFIG,
            PEFT_WEIGHTS,
        ): "low-rank updates in PEFT's format, and their parent (docs/lora.md)"
    },
)

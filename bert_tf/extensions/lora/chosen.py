"""What is trained: matrices with an update, and variables of the encoder themselves. Does not import TensorFlow."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from bert_tf.checkpoints.names import encoder_shapes
from bert_tf.config import BertConfig
from bert_tf.encoders import ENCODERS
from bert_tf.errors import FlagError
from bert_tf.extensions.lora.names import NORMS, POOLER, TARGETS, parse_parts, parse_targets
from bert_tf.optimization.parts import Part, part_of
from bert_tf.profiling.forecast.activations import ALL
from bert_tf.profiling.forecast.compute_options import Adapted, Shapes

if TYPE_CHECKING:
    from bert_tf.extensions.lora import LoraSettings


def matrices(settings: LoraSettings, config: BertConfig, frozen: Collection[Part]) -> frozenset[str]:
    """Scopes of the matrices with an update: of layers that are not frozen."""
    numbers = (number for number in range(config.weighted_layers) if number not in frozen)
    targets = parse_targets(settings.lora_targets)
    return frozenset(f"bert/encoder/layer_{number}/{target}" for number in numbers for target in targets)


def refuse(settings: LoraSettings, config: BertConfig, frozen: Collection[Part], new: Collection[Part] = ()) -> None:
    """Raises FlagError if nothing of the model can have an update; layers in `new` begin anew, and are trained themselves."""
    if settings.lora_rank > config.hidden_size:
        raise FlagError(f"--lora_rank={settings.lora_rank}: above {config.hidden_size}, the width of the model's matrices")
    if not matrices(settings, config, {*frozen, *new}):
        flags = {"--freeze": frozen, "--reinit_layers": new}
        named = " and ".join(flag for flag, parts in flags.items() if any(isinstance(part, int) for part in parts))
        remedy = f"name fewer of the {config.weighted_layers} layers"
        raise FlagError(f"{named}: no layer is left for the updates of --lora_rank; {remedy}")


def whole(settings: LoraSettings, config: BertConfig, frozen: Collection[Part]) -> frozenset[str]:
    """Variables of the encoder that are trained themselves; `frozen` has the pooler if the head does not read it.

    transformers counts a pooler that its bare model lacks to the head, and PEFT keeps heads (`modules_to_save`).
    """
    asked, of_head = parse_parts(settings.lora_train), not ENCODERS[config.model_type].base_pooler

    def is_whole(variable: str) -> bool:
        part = part_of(variable)
        if part in frozen and part is not None:
            return False
        if part == POOLER:
            return of_head or POOLER in asked
        return NORMS in asked and "LayerNorm/" in variable

    return frozenset(filter(is_whole, encoder_shapes(config)))


def forecast(settings: LoraSettings, config: BertConfig, frozen: Collection[Part], new: Collection[Part]) -> Adapted:
    """What a step keeps in memory, see `profiling.forecast`; raises FlagError as `refuse`."""
    refuse(settings, config, frozen, new)
    shapes, rank = encoder_shapes(config), settings.lora_rank
    updates: dict[str, tuple[int, ...]] = {}
    for scope in matrices(settings, config, {*frozen, *new}):
        width, height = shapes[f"{scope}/kernel"]
        updates[f"{scope}/down"], updates[f"{scope}/up"] = (width, rank), (rank, height)
    anew = {name for name in shapes if part_of(name) in new}
    trained_whole = {name: shapes[name] for name in whole(settings, config, frozen) | anew}
    targets = parse_targets(settings.lora_targets)
    reads = frozenset(scope for scope in TARGETS.values() if scope in targets) & ALL
    reads = ALL if any(isinstance(part, int) for part in new) else reads
    return Adapted(_by_part({**updates, **trained_whole}.items()), _by_part(updates.items()), reads)


def _by_part(shapes: Iterable[tuple[str, tuple[int, ...]]]) -> tuple[tuple[Part, Shapes], ...]:
    parts: dict[Part, list[tuple[int, ...]]] = {}
    for name, shape in sorted(shapes):
        part = part_of(name)
        if part is not None:  # that of all others is the head's
            parts.setdefault(part, []).append(shape)
    return tuple((part, tuple(of_part)) for part, of_part in parts.items())

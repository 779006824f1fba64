"""A training step, and its options that affect memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple, Union

from bert_tf import extension
from bert_tf.config import BertConfig
from bert_tf.head_spec import OF_POOLED, HeadMemory

Shapes = tuple[tuple[int, ...], ...]  # of variables
Part = Union[str, int]  # as `optimization.parts` names them: EMBEDDINGS, POOLER, the number of a layer; None is the head
EMBEDDINGS, POOLER = "embeddings", "pooler"


BYTES = {"default": 4, "float32": 4, "tf32": 4, "bfloat16": 2, "float16": 2}


class Adapted(NamedTuple):
    """What is trained of the encoder if not all of the parts that are not frozen (`modeling.execution`)."""

    trained: tuple[tuple[Part, Shapes], ...]  # variables by part
    added: tuple[tuple[Part, Shapes], ...]  # those of them that the encoder does not have by itself
    reads: frozenset[str]  # scopes within a layer of the matrices whose gradients need their input


@dataclasses.dataclass(frozen=True)
class ComputeOptions:
    """How a step is computed; fields are named after the flags of the training command."""

    micro_batches: int = 1
    rows_per_example: float = 1.0  # mean number of windows of a text, or of options of a question
    rows_spread: float = 0.0  # standard deviation of that number
    most_rows: int = 1  # of an example; one is in the largest micro-batch
    recompute: bool = False  # keep only the input of each layer
    precision: str = "default"  # of activations
    frozen: frozenset[Part] = frozenset()
    host_embeddings: bool = False  # embeddings and their slots in host memory
    pack_tokens: bool = True  # skip padding except in attention
    padding: float = 0.0  # share of positions, 0 to 1; used with `pack_tokens`
    spread: float = 0.0  # standard deviation of `padding` between sequences
    last_layer_cls_only: bool = True  # last layer computes only the classifier's input
    custom_gradients: bool = True
    fused_adam: bool = True  # one kernel per variable
    defer_embeddings: bool = True  # postpone updates of unused words
    lamb: bool = False  # no fused kernel, no deferred updates
    averages: bool = False  # keeps a moving average of the weights
    replicas: int = 1  # number of devices that share a batch, each with all weights
    evaluates: bool = False  # a second session evaluates with its own weights
    on_gpu: bool = True  # breadth-first update; a CPU thread updates variable by variable
    growth: bool = False  # GPU memory is allocated in pieces as needed
    head: tuple[tuple[int, ...], ...] | None = None  # shapes of its variables; None: classifier, two labels
    head_memory: HeadMemory = OF_POOLED
    reads_tokens: bool = False  # the head reads all tokens of the last layer
    fewest_examples: int = 1  # that the loss needs together
    places: int = 0  # most positions per sequence the head reads besides [CLS]
    tied_words: bool = False  # the head computes with the word table
    adapted: Adapted | None = None  # `frozen` then has all parts of which nothing is trained, and embeddings

    @property
    def defers(self) -> bool:
        """Whether updates of words are deferred, see `estimator.update`."""
        able = self.replicas == 1 and self.precision != "float16" and EMBEDDINGS not in self.frozen
        return self.defer_embeddings and able and not self.lamb

    @property
    def whole_table(self) -> bool:
        """Whether each step has a gradient of the whole word table."""
        return not (self.defers or self.host_embeddings or EMBEDDINGS in self.frozen)


class Step(NamedTuple):
    """A training step."""

    config: BertConfig
    tokens: int  # sequence length
    batch_size: int  # examples over all replicas and micro-batches
    options: ComputeOptions = ComputeOptions()

    def having(self, **changes: Any) -> Step:
        return self._replace(options=dataclasses.replace(self.options, **changes))


def with_adapted(
    options: ComputeOptions, asked: Mapping[str, Any], config: BertConfig, new: frozenset[Part] = frozenset()
) -> ComputeOptions:
    """Adds what an extension trains instead of all weights; `asked` are settings of extensions by the names of these.

    Parts that are not trained at all, such as a pooler that the head does not read, must be among the frozen ones. Those in
    `new` are not of the checkpoint (--reinit_layers).
    """
    for name, settings in asked.items():
        adapts = extension.installed()[name].adapts
        if adapts:
            adapted = extension.load(adapts)(settings, config, options.frozen, new)
            return dataclasses.replace(options, adapted=adapted, frozen=options.frozen | {EMBEDDINGS})
    return options


def classifier(labels: int, hidden_size: int) -> tuple[tuple[int, ...], ...]:
    """Returns the shapes of the published classifier's variables."""
    return (labels, hidden_size), (labels,)


# The published script (google-research/bert) on one GPU, which has none of these options.
PUBLISHED = ComputeOptions(
    pack_tokens=False, last_layer_cls_only=False, custom_gradients=False, fused_adam=False, defer_embeddings=False
)

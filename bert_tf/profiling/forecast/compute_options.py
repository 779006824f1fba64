"""Compute options of a training step, as far as its memory depends on them."""

from __future__ import annotations

import dataclasses
from typing import Union

from bert_tf.head_spec import OF_POOLED, HeadMemory

Part = Union[str, int]  # as `optimization.parts` names them: EMBEDDINGS, POOLER, the number of a layer; None is the head
EMBEDDINGS, POOLER = "embeddings", "pooler"


BYTES = {"default": 4, "float32": 4, "tf32": 4, "bfloat16": 2, "float16": 2}


@dataclasses.dataclass(frozen=True)
class ComputeOptions:
    """How a step is computed, by the names of the training command's flags.

    Attributes:
      micro_batches: of a batch, which are computed one after the other.
      recompute: keeps of each layer its input alone.
      precision: of activations.
      frozen: parts that keep their weights.
      host_embeddings: whether the embeddings and all that belongs to them lie in the memory of the host.
      pack_tokens: whether padding is left out of all but attention.
      padding: share of all positions that are padding, 0 to 1; of use with `pack_tokens`.
      spread: standard deviation of that share from one sequence to the next; 0 where all batches are alike.
      last_layer_cls_only: computes of the last layer only what the classifier reads.
      custom_gradients: gradients by hand.
      fused_adam: one kernel a variable for the update.
      defer_embeddings: updates of unused words are put off.
      lamb: the optimizer is LAMB, which has no fused kernel, and puts nothing off.
      averages: a moving average of the weights is kept beside them.
      replicas: devices that share a batch, each with all weights.
      evaluates: whether a second session evaluates while the first trains, with weights of its own.
      on_gpu: a GPU is given operations in the order in which they can be computed, all variables' first operation of the update
        before the second of any; a thread of the CPU updates one variable after the other.
      head: shapes of the head's variables; None for a classifier of two labels.
      head_memory: what else the head holds.
      places: of each sequence that the head reads beside [CLS], at most.
      tied_words: whether the head computes with the table of words.
      growth: the memory of a GPU is taken as it is needed, in pieces, not all at once.
    """

    micro_batches: int = 1
    recompute: bool = False
    precision: str = "default"
    frozen: frozenset[Part] = frozenset()
    host_embeddings: bool = False
    pack_tokens: bool = True
    padding: float = 0.0
    spread: float = 0.0
    last_layer_cls_only: bool = True
    custom_gradients: bool = True
    fused_adam: bool = True
    defer_embeddings: bool = True
    lamb: bool = False
    averages: bool = False
    replicas: int = 1
    evaluates: bool = False
    on_gpu: bool = True
    growth: bool = False
    head: tuple[tuple[int, ...], ...] | None = None
    head_memory: HeadMemory = OF_POOLED
    places: int = 0
    tied_words: bool = False

    @property
    def defers(self) -> bool:
        """Whether words wait for their updates, see `estimator.update`."""
        able = self.replicas == 1 and self.precision != "float16" and EMBEDDINGS not in self.frozen
        return self.defer_embeddings and able and not self.lamb

    @property
    def whole_table(self) -> bool:
        """Whether each step has a gradient of the whole table of words."""
        return not (self.defers or self.host_embeddings or EMBEDDINGS in self.frozen)


def classifier(labels: int, hidden_size: int) -> tuple[tuple[int, ...], ...]:
    """Returns the shapes of the published classifier's variables.

    Args:
      labels: how many.
      hidden_size: of the encoder.
    """
    return (labels, hidden_size), (labels,)


# The published script (google-research/bert) on one GPU, which has none of these options.
PUBLISHED = ComputeOptions(
    pack_tokens=False, last_layer_cls_only=False, custom_gradients=False, fused_adam=False, defer_embeddings=False
)

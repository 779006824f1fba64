"""Low-rank updates of the initial checkpoint: a run that trains them, and its graph (Hu et al., 2021, arXiv 2106.09685).

Shapes: N rows, D width of the input, E width of the output, R rank.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import tensorflow as tf

from bert_tf.checkpoints import saved
from bert_tf.checkpoints.names import encoder_shapes
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.checkpoints.restore import RestorePlan
from bert_tf.errors import FlagError
from bert_tf.extensions.lora import adapter, chosen, peft_format
from bert_tf.extensions.lora.adapter import Adapter
from bert_tf.extensions.lora.names import DOWN, UP
from bert_tf.io.log_form import log
from bert_tf.modeling import layers
from bert_tf.modeling.execution import Adaptation, Product
from bert_tf.modeling.heads import registry as heads
from bert_tf.modeling.heads.base import trains_pooler
from bert_tf.native import ops
from bert_tf.optimization import parts
from bert_tf.tasks.base import TRAIN, Example, Family
from bert_tf.training.part import Part
from bert_tf.training.run import Run

tf1 = tf.compat.v1

# Updates begin at 0 and learn at a higher rate than weights (docs/lora.md).
_RECIPE: Mapping[str, float | str] = {"learning_rate": 1e-3, "train_batch_size": 16, "adam_bias_correction": True}


class LowRankUpdates(Part):
    def recipe(self, family: Family, examples: Sequence[Example]) -> Mapping[str, float | str]:
        del examples
        return {**family.usual_settings, **_RECIPE}

    def check(self, run: Run) -> Iterator[str]:
        if TRAIN not in run.splits:
            return
        if run.source.from_scratch:
            rank = self.settings.lora_rank
            raise FlagError(f"--lora_rank={rank}: updates belong to a trained checkpoint; name one with --init_checkpoint")
        chosen.refuse(self.settings, run.config, run.spec.train.frozen, run.new_parts)
        yield from ()

    def claimed(self, run: Run) -> None:
        prefix = run.source.checkpoint
        note = Adapter(
            parent=str(Path(prefix).resolve()),
            parent_sha256=adapter.of_parent(prefix),
            scaling=self.settings.scaling,
            layers=run.layers,
            parent_name=run.spec.model.init_checkpoint or "",
        )
        peft_format.remove(run.output_dir)  # its training goes on
        note.write(run.output_dir)

    def adaptation(self, run: Run, plan: RestorePlan) -> LowRank:
        shapes, head, frozen = encoder_shapes(run.config), heads.make_head(run.task.family.head), run.spec.train.frozen
        if not trains_pooler(head, run.config):
            frozen |= {parts.POOLER}
        whole = chosen.whole(self.settings, run.config, frozen) | (shapes.keys() - plan.loaded)
        every = chosen.matrices(self.settings, run.config, frozen)
        matrices = frozenset(scope for scope in every if f"{scope}/kernel" not in whole)
        rank = self.settings.lora_rank
        of_updates = sum(rank * sum(shapes[f"{scope}/kernel"]) for scope in matrices)
        of_head = sum(map(math.prod, head.variables(run.config).values()))
        of_parts = sum(math.prod(shapes[name]) for name in whole)
        trained = of_updates + of_head + of_parts
        everything = of_updates + of_head + sum(map(math.prod, shapes.values()))
        text = "LoRA: %d of %d weights are trained: %d in updates of %d matrices, %d in the head, %d in other parts"
        log.info(text, trained, everything, of_updates, len(matrices), of_head, of_parts)
        return LowRank(rank, self.settings.scaling, matrices, frozenset(shapes) - whole, native=run.machine.native_kernels)

    def trained(self, run: Run, step: int) -> None:
        """Writes the weights that predictions use in PEFT's format."""
        del step
        prefix = saved.best_or_newest(run.output_dir)
        if prefix is not None:
            peft_format.write(
                run.output_dir, CheckpointReader(prefix), adapter.read_adapter(run.output_dir), run.config, run.family
            )


@dataclasses.dataclass(frozen=True)
class LowRank(Adaptation):
    """Adds the product with two narrow matrices to that with each of `matrices`; all variables but `unchanged` are trained."""

    rank: int
    scaling: float
    matrices: frozenset[str]  # their variable scopes
    unchanged: frozenset[str]  # names of variables that keep their values
    native: bool = False  # by a kernel, which must be loaded

    def product(self, multiply: Product, x: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
        if tf1.get_variable_scope().name not in self.matrices:
            return multiply(x, kernel)
        width, wider = map(int, kernel.shape)
        down = layers.read_weight(DOWN, [width, self.rank], _uniform(width))
        up = layers.read_weight(UP, [self.rank, wider], tf1.zeros_initializer())
        if self.native:
            return ops.plus_low_rank(lambda rows: multiply(rows, kernel), x, down, up, scaling=self.scaling)
        narrow = tf.matmul(x, tf.cast(down, x.dtype))  # [N, R]
        return multiply(x, kernel) + tf.matmul(narrow, tf.cast(up * self.scaling, x.dtype))

    def trains(self, variable: str) -> bool:
        return variable not in self.unchanged


def _uniform(width: int) -> tf1.random_uniform_initializer:
    """Initializer of the matrix that reads rows of this width, as in the authors' code (microsoft/LoRA); the other is 0."""
    limit = 1.0 / math.sqrt(width)
    seed = sum(len(variable.shape) == 2 for variable in tf1.trainable_variables())  # as `layers.initializer`
    return tf1.random_uniform_initializer(-limit, limit, seed=seed)

"""What an extension adds to a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # they list the extensions, of which one may import this module
    from bert_tf.checkpoints.restore import RestorePlan
    from bert_tf.estimator.run import Hook
    from bert_tf.features.columns import TrainingRows
    from bert_tf.modeling.execution import Adaptation
    from bert_tf.modeling.heads.base import Head
    from bert_tf.tasks.base import Example, Family, Task
    from bert_tf.tasks.decision import Decision
    from bert_tf.training.run import PhasePlan, Run
    from bert_tf.training.run_spec import RunSpec

Predict = Callable[[Sequence[Any]], Any]  # of examples


class Part:
    """An extension's part in a run, see `bert_tf.extension`; every method has a default that adds nothing.

    The methods are called in this order, `phases` and `head` several times; only `check`, `head` and `decision` without
    training, too.
    """

    labels: Sequence[str] | None = None  # of the data, if they are known before it is read
    dropout = True  # whether the model is trained with it

    def __init__(self, settings: Any) -> None:
        """`settings`: of the extension's class; later, the recipe's are among them."""
        self.settings = settings

    def complete(self, config: RunSpec, environment: Mapping[str, str]) -> RunSpec:
        """Returns the configuration with settings that follow from this part's, before files are read."""
        del environment
        return config

    def read(self, examples: Sequence[Example], task: Task) -> Sequence[Example]:
        """Returns the examples of a training split, as they were read, with changes."""
        del task
        return examples

    def recipe(self, family: Family, examples: Sequence[Example]) -> Mapping[str, float | str] | None:
        """Values of settings that nobody gave, instead of the recipe that the run would have; None leaves that.

        `examples` are those of the training split.
        """
        del family, examples
        return None

    def within_positions(self, config: RunSpec, positions: int) -> RunSpec:
        """Returns the configuration with lengths of this part, unless they are given, limited to the model's positions."""
        del positions
        return config

    def layers(self, count: int) -> tuple[int, ...]:
        """Layers of the checkpoint, which has `count`, that the model starts from; none for all."""
        del count
        return ()

    def further_examples(self, examples: Sequence[Example], seed: int) -> Mapping[str, Sequence[Any]]:
        """Further rows to learn from, by a name of their own; `examples` are those of the training split."""
        del examples, seed
        return {}

    def phases(self, run: Run, first: PhasePlan) -> Sequence[PhasePlan]:
        """Further phases of the training, in the same schedule; `first` is that of all runs."""
        del run, first
        return ()

    def check(self, run: Run) -> Iterable[str]:
        """Yields problems, one line each; may raise FlagError, or warn."""
        del run
        return ()

    def restored(self, run: Run, plan: RestorePlan) -> RestorePlan:
        """Returns which variables the weights have, in training; may raise CheckpointError."""
        del run
        return plan

    def recorded(self, run: Run) -> Mapping[str, Any]:
        """What determines the run besides settings, for its record."""
        del run
        return {}

    def repeated(self, run: Run) -> Mapping[str, Any]:
        """Settings of the command that repeats the run, besides those that determine it; None for those to leave out."""
        del run
        return {}

    def claimed(self, run: Run) -> None:
        """Called when the output folder is the run's, before the training."""

    def rows(self, run: Run, rows: TrainingRows) -> TrainingRows:
        """Returns the rows to train on, with more columns, or followed by more rows."""
        del run
        return rows

    def head(self) -> Callable[[Head], Head] | None:
        """What wraps the head in training, to change its loss; only one part of a run may."""

    def adaptation(self, run: Run, plan: RestorePlan) -> Adaptation | None:
        """How the encoder is adapted, if not all of it is trained; only one part of a run may."""
        del run, plan
        return None

    def hooks(self, run: Run) -> Sequence[Hook]:
        """Hooks of the training, on the chief."""
        del run
        return ()

    def trained(self, run: Run, step: int) -> None:
        """Called on the chief when the training has reached its last step, before the evaluation."""

    def decision(self, run: Run, predict: Predict, checkpoint: str) -> Decision:
        """Fits the decision rule of the model, after the evaluation, if the extension `decides`.

        `predict` returns the predictions of examples by the published rule.
        """
        raise NotImplementedError

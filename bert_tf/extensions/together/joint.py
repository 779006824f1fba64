"""Several models in one graph: a head that computes the other models, and their weights by name."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy.typing as npt
import tensorflow as tf

from bert_tf.batch.trained import Trained
from bert_tf.checkpoints.reader import CheckpointReader, model_reader
from bert_tf.config import BertConfig
from bert_tf.errors import CheckpointError
from bert_tf.estimator.forward import Forward
from bert_tf.estimator.model_fn import Model, compute_outputs
from bert_tf.extensions.together.stages import OnceForAll, Shared, digests
from bert_tf.features.columns import Features as Columns
from bert_tf.fields import Field
from bert_tf.inputs.batching import TO_LONGEST, Batching
from bert_tf.modeling.encoder import Encoded
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads import registry as heads
from bert_tf.modeling.heads.base import Around, Features, Head
from bert_tf.runtime.machine import Machine
from bert_tf.tasks.base import Outputs

tf1 = tf.compat.v1

# What must be equal for texts to become the same rows.
_OF_TEXTS = ("vocabulary_sha256", "max_seq_length", "do_lower_case", "long_text", "bert_config_sha256")


@dataclasses.dataclass(frozen=True)
class Member:
    """A model beside the first one."""

    number: int
    model: Model
    head: Head

    @property
    def scope(self) -> str:
        return f"model_{self.number}/"


@dataclasses.dataclass(frozen=True)
class Joint(Around):
    """The head of the first model, which also computes the others."""

    members: tuple[Member, ...] = ()

    @property
    def outputs(self) -> tuple[Field, ...]:
        every = [("", self.head), *((member.scope, member.head) for member in self.members)]
        return tuple(field._replace(name=f"{scope}{field.name}") for scope, head in every for field in head.outputs)

    def compute(self, encoded: Encoded, features: Features, config: BertConfig, execution: Execution) -> dict[str, tf.Tensor]:
        joined = self.head.compute(encoded, features, config, execution)
        for member in self.members:
            with _named(member.scope):
                outputs = compute_outputs(member.model, member.head, features, member.model.execution)
            joined.update({f"{member.scope}{name}": output for name, output in outputs.items()})
        return joined


@contextlib.contextmanager
def _named(scope: str) -> Iterator[None]:
    """Variables that are got within the block have the scope before their names."""

    def get(getter: Callable[..., tf.Variable], name: str, *arguments: Any, **options: Any) -> tf.Variable:
        return getter(f"{scope}{name}", *arguments, **options)

    with tf1.variable_scope(tf1.get_variable_scope(), custom_getter=get):
        yield


class JointReader(CheckpointReader):
    """The weights of all models, by the names that their variables have in one graph."""

    composed = True

    def __init__(self, readers: Mapping[str, CheckpointReader]) -> None:  # by scope; opened already
        self._readers = readers
        self.prefix = next(iter(readers.values())).prefix
        self.shapes = {f"{scope}{name}": shape for scope, one in readers.items() for name, shape in one.shapes.items()}
        self.dtypes = {f"{scope}{name}": dtype for scope, one in readers.items() for name, dtype in one.dtypes.items()}

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        scope = next((one for one in self._readers if one and name.startswith(one)), "")
        return self._readers[scope][name[len(scope) :]]


class JointForward:
    """Several trained models of one tokenizer, whose equal layers are computed once; must be closed."""

    def __init__(self, models: Sequence[Trained], machine: Machine, execution: Execution) -> None:
        """Builds the graph and loads all weights; CheckpointError if the models do not read texts alike."""
        _refuse_others(models)
        self._models = models
        readers = [model_reader(one.prefix) for one in models]
        shared = Shared()
        joined = [
            Model(
                one.config,
                one.head,
                execution=dataclasses.replace(execution, once=OnceForAll(shared, digests(reader, one.config), one.config)),
            )
            for one, reader in zip(models, readers)
        ]
        first, *others = joined
        members = tuple(Member(number, model, heads.make_head(model.head)) for number, model in enumerate(others, 1))
        self._scopes = ["", *(member.scope for member in members)]
        model = dataclasses.replace(first, around=lambda head: Joint(head, members))
        self._forward = Forward(model, machine)
        self._forward.load(models[0].prefix, JointReader(dict(zip(self._scopes, readers))))
        self.steps = [int(one["global_step"]) if "global_step" in one.shapes else 0 for one in readers]

    @property
    def variables(self) -> list[str]:
        """Names of all variables of the graph."""
        return self._forward.variables

    def outputs(self, features: Columns, *, batch_size: int | None = None, batching: Batching = TO_LONGEST) -> list[Outputs]:
        """Outputs of each model's head, in the order of the models, see `Forward.outputs`."""
        of_all = self._forward.outputs(features, batch_size=batch_size, batching=batching)
        fields = [heads.make_head(one.head).outputs for one in self._models]
        return [
            {field.name: of_all[f"{scope}{field.name}"] for field in of_model} for scope, of_model in zip(self._scopes, fields)
        ]

    def close(self) -> None:
        self._forward.close()


def _refuse_others(models: Sequence[Trained]) -> None:
    first = models[0]
    for other in models:
        differing = next((name for name in _OF_TEXTS if other.settings[name] != first.settings[name]), None)
        if differing:
            what = differing.removesuffix("_sha256").replace("_", " ")
            raise CheckpointError(
                f"{other.prefix}: its {what} differs from that of {first.prefix}; such models share no layers"
            )
        if heads.make_head(other.head).inputs:
            raise CheckpointError(f"{other.prefix}: its head reads places of its own, which other models do not")

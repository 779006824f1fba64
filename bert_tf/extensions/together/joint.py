"""Several models in one graph: a head that computes the other models, and their weights by name.

Shapes: B rows of a batch, T tokens of the longest, N tokens of all rows, D hidden size.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from bert_tf.batch.engine import Batch, InferenceOptions
from bert_tf.batch.trained import Trained
from bert_tf.checkpoints.reader import CheckpointReader, model_reader, problem_of_values, refuse_problem
from bert_tf.config import BertConfig
from bert_tf.errors import CheckpointError
from bert_tf.estimator.forward import Forward, Tower
from bert_tf.estimator.model_fn import Model, compute_outputs
from bert_tf.extensions.together.stages import Branch, OnceForAll, Shared, branches, digests
from bert_tf.features.batching import TO_LONGEST, Batching, Rows
from bert_tf.features.columns import Features as Columns
from bert_tf.fields import Field
from bert_tf.modeling.encoder import Encoded
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads import registry as heads
from bert_tf.modeling.heads.base import Around, Features, Head
from bert_tf.runtime.devices import session_config
from bert_tf.runtime.machine import Machine
from bert_tf.tasks.base import Outputs

tf1 = tf.compat.v1

Asked = Mapping[int, npt.NDArray[np.bool_]]  # by number of a model: whether it is asked about each row

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
        refuse_others(models)
        readers = [model_reader(one.prefix) for one in models]
        self._shared = Shared()
        of_models = [OnceForAll(self._shared, digests(reader, one.config), one.config) for one, reader in zip(models, readers)]
        first, *others = (
            Model(
                one.config,
                one.head,
                execution=dataclasses.replace(execution.for_rows(one.config, one.max_seq_length), once=once),
            )
            for one, once in zip(models, of_models)
        )
        members = tuple(Member(number, model, heads.make_head(model.head)) for number, model in enumerate(others, 1))
        self._scopes = ["", *(member.scope for member in members)]
        self._fields = [one.outputs for one in models]
        self._head = models[0].head  # which computes those of all
        model = dataclasses.replace(first, around=lambda head: Joint(head, members))
        self._forward = Forward(model, machine)
        self._forward.load(models[0].prefix, JointReader(dict(zip(self._scopes, readers))))
        for name in self._forward.not_finite():
            number = next((number for number, scope in enumerate(self._scopes) if scope and name.startswith(scope)), 0)
            refuse_problem(problem_of_values(models[number].prefix, [name.removeprefix(self._scopes[number])]))
        self._branches = branches({number: once.path for number, once in enumerate(of_models)})
        self.steps = [int(one["global_step"]) if "global_step" in one.shapes else 0 for one in readers]

    @property
    def variables(self) -> list[str]:
        """Names of all variables of the graph."""
        return self._forward.variables

    def outputs(self, features: Columns, *, batch_size: int | None = None, batching: Batching = TO_LONGEST) -> list[Outputs]:
        """Outputs of each model's head, in the order of the models, see `Forward.outputs`."""
        return self._of_models(self._forward.outputs(features, batch_size=batch_size, batching=batching))

    def outputs_of(
        self, features: Columns, asked: Asked, *, batch_size: int | None = None, batching: Batching = TO_LONGEST
    ) -> list[Outputs]:
        """As `outputs`, of the rows that are asked of each model; those of other rows are undefined."""

        def compute(tower: Tower, batch: Batch, rows: Rows) -> dict[str, npt.NDArray[Any]]:
            return self._computed(tower, self._branches, batch, {model: of_model[rows] for model, of_model in asked.items()})

        return self._of_models(self._forward.outputs(features, batch_size=batch_size, batching=batching, compute=compute))

    def _of_models(self, of_all: Outputs) -> list[Outputs]:
        return [
            {field.name: of_all[f"{scope}{field.name}"] for field in fields}
            for scope, fields in zip(self._scopes, self._fields)
        ]

    def _computed(
        self, tower: Tower, parting: Sequence[Branch], batch: Batch, asked: Asked, start: Start | None = None
    ) -> dict[str, npt.NDArray[Any]]:
        """Outputs of a batch by name, each branch with the rows that are asked of its models; `start` is where they part."""
        outputs: dict[str, npt.NDArray[Any]] = {}
        for branch in parting:
            of_models = {model: asked[model] for model in branch.models if model in asked}
            wanted = np.logical_or.reduce([np.zeros(len(batch["input_mask"]), bool), *of_models.values()])  # [B]
            if not wanted.any():
                continue
            own = batch if wanted.all() else {name: column[wanted] for name, column in batch.items()}
            stages = {} if start is None else {start.tensor: start.of(batch, wanted)}
            if branch.path:
                end = self._shared.end(tower.graph, branch.path)
                reached = Start(end, tower.run(self._head, {"": end}, own, stages)[""])
                below = {model: rows[wanted] for model, rows in of_models.items()}
                of_branch = self._computed(tower, branch.branches, own, below, reached)
            else:
                of_branch = tower.run(self._head, self._heads(tower, branch.models[0]), own, stages)
            outputs.update({name: _spread(output, batch, wanted) for name, output in of_branch.items()})
        return outputs

    def _heads(self, tower: Tower, model: int) -> dict[str, tf.Tensor]:
        names = [f"{self._scopes[model]}{field.name}" for field in self._fields[model]]
        return {name: tower.heads[self._head].outputs[name] for name in names}

    def close(self) -> None:
        self._forward.close()


@dataclasses.dataclass(frozen=True)
class Start:
    """Where models part: the tensor, and its value for a batch."""

    tensor: tf.Tensor
    value: npt.NDArray[Any]  # [B, D] of the first tokens, else [N, D]: of real tokens, or padded

    def of(self, batch: Batch, wanted: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
        """The value for the wanted rows [B] of the batch."""
        if wanted.all():
            return self.value
        value: npt.NDArray[Any] = self.value[_places(len(self.value), batch, wanted)]
        return value


def _spread(output: npt.NDArray[Any], batch: Batch, wanted: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    """An output of the wanted rows [B], or of their tokens, for the whole batch; zero elsewhere."""
    if wanted.all():
        return output
    mask = batch["input_mask"]
    is_of_rows = len(output) == wanted.sum()  # else it is of real tokens
    spread = np.zeros((len(wanted) if is_of_rows else int(mask.sum()), *output.shape[1:]), output.dtype)
    spread[_places(len(spread), batch, wanted)] = output
    return spread


def _places(length: int, batch: Batch, wanted: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Where the values of wanted rows [B] are in a column of a batch: of rows, real tokens, or all tokens with padding."""
    mask = batch["input_mask"]  # [B, T]
    if length == len(wanted):
        return wanted
    places = np.broadcast_to(wanted[:, None], mask.shape)
    return places[mask.astype(bool)] if length == mask.sum() else places.ravel()


def of_options(models: Sequence[Trained], inference: InferenceOptions) -> JointForward:
    return JointForward(models, inference.machine or Machine(session_config()), inference.execution or Execution())


def trunk(trained: Trained) -> str:
    """A digest of the weights up to the first layer."""
    lowest = digests(model_reader(trained.prefix), trained.config, layers=1)
    return hashlib.sha256(repr(sorted(lowest.items(), key=str)).encode()).hexdigest()


def refuse_others(models: Sequence[Trained]) -> None:
    first = models[0]
    for other in models:
        differing = next((name for name in _OF_TEXTS if other.settings[name] != first.settings[name]), None)
        if differing:
            what = differing.removesuffix("_sha256").replace("_", " ")
            raise CheckpointError(
                f"{other.prefix}: its {what} differs from that of {first.prefix}; such models share no layers: leave it out"
            )
        if heads.make_head(other.head).inputs:
            raise CheckpointError(f"{other.prefix}: its head reads places of its own, which other models do not; leave it out")

"""Decides and reports, before the graph is built, which variables are restored from a checkpoint."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from typing import Any

import numpy.typing as npt
import tensorflow as tf

from bert_tf import variables
from bert_tf.checkpoints.names import encoder_shapes, is_expected_extra, pretraining_shapes
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.config import BertConfig
from bert_tf.graphs import HOST

tf1 = tf.compat.v1
Array = npt.NDArray[Any]

_LAYER = re.compile(r"/layer_(\d+)/")
_BERT, _ELECTRA = "bert/", "electra/"  # scopes of the encoder, the second in Google's checkpoints of ELECTRA
_WORDS = f"{_BERT}embeddings/word_embeddings"
# Names in Google's checkpoints of ALBERT (google-research/albert, modeling.py): patterns and their replacements, in order.
_GROUP = r"/transformer/group_\1/inner_group_0"
_ALBERT = (
    (r"embeddings_project", "encoder/embedding_hidden_mapping_in"),
    (r"/layer_(\d+)/attention/self", rf"{_GROUP}/attention_1/self"),
    (r"/layer_(\d+)/attention/output/dense", rf"{_GROUP}/attention_1/output/dense"),
    (r"/layer_(\d+)/attention/output/LayerNorm", rf"{_GROUP}/LayerNorm"),
    (r"/layer_(\d+)/intermediate", rf"{_GROUP}/ffn_1/intermediate"),
    (r"/layer_(\d+)/output/dense", rf"{_GROUP}/ffn_1/intermediate/output/dense"),
    (r"/layer_(\d+)/output/LayerNorm", rf"{_GROUP}/LayerNorm_1"),
)
_OF_ALBERT = "/transformer/group_0/"


@dataclasses.dataclass(frozen=True)
class RestorePlan:
    """Assigns every variable of model and checkpoint to one of five lists, or gives it a value."""

    prefix: str  # of the checkpoint
    loaded: tuple[str, ...]  # encoder and pre-training head
    missing: tuple[str, ...]  # encoder variables absent from the checkpoint
    misshaped: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]]  # (shape in the checkpoint, shape in the model)
    initialized: tuple[str, ...]  # head variables that the checkpoint does not provide
    unexpected: tuple[str, ...]  # in the checkpoint, with no known use
    sources: Mapping[str, str] = dataclasses.field(default_factory=dict)  # names in the checkpoint that differ, by variable
    values: Mapping[str, Array] = dataclasses.field(default_factory=dict)  # of variables that another model provides

    @property
    def provided(self) -> tuple[str, ...]:
        """Variables that do not begin at random."""
        return (*self.loaded, *self.values)

    def stored(self, name: str) -> str:
        """The name of a variable in the checkpoint."""
        return self.sources.get(name, name)

    def problems(self) -> list[str]:
        """Returns one line for each kind of mismatch, with its likely cause; empty if the encoder is complete."""
        lines = []
        if self.misshaped:
            name, (stored, expected) = next(iter(self.misshaped.items()))
            cause = (
                "the vocabulary size of the configuration is another model's"
                if list(self.misshaped) == ["bert/embeddings/word_embeddings"]
                else "is the configuration of another model size (Base with Large)?"
            )
            lines.append(
                f"{self.prefix}: {len(self.misshaped)} variables have another shape than the configuration says:"
                f" {name} is {list(stored)}, expected {list(expected)}; {cause}"
            )
        if self.missing:
            cause = (
                "is this a BERT checkpoint, and the right folder?"
                if not self.loaded
                else "has the configuration more layers than the checkpoint?"
            )
            lines.append(f"{self.prefix}: {len(self.missing)} encoder variables are missing, {self.missing[0]} first; {cause}")
        return lines

    def summary(self) -> str:
        unexpected = f"{', '.join(self.unexpected[:3])}{', ...' * (len(self.unexpected) > 3)}"
        counts = {
            "missing": len(self.missing),
            f"unexpected ({unexpected})": len(self.unexpected),
            "mis-shaped": len(self.misshaped),
        }
        if not self.prefix:
            return f"{len(self.initialized)} newly initialized, from scratch"
        new = [f"{len(self.initialized)} newly initialized ({', '.join(self.initialized)})"] if self.initialized else []
        loaded = [f"{len(self.loaded)} loaded", *([f"{len(self.values)} from another model"] if self.values else [])]
        return ", ".join([*loaded, *new, *(f"{count} {kind}" for kind, count in counts.items() if count)])


def plan_restore(
    reader: CheckpointReader,
    config: BertConfig,
    head_variables: tuple[str, ...],
    layers: Sequence[int] = (),
    new: Collection[str] = (),
) -> RestorePlan:
    """Plans a start from a checkpoint.

    `layers` are those of the checkpoint that the model has, in order, if it has only some; it then keeps their head. Encoder
    variables in `new` are not taken from the checkpoint.
    """
    shapes = reader.shapes
    encoder, head = encoder_shapes(config), pretraining_shapes(config)
    scope = _ELECTRA if _WORDS not in shapes and _WORDS.replace(_BERT, _ELECTRA) in shapes else _BERT
    of_student = () if config.layer_groups else layers  # layers that share weights have the same in a smaller model
    names_by_group = _ALBERT if any(_OF_ALBERT in name for name in shapes) else ()
    sources = {name: stored for name in encoder if (stored := _stored(name, scope, of_student, names_by_group)) != name}
    if sources or layers:
        names = (*encoder, *head_variables)
        shapes = {name: shapes[stored] for name in names if (stored := sources.get(name, name)) in shapes}
    if layers:
        head = {name: shapes[name] for name in head_variables if name in shapes}
    if scope == _ELECTRA:  # it has no pooler
        new = {*new, *(name for name in encoder if name not in shapes and name.startswith(f"{_BERT}pooler/"))}
    expected = {**encoder, **{name: head[name] for name in head_variables if name in head and name in shapes}}
    misshaped = {name: (shapes[name], shape) for name, shape in expected.items() if name in shapes and shapes[name] != shape}
    return RestorePlan(
        prefix=reader.prefix,
        loaded=tuple(name for name, shape in expected.items() if shapes.get(name) == shape and name not in new),
        missing=tuple(name for name in expected if name not in shapes and name not in new),
        misshaped=misshaped,
        initialized=(*(name for name in encoder if name in new), *(name for name in head_variables if name not in expected)),
        unexpected=tuple(sorted(name for name in shapes if name not in expected and not is_expected_extra(name))),
        sources=sources,
    )


def _stored(name: str, scope: str, layers: Sequence[int], replaced: Sequence[tuple[str, str]]) -> str:
    """The name of an encoder variable in a checkpoint: of layer i, that of layer `layers[i]`."""
    name = name.replace(_BERT, scope, 1)
    for pattern, replacement in replaced:
        name = re.sub(pattern, replacement, name)
    return _LAYER.sub(lambda match: f"/layer_{layers[int(match[1])]}/", name) if layers else name


def from_scratch(config: BertConfig, head_variables: tuple[str, ...]) -> RestorePlan:
    return RestorePlan("", (), (), {}, (*encoder_shapes(config), *head_variables), ())


@contextlib.contextmanager
def starting_from(plan: RestorePlan | None) -> Iterator[None]:
    """Initializes variables made in the block as the plan says; ValueError if one that it loads is not made."""
    if plan is None:
        yield
        return
    with _with_values(plan.values), _loaded(plan):
        yield


@contextlib.contextmanager
def _with_values(values: Mapping[str, Array]) -> Iterator[None]:
    def get(getter: Callable[..., tf.Variable], name: str, *arguments: Any, **options: Any) -> tf.Variable:
        given = {"initializer": tf1.constant_initializer(values[name])} if name in values else {}
        return getter(name, *arguments, **{**options, **given})

    with tf1.variable_scope(tf1.get_variable_scope(), custom_getter=get) if values else contextlib.nullcontext():
        yield


@contextlib.contextmanager
def _loaded(plan: RestorePlan) -> Iterator[None]:
    if not plan.loaded:
        yield
        return
    if not variables.can_make():
        yield
        by_name = {variable.name.rpartition(":")[0]: unwrapped(variable) for variable in tf1.global_variables()}
        _refuse_lacking(plan, by_name)
        tf1.train.init_from_checkpoint(plan.prefix, {plan.stored(name): by_name[name] for name in plan.loaded})
        return
    restored = _restored(plan)
    with variables.made_at_once({name: value.shape for name, value in restored.items()}, restored) as taken:
        yield
    _refuse_lacking(plan, taken)


def _restored(plan: RestorePlan) -> dict[str, tf.Tensor]:
    """Returns the checkpoint's values, read by a single operation instead of several for each variable."""
    shapes, names = CheckpointReader(plan.prefix).shapes, list(plan.loaded)
    stored = [plan.stored(name) for name in names]
    with tf.device(HOST):
        values = tf.raw_ops.RestoreV2(
            prefix=plan.prefix, tensor_names=stored, shape_and_slices=[""] * len(names), dtypes=[tf.float32] * len(names)
        )
    for name, value in zip(names, values):
        value.set_shape(shapes[plan.stored(name)])
    return dict(zip(names, values))


def _refuse_lacking(plan: RestorePlan, names: Container[str]) -> None:
    lacking = [name for name in plan.loaded if name not in names]
    if lacking:
        raise ValueError(f"no variable {lacking[0]} in the graph")


def unwrapped(variable: tf.Variable) -> tf.Variable:
    """Unwraps a central-storage variable: TensorFlow gives the wrapper a new initializer, which nobody runs."""
    inner: tf.Variable = variable.get() if hasattr(variable, "get") else variable
    return inner

"""The head that a training begins with: its rows by label, and the pooler that it reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bert_tf import run_layout
from bert_tf.batch.job import ModelOverrides
from bert_tf.batch.trained import Trained
from bert_tf.checkpoints.names import encoder_shapes
from bert_tf.checkpoints.reader import CheckpointReader, model_reader, problem_of_weights, refuse_problem
from bert_tf.checkpoints.restore import RestorePlan
from bert_tf.errors import CheckpointError, FlagError
from bert_tf.io.log_form import log
from bert_tf.modeling.heads import registry as heads
from bert_tf.modeling.heads.base import trains_pooler
from bert_tf.optimization import parts
from bert_tf.training import sources
from bert_tf.training.part import Part
from bert_tf.training.run import Run
from bert_tf.training.run_spec import RunSpec

Array = npt.NDArray[Any]
_LISTED = 5  # labels in a message


class StartHead(Part):
    model: Trained | None = None  # none if nothing is trained

    def complete(self, config: RunSpec, environment: Mapping[str, str]) -> RunSpec:
        folder = sources.checkpoint_of(self.settings.start_head, environment=environment).parent
        has_own = (folder / run_layout.CONFIG).is_file()
        files = ModelOverrides() if has_own else ModelOverrides(config.model.bert_config_file, config.model.vocab_file)
        self.model = sources.find(self.settings.start_head, files, environment=environment, needs_head=False)
        if not self.model.has_checkpoint:
            raise CheckpointError(f"--start_head={self.settings.start_head}: an exported model cannot be trained; name its run")
        return config

    def check(self, run: Run) -> Iterator[str]:
        if self.model is not None and self.model.folder.resolve() in run_layout.own_folders(run.output_dir):
            yield f"{run.output_dir}: --start_head names the model in this folder; name another --output_dir"

    def recorded(self, run: Run) -> Mapping[str, Any]:
        del run
        return {} if self.model is None else {"start_head_sha256": self.model.digest}

    def repeated(self, run: Run) -> Mapping[str, Any]:
        del run
        return {} if self.model is None else {"start_head": self.model.anchored.prefix}

    def restored(self, run: Run, plan: RestorePlan) -> RestorePlan:
        """Lets the variables of the head, and of the pooler if the head reads it, begin with the values of the model."""
        if self.model is None:
            return plan
        head = heads.make_head(run.task.family.head)
        shapes = head.variables(run.config)
        if not shapes:
            raise FlagError(f"--start_head: a head of {run.task.family.kind} has no weights; leave it out")
        if run.new_parts:
            raise FlagError("--start_head: its head was trained on the layers that begin anew here: add --reinit_layers=0")
        reader = model_reader(self.model.prefix)
        pooler = {name: shape for name, shape in encoder_shapes(run.config).items() if parts.part_of(name) == parts.POOLER}
        family, kind = run.task.family, self.model.record.get("kind")
        if kind not in (None, family.kind):
            raise CheckpointError(f"{reader.prefix}: its head is of {kind}, the task's of {family.kind} (--start_head)")
        rows = _rows(self.model, family.labels)
        _refuse_other(reader, {**shapes, **pooler}, family.kind, chosen=bool(rows))
        drawn = np.random.default_rng(run.spec.train.seed)
        values = {name: _by_label(reader[name], rows, drawn, run.config.initializer_range) for name in shapes}
        if trains_pooler(head, run.config):
            values.update({name: reader[name] for name in pooler})
        loaded, initialized = (tuple(n for n in names if n not in values) for names in (plan.loaded, plan.initialized))
        plan = dataclasses.replace(plan, loaded=loaded, initialized=initialized, values=values)
        self._warn_of_other_layers(run, reader, plan)
        return plan

    def _warn_of_other_layers(self, run: Run, reader: CheckpointReader, plan: RestorePlan) -> None:
        """Warns if the head was trained on another encoder."""
        own = model_reader(run.weights.prefix)
        names = [name for name in plan.loaded if name in encoder_shapes(run.config)]
        if any(name not in reader.shapes or not np.array_equal(reader[name], own[plan.stored(name)]) for name in names[::-1]):
            log.warning(
                "--start_head: %s has other layers than this training begins with; --init_checkpoint=%s has both",
                reader.prefix,
                self.settings.start_head,
            )


def _refuse_other(reader: CheckpointReader, shapes: Mapping[str, tuple[int, ...]], kind: str, *, chosen: bool) -> None:
    """Raises CheckpointError for variables that are missing, of another size, or no numbers; `chosen`: rows are, by label."""
    first = 1 if chosen else 0
    for name, shape in shapes.items():
        if name not in reader.shapes:
            raise CheckpointError(f"{reader.prefix}: no {name}; --start_head must name a trained model of {kind}")
        if reader.shapes[name][first:] != shape[first:]:
            sizes = f"{list(reader.shapes[name])}, not {list(shape)}"
            by_number = not chosen and reader.shapes[name][1:] == shape[1:]
            why = ": its labels have no names, so there must be as many as the task has" if by_number else ""
            raise CheckpointError(f"{reader.prefix}: {name} is {sizes}; --start_head must name a model of this size{why}")
    refuse_problem(problem_of_weights(reader, shapes))


def _rows(model: Trained, labels: Sequence[str]) -> list[int | None]:
    """Rows of the model's output layer for the labels of a task, None for new labels; as they are without names."""
    named = model.record.get("labels") or ()
    if not labels or not named:
        return []
    rows = [named.index(label) if label in named else None for label in labels]
    new = [label for label, row in zip(labels, rows) if row is None]
    if len(new) == len(labels):
        raise CheckpointError(f"{model.prefix}: its labels are {_listed(named)}, the task's {_listed(labels)} (--start_head)")
    if new:
        log.info("--start_head: these labels are new: %s", _listed(new))
    return rows


def _by_label(stored: Array, rows: Sequence[int | None], drawn: np.random.Generator, scale: float) -> Array:
    """Returns the rows of stored weights [labels, ...]; new ones begin like those of a new head, biases at 0."""
    if not rows:
        return stored
    of_row = stored.shape[1:]
    new = drawn.normal(0.0, scale, (len(rows), *of_row)).clip(-2 * scale, 2 * scale) if of_row else np.zeros(len(rows))
    return np.stack([new[row] if known is None else stored[known] for row, known in enumerate(rows)]).astype(np.float32)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_LISTED]) + ", ..." * (len(names) > _LISTED)

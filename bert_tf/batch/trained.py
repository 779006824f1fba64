"""Trained weights with their configuration, vocabulary and text preparation."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bert_tf import extension, run_layout
from bert_tf.checkpoints import names
from bert_tf.config import BertConfig
from bert_tf.errors import CheckpointError, FlagError
from bert_tf.estimator import preflight, run_folder
from bert_tf.fields import Field
from bert_tf.head_spec import MEAN, PUBLISHED_WEIGHTS, HeadSpec
from bert_tf.io import files
from bert_tf.io.log_form import log
from bert_tf.tasks import families, registry
from bert_tf.tasks.base import Family, Limits, Outputs, Task
from bert_tf.tasks.decision import DECISION, load_decision
from bert_tf.tasks.settings import CUSTOM, lasting_names, of_values
from bert_tf.tokenization.tokenizer import WordTokenizer, tokenizer_of
from bert_tf.tokenization.vocabulary import Vocabulary

if TYPE_CHECKING:  # they import TensorFlow
    from bert_tf.checkpoints.reader import CheckpointReader
    from bert_tf.modeling.heads.base import Head

PRETRAINED = "this is a pretrained model without a task head"


@dataclasses.dataclass(frozen=True)
class Trained:
    """A checkpoint and all that is needed to use it."""

    prefix: str  # the checkpoint
    folder: Path  # of its run, else the one that holds it
    config: BertConfig  # of the encoder
    vocabulary: Vocabulary
    lower_case: bool
    max_seq_length: int  # in word pieces
    long_text: str  # key of long_text.CUTS
    record: Mapping[str, Any]  # see run_folder.trained; empty if unknown
    has_checkpoint: ClassVar[bool] = True  # else its weights are in a format of an extension
    given_head: HeadSpec | None = None  # overrides the trained head
    given_task: Task | None = None  # overrides the recorded task

    @property
    def anchored(self) -> Trained:
        """The same model, which is found after the program has changed its directory: weights are read late."""
        return dataclasses.replace(self, prefix=os.path.abspath(self.prefix), folder=self.folder.absolute())

    def with_head(self, head: HeadSpec) -> Trained:
        """The same weights with another head."""
        return self._replaced(given_head=head)

    def with_task(self, task: Task) -> Trained:
        """The same weights with another task."""
        return self._replaced(given_task=task)

    def _replaced(self, **changed: Any) -> Trained:
        """The same weights, whatever becomes of the files."""
        other = dataclasses.replace(self, **changed)
        vars(other)["digest"] = self.digest
        return other

    @property
    def files(self) -> Mapping[str, Path]:
        """Of a model without a checkpoint: its files, by their names in a copy."""
        return {}

    @property
    def undecided(self) -> Trained:
        """The same model without its decision rule."""
        return self._replaced(record={name: value for name, value in self.record.items() if name != DECISION})

    @property
    def fitted_on(self) -> Mapping[str, Any]:
        """The examples that chose the decision rule; empty if there are none."""
        decision = (load_decision(Path(self.prefix).parent) or {}) if DECISION in self.record else {}
        return decision.get("fitted_on") or {}

    def warn_if_fitted_on(self, examples_sha256: Callable[[], str], name: str) -> None:
        """Warns if the weights, or the decision rule, were fitted on the examples that are evaluated."""
        trained_on, fitted_on = self.record.get("train_examples_sha256"), str(self.fitted_on.get("data_sha256") or "")
        evaluated = examples_sha256() if trained_on or fitted_on else None
        if trained_on and trained_on == evaluated:
            log.warning("%s: the model was trained on these examples, so their scores say little", name)
        if evaluated in fitted_on.split():  # the digest of each split
            log.warning("%s: half of these examples chose the decision rule: its effect looks better than on new ones", name)

    def warn_of_means(self, user: str) -> None:
        """Warns if `user` pools by the mean, but the model by another function."""
        pooling = self.record.get(run_layout.POOLING, MEAN)
        if pooling != MEAN:
            log.warning("%s: the model's pooling is %s, but %s uses mean pooling", self.prefix, pooling, user)

    @functools.cached_property
    def head(self) -> HeadSpec:
        """The given head, else the recorded one, else the published classifier sized by its labels.

        Raises CheckpointError if the checkpoint has no head, one of another size, or cannot be read.
        """
        if self.given_head is not None:
            return self.given_head
        return _head(_reader(self.prefix), self.config, self.record)

    @functools.cached_property
    def task(self) -> Task:
        """The given task, else the recorded one; CheckpointError if there is none."""
        name = self.record.get("task_name")
        if self.given_task is not None:
            return self.given_task
        if name is None:
            raise CheckpointError(f"{self.prefix}: no run_config.json beside it names its task; give task=... (--task_name)")
        if name == CUSTOM:
            return self._own_task
        try:
            return registry.of_record(self.record)
        except FlagError as error:
            raise CheckpointError(
                f"{self.prefix}: trained on {name}, which is not a known task; give task=...,"
                " or register it (tasks.registry.register)"
            ) from error

    @property
    def _own_task(self) -> Task:
        """Reads the files of the run, as its command names them; without these it has rows alone."""
        files = run_folder.own_files(self.folder)
        if not files or not registry.reads_own(self.record["kind"]):
            from bert_tf.tasks.rows_task import RowsTask

            return RowsTask(families.of_record(self.record))
        learned = {name: self.record[name] for name in lasting_names() if name in self.record}
        settings = of_values({**learned, **files, "problem": self.record["kind"]})
        return registry.get_task(CUSTOM, settings, self.record["labels"])

    @functools.cached_property
    def digest(self) -> str:
        return digest(self.prefix) or ""

    @property
    def weight_bytes(self) -> int:
        """Size of encoder and head in memory, as float32."""
        shapes = {**names.encoder_shapes(self.config), **_head_of(self.head).variables(self.config)}
        return 4 * sum(math.prod(shape) for shape in shapes.values())

    @functools.cached_property
    def step(self) -> int:
        """0 if the checkpoint has none."""
        reader = _reader(self.prefix)
        return int(reader["global_step"]) if "global_step" in reader.shapes else 0

    @property
    def outputs(self) -> Sequence[Field]:
        """What the head computes."""
        return [field.sized(self.config.hidden_size) for field in _head_of(self.head).outputs]

    @property
    def architecture(self) -> tuple[object, ...]:
        return self.config, self.head

    @property
    def weights(self) -> tuple[object, ...]:
        """Equal for models that differ by their heads (`with_head`); empty if the checkpoint is gone."""
        return (self.prefix, self.digest, self.config) if self.digest else ()

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that determines a text's logits, except how they are computed."""
        return {
            "checkpoint_sha256": self.digest,
            "bert_config_sha256": hashlib.sha256(self.config.to_json().encode()).hexdigest(),
            "vocabulary_sha256": self.vocabulary.fingerprint,
            "max_seq_length": self.max_seq_length,
            "do_lower_case": self.lower_case,
            "long_text": self.long_text,
            **({DECISION: self.record[DECISION]} if DECISION in self.record else {}),
        }

    @functools.cached_property
    def tokenizer(self) -> WordTokenizer:
        return tokenizer_of(self.vocabulary, lower_case=self.lower_case)

    @property
    def limits(self) -> Limits:
        return Limits(self.max_seq_length, self.long_text)

    def problems(self, *, trains: bool = False) -> list[str]:
        """One line for each mismatch of configuration, vocabulary and text preparation.

        Further training (`trains`) also requires lower-casing that suits the vocabulary, even if the record deviates from it.
        """
        problems = preflight.check_model(self.config, self.vocabulary, max_seq_length=self.max_seq_length)
        if trains or self.lower_case != self.record.get("do_lower_case"):
            problems += preflight.check_casing(self.vocabulary, lower_case=self.lower_case)
        return problems + run_folder.misfits_of_parts(self.folder, self.config, self.vocabulary)

    def refuse_changed(self) -> None:
        """CheckpointError if the weights in the files are others than those of `digest`."""
        if (digest(self.prefix) or "") != self.digest:
            raise CheckpointError(f"{self.prefix}: the checkpoint has changed; load it again")

    def refuse(self, family: Family) -> None:
        """CheckpointError if the model has learned another task; a given head is exempt."""
        if self.given_head is not None:
            return
        for key, expected in sorted(family.record().items()):
            if self.record.get(key, expected) != expected:
                task = f"; its task is {self.record['task_name']}" if "task_name" in self.record else ""
                raise CheckpointError(
                    f"{self.prefix}: trained on {key} {_shown(self.record[key])}, not {_shown(expected)}{task}"
                )
        self._refuse_head(family)

    def _refuse_head(self, family: Family) -> None:
        variables, others = (_head_of(head).variables(self.config) for head in (self.head, family.head))
        missing = [name for name in others if name not in variables]
        if missing:
            raise CheckpointError(_of_another_task(self.prefix, missing[0], variables))
        if self.head.num_labels != family.head.num_labels:
            labels = self.head.num_labels, family.head.num_labels
            raise CheckpointError(f"{self.prefix}: its head has %d labels, the task %d" % labels)


def _reader(prefix: str) -> CheckpointReader:
    from bert_tf.checkpoints.reader import model_reader

    return model_reader(prefix)


def _head_of(spec: HeadSpec) -> Head:
    from bert_tf.modeling.heads import registry as heads

    return heads.make_head(spec)


def has_head(prefix: str | os.PathLike[str]) -> bool:
    """Whether a checkpoint has a task head: a run's always has, even one without variables."""
    return "kind" in run_folder.trained(Path(prefix).parent) or bool(names.task_head(_reader(os.fspath(prefix)).shapes))


def _head(reader: CheckpointReader, config: BertConfig, record: Mapping[str, Any]) -> HeadSpec:
    head = families.of_record(record).head if "kind" in record else None
    shapes = {} if head is None else _head_of(head).variables(config)  # a head may have no variables
    missing = [name for name in ([PUBLISHED_WEIGHTS] if head is None else shapes) if name not in reader.shapes]
    others = names.task_head(reader.shapes)
    if missing and others:
        raise CheckpointError(_of_another_task(reader.prefix, missing[0], others))
    if missing:
        vectors = extension.advice("encode", ", or take its vectors (python -m bert_tf encode, bert_tf.encoder)")
        raise CheckpointError(f"{reader.prefix}: no {missing[0]}: {PRETRAINED}; train it first{vectors}")
    wrong = preflight.wrong_shapes(reader, shapes)
    if wrong:
        raise CheckpointError(f"{reader.prefix}: {'; '.join(wrong)}; is it a model of this task?")
    return HeadSpec(reader.shapes[PUBLISHED_WEIGHTS][0]) if head is None else head


def _of_another_task(prefix: str, missing: str, head: Iterable[str]) -> str:
    return f"{prefix}: no {missing}: its head is that of another kind of task ({', '.join(sorted(head)[:2])}); name that task"


def digest(prefix: str) -> str | None:
    """SHA-256 that identifies a model's weights; None if there is no checkpoint.

    That of the index, which holds the checksums of all entries, and of what an extension composes them with.
    """
    for path in (Path(f"{prefix}.index"), Path(prefix)):  # format V1 is a single file
        with contextlib.suppress(OSError):  # a run that is still training deletes older ones
            if path.is_file():
                return _with_identity(files.digest(path), path.parent)
    return None


def _with_identity(sha256: str, folder: Path) -> str:
    identifies = (entry.identifies for entry in extension.installed().values() if entry.identifies)
    parts = [part for part in (extension.load(name)(folder) for name in identifies) if part]
    return hashlib.sha256("".join((sha256, *parts)).encode()).hexdigest() if parts else sha256


def are_finite(outputs: Outputs) -> bool:
    return all(np.isfinite(output).all() for output in outputs.values())


def refuse_what_is_no_number(outputs: Outputs, checkpoint: str) -> None:
    """Raises CheckpointError if an output computed with the checkpoint is NaN or infinite."""
    if not are_finite(outputs):
        raise CheckpointError(f"{checkpoint}: its outputs are NaN or infinite; did its training fail?")


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)

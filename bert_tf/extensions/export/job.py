"""Everything that a format may read from a trained model, and the files that every client needs besides the model."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from bert_tf.batch.engine import InferenceOptions
from bert_tf.batch.tensorflow_engine import TensorFlowEngine
from bert_tf.batch.trained import Trained
from bert_tf.errors import FlagError, OutputError
from bert_tf.extensions.export import tokenizer_json
from bert_tf.extensions.export.formats import ExportOptions, has_card
from bert_tf.features.batching import TO_LONGEST
from bert_tf.io import documents
from bert_tf.tasks.base import Family, Task
from bert_tf.tasks.decision import DECISION, PUBLISHED, Decision
from bert_tf.tasks.families import with_decision

FLOAT32 = "float32"

Labelled = Mapping[str, Sequence[Any]]  # examples by the name of their split or file


@dataclasses.dataclass(frozen=True)
class ExportJob:
    """A trained model and how to export it."""

    trained: Trained
    task: Task
    step: int  # of the checkpoint; 0 if it has none
    options: ExportOptions
    labelled: Callable[[], Labelled] = dict  # reads examples for the precision gate and long texts

    @property
    def family(self) -> Family:
        return with_decision(self.task.family, Decision.from_record(self.trained.record))

    @property
    def reads_pairs(self) -> bool:
        """The option if set, else as in training; raises FlagError if neither is known."""
        if self.options.pairs is not None:
            return self.options.pairs
        texts: int | None = getattr(self.family.as_trained(self.trained.record), "texts", None)
        if texts is None:
            raise FlagError(f"{self.trained.prefix}: unknown whether its inputs are text pairs; give --pairs or --nopairs")
        return texts == 2


def metadata(exported: ExportJob) -> dict[str, str]:
    trained = exported.trained
    facts: dict[str, Any] = {
        "task": exported.task.name,
        **exported.family.record(),
        "max_seq_length": trained.max_seq_length,
        "do_lower_case": trained.lower_case,
        **rule(exported.family),
    }
    return {name: value if isinstance(value, str) else documents.to_json(value) for name, value in facts.items()}


def rule(family: Family) -> dict[str, Any]:
    """Decision rule on the model's probabilities, for clients that apply it themselves; empty for the published rule."""
    facts = getattr(family, DECISION, PUBLISHED).facts()
    return {DECISION: facts} if facts else {}


def write_kept_files(exported: ExportJob, folder: Path, *, for_package: bool = False) -> None:
    """Writes the vocabulary and the rules of tokenization; other software gives a tagger its texts as words."""
    vocabulary, gives_words = exported.trained.vocabulary, exported.family.reads_words and not for_package
    of_words = {vocabulary.file: vocabulary.to_text_of_words()} if gives_words else {}
    for name, text in {**vocabulary.files(), **of_words}.items():
        if not (folder / name).exists():  # the settings of transformers include them
            (folder / name).write_text(text, encoding="utf-8")
    if vocabulary.own_rules:
        return
    rules = documents.to_json(tokenizer_json.content(exported.trained), indent=2)
    (folder / tokenizer_json.FILE).write_text(rules + "\n", encoding="utf-8")


def write_card(exported: ExportJob, path: Path, **of_format: Any) -> None:
    """Writes the model card, if an extension makes it."""
    if has_card():
        from bert_tf.extensions.card import card

        options = exported.options
        model = card.Model(exported.trained, exported.task, exported.step, options.credits, options.pairs)
        path.write_text(card.render(model, **of_format), encoding="utf-8")


def float32_inference(batch_size: int | None = None) -> InferenceOptions:
    """The package's own computation, to which an export is compared."""
    return InferenceOptions(TensorFlowEngine, lambda *_: TO_LONGEST, FLOAT32, threads=1, batch_size=batch_size)


@contextlib.contextmanager
def readable_errors(folder: Path) -> Iterator[None]:
    """Converts TensorFlow errors within the block, such as a full disk, to an `OutputError` about the folder."""
    try:
        yield
    except tf.errors.OpError as error:
        why = error.message.rpartition("; ")[2].splitlines()[0]  # temporary names come before it, operations after
        raise OutputError(f"{folder}: was not written: {why}; nothing was changed") from error

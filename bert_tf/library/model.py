"""A trained model, as a program holds it."""

from __future__ import annotations

import contextlib
import functools
import html
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from bert_tf import documents
from bert_tf.batch.computer import Engine, InferenceOptions
from bert_tf.batch.trained import Trained
from bert_tf.errors import DataError, FlagError
from bert_tf.filling.word_filler import Filled
from bert_tf.jobs.export_config import OPTIONS, target
from bert_tf.jobs.learned import Learned
from bert_tf.library.closed import Closable, ClosedError
from bert_tf.library.encoder import Encoder, Floats
from bert_tf.library.filling import WordFiller
from bert_tf.library.keywords import takes
from bert_tf.library.reading import Reader
from bert_tf.library.result import Result
from bert_tf.tasks.base import DEV, PURPOSES, Family, Task
from bert_tf.tasks.tables import JSONL

_ROWS = "rows"


class Model(Closable):
    """A trained model. Weights are read when it is first asked; `close`, or the end of a `with` block, frees them.

    Several may live in one process. Threads may call `predict` and `evaluate` of one model; they take turns.

        with bert_tf.load("out/mrpc") as model:
            model.predict([("He left.", "He went away.")])[0].label
    """

    def __init__(
        self,
        trained: Trained,
        task: Task,
        inference: InferenceOptions,
        *,
        find_data: Callable[[Task], str],
        family: Family | None = None,
    ) -> None:
        """Reads nothing yet; `load` and `fine_tune` make models.

        Args:
          trained: weights, and what belongs to them.
          task: what was learned.
          inference: where and how to compute.
          find_data: returns the folder of the task's files, when a split is asked for.
          family: what was learned, with the rules to use; None for that of the task.
        """
        super().__init__(trained, inference)
        self._task, self._find_data = task, find_data
        self._family = family or task.family
        self._computer: Engine | None = None
        self._encoder, self._filler = Encoder(trained, inference), WordFiller(trained, inference)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the labels, in the order of the classes; empty where there are none, as for a number."""
        return self._family.labels

    @functools.cached_property
    def reader(self) -> Reader:
        """How it reads rows: without TensorFlow, in any process."""
        return Reader(self._family, self._trained.tokenizer, self._trained.limits)

    @property
    def digest(self) -> str:
        """Sha256 of the checkpoint's index, which tells weights from others of the same name."""
        return self._trained.digest

    @property
    def weight_bytes(self) -> int:
        """Of the weights in memory."""
        return self._trained.weight_bytes

    def load_weights(self) -> None:
        """Reads the weights now, so that the first prediction does not wait for them.

        Raises:
          CheckpointError: they are damaged.
          ClosedError: the model was closed.
        """
        with self._turn:
            self._loaded()

    def predict(self, rows: Iterable[Any], *, as_frame: bool = False) -> Any:
        """Predicts rows in memory.

        Args:
          rows: of the form that the family reads; of sentences texts, pairs (text, second text) or mappings: `SentenceTask`.
          as_frame: whether to return a data frame of pandas.

        Returns:
          One object for each row, in their order, with its `label`; of sentences also `probabilities` by label, and `id`. Or a
          data frame with the columns that files of predictions have, and the index of the rows where they have one.

        Raises:
          DataError: a row is of another form.
          FlagError: pandas is not installed.
          ClosedError: the model was closed.
        """
        examples = self.reader.examples(rows)
        return self._frame(rows, examples) if as_frame else self.answer(examples)

    def _frame(self, rows: Any, examples: Sequence[Any]) -> Any:
        try:
            import pandas
        except ImportError as error:
            raise FlagError(f"as_frame=True needs pandas: pip install pandas ({error})") from error
        lines = self._family.layout(JSONL).rows(examples, self._predictions(examples)) if examples else ""
        found = [documents.json_value(line) for line in lines.split("\n")[:-1]]
        index = rows.index if hasattr(rows, "iloc") and len(rows.index) == len(found) else None
        return pandas.DataFrame(found, index=index, columns=None if found else ["id", "label"])

    def answer(self, examples: Sequence[Any]) -> Sequence[Any]:
        """Predicts rows that were read by `reader`, see `predict`.

        Args:
          examples: from `Reader.examples`, also from several calls.
        """
        return self._family.listed(self._predictions(examples), examples) if examples else []

    def encode(self, texts: Iterable[Any], **options: Any) -> Floats | list[Floats]:
        """Returns vectors of texts by the encoder of the model, see `Encoder.encode`.

        Args:
          texts: N texts or pairs.
          **options: `pooling`, `layers`, `normalize`, `tokens`.
        """
        return self._encoder.encode(texts, **options)

    def fill_mask(self, texts: Iterable[Any], **options: Any) -> list[tuple[Filled, ...]]:
        """Returns the words that fit the places of [MASK] in texts, see `WordFiller.fill_mask`; of a model of pre-training.

        Args:
          texts: N texts, each with [MASK] at least once.
          **options: `top`.
        """
        return self._filler.fill_mask(texts, **options)

    def evaluate(self, data: str | Iterable[Any] = DEV) -> Result:
        """Measures the model by labelled examples.

        Args:
          data: the name of a split of the task, dev by default; or rows with labels, of sentences see `SentenceTask`.

        Raises:
          DataError: there is no such split, or a row is of another form.
          ClosedError: the model was closed.
        """
        family = self._family
        name = data if isinstance(data, str) else _ROWS
        examples = self._split(data) if isinstance(data, str) else family.from_rows(data, _ROWS, labelled=True)
        if not examples:
            raise DataError("nothing to evaluate by", name)
        predictions = self._predictions(examples)
        return Result(name, family.evaluation(predictions, examples), family.listed(predictions, examples))

    @takes(OPTIONS)
    def export(self, format: str, output: str | os.PathLike[str], **options: Any) -> Path:  # noqa: A002  (as the flag)
        """Writes the model as what other software runs; returns the folder.

        Args:
          format: key of `export.formats.FORMATS`, such as saved_model.
          output: the folder; it is written whole or not at all.
          **options: `overwrite` and others, by the names of the flags of `python -m bert_tf export`.

        Raises:
          FlagError: an option is unknown or has an unusable value, or an optional package is missing.
          OutputError: the folder holds something else, or cannot be written.
        """
        from bert_tf.jobs import export  # few programs need it

        return export.write(
            Learned(self._trained, self._task), target(format=format, output=output, **options), find_data=self._find_data
        )

    def close(self) -> None:
        """Frees weights and session; the model cannot be used afterwards."""
        self._encoder.close()
        self._filler.close()
        super().close()

    def __repr__(self) -> str:
        """Says what it has learned, and where it is."""
        return f"<bert_tf.Model {self._task.name}: {self._learned}; {self.checkpoint}>"

    def _repr_html_(self) -> str:
        """Returns a table for notebooks."""
        config = self._trained.config
        facts = {
            "task": self._task.name,
            "labels": self._learned,
            "checkpoint": self.checkpoint,
            "encoder": f"{config.num_hidden_layers} layers, hidden size {config.hidden_size}",
            "longest input": f"{self._trained.max_seq_length} word pieces",
        }
        rows = "".join(f"<tr><th>{name}</th><td>{html.escape(value)}</td></tr>" for name, value in facts.items())
        return f"<table><caption>bert_tf.Model</caption>{rows}</table>"

    @property
    def _learned(self) -> str:
        return ", ".join(self.labels) or self._family.kind

    def _split(self, name: str) -> Sequence[Any]:
        """Returns the examples of a split, or of the one split that a purpose has."""
        task, folder = self._task, self._find_data(self._task)
        splits = task.splits(folder, name) if name in PURPOSES else (name,)
        if len(splits) > 1:
            raise FlagError(f"evaluate({name!r}): {task.name} has several; name one of {', '.join(splits)}")
        return task.examples(folder, splits[0])

    def _predictions(self, examples: Sequence[Any]) -> Any:
        features = self.reader.features(examples)
        with self._turn:
            return self._family.predictions(self._loaded().outputs(features), features, examples)

    def _loaded(self) -> Engine:
        if self._closed:
            raise ClosedError(f"{self!r} was closed; load it again")
        if self._computer is None:
            self._computer = self._inference.engine()
        with contextlib.ExitStack() as undo:
            undo.callback(self._forget)
            self._computer.load(self._trained)
            undo.pop_all()
        return self._computer

    def _forget(self) -> None:
        """Drops a graph whose weights could not be read."""
        if self._computer is not None:
            self._computer.close()
            self._computer = None

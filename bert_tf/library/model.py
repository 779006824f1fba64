"""A trained model held by a program, and the results of its evaluations."""

from __future__ import annotations

import dataclasses
import functools
import html
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bert_tf import extension, extras
from bert_tf.batch.engine import InferenceOptions
from bert_tf.batch.session import Predictor, Session
from bert_tf.batch.trained import Trained
from bert_tf.errors import BertError, DataError, FlagError
from bert_tf.features.cache import examples_digest
from bert_tf.io import documents
from bert_tf.library.keywords import needing_tensorflow
from bert_tf.library.reading import ROWS, Reader
from bert_tf.tasks.base import DEV, PURPOSES, Family, Task
from bert_tf.tasks.evaluation import Evaluation
from bert_tf.tasks.names import JSONL

Floats = npt.NDArray[np.float32]


class Model(Predictor):
    """A trained model. Weights are loaded lazily; `close`, or the end of a `with` block, frees them.

    One process may hold several. Threads may share one model; they take turns.

    Attributes:
      digest: SHA-256 that distinguishes weights of the same name.

        with bert_tf.load("out/mrpc") as model:
            model.predict([("He left.", "He went away.")])[0].label
    """

    _INSTEAD = "load it again"

    def __init__(
        self,
        trained: Trained,
        task: Task,
        inference: InferenceOptions,
        *,
        find_data: Callable[[Task], str],
        family: Family | None = None,
    ) -> None:
        """Loads nothing yet; use `load` or `fine_tune` to create one.

        Args:
          trained: weights and their metadata.
          task: the learned task.
          inference: where and how to compute.
          find_data: returns the folder of the task's files, called when a split is needed.
          family: task family with its decoding options; None for that of the task.
        """
        super().__init__(trained, family or task.family, inference)
        self.task, self.find_data = task, find_data
        self._sessions: dict[str, Session] = {}  # of extensions, made when they are used

    @property
    def labels(self) -> tuple[str, ...]:
        """Label names in class order; empty if the task has none, as in regression."""
        return self.family.labels

    @functools.cached_property
    def reader(self) -> Reader:
        """Converts rows to features without TensorFlow, in any process."""
        return Reader(self.family, self.trained.tokenizer, self.trained.limits)

    @property
    def weight_bytes(self) -> int:
        """Bytes of the weights in memory."""
        return self.trained.weight_bytes

    def predict(self, rows: Iterable[Any], *, as_frame: bool = False) -> Any:
        """Predicts rows in memory.

        Args:
          rows: in the form of the task family; for sentences texts, pairs (text, second text) or mappings as in
            `SentenceTask`, with as many texts as in training.
          as_frame: returns a pandas data frame.

        Returns:
          One object for each row, in order, with its `label`; for sentences also `probabilities` by label and `id`. Or a
          data frame with the columns of prediction files and, if the rows have one, their index.

        Raises:
          DataError: a row has the wrong form.
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
        lines = self.family.layout(JSONL).rows(examples, self.predictions(examples)) if examples else ""
        objects = [documents.json_value(line) for line in lines.split("\n")[:-1]]
        index = rows.index if hasattr(rows, "iloc") and len(rows.index) == len(objects) else None
        return pandas.DataFrame(objects, index=index, columns=None if objects else ["id", "label"])

    def answer(self, examples: Sequence[Any]) -> Sequence[Any]:
        """Predicts rows that `reader` has read, see `predict`.

        Args:
          examples: from `Reader.examples`, possibly of several calls.
        """
        return self.family.listed(self.predictions(examples), examples) if examples else []

    def encode(self, texts: Iterable[Any], **options: Any) -> Floats | list[Floats]:
        """Returns text vectors from the model's encoder, see `Encoder.encode`.

        Args:
          texts: N texts or pairs.
          **options: `pooling`, `layers`, `normalize`, `tokens`.
        """
        vectors: Floats | list[Floats] = self.session("vectors", "Model.encode").encode(texts, **options)
        return vectors

    def fill_mask(self, texts: Iterable[Any], **options: Any) -> list[tuple[Any, ...]]:
        """Returns the most probable words for each [MASK], see `WordFiller.fill_mask`; only for pre-training models.

        Args:
          texts: N texts, each with at least one [MASK].
          **options: `top`.
        """
        words: list[tuple[Any, ...]] = self.session("fill_mask", "Model.fill_mask").fill_mask(texts, **options)
        return words

    def explain(
        self,
        rows: Iterable[Any],
        *,
        method: str | None = None,
        label: Any = None,
        word: int | None = None,
        steps: int | None = None,
    ) -> list[Any]:
        """Returns how much each word contributed to an output of the model.

        Args:
          rows: as for `predict`.
          method: integrated_gradients, the default, or occlusion.
          label: label, tag or option number whose logit is explained; by default the predicted one.
          word: number of the explained word of models that tag words, from 0; by default the first with a tag other than O.
          steps: least number of points of the integral, by default 16, doubled until the scores add up to the change of the
            output.

        Returns:
          For each row its `words`, `scores` and `completeness_error`; shown in colours in a notebook.

        Raises:
          DataError: a row has the wrong form.
          FlagError: the method is unknown, or the model has no such label or word.
          ClosedError: the model was closed.
        """
        explainer = self.session("explain", "Model.explain")
        arguments = {"method": method, "label": label, "word": word, "steps": steps}
        options = {name: value for name, value in arguments.items() if value is not None}
        explanations: list[Any] = explainer.explain(self.reader.examples(rows), **options)
        return explanations

    def evaluate(self, data: str | Iterable[Any] = DEV) -> Result:
        """Evaluates the model on labelled examples.

        Args:
          data: a split of the task, dev by default, or labelled rows (for sentences see `SentenceTask`).

        Raises:
          DataError: the split does not exist, or a row has the wrong form.
          ClosedError: the model was closed.
        """
        extras.refuse_missing_metrics()
        family = self.family
        name = data if isinstance(data, str) else ROWS
        examples = self.examples(data) if isinstance(data, str) else family.from_rows(data, ROWS, labelled=True)
        if not examples:
            raise DataError("nothing to evaluate on", name)
        self.trained.warn_if_fitted_on(lambda: examples_digest(examples), name)
        predictions = self.predictions(examples)
        return Result(name, family.evaluation(predictions, examples), family.listed(predictions, examples))

    def export(self, format: str, output: str | os.PathLike[str], **options: Any) -> Path:  # noqa: A002  (as the flag)
        """Exports the model for other software; returns the folder.

        Args:
          format: saved_model, huggingface, onnx or openvino.
          output: the folder, written atomically.
          **options: `overwrite` and others, by the names of the flags of `export`.

        Raises:
          FlagError: an option is unknown or invalid, or an optional package is missing.
          OutputError: the folder holds something else, or cannot be written.
        """
        folder: Path = self.session("export", "Model.export").export(format, output, **options)
        return folder

    def close(self) -> None:
        """Frees weights and sessions; the model cannot be used afterwards."""
        super().close()
        for session in list(self._sessions.values()):
            session.close()

    def session(self, name: str, user: str) -> Any:
        """Returns what an extension computes with; if TensorFlow computes, it shares the weights in memory.

        Args:
          name: of the extension.
          user: what needs it, as a message calls it.

        Raises:
          BertError: the folder of the extension was deleted, or it has none.
        """
        if name not in self._sessions:
            declared = extension.needed(name, user).session
            if not declared:
                raise BertError(f"{user}: the extension {name} has no session")
            with needing_tensorflow():
                self._sessions.setdefault(name, extension.load(declared)(self))
        session = self._sessions[name]
        if self._closed:
            session.close()
        return session

    def __repr__(self) -> str:
        return f"<bert_tf.Model {self.task.name}: {self._learned}; {self.checkpoint}>"

    def _repr_html_(self) -> str:
        config = self.trained.config
        facts = {
            "task": self.task.name,
            "labels": self._learned,
            "checkpoint": self.checkpoint,
            "encoder": f"{config.num_hidden_layers} layers, hidden size {config.hidden_size}",
            "longest input": f"{self.trained.max_seq_length} word pieces",
        }
        rows = "".join(f"<tr><th>{name}</th><td>{html.escape(value)}</td></tr>" for name, value in facts.items())
        return f"<table><caption>bert_tf.Model</caption>{rows}</table>"

    @property
    def _learned(self) -> str:
        return ", ".join(self.labels) or self.family.kind

    def examples(self, name: str) -> Sequence[Any]:
        """Returns the examples of a split or of a purpose; FlagError if the purpose has several splits."""
        task, folder = self.task, self.find_data(self.task)
        splits = task.splits(folder, name) if name in PURPOSES else (name,)
        if len(splits) > 1:
            raise FlagError(f"evaluate({name!r}): {task.name} has several; name one of {', '.join(splits)}")
        return task.examples(folder, splits[0])


@dataclasses.dataclass(frozen=True, repr=False)
class Result:
    """Result of a model on labelled examples.

    Attributes:
      name: name of the split, or "rows".
      evaluation: full evaluation; `details()` is the content of eval_results.json.
      predictions: one for each example, in order.
    """

    name: str
    evaluation: Evaluation
    predictions: Sequence[Any]

    @property
    def metrics(self) -> Mapping[str, float]:
        """Metrics by name, including `loss`."""
        return self.evaluation.values

    @property
    def intervals(self) -> Mapping[str, tuple[float, float]]:
        """Bounds of the 95 % interval, for the metrics that have one."""
        return self.evaluation.intervals

    def __repr__(self) -> str:
        reached = ", ".join(f"{metric} {value:.4f}" for metric, value in self.metrics.items())
        return f"<bert_tf.Result {self.name}: {reached}; {self.evaluation.examples} examples>"

    def _repr_html_(self) -> str:
        rows = []
        for metric, value in self.metrics.items():
            ends = self.intervals.get(metric)
            interval = f"{ends[0]:.4f} to {ends[1]:.4f}" if ends else ""
            rows.append(f"<tr><th>{html.escape(metric)}</th><td>{value:.4f}</td><td>{interval}</td></tr>")
        head = f"<caption>{html.escape(self.name)}: {self.evaluation.examples} examples</caption>"
        columns = "<tr><th>metric</th><th>value</th><th>95 % interval</th></tr>"
        return f"<table>{head}{columns}{''.join(rows)}</table>"

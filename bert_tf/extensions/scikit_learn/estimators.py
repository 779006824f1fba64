"""Estimators of scikit-learn: `BertClassifier` and `BertRegressor` for texts and pairs of texts."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_array, check_is_fitted

from bert_tf.batch import model_copy
from bert_tf.head_spec import CLASSIFICATION, MULTI_LABEL, REGRESSION
from bert_tf.io import progress, scratch
from bert_tf.library.fine_tuning import fine_tune
from bert_tf.library.loading import load
from bert_tf.library.model import Model
from bert_tf.tasks.in_memory import SentenceTask
from bert_tf.tasks.sentence.rows import is_missing
from bert_tf.tasks.settings import FILES
from bert_tf.training.run_spec import DRIVERS

Array = npt.NDArray[Any]

_OWN = ("output_dir", "settings", "verbose")  # parameters that are no settings of `fine_tune`
_NOT_OF_ONE_MODEL = ("abstain", *DRIVERS)  # scikit-learn has its own loops, and needs a label for each row
_DECIDED = ("task", "task_name", "overwrite_output_dir", "problem", *FILES)
_STATE = ("_model", "_close")  # attributes of this process
_LOADING = threading.Lock()  # of what was unpickled, by one of the threads that use it


@contextlib.contextmanager
def _deleted_if_it_fails(temporary: tempfile.TemporaryDirectory[str] | None) -> Iterator[None]:
    try:
        yield
    except BaseException:
        if temporary is not None:
            temporary.cleanup()
        raise


def _freed(model: Model, temporary: tempfile.TemporaryDirectory[str] | None) -> None:
    model.close()
    if temporary is not None:  # by itself it would warn
        temporary.cleanup()


class _BertEstimator(BaseEstimator):  # type: ignore[misc]
    """Shared by both estimators: parameters, rows, training, and the model as files, bytes and graph."""

    def __init__(
        self,
        *,
        init_checkpoint: str | os.PathLike[str] | None = None,
        bert_config_file: str | os.PathLike[str] | None = None,
        vocab_file: str | os.PathLike[str] | None = None,
        max_seq_length: int | None = None,
        long_text: str | None = None,
        do_lower_case: bool | None = None,
        num_train_steps: int | None = None,
        num_train_epochs: float | None = None,
        train_batch_size: int | None = None,
        learning_rate: float | None = None,
        warmup_proportion: float | None = None,
        freeze: str | None = None,
        layer_decay: float | None = None,
        seed: int = 1,
        output_dir: str | os.PathLike[str] | None = None,
        settings: Mapping[str, Any] | None = None,
        verbose: bool = False,
    ) -> None:
        self.init_checkpoint = init_checkpoint
        self.bert_config_file = bert_config_file
        self.vocab_file = vocab_file
        self.max_seq_length = max_seq_length
        self.long_text = long_text
        self.do_lower_case = do_lower_case
        self.num_train_steps = num_train_steps
        self.num_train_epochs = num_train_epochs
        self.train_batch_size = train_batch_size
        self.learning_rate = learning_rate
        self.warmup_proportion = warmup_proportion
        self.freeze = freeze
        self.layer_decay = layer_decay
        self.seed = seed
        self.output_dir = output_dir
        self.settings = settings
        self.verbose = verbose

    def _train(self, X: Any, rows: Sequence[tuple[Any, ...]], targets: Sequence[Any], **task: Any) -> None:  # noqa: N803
        columns = _column_names(X)
        parameters = {**self.get_params(deep=False), **self._further_settings()}
        foreign = [name for name in _NOT_OF_ONE_MODEL if parameters.get(name) is not None]
        if foreign:
            raise ValueError(f"settings: {foreign[0]} is not supported by scikit-learn estimators; leave it out")
        chosen = {name: _plain(value) for name, value in parameters.items() if name not in _OWN and value is not None}
        rows_of_task = SentenceTask(train=[(*texts, label) for texts, label in zip(rows, targets)], **task)
        self._forget()
        temporary = None if self.output_dir else scratch.folder()
        folder = self.output_dir or (temporary.name if temporary else "")
        with _deleted_if_it_fails(temporary), contextlib.nullcontext() if self.verbose else progress.quiet():
            model = fine_tune(rows_of_task, output_dir=folder, overwrite_output_dir=True, **chosen)
        self.n_features_in_ = max(map(len, rows))
        if columns is not None:
            self.feature_names_in_ = columns
        self._keep(model, temporary)

    def _further_settings(self) -> Mapping[str, Any]:
        """Returns `settings`; ValueError if it is no mapping, or has what `fit` or another parameter decides."""
        name = type(self).__name__
        if not isinstance(self.settings, (Mapping, type(None))) or not all(isinstance(key, str) for key in self.settings or ()):
            raise ValueError(f"settings={self.settings!r:.80}: expected a mapping of settings of fine_tune, by name")
        for setting in self.settings or {}:
            if setting in self.get_params(deep=False):
                raise ValueError(f"settings: {setting} is a parameter of {name}: give {name}({setting}=...)")
            if setting in _DECIDED:
                raise ValueError(f"settings: {setting} is decided by {name}.fit; leave it out")
        return self.settings or {}

    def _keep(self, model: Model, temporary: tempfile.TemporaryDirectory[str] | None) -> None:
        self._model = model
        self._close = weakref.finalize(self, _freed, model, temporary)

    def _forget(self) -> None:
        """Frees the model of an earlier `fit`; without attributes of a fit the estimator is not fitted."""
        if hasattr(self, "_close"):
            self._close()
        for name in (*_STATE, "_files", "classes_", "n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)

    def _predictions(self, X: Any) -> Sequence[Any]:  # noqa: N803  (as scikit-learn calls it)
        check_is_fitted(self)
        rows, columns, fitted = _texts(X), _column_names(X), getattr(self, "feature_names_in_", None)
        if columns is not None and fitted is not None and list(columns) != list(fitted):
            raise ValueError(
                f"The feature names should match those that were passed during fit: {list(fitted)}, not {list(columns)}"
            )
        with _LOADING:
            if not hasattr(self, "_model"):  # it was unpickled
                temporary = scratch.folder()
                with _deleted_if_it_fails(temporary):
                    for name, content in self._files.items():
                        (Path(temporary.name) / name).write_bytes(content)
                    self._keep(load(temporary.name), temporary)
                del self._files
        predictions: Sequence[Any] = self._model.predict(rows)
        return predictions

    def __getstate__(self) -> dict[str, Any]:
        """Returns the parameters and, if fitted, the files of the model."""
        state = dict(super().__getstate__())
        model: Model | None = state.get("_model")
        for name in _STATE:
            state.pop(name, None)
        if model is not None:
            with scratch.folder() as folder:
                model_copy.write(model.trained, Path(folder))
                state["_files"] = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
        return state

    def __sklearn_tags__(self) -> Any:
        """From scikit-learn 1.6."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.string = False, True
        tags.target_tags.required = True
        return tags

    def _more_tags(self) -> dict[str, Any]:
        """Before scikit-learn 1.6."""
        return {"X_types": ["string"], "requires_y": True}


class BertClassifier(ClassifierMixin, _BertEstimator):  # type: ignore[misc]
    """A classifier of texts, or of pairs of texts, for scikit-learn.

        BertClassifier(num_train_epochs=3).fit(["Rain all day.", "Salt the soup."], ["weather", "food"]).predict(["A storm."])

    Parameters are settings of `fine_tune`, by the same names; None is its default. In addition:

    Attributes:
      output_dir: folder of the run, in which the next `fit` replaces it; None for a temporary folder.
      settings: further settings of `fine_tune`, such as {"class_weights": "balanced"}.
      verbose: whether to show progress on a terminal or in a notebook.
      classes_: labels, sorted; for several labels per row, the column numbers of y.
      n_features_in_: texts per row, 1 or 2.
      feature_names_in_: columns of a data frame, which those of `predict` must have in the same order.
    """

    def fit(self, X: Any, y: Any) -> BertClassifier:  # noqa: N803
        """Trains on rows and labels.

        Args:
          X: N texts, or pairs of texts: a list, an array, a pandas series, or a frame or array of one or two columns.
          y: N labels; or a matrix of 0 and 1 [N, labels], if each row has any number of labels.

        Raises:
          ValueError: there is nothing to learn, or X and y do not fit each other.
          BertError: a row or a setting cannot be used.
        """
        rows, labels = _checked(X, y)
        check_classification_targets(labels)
        if type_of_target(labels).startswith("multilabel"):
            matrix = np.asarray(labels.todense() if hasattr(labels, "todense") else labels)
            classes: Array = np.arange(matrix.shape[1])
            names = list(map(str, classes))
            self._train(X, rows, [np.flatnonzero(row).tolist() for row in matrix], labels=names, problem=MULTI_LABEL)
        else:
            classes, numbers = np.unique(column_or_1d(labels, warn=True), return_inverse=True)
            if len(classes) < 2:
                raise ValueError(f"BertClassifier needs rows of at least 2 classes; there is only one class: {classes[0]!r}")
            names = _names(classes)
            self._train(X, rows, [names[number] for number in numbers], labels=names, problem=CLASSIFICATION)
        self.classes_ = classes
        return self

    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """Returns probabilities [N, classes], in the order of `classes_`."""
        predictions = self._predictions(X)
        probabilities = np.array([list(prediction.probabilities.values()) for prediction in predictions], np.float64)
        shares: Array = probabilities.reshape(len(predictions), len(self.classes_))
        return shares if self._several else np.asarray(shares / shares.sum(axis=1, keepdims=True))  # float32: nearly 1

    def predict(self, X: Any) -> Array:  # noqa: N803
        """Returns the most probable classes [N]; for several labels, a matrix of 0 and 1."""
        predictions = self._predictions(X)
        names = list(map(str, self.classes_)) if self._several else _names(self.classes_)
        if self._several:
            marks = [[name in prediction.label for name in names] for prediction in predictions]
            return np.array(marks, np.int64).reshape(-1, len(names))
        numbers = {name: number for number, name in enumerate(names)}
        labels: Array = self.classes_[np.array([numbers[prediction.label] for prediction in predictions], np.int64)]
        return labels

    @property
    def _several(self) -> bool:
        return self._model.family.kind == MULTI_LABEL

    def __sklearn_tags__(self) -> Any:
        """From scikit-learn 1.6."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


class BertRegressor(RegressorMixin, _BertEstimator):  # type: ignore[misc]
    """A regression of texts, or of pairs of texts, for scikit-learn; see `BertClassifier`.

    Targets are not scaled: scale values far from 0 to 1 (`sklearn.compose.TransformedTargetRegressor`).
    """

    def fit(self, X: Any, y: Any) -> BertRegressor:  # noqa: N803
        """Trains on rows and numbers.

        Args:
          X: N texts, or pairs of texts, see `BertClassifier.fit`.
          y: N numbers.

        Raises:
          ValueError: X and y do not fit each other, or a number is not finite.
          BertError: a row or a setting cannot be used.
        """
        rows, labels = _checked(X, y)
        numbers = check_array(column_or_1d(labels, warn=True), ensure_2d=False, dtype=np.float64)
        self._train(X, rows, numbers.tolist(), problem=REGRESSION)
        return self

    def predict(self, X: Any) -> Array:  # noqa: N803
        """Returns a number for each row [N]."""
        return np.array([prediction.label for prediction in self._predictions(X)], np.float64)


def _checked(X: Any, y: Any) -> tuple[list[tuple[Any, ...]], Any]:  # noqa: N803
    if y is None:
        raise ValueError("this estimator requires y to be passed, but the target y is None")
    rows = _texts(X)
    if not rows:
        raise ValueError("Found array with 0 sample(s) in X while a minimum of 1 is required.")
    if hasattr(y, "todense"):
        check_consistent_length(rows, y)
        return rows, y
    values: Any = y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y) if hasattr(y, "__array__") else y
    if isinstance(values, (str, bytes, Mapping)) or not np.iterable(values):
        raise ValueError(f"expected labels, such as a list; got {type(y).__name__}")
    # NumPy would make a text of a missing label.
    missing = [index for index, label in enumerate(values) if is_missing(label)]
    if missing:
        raise ValueError(f"y[{missing[0]}] is {values[missing[0]]!r}: {len(missing)} labels are missing; leave the rows out")
    labels = np.asarray(values)
    check_consistent_length(rows, labels)
    return rows, labels


def _column_names(X: Any) -> Array | None:  # noqa: N803
    """Those of a data frame, if all are texts."""
    names = list(getattr(X, "columns", ()))
    return np.array(names, object) if names and all(isinstance(name, str) for name in names) else None


def _texts(X: Any) -> list[tuple[Any, ...]]:  # noqa: N803
    """Returns rows as tuples of texts; ValueError if X does not hold rows."""
    values = X.to_numpy() if hasattr(X, "to_numpy") else X
    if isinstance(values, (str, bytes, Mapping)) or not np.iterable(values):
        raise ValueError(f"expected rows of texts, such as a list; got {type(X).__name__}")
    return [tuple(row) if isinstance(row, (tuple, list, np.ndarray)) else (row,) for row in values]


def _names(classes: Array) -> list[str]:
    """Returns the names of classes in the run's files: their own, or their indices if those cannot be used."""
    names = [str(label) for label in classes.tolist()]
    usable = all(name and name == name.strip() and name.isprintable() for name in names) and len(set(names)) == len(names)
    return names if usable else list(map(str, range(len(names))))


def _plain(value: Any) -> Any:
    """Converts a setting from NumPy's or pathlib's type, as in parameter grids, to a plain one."""
    return value.item() if isinstance(value, np.generic) else os.fspath(value) if isinstance(value, os.PathLike) else value

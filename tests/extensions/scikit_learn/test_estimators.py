"""BertClassifier and BertRegressor as scikit-learn's estimators."""

import json
import pickle
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks
from sklearn.utils.validation import check_array, check_is_fitted

import bert_tf
from bert_tf.errors import FlagError
from bert_tf.extensions.scikit_learn import estimators
from tests.tiny import HALVES, write_project

TEXTS = [f"{first} {rest}" for half in HALVES for first in half for rest in ("the old", "a new")]
NAMES = ["weather"] * 8 + ["food"] * 8
LORA = {"lora_rank": 2}


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    project = write_project(tmp_path_factory.mktemp("project") / "tiny", layers=1)
    rules = {"do_lower_case": True, "strip_accents": False}
    (Path(project.init_checkpoint).parent / "tokenizer_config.json").write_text(json.dumps(rules))
    return {"init_checkpoint": project.init_checkpoint, "max_seq_length": 16, "train_batch_size": 8, "num_train_steps": 3}


@pytest.fixture(scope="module")
def trained(settings):
    return bert_tf.BertClassifier(settings=LORA, **settings).fit(TEXTS, NAMES)


def test_predicts_and_scores_as_the_model_of_the_same_settings(trained, settings, tmp_path):
    shares = trained.predict_proba(TEXTS)
    assert list(trained.classes_) == ["food", "weather"]
    assert (shares.shape, trained.n_features_in_) == ((16, 2), 1)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)
    labels = trained.classes_[shares.argmax(axis=1)]
    np.testing.assert_array_equal(trained.predict(pd.Series(TEXTS)), labels)
    assert trained.score(TEXTS, NAMES) == np.mean(labels == NAMES)
    assert (trained.predict([]).shape, trained.predict_proba([]).shape) == ((0,), (0, 2))
    task = bert_tf.SentenceTask(train=list(zip(TEXTS, NAMES)))
    with bert_tf.fine_tune(task, output_dir=tmp_path / "run", seed=1, **LORA, **settings) as model:
        expected = [one.probabilities["weather"] for one in model.predict(TEXTS)]
    np.testing.assert_allclose(trained.predict_proba(TEXTS)[:, 1], expected, rtol=1e-6)


def test_a_pickle_holds_the_weights_and_what_was_restored_deletes_its_folder(settings, trained, recwarn):
    restored = pickle.loads(pickle.dumps(trained))  # noqa: S301
    again = pickle.loads(pickle.dumps(restored))  # noqa: S301  (before it was used)
    np.testing.assert_array_equal(again.predict_proba(TEXTS), trained.predict_proba(TEXTS))
    folder = Path(again._model.checkpoint).parent
    assert folder != Path(trained._model.checkpoint).parent
    assert folder.is_dir()
    assert (again.get_params(), set(settings) - set(again.get_params())) == (trained.get_params(), set())
    del again
    assert not folder.exists()
    assert not [warning for warning in recwarn if "Implicitly cleaning up" in str(warning.message)]


# The rest is about scikit-learn: a linear model of the numbers in a text stands in for BERT.


class LinearModel:
    def __init__(self, folder, kind, model):
        self.checkpoint, self.family = str(folder / "model.ckpt-1"), SimpleNamespace(kind=kind)
        self._model = model

    trained = property(lambda self: self)

    def predict(self, rows):
        numbers = _numbers(rows)
        if self.family.kind == "regression":
            return [SimpleNamespace(label=value) for value in self._model.predict(numbers)]
        names, several = self._model.classes_, self.family.kind == "multi_label"
        probabilities = [dict(zip(map(str, names), row)) for row in self._model.predict_proba(numbers)]
        labels = [[name for name in one if one[name] >= 0.5] if several else max(one, key=one.get) for one in probabilities]
        return [SimpleNamespace(label=label, probabilities=one) for label, one in zip(labels, probabilities)]

    def close(self):
        pass


def _numbers(rows):
    return np.array([[float(word) for word in " ".join(row).split()] for row in rows])


@pytest.fixture
def linear(monkeypatch):
    """Settings of each training."""
    calls = []

    def fine_tune(task, *, output_dir, **settings):
        calls.append(settings)
        examples, kind = task.examples("", "train"), task.family.kind
        texts, labels = [one.texts for one in examples], [one.label for one in examples]
        model = Ridge(1e-3) if kind == "regression" else GaussianNB()
        if kind == "multi_label":
            names = list(task.family.labels)
            model, labels = OneVsRestClassifier(model), np.array([[name in label for name in names] for label in labels], int)
        return LinearModel(Path(output_dir), kind, model.fit(_numbers(texts), labels))

    def write(model, folder):
        (folder / "model").write_bytes(pickle.dumps((model.family.kind, model._model)))

    def load(folder):
        kind, model = pickle.loads(Path(folder, "model").read_bytes())  # noqa: S301
        return LinearModel(Path(folder), kind, model)

    monkeypatch.setattr(estimators, "fine_tune", fine_tune)
    monkeypatch.setattr(estimators, "load", load)
    monkeypatch.setattr(estimators.model_copy, "write", write)
    return calls


class OfNumbers:
    """Writes rows of numbers as texts, since scikit-learn's checks have no others."""

    def fit(self, X, y):  # noqa: N803
        checked = check_array(X)
        super().fit(self._written(checked), y)
        self.n_features_in_ = checked.shape[1]
        return self

    def predict(self, X):  # noqa: N803
        return super().predict(self._read(X))

    def _read(self, X):  # noqa: N803
        check_is_fitted(self)
        checked = check_array(X)
        if checked.shape[1] != self.n_features_in_:
            expected = f"{type(self).__name__} is expecting {self.n_features_in_} features as input"
            raise ValueError(f"X has {checked.shape[1]} features, but {expected}")
        return self._written(checked)

    @staticmethod
    def _written(numbers):
        return [" ".join(repr(float(number)) for number in row) for row in numbers]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.string = True, False
        return tags


class ClassifierOfNumbers(OfNumbers, estimators.BertClassifier):
    def predict_proba(self, X):  # noqa: N803
        return super().predict_proba(self._read(X))


class RegressorOfNumbers(OfNumbers, estimators.BertRegressor):
    pass


@pytest.mark.parametrize("kind", [ClassifierOfNumbers, RegressorOfNumbers])
@pytest.mark.usefixtures("linear")
def test_passes_the_checks_of_scikit_learn(kind):
    results = estimator_checks.check_estimator(kind(), on_skip=None, on_fail=None)
    assert {one["check_name"]: repr(one["exception"]) for one in results if one["status"] == "failed"} == {}
    assert len(results) > 40


@pytest.mark.filterwarnings("ignore:Can't test estimator")
@pytest.mark.parametrize("kind", [bert_tf.BertClassifier, bert_tf.BertRegressor])
def test_is_declared_as_an_estimator_of_texts(kind):
    results = estimator_checks.check_estimator(kind(), on_skip=None, on_fail=None)  # those of tables of numbers are not run
    assert {one["status"] for one in results} == {"passed"}
    with pytest.raises(NotFittedError):
        kind().predict(["1 2"])


ROWS = [f"{number} {number % 3}" for number in range(12)]
LABELS = [number > 5 for number in range(12)]


def test_grids_and_pipelines(linear):
    model = make_pipeline(FunctionTransformer(), bert_tf.BertClassifier(num_train_steps=20))
    assert cross_val_score(model, ROWS, LABELS, cv=3).shape == (3,)
    grid = {"bertclassifier__learning_rate": [1e-4, 1e-5], "bertclassifier__num_train_steps": np.array([7])}
    search = GridSearchCV(model, grid, cv=2).fit(np.array(ROWS), LABELS)
    assert search.predict(ROWS[:2]).tolist() == [False, False]
    rates = [(call["learning_rate"], call["num_train_steps"]) for call in linear[3:]]
    assert (sorted(rates[:4]), len(rates)) == ([(1e-5, 7)] * 2 + [(1e-4, 7)] * 2, 5)
    assert (type(linear[-1]["num_train_steps"]), linear[-1]["seed"]) == (int, 1)
    assert clone(search.best_estimator_[-1]).get_params() == search.best_estimator_[-1].get_params()


@pytest.mark.usefixtures("linear")
def test_pairs_are_read_several_labels_are_a_matrix_and_any_names_are_labels():
    for form in (list, np.array, pd.DataFrame):
        pairs = form([tuple(row.split()) for row in ROWS])
        model = bert_tf.BertRegressor().fit(pairs, range(12))
        assert (model.n_features_in_, model.score(pairs, range(12)) > 0.99) == (2, True)
    frame = pd.DataFrame({"question": ROWS, "answer": ROWS})
    model = bert_tf.BertRegressor().fit(frame, range(12))
    assert model.feature_names_in_.tolist() == ["question", "answer"]
    with pytest.raises(ValueError, match="^The feature names should match"):
        model.predict(frame[["answer", "question"]])
    several = np.array([[number > 5, number < 9, number % 3] for number in range(12)]) * 1 > 0
    model = bert_tf.BertClassifier().fit(ROWS, several.astype(int))
    assert (model.predict_proba(ROWS).shape, model.classes_.tolist()) == ((12, 3), [0, 1, 2])
    np.testing.assert_array_equal(model.predict(ROWS), model.predict_proba(ROWS) >= 0.5)
    for classes in ((-1, 1), ("a b", "a\tb"), (" x", "x"), (1.0, 2.0)):
        labels = np.array(classes)[np.array(LABELS, int)]
        model = bert_tf.BertClassifier().fit(ROWS, labels)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(ROWS), labels)  # noqa: S301


@pytest.mark.parametrize(("kind", "labels"), [(bert_tf.BertClassifier, LABELS), (bert_tf.BertRegressor, range(12))])
@pytest.mark.parametrize("fitted", [False, True])
@pytest.mark.usefixtures("linear")
def test_an_estimator_whose_training_failed_is_not_fitted(kind, labels, fitted, monkeypatch):
    model = kind().fit(ROWS, labels) if fitted else kind()
    with pytest.raises(ValueError, match="inconsistent"):
        model.fit(ROWS[:2], labels)
    assert bool(hasattr(model, "n_features_in_") and len(model.predict(ROWS))) is fitted  # the rows were refused before
    monkeypatch.setattr(estimators, "fine_tune", mock.Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        model.fit(ROWS, labels)
    for estimator in (model, pickle.loads(pickle.dumps(model))):  # noqa: S301
        with pytest.raises(NotFittedError):
            estimator.predict(ROWS)


def test_further_settings_are_checked():
    model = bert_tf.BertClassifier(settings={"class_weight": "balanced"})
    with pytest.raises(FlagError, match="class_weights"):
        model.fit(ROWS, LABELS)
    for rows, problem in (("a text", "expected rows of texts"), (ROWS[:2], "inconsistent numbers of samples")):
        with pytest.raises(ValueError, match=problem):
            bert_tf.BertClassifier().fit(rows, LABELS)


@pytest.mark.parametrize(
    ("rows", "labels", "settings", "problem"),
    [
        ([], [], None, r"0 sample\(s\)"),
        (["a", "b"], ["x", float("nan")], None, r"y\[1\] is nan: 1 labels are missing"),
        (["a", "b"], [None, "x"], None, r"y\[0\] is None"),
        (["a", "b"], 5, None, "expected labels, such as a list; got int"),
        (["a", "b"], ["x", "y"], 5, "settings=5: expected a mapping of settings of fine_tune"),
        (["a", "b"], ["x", "y"], {5: 1}, "settings={5: 1}: expected a mapping"),
        (
            ["a", "b"],
            ["x", "y"],
            {"output_dir": "out"},
            r"output_dir is a parameter of BertClassifier: give BertClassifier\(out",
        ),
        (["a", "b"], ["x", "y"], {"task_name": "MRPC"}, "task_name is decided by BertClassifier.fit; leave it out"),
    ],
)
def test_rows_and_settings_that_cannot_be_used_are_named_before_anything_is_trained(rows, labels, settings, problem):
    with pytest.raises(ValueError, match=problem):
        bert_tf.BertClassifier(settings=settings).fit(rows, labels)


def test_missing_values_of_pandas_are_named():
    pandas = pytest.importorskip("pandas")
    for model, labels in ((bert_tf.BertClassifier(), ["x", pandas.NA]), (bert_tf.BertRegressor(), [1.0, pandas.NA])):
        for given in (labels, pandas.Series(labels)):
            with pytest.raises(ValueError, match=r"y\[1\] is (<NA>|nan): 1 labels are missing"):
                model.fit(["a", "b"], given)

"""Probable label errors, by confident learning (Northcutt et al., 2021). Shapes: N rows, L labels."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bert_tf.errors import DataError
from bert_tf.head_spec import CHOICE, CLASSIFICATION, MULTI_LABEL, REGRESSION, SIMILARITY, SPAN, TAGS
from bert_tf.tasks.base import Family
from bert_tf.tasks.sentence.rows import names_of

Floats = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.int64]
Predicted = Sequence[Mapping[str, Any]]  # of each row: the cells of a prediction file

_NUMBERS = (REGRESSION, SIMILARITY)
_FOLDS = 5
_FAR = 4.0  # robust standard deviations of the errors of numbers, beyond which one is flagged
_ROBUST = 1.4826  # of a normal distribution: standard deviation per median absolute deviation
_SLACK = 1e-6  # of a threshold, as in cleanlab


class Issue(NamedTuple):
    row: int
    score: float  # probability of the given label
    suggested: str


def flagged(labels: Ints, probabilities: Floats) -> npt.NDArray[np.bool_]:
    """Returns [N] whether a label is probably wrong: off the diagonal of the confident joint of labels and classes.

    A class is confident for a row if its probability [N, L] reaches the mean of those of the rows that have its label [N].
    The same rows as those of cleanlab 2.9 with filter_by="confident_learning".
    """
    means = [probabilities[labels == k, k].mean() if (labels == k).any() else np.inf for k in range(probabilities.shape[1])]
    confident = np.where(probabilities >= np.array(means) - _SLACK, probabilities, -1.0)
    best = confident.argmax(axis=1)
    wrong: npt.NDArray[np.bool_] = (confident.max(axis=1) >= 0.0) & (best != labels) & (probabilities.argmax(axis=1) != labels)
    return wrong


def of_classes(labels: Ints, probabilities: Floats, names: Sequence[str]) -> list[Issue]:
    own, best = probabilities[np.arange(len(labels)), labels], probabilities.argmax(axis=1)
    return [Issue(int(n), float(own[n]), names[best[n]]) for n in np.flatnonzero(flagged(labels, probabilities))]


def of_several(applies: Ints, probabilities: Floats, names: Sequence[str], separator: str) -> list[Issue]:
    """Judges each label of a row on its own; `applies` [N, L] is 0 or 1."""
    binary = np.stack([1.0 - probabilities, probabilities], axis=-1)  # [N, L, 2]
    wrong = np.stack([flagged(applies[:, k], binary[:, k]) for k in range(len(names))], axis=1)
    own = np.take_along_axis(binary, applies[..., None], axis=-1)[..., 0]
    found = []
    for n in np.flatnonzero(wrong.any(axis=1)):
        chosen = np.where(wrong[n], 1 - applies[n], applies[n])
        suggested = separator.join(name for name, is_chosen in zip(names, chosen) if is_chosen)
        found.append(Issue(int(n), float(own[n][wrong[n]].min()), suggested))
    return found


def of_numbers(labels: Floats, predicted: Floats) -> list[Issue]:
    errors = predicted - labels
    errors = np.abs(errors - np.median(errors))
    limit = _FAR * _ROBUST * np.median(errors)
    far = np.flatnonzero((errors > limit) & (limit > 0))
    return [Issue(int(n), float(limit / (_FAR * errors[n])), f"{predicted[n]:.4g}") for n in far]


def of_tags(rows: Sequence[Any], predicted: Predicted) -> list[Issue]:
    """Judges each word by the probability of its predicted tag; the score of a sentence is that of its worst word."""
    given, tags, scores = [], [], []
    for row, cells in zip(rows, predicted):
        of_row = _list(cells["tags"]), [float(score) for score in _list(cells["scores"])]
        if not len(row.label) == len(of_row[0]) == len(of_row[1]):
            raise DataError(f"{len(of_row[0])} predicted tags for {len(row.label)} words", row.guid)
        given.append(np.array(row.label, object))
        tags.append(np.array(of_row[0], object))
        scores.append(np.array(of_row[1]))
    all_given, all_tags, all_scores = (np.concatenate(each) for each in (given, tags, scores))
    own = np.where(all_given == all_tags, all_scores, 1.0 - all_scores)  # at most this, if another tag was predicted
    least = {tag: own[all_given == tag].mean() for tag in set(all_given.tolist())}
    found = []
    for n, (label, tag, score) in enumerate(zip(given, tags, scores)):
        limits = np.array([least.get(one, np.inf) for one in tag])
        wrong = (label != tag) & (score >= limits)
        if wrong.any():
            found.append(Issue(n, float((1.0 - score)[wrong].min()), " ".join(np.where(wrong, tag, label))))
    return found


def of_answers(rows: Sequence[Any], predicted: Predicted) -> list[Issue]:
    """Disagreement of options, or of answers."""
    found = []
    for n, (row, cells) in enumerate(zip(rows, predicted)):
        if "answer" in cells:
            answer, score = str(cells["answer"] or ""), 1.0 - float(cells["probability"])
            known = {" ".join(one.casefold().split()) for one in row.label or ("",)}
            is_right = " ".join(answer.casefold().split()) in known
        else:
            answer, score = str(cells["label"]), float(_list(cells["probabilities"])[row.label])
            is_right = answer == str(row.label)
        if not is_right:
            found.append(Issue(n, score, answer))
    return found


def _list(value: Any) -> list[Any]:
    return value.split() if isinstance(value, str) else list(value)


def from_predictions(family: Family, rows: Sequence[Any], predicted: Predicted) -> list[Issue]:
    """Issues of labelled rows; KeyError or ValueError for cells that are missing or unusable."""
    kind, labels = family.kind, [row.label for row in rows]
    if kind == TAGS:
        return of_tags(rows, predicted)
    if kind in (CHOICE, SPAN):
        return of_answers(rows, predicted)
    if kind in _NUMBERS:
        return of_numbers(np.array(labels), np.array([float(cells.get("score", cells.get("label"))) for cells in predicted]))
    if kind not in (CLASSIFICATION, MULTI_LABEL):
        return []
    probabilities = np.array([[float(cells[f"probability_{name}"]) for name in family.labels] for cells in predicted])
    return _of_probabilities(family, labels, probabilities)


def _of_probabilities(family: Family, labels: Sequence[Any], probabilities: Floats) -> list[Issue]:
    names = family.labels
    if family.kind == CLASSIFICATION:
        return of_classes(np.array([names.index(label) for label in labels]), probabilities, names)
    return of_several(_applies(labels, names), probabilities, names, getattr(family, "label_separator", ","))


def _applies(labels: Sequence[Any], names: Sequence[str]) -> Ints:
    return np.array([[int(name in names_of(label)) for name in names] for label in labels])


def from_vectors(family: Family, rows: Sequence[Any], vectors: Floats) -> list[Issue] | None:
    """Issues by a linear model of the vectors [N, D], in five folds; None if the kind of labels needs another model."""
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict
    from sklearn.multiclass import OneVsRestClassifier

    kind, labels = family.kind, [row.label for row in rows]
    if kind not in (CLASSIFICATION, MULTI_LABEL, *_NUMBERS) or len(rows) < 2 * _FOLDS:
        return None
    folds = KFold(_FOLDS, shuffle=True, random_state=0)
    if kind in _NUMBERS:
        return of_numbers(np.array(labels), cross_val_predict(Ridge(), vectors, np.array(labels), cv=folds))
    model = LogisticRegression(max_iter=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes with fewer rows than folds
        if kind == MULTI_LABEL:
            model, target = OneVsRestClassifier(model), _applies(labels, family.labels)
        else:
            target = np.array([family.labels.index(label) for label in labels])
            counts = np.bincount(target)
            folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=0) if counts.max() >= _FOLDS else folds
        found = cross_val_predict(model, vectors, target, cv=folds, method="predict_proba")
    if kind == CLASSIFICATION:  # columns of the classes that occur
        probabilities = np.zeros([len(rows), len(family.labels)])
        probabilities[:, np.unique(target)] = found
        found = probabilities
    return _of_probabilities(family, labels, found)

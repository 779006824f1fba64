"""Probable label errors, by confident learning (Northcutt et al., 2021). Shapes: N rows, L labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bert_tf.errors import DataError
from bert_tf.head_spec import CHOICE, CLASSIFICATION, MULTI_LABEL, REGRESSION, SIMILARITY, SPAN, TAGS
from bert_tf.tasks.base import Family
from bert_tf.tasks.cells import number
from bert_tf.tasks.sentence.rows import names_of
from bert_tf.tasks.tables import RowError

Floats = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.int64]
Cells = Mapping[str, Any]  # a line of a prediction file

_NUMBERS = (REGRESSION, SIMILARITY)
_LEAST_ROWS = 10
_RIDGE = 1.0  # penalty, for text vectors of length 1
_FAR = 4.0  # robust standard deviations of the errors of numbers, beyond which one is flagged
_ROBUST = 1.4826  # of a normal distribution: standard deviation per median absolute deviation
_ROUNDING = 0.01  # of the sum of probabilities, which a file may have with few digits
_SLACK = 1e-6  # of a threshold, as in cleanlab


class Issue(NamedTuple):
    row: int
    score: float  # probability of the label
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


def class_issues(labels: Ints, probabilities: Floats, names: Sequence[str]) -> list[Issue]:
    scores, best = probabilities[np.arange(len(labels)), labels], probabilities.argmax(axis=1)
    return [Issue(int(n), float(scores[n]), names[best[n]]) for n in np.flatnonzero(flagged(labels, probabilities))]


def multi_label_issues(applies: Ints, probabilities: Floats, names: Sequence[str], separator: str) -> list[Issue]:
    """Judges each label of a row on its own; `applies` [N, L] is 0 or 1."""
    binary = np.stack([1.0 - probabilities, probabilities], axis=-1)  # [N, L, 2]
    wrong = np.stack([flagged(applies[:, k], binary[:, k]) for k in range(len(names))], axis=1)
    scores = np.where(applies, probabilities, 1.0 - probabilities)
    corrected = np.where(wrong, 1 - applies, applies)
    return [
        Issue(int(n), float(scores[n][wrong[n]].min()), separator.join(names[k] for k in np.flatnonzero(corrected[n]).tolist()))
        for n in np.flatnonzero(wrong.any(axis=1))
    ]


def number_issues(labels: Floats, predictions: Floats) -> list[Issue]:
    """Labels far from the predictions, which are held to the range of the labels: a scale may end there."""
    predictions = np.clip(predictions, labels.min(), labels.max())
    errors = predictions - labels
    errors = np.abs(errors - np.median(errors))
    limit = _FAR * _ROBUST * np.median(errors)
    far = np.flatnonzero((errors > limit) & (limit > 0))
    return [Issue(int(n), float(limit / (_FAR * errors[n])), f"{predictions[n]:.4g}") for n in far]


def option_issues(labels: Sequence[int], probabilities: Sequence[Floats]) -> list[Issue]:
    """Disagreement: options of different questions have nothing in common, by which a threshold could be estimated."""
    pairs = enumerate(zip(labels, probabilities))
    return [Issue(n, float(p[label]), str(p.argmax())) for n, (label, p) in pairs if p.argmax() != label]


def tag_issues(rows: Sequence[Any], predictions: Sequence[Cells]) -> list[Issue]:
    """Judges each word by the probability of its predicted tag; the score of a sentence is that of its worst word."""
    labels, tags, scores = [], [], []
    for row, cells in zip(rows, predictions):
        labels.append(np.array(row.label, object))
        tags.append(np.array(_values(cells["tags"]), object))
        scores.append(np.array([_share(score, row.guid) for score in _values(cells["scores"])]))
        if not len(labels[-1]) == len(tags[-1]) == len(scores[-1]):
            raise DataError(f"{len(tags[-1])} predicted tags for {len(row.label)} words", row.guid)
    all_labels, all_tags, all_scores = map(np.concatenate, (labels, tags, scores))
    of_labels = np.where(all_labels == all_tags, all_scores, 1.0 - all_scores)  # at most this, if another tag was predicted
    means = {tag: of_labels[all_labels == tag].mean() for tag in set(all_labels.tolist())}
    issues = []
    for n, (label, tag, score) in enumerate(zip(labels, tags, scores)):
        wrong = (label != tag) & (score >= np.array([means.get(name, np.inf) for name in tag]))
        if wrong.any():
            issues.append(Issue(n, float((1.0 - score)[wrong].min()), " ".join(np.where(wrong, tag, label))))
    return issues


def answer_issues(rows: Sequence[Any], predictions: Sequence[Cells]) -> list[Issue]:
    """Disagreement, but for case and blanks."""
    issues = []
    for n, (row, cells) in enumerate(zip(rows, predictions)):
        answer = str(cells["answer"] or "")
        if _plain(answer) not in map(_plain, row.label or ("",)):
            issues.append(Issue(n, 1.0 - _share(cells["probability"], row.guid), answer))
    return issues


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _values(cell: Any) -> list[Any]:
    return cell.split() if isinstance(cell, str) else list(cell)


def from_predictions(family: Family, rows: Sequence[Any], runs: Sequence[Sequence[Cells]]) -> list[Issue]:
    """Issues of labelled rows by the mean of several runs; KeyError or ValueError for cells that are missing or unusable."""
    if family.kind in (TAGS, SPAN):
        if len(runs) > 1:
            raise ValueError(f"of {family.kind} only those of one run can be used")
        return (tag_issues if family.kind == TAGS else answer_issues)(rows, runs[0])
    means = [np.mean([_numbers(family, cells, row.guid) for cells in lines], axis=0) for row, lines in zip(rows, zip(*runs))]
    return _issues(family, [row.label for row in rows], means)


def _numbers(family: Family, cells: Cells, guid: str) -> list[float]:
    """Returns what a line predicts; raises ValueError for what is no number or no probability."""
    if family.kind in _NUMBERS:
        try:
            return [number(cells.get("score", cells.get("label")))]
        except RowError as error:
            raise ValueError(f"{guid}: {error}") from error
    values = (
        _values(cells["probabilities"]) if family.kind == CHOICE else [cells[f"probability_{name}"] for name in family.labels]
    )
    shares = [_share(value, guid) for value in values]
    if family.kind != MULTI_LABEL and abs(sum(shares) - 1.0) > _ROUNDING:
        raise ValueError(f"{guid}: the probabilities have the sum {sum(shares):g}, not 1")
    return shares


def _share(cell: Any, guid: str) -> float:
    try:
        return number(cell, (0.0, 1.0))
    except RowError as error:
        raise ValueError(f"{guid}: {cell!r:.40} is not a probability, from 0 to 1") from error


def _issues(family: Family, labels: Sequence[Any], outputs: Any) -> list[Issue]:
    """Issues by the probabilities or number of each row."""
    names = family.labels
    if family.kind == CHOICE:
        return option_issues(labels, outputs)
    if family.kind in _NUMBERS:
        return number_issues(np.array(labels), np.reshape(outputs, -1))
    if family.kind == CLASSIFICATION:
        number_of = {name: number for number, name in enumerate(names)}
        return class_issues(np.array([number_of[label] for label in labels]), np.array(outputs), names)
    return multi_label_issues(_applies(labels, names), np.array(outputs), names, getattr(family, "label_separator", ","))


def _applies(labels: Sequence[Any], names: Sequence[str]) -> Ints:
    return np.array([[int(name in names_of(label)) for name in names] for label in labels])


def from_vectors(family: Family, rows: Sequence[Any], vectors: Floats) -> list[Issue] | None:
    """Issues by a linear model of the texts' vectors [N, 2, D]; None for kinds of labels that need another model."""
    kind, labels = family.kind, [row.label for row in rows]
    if kind not in (CLASSIFICATION, MULTI_LABEL, *_NUMBERS) or len(rows) < _LEAST_ROWS:
        return None
    first, second = vectors[:, 0], vectors[:, 1]
    inputs = np.concatenate([first, second, np.abs(first - second), first * second], axis=1) if second.any() else first
    if kind in _NUMBERS:
        return _issues(family, labels, without_row(inputs, np.array(labels)[:, None]))
    return _issues(family, labels, without_row(inputs, _applies(labels, family.labels)).clip(0.0, 1.0))


def without_row(inputs: Floats, targets: npt.NDArray[Any]) -> Floats:
    """Returns [N, L] predictions of targets by ridge regression on inputs [N, D], each by a model without its row (exact)."""
    inputs, residuals = inputs - inputs.mean(axis=0), targets - targets.mean(axis=0)
    inverse = np.linalg.inv((inputs.T @ inputs).astype(np.float64) + _RIDGE * np.eye(inputs.shape[1]))
    projected = inputs @ inverse.astype(inputs.dtype)  # [N, D]
    leverage = np.einsum("nd,nd->n", projected, inputs) + 1.0 / len(inputs)
    fitted = projected @ (inputs.T @ residuals)
    return np.asarray(targets - (residuals - fitted) / (1.0 - leverage)[:, None])

"""Evaluation of tags: whole entities, or plain tags; by type, by kind of error and by sentence length.

Shapes: E sentences, W words of all of them, L tags, K sums that a metric is computed from, R resamples.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from bert_tf.metrics import ClassScores, intervals, per_class, probabilities
from bert_tf.tasks.evaluation import Evaluation, Panel
from bert_tf.tasks.tags import errors, schemes
from bert_tf.tasks.tags.columns import TagExample
from bert_tf.tasks.tags.errors import Error, Found
from bert_tf.tasks.tags.predictions import TagPredictions, decoded
from bert_tf.text_table import table

ENTITY_METRICS = ("entity_f1", "entity_precision", "entity_recall", "entity_f1_strict", "token_accuracy")
PLAIN_METRICS = ("token_accuracy", "macro_f1")

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Rows = list[list[Union[str, float, None]]]
OfSums = Callable[[Floats], Floats]  # from [R, K] sums to [R] values of a metric

_LENGTHS = (5, 10, 20, 40)  # words of a sentence, ends of the rows of a table
_SHOWN = 20  # types or tags of the table in the log
_EXAMPLES = 3  # of each kind of error
_CONFUSIONS = 15


@dataclasses.dataclass(frozen=True)
class TagEvaluation(Evaluation):
    """Results on a split."""

    labels: tuple[str, ...]  # all tags
    sums: Mapping[str, tuple[OfSums, Ints]]  # per metric: [E, K] sums by sentence, and how to combine them
    scores: Sequence[ClassScores]  # of each entity type, or of each plain tag
    tables: Sequence[Panel]  # for the page
    more: Mapping[str, Any]  # other entries of eval_results.json
    problem: str | None  # see `Evaluation.collapsed`

    @functools.cached_property
    def intervals(self) -> dict[str, tuple[float, float]]:
        found = {name: intervals.of_sums(metric, sums) for name, (metric, sums) in self.sums.items()}
        return {name: ends for name, ends in found.items() if ends is not None}

    @property
    def collapsed(self) -> str | None:
        return self.problem

    @property
    def panels(self) -> Sequence[Panel]:
        return self.tables

    def table(self) -> list[str]:
        rows = sorted(self.scores, key=lambda row: -row.support)[:_SHOWN]
        cells = [(row.label, f"{row.precision:.3f}", f"{row.recall:.3f}", f"{row.f1:.3f}", str(row.support)) for row in rows]
        more = [f"and {len(self.scores) - _SHOWN} more, see eval_results.json"] if len(self.scores) > _SHOWN else []
        return [*table(ClassScores._fields, cells), *more] if cells else []

    def details(self) -> dict[str, Any]:
        return {**super().details(), "tags": self.labels, "per_class": [row._asdict() for row in self.scores], **self.more}


def evaluate(
    predictions: TagPredictions, examples: Sequence[TagExample], labels: tuple[str, ...], *, constrained: bool
) -> TagEvaluation:
    """Measures predictions of E sentences; each sentence counts once. `constrained` decodes valid sequences only."""
    number_of = {label: number for number, label in enumerate(labels)}
    right = np.array([number_of[tag] for example in examples for tag in example.label or ()], np.int64)  # [W]
    measured = _Measured(predictions, examples, labels, right, constrained)
    return _of_entities(measured) if schemes.are_of_entities(labels) else _of_plain_tags(measured)


@dataclasses.dataclass(frozen=True)
class _Measured:
    """Predictions together with the correct tags."""

    predictions: TagPredictions
    examples: Sequence[TagExample]
    labels: tuple[str, ...]
    right: Ints  # [W]
    constrained: bool

    @property
    def lengths(self) -> Ints:
        return self.predictions.lengths

    @functools.cached_property
    def found(self) -> Ints:
        """[W] predicted tags."""
        return self.decoded(constrained=self.constrained)

    def decoded(self, *, constrained: bool) -> Ints:
        return decoded(self.predictions, self.labels, constrained=constrained)

    @functools.cached_property
    def loss(self) -> float:
        """Mean cross-entropy over the words that are read, in nats."""
        read = self.predictions.read
        log = probabilities.log_softmax(self.predictions.logits[read].astype(np.float64))
        return float(-log[np.arange(len(log)), self.right[read]].mean()) if len(log) else 0.0

    def names(self, tags: Ints) -> list[str]:
        return [self.labels[tag] for tag in tags.tolist()]

    def by_sentence(self, of_words: npt.NDArray[np.bool_]) -> Ints:
        """Sums [W] to [E]."""
        sums = np.concatenate([[0], np.cumsum(of_words)])
        ends = np.cumsum(self.lengths)
        of_sentences: Ints = sums[ends] - sums[ends - self.lengths]
        return of_sentences

    @functools.cached_property
    def accuracy(self) -> Ints:
        """[E, 2] correct words, and words."""
        return np.stack([self.by_sentence(self.right == self.found), self.lengths], axis=1)


def _shares(of: Floats, all_: Floats) -> Floats:
    return np.divide(of, all_, out=np.zeros_like(of), where=all_ > 0)


def _first_of_second(sums: Floats) -> Floats:
    return _shares(sums[:, 0], sums[:, 1])


def _f1(sums: Floats) -> Floats:
    """From [R, 3]: found, true and predicted counts."""
    return _shares(2 * sums[:, 0], sums[:, 1] + sums[:, 2])


def _macro_f1(sums: Floats) -> Floats:
    """From [R, 3 L], over the tags that are true or predicted."""
    right, there, predicted = sums.reshape(len(sums), 3, -1).transpose(1, 0, 2)
    counted = (there + predicted > 0).sum(axis=1)
    return _shares(_shares(2 * right, there + predicted).sum(axis=1), counted.astype(float))


def _of_entities(measured: _Measured) -> TagEvaluation:
    lengths, tags = measured.lengths, measured.names(measured.found)
    right_tags = measured.names(measured.right)
    there, predicted = errors.entities(right_tags, lengths), errors.entities(tags, lengths)
    whole = _entity_sums(there, predicted, lengths)  # [E, 3]
    strict = _entity_sums(there, errors.begun(predicted, tags), lengths)
    sums: dict[str, tuple[OfSums, Ints]] = {
        "entity_f1": (_f1, whole),
        "entity_precision": (_first_of_second, whole[:, [0, 2]]),
        "entity_recall": (_first_of_second, whole[:, [0, 1]]),
        "entity_f1_strict": (_f1, strict),
        "token_accuracy": (_first_of_second, measured.accuracy),
    }
    wrong = list(errors.errors(there, predicted, len(tags)))
    decoders = _decoders(measured, there)
    return TagEvaluation(
        metrics=_values(sums),
        loss=measured.loss,
        examples=len(lengths),
        labels=measured.labels,
        sums=sums,
        scores=_by_type(there, predicted),
        tables=(_by_kind(wrong, len(there), measured), _by_length(lengths, "entities", whole), _decoding(decoders)),
        more={
            "decoding": decoders,
            "errors": {kind: sum(error.kind == kind for error in wrong) for kind in errors.KINDS},
        },
        problem="no entity is predicted" if there and not predicted else None,
    )


def _of_plain_tags(measured: _Measured) -> TagEvaluation:
    right, found, size = measured.right, measured.found, len(measured.labels)
    hits = np.where(right == found, right, -1)
    columns = [measured.by_sentence(of == tag) for of in (hits, right, found) for tag in range(size)]
    sums: dict[str, tuple[OfSums, Ints]] = {
        "token_accuracy": (_first_of_second, measured.accuracy),
        "macro_f1": (_macro_f1, np.stack(columns, axis=1)),
    }
    majority = int(np.bincount(right, minlength=size).max(initial=0))
    hit = int(np.sum(right == found))
    return TagEvaluation(
        metrics=_values(sums),
        loss=measured.loss,
        examples=len(measured.lengths),
        labels=measured.labels,
        sums=sums,
        scores=[row for row in per_class(right, found, measured.labels) if row.support],
        tables=(_confusions(measured), _by_length(measured.lengths, "words", measured.accuracy)),
        more={},
        problem=f"{hit} of {len(right)} words right, the most frequent tag alone gives {majority}" if hit <= majority else None,
    )


def _values(sums: Mapping[str, tuple[OfSums, Ints]]) -> dict[str, float]:
    return {name: float(metric(of.sum(axis=0, keepdims=True).astype(float))[0]) for name, (metric, of) in sums.items()}


def _entity_sums(there: Sequence[Found], predicted: Sequence[Found], lengths: Ints) -> Ints:
    """Returns [E, 3] entities found, true and predicted, per sentence."""
    both = list(set(there) & set(predicted))
    return np.stack([errors.counts_by_sentence(some, lengths) for some in (both, there, predicted)], axis=1)


def _by_type(there: Sequence[Found], predicted: Sequence[Found]) -> list[ClassScores]:
    right, real, said = (errors.by_type(list(some)) for some in (set(there) & set(predicted), there, predicted))
    rows = []
    for kind in sorted({*real, *said}):
        hit, actual, found = right[kind], real[kind], said[kind]
        rows.append(ClassScores(kind, hit / max(found, 1), hit / max(actual, 1), 2 * hit / (actual + found), actual))
    return rows


def _decoders(measured: _Measured, there: Sequence[Found]) -> dict[str, dict[str, float]]:
    legal, found = schemes.iob2(measured.labels), {}
    for name, constrained in (("each word by itself", False), ("constrained", True)):
        numbers = measured.decoded(constrained=constrained)
        tags = measured.names(numbers)
        predicted = errors.entities(tags, measured.lengths)
        sums = [_entity_sums(there, some, measured.lengths) for some in (predicted, errors.begun(predicted, tags))]
        values = [float(_f1(of.sum(axis=0, keepdims=True).astype(float))[0]) for of in sums]
        illegal = int(schemes.is_illegal(numbers, measured.lengths, legal).sum())
        found[name] = {"entity_f1": values[0], "entity_f1_strict": values[1], "illegal_tags": illegal}
    return found


def _decoding(decoders: Mapping[str, Mapping[str, float]]) -> Panel:
    rows: Rows = [[name, *values.values()] for name, values in decoders.items()]
    note = "Constrained decoding (--constrained_decoding) takes the most probable tags that are legal together."
    return Panel("Decoding", ("decoding", "entity F1", "entity F1, strict", "illegal tags"), rows, note)


def _by_kind(wrong: Sequence[Error], there: int, measured: _Measured) -> Panel:
    rows: Rows = []
    for kind in errors.KINDS:
        of_kind = [error for error in wrong if error.kind == kind]
        types = collections.Counter((error.label or error.predicted or Found(0, 0, "")).type for error in of_kind)
        listed = ", ".join(f"{type_} {count}" for type_, count in types.most_common())
        shown = "; ".join(_shown(error, measured) for error in of_kind[:_EXAMPLES])
        rows.append([kind, len(of_kind), listed, shown])
    note = f"Of {there} entities that are there; each is in one row at most. Examples read: label → predicted."
    return Panel("Errors by kind", ("kind", "entities", "by type", "examples"), rows, note)


def _shown(error: Error, measured: _Measured) -> str:
    return " → ".join(_named(one, measured) for one in (error.label, error.predicted))


def _named(found: Found | None, measured: _Measured) -> str:
    if found is None:
        return "nothing"
    ends = np.cumsum(measured.lengths)
    sentence = int(np.searchsorted(ends, found.start, side="right"))
    first = int(ends[sentence] - measured.lengths[sentence])
    words = " ".join(measured.examples[sentence].words[found.start - first : found.end - first])
    return f"{words} ({found.type})" if found.type else words


def _by_length(lengths: Ints, unit: str, sums: Ints) -> Panel:
    """F1 of entities from [E, 3], or accuracy from [E, 2], by number of words."""
    bins = np.searchsorted(_LENGTHS, lengths, side="left")
    metric, name = (_f1, "F1") if sums.shape[1] > 2 else (_first_of_second, "accuracy")
    rows: Rows = []
    for number, (least, most) in enumerate(zip((1, *(end + 1 for end in _LENGTHS)), (*_LENGTHS, None))):
        chosen = bins == number
        if not chosen.any():
            continue
        total = sums[chosen].sum(axis=0, keepdims=True).astype(float)
        counted = int(total[0, 1])
        value = float(metric(total)[0]) if counted else None
        rows.append([f"{least} to {most}" if most else f"{least} or more", int(chosen.sum()), counted, value])
    return Panel("By length of sentence", ("words", "sentences", unit, name), rows)


def _confusions(measured: _Measured) -> Panel:
    wrong = measured.right != measured.found
    pairs = collections.Counter(zip(measured.names(measured.right[wrong]), measured.names(measured.found[wrong])))
    rows: Rows = [[label, found, count] for (label, found), count in pairs.most_common(_CONFUSIONS)]
    return Panel("Most frequent confusions", ("label", "predicted", "words"), rows)

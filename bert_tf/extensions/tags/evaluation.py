"""Evaluation of tags: whole entities, or plain tags; by type, by kind of error and by sentence length.

Shapes: E sentences, W words of all of them, L tags, G true entities, K sums that a metric is computed from, R resamples.
An entity is its type, its first word and the one after its last (among all words).
"""

from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt

from bert_tf.extensions.tags import schemes
from bert_tf.extensions.tags.columns import TagExample
from bert_tf.extensions.tags.predictions import TagPredictions, decoded
from bert_tf.metrics import ClassScores, intervals, per_class, probabilities
from bert_tf.tasks.evaluation import Evaluation, Panel, lines_of_classes

ENTITY_METRICS = ("entity_f1", "entity_precision", "entity_recall", "entity_f1_strict", "token_accuracy")
PLAIN_METRICS = ("token_accuracy", "macro_f1")

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Rows = list[list[Union[str, float, None]]]
Entity = tuple[str, int, int]
Error = tuple[str, Optional[Entity], Optional[Entity]]  # kind, true entity, overlapping or invented entity

_LENGTHS = (5, 10, 20, 40)  # words of a sentence: upper bounds of table rows
_EXAMPLES = 3  # of each kind of error
_CONFUSIONS = 15

MISSED, INVENTED = "missed", "invented"
WRONG_TYPE, WRONG_BORDER, WRONG_BOTH = "wrong type", "wrong border", "wrong type and border"
KINDS = (MISSED, INVENTED, WRONG_TYPE, WRONG_BORDER, WRONG_BOTH)
_NONE = -1


def evaluate(
    predictions: TagPredictions, examples: Sequence[TagExample], labels: tuple[str, ...], *, constrained: bool
) -> Evaluation:
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
    def predicted(self) -> Ints:
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

    def strict(self, candidates: Sequence[Entity], tags: Sequence[str]) -> list[Entity]:
        """Returns the entities that count in seqeval's strict mode: the first tag may begin one, and the last may end it."""
        letters = "BSUI" if schemes.are_in_iob1(self.labels) else "BSU"
        begun, ended = (entity for entity in candidates if tags[entity[1]][0] in letters), schemes.with_ends(self.labels)
        return [entity for entity in begun if entity[0] not in ended or tags[entity[2] - 1][0] in "ESLU"]

    def by_sentence(self, of_words: npt.NDArray[np.bool_]) -> Ints:
        """Sums [W] to [E]."""
        sums = np.concatenate([[0], np.cumsum(of_words)])
        ends = np.cumsum(self.lengths)
        of_sentences: Ints = sums[ends] - sums[ends - self.lengths]
        return of_sentences

    @functools.cached_property
    def accuracy(self) -> Ints:
        """[E, 2] correct words, and words."""
        return np.stack([self.by_sentence(self.right == self.predicted), self.lengths], axis=1)

    def evaluation(
        self, sums: intervals.Sums, scores: Sequence[ClassScores], panels: Sequence[Panel], problem: str | None, **more: Any
    ) -> Evaluation:
        """`scores` are those of each entity type, or of each plain tag; `more` are other entries of eval_results.json."""
        return Evaluation(
            intervals.metrics_of_sums(sums),
            self.loss,
            len(self.lengths),
            collapsed=problem,
            panels=panels,
            lines=lines_of_classes(sorted(scores, key=lambda row: -row.support)),
            more={"tags": self.labels, "per_class": [row._asdict() for row in scores], **more},
            find_intervals=functools.partial(intervals.of_all_sums, sums),
        )


def _shares(parts: Floats, wholes: Floats) -> Floats:
    return np.divide(parts, wholes, out=np.zeros_like(parts), where=wholes > 0)


def _first_of_second(sums: Floats) -> Floats:
    return _shares(sums[:, 0], sums[:, 1])


def _f1(sums: Floats) -> Floats:
    """From [R, 3]: found, true and predicted counts."""
    return _shares(2 * sums[:, 0], sums[:, 1] + sums[:, 2])


def _macro_f1(sums: Floats) -> Floats:
    """From [R, 3 L], over the tags that are true or predicted."""
    right, labelled, predicted = sums.reshape(len(sums), 3, -1).transpose(1, 0, 2)
    counted = (labelled + predicted > 0).sum(axis=1)
    return _shares(_shares(2 * right, labelled + predicted).sum(axis=1), counted.astype(float))


def _of_entities(measured: _Measured) -> Evaluation:
    lengths, tags = measured.lengths, measured.names(measured.predicted)
    labelled, predicted = entities(measured.names(measured.right), lengths), entities(tags, lengths)
    whole = _entity_sums(labelled, predicted, lengths)  # [E, 3]
    sums: intervals.Sums = {
        "entity_f1": (_f1, whole),
        "entity_precision": (_first_of_second, whole[:, [0, 2]]),
        "entity_recall": (_first_of_second, whole[:, [0, 1]]),
        "entity_f1_strict": (_f1, _entity_sums(labelled, measured.strict(predicted, tags), lengths)),
        "token_accuracy": (_first_of_second, measured.accuracy),
    }
    wrong = list(_errors(labelled, predicted, len(tags)))
    decoders = _decoders(measured, labelled)
    return measured.evaluation(
        sums,
        _by_type(labelled, predicted),
        (_by_kind(wrong, len(labelled), measured), _by_length(lengths, "entities", whole), _decoding(decoders)),
        "no entity is predicted" if labelled and not predicted else None,
        decoding=decoders,
        errors={kind: sum(error[0] == kind for error in wrong) for kind in KINDS},
    )


def _of_plain_tags(measured: _Measured) -> Evaluation:
    right, predicted, size = measured.right, measured.predicted, len(measured.labels)
    hits = np.where(right == predicted, right, -1)
    columns = [measured.by_sentence(numbers == tag) for numbers in (hits, right, predicted) for tag in range(size)]
    sums: intervals.Sums = {
        "token_accuracy": (_first_of_second, measured.accuracy),
        "macro_f1": (_macro_f1, np.stack(columns, axis=1)),
    }
    majority = int(np.bincount(right, minlength=size).max(initial=0))
    hit = int(np.sum(right == predicted))
    nothing = hit <= majority < len(right)  # if all words have one tag, nothing can be told
    return measured.evaluation(
        sums,
        [row for row in per_class(right, predicted, measured.labels) if row.support],
        (_confusions(measured), _by_length(measured.lengths, "words", measured.accuracy)),
        f"{hit} of {len(right)} words right, the most frequent tag alone gives {majority}" if nothing else None,
    )


def entities(tags: Sequence[str], lengths: Ints) -> list[Entity]:
    """Returns the entities of W tags in sentences of lengths [E]; none crosses a sentence boundary."""
    divided: list[str] = []
    at = 0
    for end in np.cumsum(lengths).tolist():
        divided += [*tags[at:end], schemes.OUTSIDE]
        at = end
    word_of = np.arange(len(divided)) - np.repeat(np.arange(len(lengths)), lengths + 1)
    return [(kind, int(word_of[first]), int(word_of[end - 1]) + 1) for kind, first, end in schemes.entities_of(divided)]


def _errors(labelled: Sequence[Entity], predicted: Sequence[Entity], words: int) -> Iterator[Error]:
    """Yields each true entity that is not found, then the predicted ones that overlap with none.

    If several predictions overlap with an entity, one of its type counts, else the first.
    """
    of_word = np.full(words, _NONE)
    for number, (_, first, end) in enumerate(predicted):
        of_word[first:end] = number
    is_there = np.zeros(words, np.bool_)
    right = set(labelled) & set(predicted)
    for label in labelled:
        _, first, end = label
        is_there[first:end] = True
        if label not in right:
            yield _error(label, [predicted[number] for number in np.unique(of_word[first:end]) if number != _NONE])
    for entity in predicted:
        if not is_there[entity[1] : entity[2]].any():
            yield INVENTED, None, entity


def _error(label: Entity, near: Sequence[Entity]) -> Error:
    if not near:
        return MISSED, label, None
    same_type = [entity for entity in near if entity[0] == label[0]]
    if same_type:
        return WRONG_BORDER, label, same_type[0]
    return WRONG_TYPE if near[0][1:] == label[1:] else WRONG_BOTH, label, near[0]


def _entity_sums(labelled: Sequence[Entity], predicted: Sequence[Entity], lengths: Ints) -> Ints:
    """Returns [E, 3] entities found, true and predicted, that begin in each sentence."""

    def counts(group: Sequence[Entity]) -> Ints:
        starts = np.array([first for _, first, _ in group], np.int64)
        return np.bincount(np.searchsorted(np.cumsum(lengths), starts, side="right"), minlength=len(lengths))

    return np.stack([counts(group) for group in (list(set(labelled) & set(predicted)), labelled, predicted)], axis=1)


def _by_type(labelled: Sequence[Entity], predicted: Sequence[Entity]) -> list[ClassScores]:
    parts = (set(labelled) & set(predicted), labelled, predicted)
    right, real, guessed = (collections.Counter(kind for kind, *_ in group) for group in parts)
    rows = []
    for kind in sorted({*real, *guessed}):
        hit, actual, guesses = right[kind], real[kind], guessed[kind]
        rows.append(ClassScores(kind, hit / max(guesses, 1), hit / max(actual, 1), 2 * hit / (actual + guesses), actual))
    return rows


def _decoders(measured: _Measured, labelled: Sequence[Entity]) -> dict[str, dict[str, float]]:
    legal, scores_by_decoder = schemes.legal_of(measured.labels), {}
    for name, constrained in (("each word by itself", False), ("constrained", True)):
        numbers = measured.decoded(constrained=constrained)
        tags = measured.names(numbers)
        predicted = entities(tags, measured.lengths)
        sums = [_entity_sums(labelled, group, measured.lengths) for group in (predicted, measured.strict(predicted, tags))]
        values = [float(_f1(counts.sum(axis=0, keepdims=True).astype(float))[0]) for counts in sums]
        illegal = int(schemes.is_illegal(numbers, measured.lengths, legal).sum())
        scores_by_decoder[name] = {"entity_f1": values[0], "entity_f1_strict": values[1], "illegal_tags": illegal}
    return scores_by_decoder


def _decoding(decoders: Mapping[str, Mapping[str, float]]) -> Panel:
    rows: Rows = [[name, *values.values()] for name, values in decoders.items()]
    note = "Constrained decoding (--constrained_decoding) chooses the most probable legal tag sequence."
    return Panel("Decoding", ("decoding", "entity F1", "entity F1, strict", "illegal tags"), rows, note)


def _by_kind(wrong: Sequence[Error], labelled: int, measured: _Measured) -> Panel:
    rows: Rows = []
    for kind in KINDS:
        of_kind = [pair for error_kind, *pair in wrong if error_kind == kind]
        types = collections.Counter((label or predicted or ("",))[0] for label, predicted in of_kind)
        listed = ", ".join(f"{type_} {count}" for type_, count in types.most_common())
        shown = "; ".join(" → ".join(_named(entity, measured) for entity in pair) for pair in of_kind[:_EXAMPLES])
        rows.append([kind, len(of_kind), listed, shown])
    note = f"Of {labelled} true entities; each is in one row at most. Examples read: label → predicted."
    return Panel("Errors by kind", ("kind", "entities", "by type", "examples"), rows, note)


def _named(entity: Entity | None, measured: _Measured) -> str:
    if entity is None:
        return "nothing"
    kind, start, end = entity
    ends = np.cumsum(measured.lengths)
    sentence = int(np.searchsorted(ends, start, side="right"))
    first = int(ends[sentence] - measured.lengths[sentence])
    words = " ".join(measured.examples[sentence].words[start - first : end - first])
    return f"{words} ({kind})" if kind else words


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
    wrong = measured.right != measured.predicted
    pairs = collections.Counter(zip(measured.names(measured.right[wrong]), measured.names(measured.predicted[wrong])))
    rows: Rows = [[label, predicted, count] for (label, predicted), count in pairs.most_common(_CONFUSIONS)]
    return Panel("Most frequent confusions", ("label", "predicted", "words"), rows)

"""Predictions for the words of sentences, for programs and files.

Shapes: E sentences, W words of all of them, L tags.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bert_tf.extensions.tags import schemes
from bert_tf.extensions.tags.columns import TagExample, divider
from bert_tf.extensions.tags.features import WORDS
from bert_tf.features.columns import Array, Features
from bert_tf.io.text_table import cell
from bert_tf.metrics import probabilities
from bert_tf.tasks.names import CSV, JSONL
from bert_tf.tasks.predictions import Id, Share, delimited, json_lines

SURE = 50.0  # logit of the usual tag for words that are in no row


class TagPredictions(NamedTuple):
    """Outputs for the words of E concatenated sentences."""

    logits: npt.NDArray[np.float32]  # [W, L]; default-tag logits for unread words
    read: npt.NDArray[np.bool_]  # [W] False if it has no pieces, as control characters
    lengths: npt.NDArray[np.int64]  # [E] words per sentence


def of_outputs(logits: Array, features: Features, examples: Sequence[TagExample], labels: Sequence[str]) -> TagPredictions:
    """Reduces token logits [total, L] to words: each from the window with the most context."""
    lengths = np.fromiter((len(example.words) for example in examples), np.int64, len(examples))
    starts = np.cumsum(lengths) - lengths
    number = features.targets[WORDS.name]  # [total]
    rows = np.asarray(np.arange(len(features)) if features.example_ids is None else features.example_ids)
    word = (starts[np.repeat(rows, features.lengths)] + number)[number >= 0]
    of_words = np.zeros([int(lengths.sum()), len(labels)], np.float32)
    of_words[:, usual(labels)] = SURE
    of_words[word] = logits[number >= 0]
    read = np.zeros(len(of_words), np.bool_)
    read[word] = True
    return TagPredictions(of_words, read, lengths)


def usual(labels: Sequence[str]) -> int:
    """Returns the tag index of unreadable words: O; for plain tags the first, which is the most frequent."""
    return labels.index(schemes.OUTSIDE) if schemes.OUTSIDE in labels else 0


def decoded(predictions: TagPredictions, labels: Sequence[str], *, constrained: bool) -> npt.NDArray[np.int64]:
    """Returns the [W] predicted tags; `constrained` allows only valid sequences."""
    if constrained and schemes.are_of_entities(labels):
        return schemes.viterbi(predictions.logits, predictions.lengths, schemes.legal_of(labels))
    numbers: npt.NDArray[np.int64] = predictions.logits.argmax(axis=-1)
    return numbers


@dataclasses.dataclass(frozen=True)
class Entity:
    """An entity in a text."""

    type: str  # PER, LOC; empty if tags have no types
    text: str
    # first character in the text, or in the joined words
    start: Annotated[int, {"description": "first character, counted in code points"}]
    end: Annotated[int, {"description": "the character after the last"}]
    first_word: int  # from 0
    end_word: int  # exclusive
    score: Share  # tag probability of its least certain word


@dataclasses.dataclass(frozen=True)
class TagPrediction:
    """Prediction for one sentence."""

    id: Id
    words: tuple[str, ...]
    label: Annotated[tuple[str, ...], {"description": "the tag of each word, of entities in the scheme of the labels"}]
    scores: Annotated[tuple[Share, ...], {"description": "probability of each tag"}]
    entities: tuple[Entity, ...]  # in order; empty for plain tags


def listed(
    predictions: TagPredictions, examples: Sequence[TagExample], labels: Sequence[str], *, constrained: bool
) -> list[TagPrediction]:
    numbers = decoded(predictions, labels, constrained=constrained)
    scores = probabilities.softmax(predictions.logits)[np.arange(len(numbers)), numbers].tolist()
    tags, with_entities = [labels[number] for number in numbers], schemes.are_of_entities(labels)
    tagged, at = [], 0
    for example in examples:
        end = at + len(example.words)
        of_words, sure = tuple(tags[at:end]), tuple(scores[at:end])
        entities = tuple(_entities(example, of_words, sure)) if with_entities else ()
        tagged.append(TagPrediction(example.guid, example.words, of_words, sure, entities))
        at = end
    return tagged


def _entities(example: TagExample, tags: Sequence[str], scores: Sequence[float]) -> list[Entity]:
    if all(tag == schemes.OUTSIDE for tag in tags):
        return []
    (text,), spans = example.texts, example.spans
    entities = []
    for kind, first, end in schemes.entities_of(tags):
        start, stop = spans[first][0], spans[end - 1][1]
        entities.append(Entity(kind, text[start:stop], start, stop, first, end, min(scores[first:end])))
    return entities


@dataclasses.dataclass(frozen=True)
class TagLayout:
    """Layout as column files, CSV, or JSON lines.

    A column file repeats the lines of the input, including blank and document lines, with the predicted tag as an
    added column; for sentences without lines, each line is a word and its tag, with a blank line after each sentence.
    """

    labels: Sequence[str]
    constrained: bool  # see `decoded`
    form: str  # key of `names.FORMATS`

    def header(self) -> str:
        """Only CSV has one."""
        return delimited(CSV, [["id", "word_number", "word", "tag", "score"]]) if self.form == CSV else ""

    def rows(self, examples: Sequence[TagExample], predictions: TagPredictions) -> str:
        tagged = listed(predictions, examples, self.labels, constrained=self.constrained)
        if self.form == JSONL:
            return json_lines(map(_object, examples, tagged))
        if self.form == CSV:
            cells = ((sentence, zip(sentence.words, sentence.label, sentence.scores)) for sentence in tagged)
            return delimited(CSV, [[sentence.id, number, *row] for sentence, rows in cells for number, row in enumerate(rows)])
        return "".join(f"{line}\n" for pair in zip(examples, tagged) for line in _lines(*pair))


def _lines(example: TagExample, prediction: TagPrediction) -> list[str]:
    if example.lines or example.before:
        lines = [f"{line.rstrip(' ')}{divider(line)}{tag}" for line, tag in zip(example.lines, prediction.label)]
        return [*example.before, *lines, *example.after]
    return [*(f"{cell(word)}\t{tag}" for word, tag in zip(prediction.words, prediction.label)), ""]


def _object(example: TagExample, prediction: TagPrediction) -> dict[str, Any]:
    return {
        "id": prediction.id,
        **({} if example.text is None else {"text": example.text}),
        "tokens": prediction.words,
        "tags": prediction.label,
        "scores": prediction.scores,
        "entities": [dataclasses.asdict(entity) for entity in prediction.entities],
    }


_KEPT = 50  # of a split


def most_confident(examples: Sequence[TagExample], tagged: Sequence[TagPrediction]) -> list[dict[str, Any]]:
    """Returns sentences with a wrong tag, by the most confident one."""
    sureness = []  # probability of the most confident wrong tag; 0 if all are right
    for example, prediction in zip(examples, tagged):
        words = zip(example.label or (), prediction.label, prediction.scores)
        sureness.append(max((score for tag, predicted, score in words if tag != predicted), default=0.0))
    order = np.argsort(-np.array(sureness), kind="stable")[:_KEPT]
    return [_mistake(examples[n], tagged[n], sureness[n]) for n in order.tolist() if sureness[n] > 0]


def _mistake(example: TagExample, prediction: TagPrediction, sureness: float) -> dict[str, Any]:
    labels = example.label or ()
    places = [_places(labels), _places(prediction.label)]
    return {
        "id": example.guid,
        "text_a": example.texts[0],
        "text_b": None,
        "label": _named(example, places[0]),
        "predicted": _named(example, places[1]),
        "confidence": sureness,
        "error": None,
        "marks": list(_marks(example, *places)),
    }


_Places = list[tuple[str, int, int]]  # type, first word and the one after the last


def _places(tags: Sequence[str]) -> _Places:
    """Returns entities; for plain tags, one per word."""
    if schemes.are_of_entities(tags):
        return schemes.entities_of(tags)
    return [(tag, at, at + 1) for at, tag in enumerate(tags) if tag != schemes.OUTSIDE]


def _named(example: TagExample, places: _Places) -> list[str]:
    spans = example.spans
    return [f"{example.texts[0][spans[first][0] : spans[end - 1][1]]}: {kind}" for kind, first, end in places]


def _marks(example: TagExample, labelled: _Places, predicted: _Places) -> Iterator[tuple[int, int, str]]:
    """Yields the spans of true and predicted entities, or both; one of another type counts as predicted."""
    spans = example.spans
    labels, guesses = (_of_words(places, len(spans)) for places in (labelled, predicted))
    for (label, guess), words in itertools.groupby(range(len(spans)), lambda word: (labels[word], guesses[word])):
        if label or guess:
            numbers = list(words)
            mark = "label" if not guess else "both" if label and label[0] == guess[0] else "predicted"
            yield spans[numbers[0]][0], spans[numbers[-1]][1], mark


def _of_words(places: _Places, words: int) -> list[tuple[str, int, int] | None]:
    entity_of_word: list[tuple[str, int, int] | None] = [None] * words
    for entity in places:
        entity_of_word[entity[1] : entity[2]] = [entity] * (entity[2] - entity[1])
    return entity_of_word

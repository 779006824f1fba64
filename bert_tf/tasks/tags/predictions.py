"""Predictions for the words of sentences, for programs and files.

Shapes: E sentences, W words of all of them, L tags.
"""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bert_tf import documents
from bert_tf.features.columns import Array, Features
from bert_tf.features.tags import WORDS
from bert_tf.metrics import probabilities
from bert_tf.tasks.tables import CSV, JSONL
from bert_tf.tasks.tags import decoding, schemes
from bert_tf.tasks.tags.columns import divider
from bert_tf.tasks.tags.example import TagExample
from bert_tf.text_table import cell

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
        return decoding.viterbi(predictions.logits, predictions.lengths, decoding.iob2(labels))
    numbers: npt.NDArray[np.int64] = predictions.logits.argmax(axis=-1)
    return numbers


@dataclasses.dataclass(frozen=True)
class Entity:
    """An entity in a text."""

    type: str  # PER, LOC; empty if tags have no types
    text: str
    start: int  # first character in the text, or in the joined words
    end: int  # exclusive
    first_word: int  # from 0
    end_word: int  # exclusive
    score: float  # tag probability of its least certain word


@dataclasses.dataclass(frozen=True)
class TagPrediction:
    """Prediction for one sentence."""

    id: str
    words: tuple[str, ...]
    label: tuple[str, ...]  # tag of each word, entities in IOB2
    scores: tuple[float, ...]  # probability of each tag
    entities: tuple[Entity, ...]  # in order; empty for plain tags


def listed(
    predictions: TagPredictions, examples: Sequence[TagExample], labels: Sequence[str], *, constrained: bool
) -> list[TagPrediction]:
    numbers = decoded(predictions, labels, constrained=constrained)
    scores = probabilities.softmax(predictions.logits)[np.arange(len(numbers)), numbers].tolist()
    tags, with_entities = [labels[number] for number in numbers], schemes.are_of_entities(labels)
    found, at = [], 0
    for example in examples:
        end = at + len(example.words)
        of_words, sure = tuple(tags[at:end]), tuple(scores[at:end])
        entities = tuple(_entities(example, of_words, sure)) if with_entities else ()
        found.append(TagPrediction(example.guid, example.words, of_words, sure, entities))
        at = end
    return found


def _entities(example: TagExample, tags: Sequence[str], scores: Sequence[float]) -> list[Entity]:
    if all(tag == schemes.OUTSIDE for tag in tags):
        return []
    (text,), spans = example.texts, example.spans
    found = []
    for kind, first, end in schemes.entities_of(tags):
        start, stop = spans[first][0], spans[end - 1][1]
        found.append(Entity(kind, text[start:stop], start, stop, first, end, min(scores[first:end])))
    return found


@dataclasses.dataclass(frozen=True)
class TagLayout:
    """Layout as column files, CSV, or JSON lines.

    A column file repeats the lines of the input, including blank and document lines, with the predicted tag as an
    added column; for sentences without lines, each line is a word and its tag, with a blank line after each sentence.
    """

    labels: Sequence[str]
    constrained: bool  # see `decoded`
    form: str  # key of `tables.FORMATS`

    def header(self) -> str:
        """Only CSV has one."""
        return _csv([["id", "word_number", "word", "tag", "score"]]) if self.form == CSV else ""

    def rows(self, examples: Sequence[TagExample], predictions: TagPredictions) -> str:
        found = listed(predictions, examples, self.labels, constrained=self.constrained)
        if self.form == JSONL:
            return "".join(documents.to_json(_object(*pair), ensure_ascii=False) + "\n" for pair in zip(examples, found))
        if self.form == CSV:
            cells = ((one, zip(one.words, one.label, one.scores)) for one in found)
            return _csv([[one.id, number, *row] for one, rows in cells for number, row in enumerate(rows)])
        return "".join(f"{line}\n" for pair in zip(examples, found) for line in _lines(*pair))


def _lines(example: TagExample, found: TagPrediction) -> list[str]:
    if example.lines or example.before:
        lines = [f"{line.rstrip(' ')}{divider(line)}{tag}" for line, tag in zip(example.lines, found.label)]
        return [*example.before, *lines, *example.after]
    return [*(f"{cell(word)}\t{tag}" for word, tag in zip(found.words, found.label)), ""]


def _object(example: TagExample, found: TagPrediction) -> dict[str, Any]:
    return {
        "id": found.id,
        **({} if example.text is None else {"text": example.text}),
        "tokens": found.words,
        "tags": found.label,
        "scores": found.scores,
        "entities": [dataclasses.asdict(entity) for entity in found.entities],
    }


def _csv(rows: Sequence[Sequence[Any]]) -> str:
    written = io.StringIO()
    csv.writer(written).writerows(rows)
    return written.getvalue()

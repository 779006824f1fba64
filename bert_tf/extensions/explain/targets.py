"""The output that is explained, for each kind of task.

Shapes: N rows of an example, R rows that an output depends on, C points (copies of these rows), L outputs of a place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from bert_tf.errors import FlagError, unknown_name
from bert_tf.extensions.explain.words import SIDES
from bert_tf.features.columns import Array, Features
from bert_tf.fields import TOKEN
from bert_tf.head_spec import CHOICE, CLASSIFICATION, CONTRASTIVE, MULTI_LABEL, REGRESSION, SIMILARITY, SPAN, TAGS


class Case(NamedTuple):
    """A predicted example, and the label and word to explain."""

    features: Features  # its N rows
    prediction: Any  # of `Family.listed`
    labels: Sequence[str]  # of the model
    label: Any = None  # explained label; None for the predicted one
    word: int | None = None  # explained word, of models that tag words


class Target(NamedTuple):
    """An explained output."""

    label: Any  # as in predictions
    rows: Array  # [R] numbers of the rows it depends on
    weights: Array  # [R, ...] factors of the head's output, or [R, 2] of the vectors of both texts


class Explained(NamedTuple):
    """How outputs of a kind are explained."""

    target: Callable[[Case], Target]
    score: Callable[[tf.Tensor, tf.Tensor, tf.Tensor], tf.Tensor]  # from outputs, weights and [C R] points to [C]
    whole_words: bool = False  # the texts that the tokenizer reads are words
    adds_rows: bool = True  # the score is a sum over rows, which can be computed apart


def _weighted_sum(outputs: tf.Tensor, weights: tf.Tensor, points: tf.Tensor) -> tf.Tensor:
    of_rows = tf.reshape(outputs * weights, [tf.shape(points)[0], -1])
    return tf.math.segment_sum(tf.reduce_sum(of_rows, axis=1), points)


def _cosine(vectors: tf.Tensor, weights: tf.Tensor, points: tf.Tensor) -> tf.Tensor:
    sides = [tf.math.segment_sum(vectors * tf.reshape(weights, [-1, 2])[:, n : n + 1], points) for n in range(2)]  # [C, D]
    first, second = (tf.nn.l2_normalize(side, axis=-1) for side in sides)
    return tf.reduce_sum(first * second, axis=-1)


def _of_label(case: Case) -> Target:
    """The label's logit, averaged over the windows of a long text; of several labels, the most probable one."""
    predicted, probabilities = case.prediction.label, case.prediction.probabilities
    label = case.label
    if label is None:  # of several labels, or where the model abstains, the most probable one
        label = predicted if isinstance(predicted, str) else max(probabilities, key=probabilities.get)
    return _mean_of_rows(case, label, _hot(label, case.labels))


def _of_number(case: Case) -> Target:
    _refuse(case, "label")
    return _mean_of_rows(case, case.prediction.label, np.ones(1))


def _mean_of_rows(case: Case, label: Any, of_logits: Array) -> Target:
    _refuse(case, "word")
    rows = np.arange(len(case.features))
    return Target(label, rows, np.tile(of_logits / len(rows), [len(rows), 1]))


def _of_option(case: Case) -> Target:
    """The logit of an option; other options do not change it."""
    from bert_tf.extensions.choice.features import OPTION_IDS  # whose family made the case

    _refuse(case, "word")
    options = case.features.targets[OPTION_IDS.name]  # [N]
    known = [str(number) for number in range(int(options.max()) + 1)]
    option = int(_hot(case.prediction.label if case.label is None else case.label, known).argmax())
    rows = np.flatnonzero(options == option)
    return Target(option, rows, np.full(len(rows), 1 / len(rows)))


def _of_tag(case: Case) -> Target:
    """The logit of a word's tag; by default of the first word with another tag than O."""
    from bert_tf.extensions.tags.features import WORDS  # whose family made the case
    from bert_tf.extensions.tags.predictions import usual

    tags = case.prediction.label
    others = (n for n, tag in enumerate(tags) if tag != case.labels[usual(case.labels)])
    word = next(others, 0) if case.word is None else case.word
    features = case.features
    tokens = np.flatnonzero(features.targets[WORDS.name] == word)
    if not 0 <= word < len(tags) or not len(tokens):
        raise FlagError(f"--word={word}: the model reads {len(tags)} words, counted from 0; give the number of one")
    label = tags[word] if case.label is None else case.label
    ends = np.cumsum(features.lengths)
    row = int(np.searchsorted(ends, tokens[0], side="right"))
    start = int(ends[row] - features.lengths[row])
    weights = np.zeros([1, features.lengths[row], len(case.labels)])
    weights[0, tokens[0] - start] = _hot(label, case.labels)
    return Target(label, np.array([row]), weights)


def _of_answer(case: Case) -> Target:
    """The logits of start and end of the predicted answer, added; both of [CLS] if there is none."""
    from bert_tf.extensions.span import features as spans  # whose family made the case

    _refuse(case, "label")
    _refuse(case, "word")
    answer, features = case.prediction, case.features
    tokens = features.places(TOKEN, np.array([answer.window]))
    begins, ends = (features.targets[name][tokens] for name in (spans.FIRST, spans.AFTER))
    places = [0, 0]
    if answer.start is not None:
        places = [np.flatnonzero(begins == answer.start)[0], np.flatnonzero((begins >= 0) & (ends <= answer.end))[-1]]
    weights = np.zeros([1, len(tokens), len(places)])
    weights[0, places, range(len(places))] = 1
    return Target(answer.label, np.array([answer.window]), weights)


def _of_pair(case: Case) -> Target:
    _refuse(case, "label")
    _refuse(case, "word")
    hot = np.eye(2)[case.features.targets[SIDES]]  # [N, 2]
    return Target(case.prediction.label, np.arange(len(hot)), hot / hot.sum(axis=0))


def _hot(label: Any, labels: Sequence[str]) -> Array:
    if str(label) not in labels:
        raise FlagError(f"--label: {unknown_name('label', str(label), labels)}")
    return np.asarray(np.array(labels) == str(label), np.float64)


def _refuse(case: Case, name: str) -> None:
    if getattr(case, name) is not None:
        raise FlagError(f"--{name}={getattr(case, name)}: this kind of model has none to choose; leave it out")


LABEL = Explained(_of_label, _weighted_sum)
NUMBER = Explained(_of_number, _weighted_sum)
OPTION = Explained(_of_option, _weighted_sum)
TAG = Explained(_of_tag, _weighted_sum, whole_words=True)
ANSWER = Explained(_of_answer, _weighted_sum)
PAIR = Explained(_of_pair, _cosine, adds_rows=False)
EXPLAINED = {  # by kind of model
    CLASSIFICATION: LABEL,
    REGRESSION: NUMBER,
    MULTI_LABEL: LABEL,
    SIMILARITY: PAIR,
    CONTRASTIVE: PAIR,
    SPAN: ANSWER,
    TAGS: TAG,
    CHOICE: OPTION,
}

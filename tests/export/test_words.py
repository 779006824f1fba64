"""Words in the graph are those of the package, of any text."""

from __future__ import annotations

import random

import pytest
import tensorflow as tf

from bert_tf.export.saved_model.words import Text, split
from bert_tf.tasks.tags import words
from tests.tokenization import any_text

tf1 = tf.compat.v1

MARKS = [*words.JOINTS, *words.APOSTROPHES, *"aB1.,-' \u4e2d\u20ac\U0001f600"]
PARTS = [*sorted(words.SHORT), *words.CLITICS, *MARKS, "U.S.", "J.", "1,000", "n't"]


def texts(count, seed):
    rng = random.Random(seed)
    marked = ["".join(rng.choices(PARTS, k=rng.randrange(12))) for _ in range(count)]
    return [*marked, *any_text.texts(count, seed, any_text.vocabulary(seed=1))]


def differences(given):
    with tf.Graph().as_default(), tf1.Session() as session:
        placeholder = tf1.placeholder(tf.string, [None])
        found = session.run(split(Text.of(placeholder)), {placeholder: [text.encode() for text in given]})
    spans = [[] for _ in given]
    for number, start, end in zip(*(column.tolist() for column in found)):
        spans[number].append((start, end))
    return [(text, one, words.split(text)) for text, one in zip(given, spans) if one != words.split(text)]


def test_any_text_has_the_words_of_the_package():
    assert not differences(texts(3000, 5))


@pytest.mark.slow
def test_100_000_texts_have_the_words_of_the_package():
    assert not differences(texts(50_000, 6))

"""Operations of exported graphs: known to other software, and equal to the package's own cuts and words."""

import random

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.batch import graph
from bert_tf.extensions.export.saved_model.characters import Text
from bert_tf.extensions.export.saved_model.rows import CUTS
from bert_tf.extensions.tags import words
from bert_tf.extensions.tags.graph_words import split
from bert_tf.features import long_text
from tests.extensions.engines.models import trained
from tests.tokenization import any_text

pytestmark = pytest.mark.versions

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
        columns = session.run(split(Text.of(placeholder)), {placeholder: [text.encode() for text in given]})
    spans = [[] for _ in given]
    for number, start, end in zip(*(column.tolist() for column in columns)):
        spans[number].append((start, end))
    return [(text, one, words.split(text)) for text, one in zip(given, spans) if one != words.split(text)]


@pytest.mark.parametrize("count", [3000, pytest.param(50_000, marks=pytest.mark.slow)])
def test_any_text_has_the_words_of_the_package(count):
    assert not differences(texts(count, 5))


@pytest.mark.parametrize("name", long_text.CUTS)
def test_cuts_are_those_of_features(name):
    rng = np.random.default_rng(3)
    first, second = (rng.integers(0, 60, 500).astype(np.int32) * (rng.random(500) < 0.9) for _ in range(2))
    limit = rng.integers(1, 40, 500).astype(np.int32)
    wanted = long_text.CUTS[name](*(values.astype(np.int32) for values in (first, second, limit)))
    with tf.Graph().as_default(), tf1.Session() as session:
        windows = session.run(CUTS[name](*(tf.constant(values, tf.int32) for values in (first, second, limit))))
    rows = np.arange(500) if wanted.example_ids is None else wanted.example_ids
    np.testing.assert_array_equal(windows.example_ids, rows)
    for ours, theirs in ((windows.first, wanted.first), (windows.second, wanted.second)):
        np.testing.assert_array_equal([list(span) for span in ours], [list(span) for span in theirs])


@pytest.mark.parametrize("execution", [graph.PACKED, graph.PLAIN], ids=["packed", "plain"])
def test_no_native_kernels(kernels, tmp_path, execution):
    assert kernels.is_loaded()
    model = trained(tmp_path)
    with tf.Graph().as_default() as built:
        graph.compute(model, graph.inputs(model), execution)
    assert "MatMul" in {op.type for op in built.get_operations()}
    assert not [op.type for op in built.get_operations() if op.type.startswith("BertTf")]

from __future__ import annotations

import pytest
import tensorflow as tf

from bert_tf.estimator.describe import log_examples, log_graph
from bert_tf.features import sentences
from bert_tf.tasks.base import MULTI_LABEL, REGRESSION, HeadSpec, SentenceExample
from bert_tf.tasks.labels import encode
from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

tf1 = tf.compat.v1
VOCABULARY = Vocabulary([*SPECIAL_TOKENS, "cat", "##s", "sat"])
PAIR = SentenceExample("train-1", "Cats sat", "cat", "1")
SINGLE = SentenceExample("test-1", "cat")
PAIR_OF_CLASSES = HeadSpec(2)


@pytest.fixture
def logged(caplog):
    caplog.set_level("INFO", logger="absl")
    return lambda: [record.getMessage() for record in caplog.records]


def describe(*examples, head=PAIR_OF_CLASSES, long_text="truncate", **settings):
    features = sentences.build(
        [(example.text_a, example.text_b) for example in examples],
        encode([example.label for example in examples], head, ("0", "1")),
        WordPieceTokenizer(VOCABULARY, lower_case=True),
        max_seq_length=10,
        long_text=long_text,
    )
    log_examples(examples, features, VOCABULARY, max_seq_length=10, **settings)


def test_an_example_is_logged_as_the_published_script_does(logged):
    describe(PAIR)
    assert logged() == [
        "*** Example ***",
        "guid: train-1",
        "tokens: [CLS] cat ##s sat [SEP] cat [SEP]",
        "input_ids: 2 5 6 7 3 5 3 0 0 0",
        "input_mask: 1 1 1 1 1 1 1 0 0 0",
        "segment_ids: 0 0 0 0 0 1 1 0 0 0",
        "label: 1 (id = 1)",
    ]


def test_an_example_to_be_predicted_has_no_label_line(logged):
    describe(SINGLE)
    assert not [line for line in logged() if line.startswith("label")]
    assert "tokens: [CLS] cat [SEP]" in logged()


@pytest.mark.parametrize(
    ("head", "label", "line"),
    [(HeadSpec(1, REGRESSION), 3.8, "label: 3.8"), (HeadSpec(2, MULTI_LABEL), ("1", "0"), "label: ('1', '0')")],
)
def test_labels_that_are_no_class_have_no_id(logged, head, label, line):
    describe(SentenceExample("train-1", "cat", label=label), head=head)
    assert logged()[-1] == line


def test_of_a_text_in_windows_the_first_is_logged(logged):
    describe(SentenceExample("train-1", "cat " * 9 + "sat"), PAIR, long_text="windows")
    assert [line for line in logged() if line.startswith(("guid", "tokens"))] == [
        *("guid: train-1", "tokens: [CLS] cat cat cat cat cat cat cat cat [SEP]"),
        *("guid: train-1", "tokens: [CLS] cat ##s sat [SEP] cat [SEP]"),
    ]


@pytest.mark.parametrize(("count", "shown"), [(0, 0), (2, 2), (5, 3)])
def test_only_the_first_examples_are_logged(logged, count, shown):
    describe(PAIR, SINGLE, PAIR, count=count)
    assert logged().count("*** Example ***") == shown


def test_five_examples_are_logged_by_default(logged):
    describe(*[PAIR] * 7)
    assert logged().count("*** Example ***") == 5


def test_features_and_variables_are_logged_as_the_published_script_does(logged):
    with tf.Graph().as_default():
        features = {"label_ids": tf1.placeholder(tf.int32, [None]), "input_ids": tf1.placeholder(tf.int32, [None, 4])}
        variables = [tf1.get_variable("bert/kernel", [2, 3]), tf1.get_variable("output_bias", [2])]
        log_graph(features, variables, ("bert/kernel",))
    assert logged() == [
        "*** Features ***",
        "  name = input_ids, shape = (?, 4)",
        "  name = label_ids, shape = (?,)",
        "**** Trainable Variables ****",
        "  name = bert/kernel:0, shape = (2, 3), *INIT_FROM_CKPT*",
        "  name = output_bias:0, shape = (2,)",
    ]

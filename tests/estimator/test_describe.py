import pytest
import tensorflow as tf

from bert_tf.estimator.describe import VariablesHook, examples_lines, keep_examples, log_graph, log_writing
from bert_tf.head_spec import MULTI_LABEL, REGRESSION, HeadSpec
from bert_tf.io import log_form
from bert_tf.tasks.base import Limits
from bert_tf.tasks.sentence.family import SentenceFamily
from bert_tf.tasks.sentence.rows import SentenceExample
from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

tf1 = tf.compat.v1
VOCABULARY = Vocabulary([*SPECIAL_TOKENS, "cat", "##s", "sat"])
PAIR = SentenceExample("train-1", "Cats sat", "cat", "1")
PAIR_OF_CLASSES = HeadSpec(2)


@pytest.fixture
def logged(caplog):
    """What the published form of the log says."""
    log_form.choose(log_form.PUBLISHED)
    caplog.set_level("INFO")
    return lambda: caplog.messages


def described(*examples, head=PAIR_OF_CLASSES, long_text="truncate"):
    family = SentenceFamily(("0", "1") if head.kind != REGRESSION else (), head.kind)
    features = family.features(examples, WordPieceTokenizer(VOCABULARY, lower_case=True), Limits(10, long_text))
    return examples_lines(examples, features, VOCABULARY, max_seq_length=10)


def test_an_example_is_described_as_by_the_published_script():
    assert described(PAIR) == [
        "*** Example ***",
        "guid: train-1",
        "tokens: [CLS] cat ##s sat [SEP] cat [SEP]",
        "input_ids: 2 5 6 7 3 5 3 0 0 0",
        "input_mask: 1 1 1 1 1 1 1 0 0 0",
        "segment_ids: 0 0 0 0 0 1 1 0 0 0",
        "label: 1 (id = 1)",
    ]


@pytest.mark.parametrize(
    ("head", "label", "line"),
    [
        (PAIR_OF_CLASSES, None, "segment_ids: 0 0 0 0 0 0 0 0 0 0"),  # an example to be predicted has no label
        (HeadSpec(1, REGRESSION), 3.8, "label: 3.8"),
        (HeadSpec(2, MULTI_LABEL), ("1", "0"), "label: ('1', '0')"),
    ],
)
def test_labels_that_are_no_class_have_no_id(head, label, line):
    assert described(SentenceExample("train-1", "cat", label=label), head=head)[-1] == line


def test_of_a_text_in_windows_the_first_is_described():
    lines = described(SentenceExample("train-1", "cat " * 9 + "sat"), PAIR, long_text="windows")
    assert [line for line in lines if line.startswith(("guid", "tokens"))] == [
        *("guid: train-1", "tokens: [CLS] cat cat cat cat cat cat cat cat [SEP]"),
        *("guid: train-1", "tokens: [CLS] cat ##s sat [SEP] cat [SEP]"),
    ]


@pytest.mark.parametrize(("count", "shown"), [(0, 0), (3, 3), (7, 5)])
def test_only_the_first_five_examples_are_described(count, shown):
    assert described(*[PAIR] * count).count("*** Example ***") == shown


def test_examples_of_a_split_take_the_place_of_its_earlier_ones(tmp_path):
    for split, line in (("train", "guid: 1"), ("dev", "guid: 2"), ("train", "guid: 3")):
        keep_examples(tmp_path, split, ["*** Example ***", line])
    assert (tmp_path / "examples.txt").read_text() == (
        "***** train *****\n*** Example ***\nguid: 3\n***** dev *****\n*** Example ***\nguid: 2\n"
    )


def test_the_published_form_counts_examples_as_they_are_written(logged):
    log_writing(20_001)
    assert logged() == [f"Writing example {number} of 20001" for number in (0, 10_000, 20_000)]


def made_variables():
    return [tf1.get_variable("bert/kernel", [2, 3]), tf1.get_variable("output_bias", [2], tf.float16)]


def test_features_and_variables_are_logged_as_the_published_script_does(logged):
    with tf.Graph().as_default():
        features = {"label_ids": tf1.placeholder(tf.int32, [None]), "input_ids": tf1.placeholder(tf.int32, [None, None])}
        log_graph(features, 4, made_variables(), ("bert/kernel",))
    assert logged() == [
        "*** Features ***",
        "  name = input_ids, shape = (?, 4)",
        "  name = label_ids, shape = (?,)",
        "**** Trainable Variables ****",
        "  name = bert/kernel:0, shape = (2, 3), *INIT_FROM_CKPT*",
        "  name = output_bias:0, shape = (2,)",
    ]


def test_variables_are_in_a_file_with_their_origin(tmp_path):
    with tf.Graph().as_default():
        made_variables()
        VariablesHook(tmp_path, ("bert/kernel",)).begin()
    assert [line.split("\t") for line in (tmp_path / "variables.tsv").read_text().splitlines()] == [
        ["name", "shape", "dtype", "from"],
        ["bert/kernel", "[2, 3]", "float32", "checkpoint"],
        ["output_bias", "[2]", "float16", "random"],
    ]

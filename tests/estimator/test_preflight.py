import dataclasses

import pytest

from bert_tf.checkpoints.reader import CheckpointReader, write_checkpoint
from bert_tf.checkpoints.restore import plan_restore
from bert_tf.config import BertConfig
from bert_tf.errors import PreflightError
from bert_tf.estimator import preflight
from bert_tf.extensions.span.reader import Answer, SpanExample
from bert_tf.extensions.tags.columns import TagExample
from bert_tf.features.batching import Schedule
from bert_tf.tasks.sentence.rows import SentenceExample
from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.tiny import random_weights

UNCASED = Vocabulary([*SPECIAL_TOKENS, "the", "##s"])  # 7 pieces
CASED = Vocabulary([*SPECIAL_TOKENS, "The", "##s"])
CONFIG = BertConfig.tiny()
NO_CAPITALS = "0 of 2 pieces with letters have a capital"


def check_model(vocab_size=7, max_seq_length=16):
    config = BertConfig.tiny(vocab_size=vocab_size)  # 64 positions
    return preflight.check_model(config, UNCASED, max_seq_length=max_seq_length)


def examples(*labels):
    return [SentenceExample(f"train-{i}", "a", label=label) for i, label in enumerate(labels)]


@pytest.mark.parametrize(("vocab_size", "multiple"), [(8, 8), (16, 16), (64, 64), (128, 128)])
def test_a_configuration_may_round_the_vocabulary_up_which_is_said(vocab_size, multiple, caplog):
    with caplog.at_level("INFO", logger="absl"):
        assert check_model(vocab_size) == []
    said = f"the vocabulary has 7 pieces, the configuration says {vocab_size}: treated as padding to a multiple of {multiple}"
    assert caplog.messages == [said]


@pytest.mark.parametrize("vocab_size", [6, 9, 24, 134, 256, 30522])
def test_the_vocabulary_of_another_model_is_named_beside_other_misfits(vocab_size):
    problem, _ = check_model(vocab_size, max_seq_length=65)
    assert problem.startswith(f"the vocabulary has 7 pieces, the configuration says {vocab_size}; take vocab.txt and")


@pytest.mark.parametrize(("length", "fits"), [(5, True), (64, True), (4, False), (65, False), (0, False), (-1, False)])
def test_a_sequence_that_the_model_does_not_know_is_named(length, fits):
    problem = f"--max_seq_length={length} is outside 5 to 64, the lengths the model supports"
    assert check_model(max_seq_length=length) == [problem][fits:]


@pytest.mark.parametrize(
    ("vocabulary", "lower_case", "problem"),
    [
        (CASED, True, "cased (1 of 2 pieces with letters have a capital) but --do_lower_case is on; add --nodo_lower_case"),
        (UNCASED, False, f"uncased ({NO_CAPITALS}) but --do_lower_case is off; drop --nodo_lower_case"),
        (CASED, False, None),
        (UNCASED, True, None),
    ],
)
def test_a_vocabulary_that_does_not_fit_the_text_is_named(vocabulary, lower_case, problem, caplog):
    expected = [f"the vocabulary is {problem}"] if problem else []
    assert preflight.check_casing(vocabulary, lower_case=lower_case) == expected
    assert not caplog.messages


def test_a_vocabulary_whose_signs_disagree_is_warned_of(tmp_path, caplog):
    (tmp_path / "vocab.txt").write_text(UNCASED.to_text())
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    vocabulary = Vocabulary.from_file(tmp_path / "vocab.txt")
    assert preflight.check_casing(vocabulary, lower_case=True) == []
    assert caplog.messages == [
        "--do_lower_case is on, which may not suit the model: " f"{NO_CAPITALS}; tokenizer_config.json says not lower-cased"
    ]


@pytest.mark.parametrize(
    ("changes", "size", "problem"),
    [
        ({}, None, None),
        ({"hidden_size": 16}, None, "have another shape than the configuration says"),
        ({"num_hidden_layers": 3}, None, "16 encoder variables are missing, bert/encoder/layer_2/"),
        *(({}, size, "bert_model.ckpt: damaged at ") for size in (0, 100, 2000)),
    ],
)
def test_a_checkpoint_that_does_not_fit_or_is_torn_is_named(tmp_path, changes, size, problem):
    write_checkpoint(tmp_path / "bert_model.ckpt", random_weights(CONFIG))
    if size is not None:
        data = tmp_path / "bert_model.ckpt.data-00000-of-00001"
        data.write_bytes(data.read_bytes()[:size])
    reader = CheckpointReader(tmp_path / "bert_model.ckpt")
    lines = preflight.check_checkpoint(reader, plan_restore(reader, dataclasses.replace(CONFIG, **changes), ()))
    assert [problem in line for line in lines] == ([True] if problem else [])


SPAN = SpanExample("q", "Who?", "Ann left.", (Answer("Ann", 0),))
FEW = "epochs do not fill a batch of 32"
TAGS = TagExample("s", ("Ann", "left"), ("B-PER", "O"))


@pytest.mark.parametrize(
    ("some", "schedule", "problems"),
    [
        (examples("0", "1"), Schedule(1, 1, 1.0), []),
        # Answers, tags, numbers of options, and that texts belong together, teach something where they are equal.
        *(([one, one], Schedule(5, 1, 1.0), []) for one in (SPAN, TAGS)),
        *((examples(label, label), Schedule(1, 1, 1.0), []) for label in (0, True, None)),
        (examples(*"111"), Schedule(5, 1, 1.0), ["all 3 training examples have the label '1'; nothing can be learned"]),
        (examples(*"01"), Schedule(2, 32, 3.0), [f"2 examples in 3 {FEW}; lower --train_batch_size"]),
        (examples(*"01"), Schedule(2, 32, 0.0), [f"2 examples in 0 {FEW}; raise --num_train_epochs"]),
    ],
)
def test_training_that_could_learn_nothing_is_named(some, schedule, problems):
    assert preflight.check_training(some, schedule) == problems


def test_an_example_that_is_compared_with_none_is_named():
    (problem,) = preflight.check_batch(3, replicas=2, fewest=2)
    assert problem.endswith("leaves single examples, but the loss compares examples; use at least 4")
    assert preflight.check_batch(4, replicas=2, fewest=2) == []


def test_refuse_raises_every_problem_on_its_line():
    assert preflight.refuse([]) is None
    with pytest.raises(PreflightError, match=r"^first\nsecond$") as caught:
        preflight.refuse(["first", "second"])
    assert caught.value.problems == ("first", "second")

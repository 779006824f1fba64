from __future__ import annotations

import dataclasses

import pytest

from bert_tf.checkpoints.reader import CheckpointReader, write_checkpoint
from bert_tf.checkpoints.restore import plan_restore
from bert_tf.config import BertConfig
from bert_tf.errors import PreflightError
from bert_tf.estimator import preflight
from bert_tf.inputs.pipeline import Schedule
from bert_tf.tasks.sentence.example import SentenceExample
from bert_tf.tasks.span.reader import Answer, SpanExample
from bert_tf.tasks.tags.columns import TagExample
from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.tiny import random_weights

UNCASED = Vocabulary([*SPECIAL_TOKENS, "the", "##s"])  # 7 pieces
CASED = Vocabulary([*SPECIAL_TOKENS, "The", "##s"])


def check_model(vocab_size=7, max_seq_length=16):
    config = BertConfig.tiny(vocab_size=vocab_size)  # 64 positions
    return preflight.check_model(config, UNCASED, max_seq_length=max_seq_length)


def check_checkpoint(folder, config, *, size=None):
    """Compares a checkpoint of the tiny model, of `size` bytes where given, with a configuration."""
    write_checkpoint(folder / "bert_model.ckpt", random_weights(BertConfig.tiny()))
    if size is not None:
        data = folder / "bert_model.ckpt.data-00000-of-00001"
        data.write_bytes(data.read_bytes()[:size])
    reader = CheckpointReader(folder / "bert_model.ckpt")
    return preflight.check_checkpoint(reader, plan_restore(reader, config, ()))


def examples(*labels):
    return [SentenceExample(f"train-{i}", "a", label=label) for i, label in enumerate(labels)]


@pytest.mark.parametrize(("vocab_size", "multiple"), [(8, 8), (16, 16), (64, 64), (128, 128)])
def test_a_configuration_may_round_the_vocabulary_up_which_is_said(vocab_size, multiple, caplog):
    with caplog.at_level("INFO", logger="absl"):
        assert check_model(vocab_size) == []
    said = f"the vocabulary has 7 pieces, the configuration says {vocab_size}: taken for padding to a multiple of {multiple}"
    assert caplog.messages == [said]


@pytest.mark.parametrize("vocab_size", [6, 9, 24, 134, 256, 30522])
def test_the_vocabulary_of_another_model_is_named(vocab_size):
    (problem,) = check_model(vocab_size)
    assert problem.startswith(f"the vocabulary has 7 pieces, the configuration says {vocab_size}; take vocab.txt and")


def test_a_cased_vocabulary_with_lower_case_is_named():
    (problem,) = preflight.check_casing(CASED, lower_case=True)
    reason = "1 of 2 pieces with letters have a capital"
    assert problem == f"the vocabulary is cased ({reason}) but --do_lower_case is on; add --nodo_lower_case"


def test_an_uncased_vocabulary_without_lower_case_is_named():
    (problem,) = preflight.check_casing(UNCASED, lower_case=False)
    reason = "0 of 2 pieces with letters have a capital"
    assert problem == f"the vocabulary is uncased ({reason}) but --do_lower_case is off; drop --nodo_lower_case"


@pytest.mark.parametrize(("vocabulary", "lower_case"), [(CASED, False), (UNCASED, True)])
def test_a_vocabulary_that_fits_the_text_is_passed_in_silence(vocabulary, lower_case, caplog):
    assert preflight.check_casing(vocabulary, lower_case=lower_case) == []
    assert not caplog.messages


def test_a_vocabulary_whose_signs_disagree_is_warned_of(tmp_path, caplog):
    (tmp_path / "vocab.txt").write_text(UNCASED.to_text())
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    vocabulary = Vocabulary.from_file(tmp_path / "vocab.txt")
    assert preflight.check_casing(vocabulary, lower_case=True) == []
    assert caplog.messages == [
        "--do_lower_case is on, and it is doubtful whether the model wants that: "
        "0 of 2 pieces with letters have a capital; tokenizer_config.json says not lower-cased"
    ]


@pytest.mark.parametrize("length", [5, 64])
def test_the_shortest_and_the_longest_sequence_fit(length):
    assert check_model(max_seq_length=length) == []


@pytest.mark.parametrize("length", [4, 65, 0, -1])
def test_a_sequence_that_the_model_does_not_know_is_named(length):
    (problem,) = check_model(max_seq_length=length)
    assert problem == f"--max_seq_length={length} is outside 5 to 64, the positions that the model knows"


def test_every_misfit_is_named_at_once():
    assert len(check_model(vocab_size=6, max_seq_length=65)) == 2


def test_a_checkpoint_that_fits_has_no_problems(tmp_path):
    assert check_checkpoint(tmp_path, BertConfig.tiny()) == []


def test_a_checkpoint_of_another_size_is_named(tmp_path):
    wider = dataclasses.replace(BertConfig.tiny(), hidden_size=16)
    (problem,) = check_checkpoint(tmp_path, wider)
    assert "have another shape than the configuration says" in problem


def test_a_checkpoint_with_too_few_layers_is_named(tmp_path):
    deeper = dataclasses.replace(BertConfig.tiny(), num_hidden_layers=3)
    (problem,) = check_checkpoint(tmp_path, deeper)
    assert "16 encoder variables are missing, bert/encoder/layer_2/" in problem


@pytest.mark.parametrize("size", [0, 100, 2000])
def test_a_torn_checkpoint_is_named(tmp_path, size):
    (problem,) = check_checkpoint(tmp_path, BertConfig.tiny(), size=size)
    assert problem.startswith(f"{tmp_path}/bert_model.ckpt: damaged at ")


def test_one_label_only_is_named():
    (problem,) = preflight.check_training(examples("1", "1", "1"), Schedule(5, 1, 1.0))
    assert problem == "all 3 training examples have the label '1'; nothing can be learned"


@pytest.mark.parametrize(
    "example", [SpanExample("q", "Who?", "Ann left.", (Answer("Ann", 0),)), TagExample("s", ("Ann", "left"), ("B-PER", "O"))]
)
def test_answers_and_tags_that_are_the_same_everywhere_can_be_learned(example):
    assert preflight.check_training([example, example], Schedule(5, 1, 1.0)) == []


def test_an_example_that_is_compared_with_none_is_named():
    (problem,) = preflight.check_batch(3, replicas=2, fewest=2)
    assert problem.endswith("leaves an example alone, where the loss compares it with others; make it 4 at least")
    assert preflight.check_batch(4, replicas=2, fewest=2) == []


def test_no_step_is_named():
    (problem,) = preflight.check_training(examples("0", "1"), Schedule(2, 32, 3.0))
    assert problem == "2 examples in 3 epochs do not fill a batch of 32; lower --train_batch_size"
    (problem,) = preflight.check_training(examples("0", "1"), Schedule(2, 32, 0.0))
    assert problem == "2 examples in 0 epochs do not fill a batch of 32; raise --num_train_epochs"


def test_two_labels_and_a_step_are_enough():
    assert preflight.check_training(examples("0", "1"), Schedule(1, 1, 1.0)) == []


def test_refuse_raises_every_problem_on_its_line():
    with pytest.raises(PreflightError, match=r"^first\nsecond$") as caught:
        preflight.refuse(["first", "second"])
    assert caught.value.problems == ("first", "second")


def test_refuse_lets_a_run_without_problems_pass():
    assert preflight.refuse([]) is None


@pytest.mark.parametrize("label", [0, True, None])
def test_equal_labels_teach_something_where_they_are_numbers_of_options_or_say_that_texts_belong_together(label):
    assert preflight.check_training(examples(label, label), Schedule(1, 1, 1.0)) == []

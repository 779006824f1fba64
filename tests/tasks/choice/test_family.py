from __future__ import annotations

import json
import math

import numpy as np
import pytest

from bert_tf.features.columns import Features
from bert_tf.tasks.base import Limits
from bert_tf.tasks.choice.family import ChoiceFamily
from bert_tf.tasks.choice.reader import ChoiceExample
from tests.features.test_sentences import TOKENIZER

FAMILY = ChoiceFamily()
EXAMPLES = [
    ChoiceExample("a", "It rained.", "Then", ("it stopped.", "he sang.", "dogs\tbarked."), 1),
    ChoiceExample("b", "Who?", "", ("he", "she"), 0),
    ChoiceExample("c", "Who else?", "", ("he", "she"), 0),
]
LOGITS = [np.array([0.0, math.log(2), 0.0]), np.array([0.0, math.log(3)]), np.array([5.0, 0.0])]


def test_rows_become_the_logits_of_each_question():
    features = FAMILY.features(EXAMPLES, TOKENIZER, Limits(16))
    found = FAMILY.predictions({"logits": np.arange(7, dtype=np.float32)}, features, EXAMPLES)
    assert [part.tolist() for part in found] == [[0, 1, 2], [3, 4], [5, 6]]


def test_the_logits_of_windows_are_averaged():
    example = ChoiceExample("a", "the cat sat . the", "", ("cat", "sat"), 0)
    features: Features = FAMILY.features([example], TOKENIZER, Limits(6, "windows"))
    of_option = features.targets["option_ids"]
    assert np.bincount(of_option).min() > 1
    logits = np.where(of_option == 0, 1.0, 2.0) + np.where(np.diff(of_option, prepend=-1) == 1, 1.0, 0.0)
    (found,) = FAMILY.predictions({"logits": logits.astype(np.float32)}, features, [example])
    np.testing.assert_allclose(found, [1, 2] + 1 / np.bincount(of_option))


def test_metrics_and_loss_are_those_of_questions():
    found = FAMILY.evaluation(LOGITS, EXAMPLES)
    assert found.metrics == {"accuracy": 2 / 3}
    expected = (math.log(2) + math.log(4) + math.log(1 + math.exp(-5))) / 3
    assert found.loss == pytest.approx(expected)
    low, high = found.intervals["accuracy"]
    assert low < 2 / 3 < high
    assert found.collapsed is None


def test_always_the_same_option_is_said():
    first = [np.array([1.0, 0.0, 0.0]), np.array([1.0, 0.0]), np.array([1.0, 0.0])]
    assert FAMILY.evaluation(first, EXAMPLES).collapsed == "all predictions are option 0"


def test_panels_tell_numbers_of_options_apart():
    by_options, by_words = FAMILY.evaluation(LOGITS, EXAMPLES).panels
    assert by_options.rows == [("2", 2, 0.5, 0.5), ("3", 1, 1.0, pytest.approx(1 / 3))]
    assert by_words.rows == [("0 to 15", 3, pytest.approx(2 / 3), pytest.approx(4 / 9))]


def test_groups_of_lengths_begin_at_their_first_number_and_count_context_and_question():
    lengths = [(15, 0), (15, 1), (1, 30), (16, 16), (512, 0)]
    examples = [ChoiceExample("a", "a " * words, "b " * more, ("he", "she"), 0) for words, more in lengths]
    _, by_words = FAMILY.evaluation([np.array([1.0, 0.0])] * 5, examples).panels
    assert [row[:2] for row in by_words.rows] == [("0 to 15", 1), ("16 to 31", 2), ("32 to 63", 1), ("from 512", 1)]


def test_mistakes_show_question_right_option_and_the_chosen_one():
    (wrong,) = FAMILY.mistakes(LOGITS, EXAMPLES)
    shown = {"id": "b", "text_a": "Who?", "text_b": None, "label": "he", "predicted": "she"}
    assert wrong == {**shown, "confidence": pytest.approx(0.75)}


def test_predictions_have_the_probability_of_each_option():
    layout = FAMILY.layout("tsv")
    lines = [line.split("\t") for line in (layout.header() + layout.rows(EXAMPLES, LOGITS)).splitlines()]
    assert lines[0] == ["id", "label", "option", "probability", "probabilities"]
    assert lines[1][:3] == ["a", "1", "he sang."]
    np.testing.assert_allclose([float(value) for value in lines[1][4].split(" ")], [0.25, 0.5, 0.25])


def test_json_has_a_list_of_probabilities():
    line = json.loads(FAMILY.layout("jsonl").rows(EXAMPLES, LOGITS).splitlines()[1])
    assert (line["label"], line["option"]) == (1, "she")
    np.testing.assert_allclose(line["probabilities"], [0.25, 0.75])

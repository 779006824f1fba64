"""Entities that are found and missed, by hand and beside seqeval."""

from __future__ import annotations

import numpy as np
import pytest
from seqeval.metrics import f1_score, precision_score, recall_score
from seqeval.scheme import IOB2
from sklearn.metrics import f1_score as of_classes

from bert_tf.tasks.tags import predictions
from bert_tf.tasks.tags.columns import TagExample
from bert_tf.tasks.tags.evaluation import evaluate
from bert_tf.tasks.tags.predictions import TagPredictions
from bert_tf.tasks.tags.schemes import labels_of, to_iob2

LABELS = labels_of(["B-LOC", "B-ORG", "B-PER"])
PLAIN = ("NN", "DT", "VB")


def sentences(tags, labels):
    """Returns examples with tags, written with blanks between them."""
    split = [tuple(of_one.split()) for of_one in tags]
    words = [tuple(f"w{place}" for place in range(len(of_one))) for of_one in split]
    assert all(tag in labels for of_one in split for tag in of_one)
    return [TagExample(f"dev-{n}", of_one, label) for n, (of_one, label) in enumerate(zip(words, split))]


def predicted(tags, labels, *, margin=4.0):
    """Returns predictions whose greedy decoding is the tags."""
    lengths = np.array([len(of_one.split()) for of_one in tags])
    numbers = [labels.index(tag) for of_one in tags for tag in of_one.split()]
    return TagPredictions(np.eye(len(labels), dtype=np.float32)[numbers] * margin, np.ones(len(numbers), bool), lengths)


def measured(there, found, labels=LABELS, **settings):
    return evaluate(predicted(found, labels), sentences(there, labels), labels, constrained=False, **settings)


def panel(evaluation, title):
    (found,) = (one for one in evaluation.panels if one.title == title)
    return {row[0]: row[1:] for row in found.rows}


THERE = ["B-PER I-PER O B-LOC O", "B-ORG O B-LOC I-LOC I-LOC", "B-PER O O B-ORG", "O O"]
FOUND = ["B-PER I-PER O B-ORG O", "O O B-LOC I-LOC O", "I-PER O O I-LOC", "B-LOC O"]


def test_entities_count_where_they_are_whole():
    values = measured(THERE, FOUND).metrics
    assert values["entity_precision"] == pytest.approx(2 / 6)  # B-PER I-PER and, not strictly, I-PER
    assert values["entity_recall"] == pytest.approx(2 / 6)
    assert values["entity_f1_strict"] == pytest.approx(2 * 1 / (6 + 4))
    assert values["token_accuracy"] == pytest.approx(10 / 16)


def test_errors_are_of_five_kinds():
    wrong = panel(measured(THERE, FOUND), "Errors by kind")
    assert {kind: row[0] for kind, row in wrong.items()} == {
        "missed": 1,
        "invented": 1,
        "wrong type": 2,
        "wrong border": 1,
        "wrong type and border": 0,
    }
    assert wrong["wrong border"][1:] == ["LOC 1", "w2 w3 w4 (LOC) → w2 w3 (LOC)"]
    assert wrong["invented"][2] == "nothing → w0 (LOC)"


def test_a_prediction_that_overlaps_with_another_type_is_wrong_in_both():
    wrong = panel(measured(["B-PER I-PER O"], ["O B-LOC I-LOC"]), "Errors by kind")
    assert wrong["wrong type and border"][2] == "w0 w1 (PER) → w1 w2 (LOC)"
    assert wrong["invented"][0] == wrong["missed"][0] == 0


def test_types_have_scores_of_their_own():
    rows = {row.label: row for row in measured(THERE, FOUND).scores}
    assert rows["PER"][1:] == (1.0, 1.0, 1.0, 2)
    assert rows["LOC"][1:] == (0.0, 0.0, 0.0, 2)


def test_f1_by_length_of_sentence():
    rows = panel(measured([*THERE, "B-PER" + " O" * 10], [*FOUND, "B-PER" + " O" * 10]), "By length of sentence")
    assert rows == {"1 to 5": [4, 6, pytest.approx(1 / 3)], "11 to 20": [1, 1, 1.0]}


def random_tags(random, sizes):
    return [" ".join(random.choice(LABELS, size)) for size in sizes]


def test_figures_are_those_of_seqeval():
    random = np.random.default_rng(3)
    sizes = random.integers(1, 20, 200)
    found = random_tags(random, sizes)
    there = [" ".join(to_iob2(tags.split())) for tags in random_tags(random, sizes)]
    there[::2] = [" ".join(to_iob2(tags.split())) for tags in found[::2]]  # else nearly none is right
    values = measured(there, found).metrics
    sequences = [tags.split() for tags in there], [tags.split() for tags in found]
    assert values["entity_f1"] == pytest.approx(f1_score(*sequences))
    assert values["entity_precision"] == pytest.approx(precision_score(*sequences))
    assert values["entity_recall"] == pytest.approx(recall_score(*sequences))
    assert values["entity_f1_strict"] == pytest.approx(f1_score(*sequences, mode="strict", scheme=IOB2))


def test_plain_tags_have_accuracy_and_macro_f1():
    there, found = ["NN DT VB VB", "DT"], ["NN DT VB NN", "NN"]
    evaluation = measured(there, found, PLAIN)
    expected = of_classes(" ".join(there).split(), " ".join(found).split(), average="macro")
    assert evaluation.metrics == {"token_accuracy": pytest.approx(3 / 5), "macro_f1": pytest.approx(expected)}
    assert [panel.title for panel in evaluation.panels] == ["Most frequent confusions", "By length of sentence"]


def test_intervals_hold_the_value_and_narrow_with_more_sentences():
    few, many = (measured(THERE * times, FOUND * times).intervals["entity_f1"] for times in (5, 50))
    assert few[0] < many[0] < 1 / 3 < many[1] < few[1]


def test_the_gain_of_constrained_decoding_is_shown():
    examples = sentences(["B-PER I-PER O"], LABELS)
    guess = predicted(["B-PER I-LOC O"], LABELS)
    guess.logits[1, LABELS.index("I-PER")] = 3.0
    greedy, constrained = (evaluate(guess, examples, LABELS, constrained=way) for way in (False, True))
    assert (greedy.metrics["entity_f1"], constrained.metrics["entity_f1"]) == (0.0, 1.0)
    for one in (greedy, constrained):
        assert one.details()["decoding"] == {
            "each word by itself": {"entity_f1": 0.0, "entity_f1_strict": 0.0, "illegal_tags": 1},
            "constrained": {"entity_f1": 1.0, "entity_f1_strict": 1.0, "illegal_tags": 0},
        }


def test_the_loss_is_a_mean_over_words_that_were_read():
    guess = predicted(["O O O"], LABELS, margin=0.0)
    guess.logits[2] = 50.0 * np.eye(len(LABELS))[1]
    guess.read[2] = False
    assert evaluate(guess, sentences(["O O O"], LABELS), LABELS, constrained=False).loss == pytest.approx(np.log(len(LABELS)))


def test_what_learned_nothing_is_said():
    assert measured(THERE, ["O " * len(tags.split()) for tags in THERE]).collapsed == "no entity is predicted"
    assert "the most frequent tag alone gives 2" in measured(["NN NN DT"], ["NN NN NN"], PLAIN).collapsed
    assert measured(THERE, THERE).collapsed is None


def test_mistakes_are_marked_in_the_text():
    examples = sentences(THERE, LABELS)
    found = predictions.listed(predicted(FOUND, LABELS), examples, LABELS, constrained=False)
    worst = {one["id"]: one for one in predictions.most_confident(examples, found)}
    assert set(worst) == {"dev-0", "dev-1", "dev-2", "dev-3"}
    assert worst["dev-1"]["label"] == ["w0: ORG", "w2 w3 w4: LOC"]
    assert worst["dev-1"]["predicted"] == ["w2 w3: LOC"]
    assert worst["dev-1"]["marks"] == [(0, 2, "label"), (6, 11, "both"), (12, 14, "label")]
    assert worst["dev-0"]["marks"] == [(0, 5, "both"), (9, 11, "predicted")]
    assert worst["dev-3"]["marks"] == [(0, 2, "predicted")]

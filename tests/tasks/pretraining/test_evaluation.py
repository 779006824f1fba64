"""Masked accuracy, loss, perplexity and next sentences, computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bert_tf.features.columns import Features
from bert_tf.tasks.pretraining.evaluation import evaluate, most_confident_mistakes, of_outputs
from bert_tf.tasks.pretraining.rows import DOCUMENTS, FIELDS, PretrainingExample, text_of
from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary

VOCABULARY = Vocabulary((*SPECIAL_TOKENS, "the", "cat", "s", "##at", "sat"))
ROWS = [  # what is read, what is masked where, what the model says there, with which probability, label of the pair
    ("[CLS] the [MASK] sat [SEP]", {2: ("cat", "cat", 0.5)}, 0),
    ("[CLS] [MASK] s sat [SEP]", {1: ("the", "sat", 0.9), 2: ("s", "s", 0.25), 3: ("##at", "the", 0.3)}, 1),
]
TRUE = (0.5, 0.01, 0.25, 0.1)  # probabilities of the masked words


def ids(text):
    return VOCABULARY.ids(text.split())


@pytest.fixture
def predictions():
    masks = [mask for _, masks, _ in ROWS for mask in masks.items()]
    features = Features(
        token_ids=np.array([number for text, *_ in ROWS for number in ids(text)], np.int32),
        lengths=np.array([len(text.split()) for text, *_ in ROWS], np.int32),
        first_lengths=np.array([2, 2], np.int32),
        targets={
            "masked_lm_positions": np.array([place for place, _ in masks], np.int32),
            "masked_lm_ids": np.array([VOCABULARY.id(word) for _, (word, *_) in masks], np.int32),
            "next_sentence_labels": np.array([label for *_, label in ROWS], np.int32),
            "documents": np.array([0, 1], np.int32),
        },
        fields=(*FIELDS, DOCUMENTS),
        slots=np.array([len(masks) for _, masks, _ in ROWS], np.int32),
    )
    outputs = {
        "masked_lm_log_probs": np.log(TRUE).astype(np.float32),
        "masked_lm_top_ids": np.array([[VOCABULARY.id(said), 0] for _, (_, said, _) in masks]),
        "masked_lm_top_log_probs": np.log([[sure, 0.001] for _, (*_, sure) in masks]).astype(np.float32),
        "next_sentence_logits": np.array([[2.0, 0.0], [1.0, 0.0]], np.float32),
    }
    return of_outputs(outputs, features)


def test_metrics_are_those_of_the_hand(predictions):
    found = evaluate(predictions, VOCABULARY)
    loss = -sum(map(math.log, TRUE)) / 4
    pairs = (math.log1p(math.exp(-2.0)) + math.log1p(math.exp(1.0))) / 2
    assert found.metrics == pytest.approx(
        {
            "masked_lm_accuracy": 0.5,
            "masked_lm_loss": loss,
            "perplexity": math.exp(loss),
            "next_sentence_accuracy": 0.5,
            "next_sentence_loss": pairs,
        }
    )
    assert found.loss == pytest.approx(loss + pairs)
    assert found.examples == 2
    assert found.collapsed is None


def test_tables_tell_what_was_read(predictions):
    by_seen, by_piece = (panel.rows for panel in evaluate(predictions, VOCABULARY).panels)
    assert [row[:3] for row in by_seen] == [("[MASK]", 2, 0.5), ("the word itself", 1, 1.0), ("another word", 1, 0.0)]
    assert [row[:3] for row in by_piece] == [("beginning of a word", 3, pytest.approx(2 / 3)), ("rest of a word (##)", 1, 0.0)]


def test_intervals_draw_whole_documents(predictions):
    low, high = evaluate(predictions, VOCABULARY).intervals["masked_lm_loss"]
    assert low == pytest.approx(-math.log(0.5), rel=1e-4)  # the document that is easier
    assert high == pytest.approx(-sum(map(math.log, TRUE[1:])) / 3, rel=1e-4)


def test_rows_of_one_document_alone_do_not_tell_how_documents_vary(predictions):
    predictions.features.targets["documents"][:] = 0
    assert evaluate(predictions, VOCABULARY).intervals == {}


def test_a_model_that_says_one_word_has_learned_nothing(predictions):
    predictions.best_ids[:, 0] = VOCABULARY.id("the")
    assert evaluate(predictions, VOCABULARY).collapsed == "every masked word is predicted as 'the'"


def test_the_surest_mistakes_come_first_in_their_text(predictions):
    examples = [PretrainingExample("dev-0", ()), PretrainingExample("dev-1", ("[CLS]", "the", "s", "##at", "[SEP]"))]
    surest, other = most_confident_mistakes(predictions, examples, VOCABULARY)
    assert (surest["label"], surest["predicted"], surest["confidence"]) == ("the", "sat", pytest.approx(0.9))
    assert (surest["text_a"], surest["marks"]) == ("the sat [SEP]", [(0, 3, "label")])
    assert (other["id"], other["label"], other["marks"]) == ("dev-1", "##at", [(5, 7, "label")])


def test_a_row_that_pads_the_table_of_words_is_named_by_its_number(predictions):
    predictions.best_ids[:, 0] = 12
    assert evaluate(predictions, VOCABULARY).collapsed == "every masked word is predicted as '[12]'"
    examples = [PretrainingExample("dev", ("[CLS]", "the", "s", "##at", "[SEP]"))] * 2
    assert {mistake["predicted"] for mistake in most_confident_mistakes(predictions, examples, VOCABULARY)} == {"[12]"}


def test_pieces_of_a_word_are_joined():
    assert text_of(("##s", "s", "##at", ".")) == ("s sat .", [(0, 1), (2, 3), (3, 5), (6, 7)])

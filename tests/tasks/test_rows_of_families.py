"""Rows in memory of the families beside sentences."""

from __future__ import annotations

import numpy as np
import pytest

import bert_tf
from bert_tf.errors import DataError, FlagError

QUESTION = {"question": "Who left?", "context": "Ann left early.", "answer": "Ann"}
OPTIONS = {"context": "It rains.", "question": "", "options": ["We swim.", "We stay in."], "answer": 1}


def test_questions_have_the_settings_of_the_flags():
    task = bert_tf.SpanTask(train=[QUESTION], doc_stride=64)
    assert (task.family.doc_stride, task.family.n_best_size) == (64, 20)
    (example,) = task.examples("", "train")
    assert (example.label, example.texts) == (("Ann",), ("Who left?", "Ann left early."))
    with pytest.raises(FlagError, match="--doc_stride=0: expected at least 1"):
        bert_tf.SpanTask(train=[QUESTION], doc_stride=0)


def test_a_question_without_an_answer_wants_the_setting():
    with pytest.raises(DataError, match="train: row 0: the question has no answer; --version_2_with_negative"):
        bert_tf.SpanTask(train=[{**QUESTION, "answer": ""}])
    (example,) = bert_tf.SpanTask(train=[{**QUESTION, "answer": ""}], version_2_with_negative=True).examples("", "train")
    assert example.label == ()


def test_tags_are_those_of_training_in_iob2():
    rows = [(["Ann", "left", "Rome"], ["I-PER", "O", "U-LOC"])]
    task = bert_tf.TagTask(train=iter(rows), dev=rows)
    assert task.family.labels == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
    assert task.examples("", "dev")[0].label == ("B-PER", "O", "B-LOC")
    assert bert_tf.TagTask(train=[(["a", "b", "c"], ["X", "Y", "Y"])]).family.labels == ("Y", "X")


def test_tags_that_tell_nothing_apart_are_refused():
    with pytest.raises(DataError, match="train: every word has the tag 'O'; there is nothing to tell apart: give labels="):
        bert_tf.TagTask(train=[(["a"], ["O"])])
    with pytest.raises(DataError, match="train: row 1: 2 words and 1 tags"):
        bert_tf.TagTask(train=[(["a"], ["B-X"]), (["a", "b"], ["O"])])
    with pytest.raises(FlagError, match="labels='O,B-X': give a list of names"):
        bert_tf.TagTask(train=[(["a"], ["B-X"])], labels="O,B-X")


def test_options_are_numbered_lettered_or_named():
    rows = [{**OPTIONS, "answer": answer} for answer in (1, np.int64(1), "B", "We stay in.")]
    assert [example.label for example in bert_tf.ChoiceTask(train=rows).examples("", "train")] == [1, 1, 1, 1]


def test_pairs_have_scores_or_belong_together():
    scored = bert_tf.SimilarityTask(train=[("He left.", "He went.", 4.5)], highest_score=5)
    assert scored.examples("", "train")[0].label == 4.5
    with pytest.raises(DataError, match="the label 4.5 is outside 0 to 1"):
        bert_tf.SimilarityTask(train=[("He left.", "He went.", 4.5)])
    together = bert_tf.ContrastiveTask(train=[("Who left?", "Ann did.")], temperature=0.1)
    assert together.family.head.options == (("temperature", 0.1),)


def test_what_scores_and_cosines_are_divided_by_is_positive():
    with pytest.raises(FlagError, match="--temperature=0: expected at least 0.001"):
        bert_tf.ContrastiveTask(train=[("Who left?", "Ann did.")], temperature=0)
    with pytest.raises(FlagError, match="--highest_score=0: expected at least 0.001"):
        bert_tf.SimilarityTask(train=[("He left.", "He went.", 0)], highest_score=0)

"""Padding of columns to batches."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from bert_tf.features.spec import SENTENCE_FIELDS, Field, SentenceFeatures


def features(**changes) -> SentenceFeatures:
    """Three examples: a pair, a single text, and a pair again."""
    columns = {
        "token_ids": [*(2, 11, 3, 12, 13, 3), *(2, 14, 3), *(2, 15, 16, 3, 17, 3)],
        "lengths": [6, 3, 6],
        "first_lengths": [3, 3, 4],
        "label_ids": [1, 0, 2],
        **changes,
    }
    return SentenceFeatures(**{name: np.array(column, np.int32) for name, column in columns.items()})


def batch(rows, tokens, name):
    return features().batch(np.array(rows), tokens)[name].tolist()


def test_length_is_the_number_of_examples():
    assert len(features()) == 3


def test_ids_are_padded_with_zero_at_the_end():
    assert batch([0, 1], 7, "input_ids") == [[2, 11, 3, 12, 13, 3, 0], [2, 14, 3, 0, 0, 0, 0]]


def test_mask_is_one_on_tokens_and_zero_on_padding():
    assert batch([0, 1], 7, "input_mask") == [[1, 1, 1, 1, 1, 1, 0], [1, 1, 1, 0, 0, 0, 0]]


def test_segments_are_one_on_the_second_text_only():
    assert batch([0, 1, 2], 7, "segment_ids") == [[0, 0, 0, 1, 1, 1, 0], [0] * 7, [0, 0, 0, 0, 1, 1, 0]]


def test_labels_stay_with_their_rows():
    assert batch([2, 0], 6, "label_ids") == [2, 1]


def test_rows_come_in_the_order_asked_for_and_as_often():
    assert batch([1, 2, 1], 6, "input_ids") == [[2, 14, 3, 0, 0, 0], [2, 15, 16, 3, 17, 3], [2, 14, 3, 0, 0, 0]]


def test_batch_may_be_as_long_as_its_longest_example():
    assert batch([1], 3, "input_ids") == [[2, 14, 3]]


def test_longer_example_is_refused():
    with pytest.raises(ValueError, match="a row has 6 tokens, the batch is padded to 5"):
        features().batch(np.array([1, 2]), 5)


def test_batch_of_no_rows_is_empty():
    assert features().batch(np.array([], np.int64), 4)["input_ids"].shape == (0, 4)


@pytest.mark.parametrize("field", SENTENCE_FIELDS, ids=lambda field: field.name)
def test_batch_has_the_declared_shapes_in_int32(field):
    array = features().batch(np.array([0, 2]), 8)[field.name]
    assert (array.shape, array.dtype) == (field.shape(2, 8), np.int32)


def test_batch_has_the_declared_fields_and_no_others():
    assert list(features().batch(np.array([0]), 6)) == [field.name for field in SENTENCE_FIELDS]


@pytest.mark.parametrize(("per_token", "expected"), [(True, (None, 8)), (False, (None,))])
def test_shape_may_leave_a_size_open(per_token, expected):
    assert Field("x", per_token=per_token).shape(None, 8) == expected


def test_columns_make_the_features_again():
    original = features()
    again = SentenceFeatures.from_columns(original.columns(), truncated=4)
    assert again.truncated == 4
    assert {k: v.tolist() for k, v in again.columns().items()} == {k: v.tolist() for k, v in original.columns().items()}


@pytest.mark.parametrize(
    ("labels", "field"),
    [
        (np.array([1, 0, 2], np.int32), Field("label_ids", per_token=False)),
        (np.array([1.5, 0, 2], np.float32), Field("label_ids", per_token=False, dtype=np.float32)),
        (np.eye(3, 5, dtype=np.float32), Field("label_ids", per_token=False, dtype=np.float32, width=5)),
    ],
)
def test_fields_tell_the_kind_of_label(labels, field):
    labelled = dataclasses.replace(features(), label_ids=labels)
    assert labelled.fields == (*SENTENCE_FIELDS[:-1], field)
    found = labelled.batch(np.array([2, 0]), 6)["label_ids"]
    assert (found.shape, found.dtype) == (field.shape(2, 6), field.dtype)
    np.testing.assert_array_equal(found, labels[[2, 0]])


def test_rows_are_examples_where_nothing_else_is_said():
    assert features().examples == 3
    assert features().first_rows.tolist() == [0, 1, 2]
    assert "example_ids" not in features().columns()


def test_several_rows_may_be_of_one_example():
    windows = features(example_ids=[0, 0, 1])
    assert (len(windows), windows.examples) == (3, 2)
    assert windows.first_rows.tolist() == [0, 2]
    assert SentenceFeatures.from_columns(windows.columns(), truncated=0).example_ids.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    "changes",
    [
        {"label_ids": [1, 0]},
        {"first_lengths": [3, 3, 4, 4]},
        {"lengths": [6, 3, 5]},
        {"example_ids": [0, 1]},
        {"lengths": [6, 3, 6, 1], "first_lengths": [3, 3, 4, 1]},
    ],
)
def test_columns_of_different_lengths_are_refused(changes):
    with pytest.raises(ValueError, match="columns of different lengths"):
        features(**changes)


@pytest.mark.parametrize("first_lengths", [[3, 4, 4], [0, 3, 4], [-1, 3, 4]])
def test_first_segment_beyond_its_example_is_refused(first_lengths):
    with pytest.raises(ValueError, match="a first segment is longer than its example, or empty"):
        features(first_lengths=first_lengths)

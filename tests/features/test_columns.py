"""Padding of columns to batches."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from bert_tf.features.columns import Features, ranges
from bert_tf.fields import INPUTS, ROW, SLOT, SLOTS, TOKEN, Field
from tests.labelled import relabelled

LABEL = Field("label_ids")
TAGS = Field("tags", TOKEN, padding=-1)
PLACES, HOT = Field("places", SLOT), Field("hot", SLOT, np.float32, width=2)


def features(**changes) -> Features:
    """Three examples: a pair, a single text, and a pair again."""
    columns = {
        "token_ids": [*(2, 11, 3, 12, 13, 3), *(2, 14, 3), *(2, 15, 16, 3, 17, 3)],
        "lengths": [6, 3, 6],
        "first_lengths": [3, 3, 4],
        "label_ids": [1, 0, 2],
        **changes,
    }
    arrays = {name: np.array(column, np.int32) for name, column in columns.items()}
    return Features.from_columns(arrays, [LABEL], truncated=0)


def tagged(**changes) -> Features:
    """The same with a tag for each token, and 2, 0 and 1 slots."""
    targets = {
        "tags": np.arange(15, dtype=np.int32),
        "places": np.array([4, 1, 2], np.int32),
        "hot": np.array([[0, 1], [1, 0], [1, 1]], np.float32),
    }
    columns = {"targets": targets, "fields": (TAGS, PLACES, HOT), "slots": np.array([2, 0, 1], np.int32), **changes}
    return dataclasses.replace(features(), **columns)


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


@pytest.mark.parametrize("field", [*INPUTS, LABEL], ids=lambda field: field.name)
def test_batch_has_the_declared_shapes_in_int32(field):
    array = features().batch(np.array([0, 2]), 8)[field.name]
    assert (array.shape, array.dtype) == (field.shape(2, 8), np.int32)


def test_batch_has_the_declared_fields_and_no_others():
    assert list(features().batch(np.array([0]), 6)) == [field.name for field in (*INPUTS, LABEL)]


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        (Field("x"), (None,)),
        (Field("x", ROW, width=5), (None, 5)),
        (Field("x", TOKEN), (None, 8)),
        (Field("x", SLOT, width=2), (None, 3, 2)),
    ],
)
def test_shape_may_leave_a_size_open(field, expected):
    assert field.shape(None, 8, 3) == expected


@pytest.mark.parametrize("original", [features(), tagged()], ids=["rows", "tokens and slots"])
def test_columns_make_the_features_again(original):
    again = Features.from_columns(original.columns(), original.fields, truncated=4)
    assert again.truncated == 4
    assert {k: v.tolist() for k, v in again.columns().items()} == {k: v.tolist() for k, v in original.columns().items()}


@pytest.mark.parametrize(
    "labels",
    [np.array([1, 0, 2], np.int32), np.array([1.5, 0, 2], np.float32), np.eye(3, 5, dtype=np.float32)],
)
def test_labels_of_any_kind_stay_with_their_rows(labels):
    labelled = relabelled(features(), labels)
    found = labelled.batch(np.array([2, 0]), 6)["label_ids"]
    assert (found.shape, found.dtype) == (labelled.fields[0].shape(2, 6), labels.dtype)
    np.testing.assert_array_equal(found, labels[[2, 0]])


def test_values_of_tokens_are_padded_with_the_padding_of_their_field():
    found = tagged().batch(np.array([1, 0]), 7)["tags"]
    assert found.tolist() == [[6, 7, 8, -1, -1, -1, -1], [0, 1, 2, 3, 4, 5, -1]]


def test_values_of_slots_are_padded_to_the_row_with_most():
    found = tagged().batch(np.array([1, 2, 0]), 6)
    assert found[SLOTS.name].tolist() == [0, 1, 2]
    assert found["places"].tolist() == [[0, 0], [2, 0], [4, 1]]
    assert found["hot"].tolist() == [[[0, 0], [0, 0]], [[1, 1], [0, 0]], [[0, 1], [1, 0]]]


def test_a_batch_without_slots_has_none():
    assert tagged().batch(np.array([1]), 6)["places"].shape == (1, 0)


@pytest.mark.parametrize("field", tagged().batch_fields, ids=lambda field: field.name)
def test_a_batch_has_the_declared_shapes_on_every_axis(field):
    array = tagged().batch(np.array([0, 2]), 8)[field.name]
    assert (array.shape, array.dtype) == (field.shape(2, 8, 2), field.dtype)


@pytest.mark.parametrize(
    ("axis", "places"),
    [(ROW, [2, 0]), (TOKEN, [9, 10, 11, 12, 13, 14, 0, 1, 2, 3, 4, 5]), (SLOT, [2, 0, 1])],
)
def test_places_are_where_the_values_of_rows_lie(axis, places):
    assert tagged().places(axis, np.array([2, 0])).tolist() == places


def test_an_empty_column_has_room_for_the_values_of_all_rows():
    shapes = {field.name: tagged().empty(field).shape for field in (LABEL, TAGS, HOT)}
    assert shapes == {"label_ids": (3,), "tags": (15,), "hot": (3, 2)}


def test_a_row_weighs_one_where_nothing_else_is_said():
    assert features().weight(np.array([0, 2])) == 2
    weighed = dataclasses.replace(features(), weights=np.array([5, 0, 3], np.int32))
    assert weighed.weight(np.array([0, 1, 2, 2])) == 11


def test_ranges_follow_each_other():
    assert ranges(np.array([7, 3, 0]), np.array([2, 0, 3])).tolist() == [7, 8, 0, 1, 2]


def test_rows_are_examples_where_nothing_else_is_said():
    assert features().examples == 3
    assert features().first_rows.tolist() == [0, 1, 2]
    assert "example_ids" not in features().columns()


def test_several_rows_may_be_of_one_example():
    windows = features(example_ids=[0, 0, 1])
    assert (len(windows), windows.examples) == (3, 2)
    assert windows.first_rows.tolist() == [0, 2]
    assert Features.from_columns(windows.columns(), [LABEL], truncated=0).example_ids.tolist() == [0, 0, 1]


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


@pytest.mark.parametrize("slots", [np.array([2, 0, 2], np.int32), np.array([2, 1], np.int32)])
def test_slots_and_their_values_belong_together(slots):
    with pytest.raises(ValueError, match="columns of different lengths"):
        tagged(slots=slots)


def test_values_of_slots_without_slots_are_refused():
    with pytest.raises(ValueError, match="rows have no slots"):
        tagged(slots=None)


def test_targets_are_those_that_fields_declare():
    with pytest.raises(ValueError, match="targets and their fields differ"):
        tagged(fields=(TAGS,))


@pytest.mark.parametrize("first_lengths", [[3, 4, 4], [0, 3, 4], [-1, 3, 4]])
def test_first_segment_beyond_its_example_is_refused(first_lengths):
    with pytest.raises(ValueError, match="a first segment is longer than its row, or empty"):
        features(first_lengths=first_lengths)


def together(rows=(3, 1, 2)) -> Features:
    """Examples of so many rows each, which stay together; row i has i + 1 tokens and the label i."""
    lengths = np.arange(1, sum(rows) + 1, dtype=np.int32)
    return Features(
        token_ids=np.repeat(lengths, lengths),
        lengths=lengths,
        first_lengths=np.ones_like(lengths),
        targets={"label_ids": lengths - 1},
        fields=(LABEL,),
        example_ids=np.repeat(np.arange(len(rows)), rows).astype(np.int32),
        together=True,
    )


def test_units_are_rows_unless_rows_stay_together():
    assert (features().units, together().units) == (3, 3)
    assert features().unit_lengths.tolist() == [6, 3, 6]
    assert features().rows_of(np.array([2, 0])).tolist() == [2, 0]


def test_rows_of_a_unit_follow_each_other():
    assert together().unit_rows.tolist() == [3, 1, 2]
    assert together().unit_lengths.tolist() == [3, 4, 6]
    assert together().rows_of(np.array([2, 0, 2])).tolist() == [4, 5, 0, 1, 2, 4, 5]


def test_a_batch_says_which_rows_belong_together():
    found = together()
    batch = found.batch(found.rows_of(np.array([2, 0, 2])), 6)
    assert batch["groups"].tolist() == [0, 0, 1, 1, 1, 2, 2]
    assert batch["label_ids"].tolist() == [4, 5, 0, 1, 2, 4, 5]
    assert [field.name for field in found.batch_fields] == list(batch)


def test_the_loss_has_a_term_for_each_unit():
    assert together().weight(together().rows_of(np.array([2, 0]))) == 2


def test_what_lies_beside_batches_stays_out_of_them():
    offsets = Field("offsets", TOKEN, in_batches=False)
    found = tagged(targets={"tags": np.zeros(15, np.int32), "offsets": np.arange(15, dtype=np.int32)}, fields=(TAGS, offsets))
    assert "offsets" not in found.batch(np.array([0]), 6)
    assert offsets not in found.batch_fields
    assert found.columns()["offsets"].tolist() == list(range(15))


def test_examples_that_add_nothing_are_known():
    assert features().weightless.tolist() == []
    weights = np.array([0, 1, 0, 0, 0, 1], np.int32)
    assert dataclasses.replace(together(), weights=weights).weightless.tolist() == [1]

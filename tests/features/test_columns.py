"""Padding of columns to batches."""

import dataclasses

import numpy as np
import pytest

from bert_tf.features.columns import Features
from bert_tf.fields import INPUTS, SLOT, SLOTS, TOKEN, Field

LONGEST = [2, 15, 16, 3, 17, 3]
LABEL = Field("label_ids")
TAGS = Field("tags", TOKEN, padding=-1)
PLACES, HOT = Field("places", SLOT), Field("hot", SLOT, np.float32, width=2)


def features(**changes) -> Features:
    """Three examples: a pair, a single text, and a pair again."""
    columns = {
        "token_ids": [*(2, 11, 3, 12, 13, 3), *(2, 14, 3), *LONGEST],
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


@pytest.mark.parametrize(
    ("rows", "tokens", "expected"),
    [
        (
            [0, 1],
            7,
            {
                "input_ids": [[2, 11, 3, 12, 13, 3, 0], [2, 14, 3, 0, 0, 0, 0]],
                "input_mask": [[1, 1, 1, 1, 1, 1, 0], [1, 1, 1, 0, 0, 0, 0]],
                "segment_ids": [[0, 0, 0, 1, 1, 1, 0], [0] * 7],
                "label_ids": [1, 0],
            },
        ),
        # Rows come in the order asked for and as often.
        ([2, 1, 2], 6, {"input_ids": [LONGEST, [2, 14, 3, 0, 0, 0], LONGEST], "label_ids": [2, 0, 2]}),
        ([1], 3, {"input_ids": [[2, 14, 3]]}),  # as long as the longest example
        ([], 4, {"input_ids": [], "label_ids": []}),
    ],
)
def test_batches_are_padded_at_the_end(rows, tokens, expected):
    with pytest.raises(ValueError, match="a row has 6 tokens, the batch is padded to 5"):
        features().batch(np.array([1, 2]), 5)
    batch = features().batch(np.array(rows, np.int64), tokens)
    assert {name: batch[name].tolist() for name in expected} == expected
    assert list(batch) == [field.name for field in (*INPUTS, LABEL)]
    for field in (*INPUTS, LABEL):
        assert (batch[field.name].shape, batch[field.name].dtype) == (field.shape(len(rows), tokens), np.int32)


@pytest.mark.parametrize("original", [features(), tagged()], ids=["rows", "tokens and slots"])
def test_columns_make_the_features_again(original):
    again = Features.from_columns(original.columns(), original.fields, truncated=4)
    assert again.truncated == 4
    assert {k: v.tolist() for k, v in again.columns().items()} == {k: v.tolist() for k, v in original.columns().items()}


def test_values_of_tokens_and_slots_are_padded_and_what_lies_beside_batches_stays_out():
    assert tagged().batch(np.array([1, 0]), 7)["tags"].tolist() == [[6, 7, 8, -1, -1, -1, -1], [0, 1, 2, 3, 4, 5, -1]]
    batch = tagged().batch(np.array([1, 2, 0]), 6)  # to the row with most slots
    assert batch[SLOTS.name].tolist() == [0, 1, 2]
    assert batch["places"].tolist() == [[0, 0], [2, 0], [4, 1]]
    assert batch["hot"].tolist() == [[[0, 0], [0, 0]], [[1, 1], [0, 0]], [[0, 1], [1, 0]]]
    assert tagged().batch(np.array([1]), 6)["places"].shape == (1, 0)
    for field in tagged().batch_fields:
        array = tagged().batch(np.array([0, 2]), 8)[field.name]
        assert (array.shape, array.dtype) == (field.shape(2, 8, 2), field.dtype)
    offsets = Field("offsets", TOKEN, in_batches=False)
    batch = tagged(targets={"tags": np.zeros(15, np.int32), "offsets": np.arange(15, dtype=np.int32)}, fields=(TAGS, offsets))
    assert "offsets" not in batch.batch(np.array([0]), 6)
    assert offsets not in batch.batch_fields
    assert batch.columns()["offsets"].tolist() == list(range(15))


def test_a_row_weighs_one_where_nothing_else_is_said_and_examples_that_add_nothing_are_known():
    assert features().weight(np.array([0, 2])) == 2
    weighed = dataclasses.replace(features(), weights=np.array([5, 0, 3], np.int32))
    assert weighed.weight(np.array([0, 1, 2, 2])) == 11
    assert features().weightless.tolist() == []
    weights = np.array([0, 1, 0, 0, 0, 1], np.int32)
    assert dataclasses.replace(together(), weights=weights).weightless.tolist() == [1]
    assert (len(features()), features().examples, features().first_rows.tolist()) == (3, 3, [0, 1, 2])
    assert "example_ids" not in features().columns()
    windows = features(example_ids=[0, 0, 1])
    assert (len(windows), windows.examples, windows.first_rows.tolist()) == (3, 2, [0, 2])
    assert Features.from_columns(windows.columns(), [LABEL], truncated=0).example_ids.tolist() == [0, 0, 1]


LENGTHS = "columns of different lengths"


@pytest.mark.parametrize(
    ("make", "changes", "problem"),
    [
        (features, {"label_ids": [1, 0]}, LENGTHS),
        (features, {"first_lengths": [3, 3, 4, 4]}, LENGTHS),
        (features, {"lengths": [6, 3, 5]}, LENGTHS),
        (features, {"example_ids": [0, 1]}, LENGTHS),
        (features, {"lengths": [6, 3, 6, 1], "first_lengths": [3, 3, 4, 1]}, LENGTHS),
        (tagged, {"slots": np.array([2, 0, 2], np.int32)}, LENGTHS),
        (tagged, {"slots": np.array([2, 1], np.int32)}, LENGTHS),
        (tagged, {"slots": None}, "rows have no slots"),
        (tagged, {"fields": (TAGS,)}, "targets and their fields differ"),
        *((features, {"first_lengths": [first, 3, 4]}, "a first segment is longer") for first in (7, 0, -1)),
    ],
)
def test_columns_that_do_not_belong_together_are_refused(make, changes, problem):
    with pytest.raises(ValueError, match=problem):
        make(**changes)


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


def test_rows_that_stay_together_do_so_after_others():
    both = together((1, 1)).followed_by(together())
    alone = dataclasses.replace(together((1, 1)), example_ids=None, together=False).followed_by(together())
    assert (both.units, alone.units, alone.unit_rows.tolist()) == (5, 5, [1, 1, 3, 1, 2])


def test_units_are_rows_unless_rows_stay_together():
    assert (features().units, features().unit_lengths.tolist()) == (3, [6, 3, 6])
    assert features().rows_of(np.array([2, 0])).tolist() == [2, 0]
    grouped = together()
    assert (grouped.units, grouped.unit_rows.tolist(), grouped.unit_lengths.tolist()) == (3, [3, 1, 2], [3, 4, 6])
    rows = grouped.rows_of(np.array([2, 0, 2]))
    assert rows.tolist() == [4, 5, 0, 1, 2, 4, 5]
    assert grouped.weight(grouped.rows_of(np.array([2, 0]))) == 2  # the loss has a term for each unit
    batch = grouped.batch(rows, 6)
    assert batch["groups"].tolist() == [0, 0, 1, 1, 1, 2, 2]
    assert batch["label_ids"].tolist() == rows.tolist()
    assert [field.name for field in grouped.batch_fields] == list(batch)

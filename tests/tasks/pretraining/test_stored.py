"""Rows with masks of their epochs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from bert_tf.tasks.base import TRAIN
from bert_tf.tasks.on_disk import Opening
from bert_tf.tasks.pretraining.opening import SplitFiles
from bert_tf.tasks.pretraining.rows import StoredRows
from bert_tf.tasks.pretraining.settings import PretrainingSettings
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer
from tests import texts
from tests.tiny import TOKENS


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    text = texts.write(folder / "text.txt", texts.documents(20))
    opening = Opening(WordPieceTokenizer(Vocabulary(TOKENS), lower_case=True), 24, folder)
    return SplitFiles(TRAIN, TRAIN, PretrainingSettings(input_file=str(text))).opened(opening).rows


def masked(rows, units, epochs):
    """Returns what the model reads of each row, and what it is to find there."""
    features = rows.drawn(np.array(units), np.array(epochs)).features
    batch = features.batch(np.arange(len(units)), 24)
    return [
        (ids.tolist(), places[:count].tolist(), words[:count].tolist())
        for ids, places, words, count in zip(
            batch["input_ids"], batch["masked_lm_positions"], batch["masked_lm_ids"], batch["slots"]
        )
    ]


def test_a_mask_is_a_function_of_epoch_and_row_alone(rows):
    alone = [masked(rows, [unit], [epoch])[0] for unit, epoch in ((4, 0), (9, 1), (4, 1))]
    assert masked(rows, [4, 9, 4], [0, 1, 1]) == alone
    assert masked(rows, [9, 4], [1, 0]) == [alone[1], alone[0]]
    assert alone[0] != alone[2]


def test_masked_words_put_back_are_the_row(rows):
    for unit, (ids, places, words) in enumerate(masked(rows, range(8), [0] * 8)):
        for place, word in zip(places, words):
            ids[place] = word
        pieces = rows.example(unit, "train").pieces
        assert [TOKENS[number] for number in ids[: len(pieces)]] == list(pieces)


def test_room_for_masks_does_not_grow_with_their_bound_alone(rows):
    roomy = dataclasses.replace(rows._masking, max_predictions_per_seq=1 << 60)
    drawn = StoredRows(rows._stored, roomy, longest=24, digest="").drawn(np.arange(6), np.zeros(6, int)).features
    np.testing.assert_array_equal(drawn.token_ids, rows.drawn(np.arange(6), np.zeros(6, int)).features.token_ids)


def test_rows_weigh_their_masked_words(rows):
    features = rows.drawn(np.arange(6), np.zeros(6, int)).features
    assert features.weight(np.arange(6)) == features.slots.sum() > 6
    assert rows.batch_fields == features.batch_fields


def test_first_segments_end_behind_the_first_separator(rows):
    features = rows.drawn(np.arange(6), np.zeros(6, int)).features
    for unit, first in enumerate(features.first_lengths):
        assert rows.example(unit, "train").pieces.index("[SEP]") == first - 1

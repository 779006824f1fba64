"""Masks: what they cover, how often, and that nothing but seed, epoch and row decides on them; a random order."""

import itertools

import numpy as np
import pytest

from bert_tf.extensions.pretrain.corpus.masking import Masking
from bert_tf.extensions.pretrain.corpus.shards import RandomOrder

ROWS, TOKENS = 4000, 32


@pytest.fixture
def batch(tokenizer):
    """[CLS] A [SEP] B [SEP] with padding; pieces of words and their rests at random, also where a segment begins."""
    vocabulary = tokenizer.vocabulary
    draw = np.random.default_rng(2)
    ids = draw.integers(6, len(vocabulary), [ROWS, TOKENS]).astype(np.int32)
    lengths = draw.integers(5, TOKENS + 1, ROWS)
    ids[:, 0] = vocabulary.cls_id
    ids[np.arange(ROWS), lengths - 1] = vocabulary.sep_id
    ids[np.arange(ROWS), lengths // 2] = vocabulary.sep_id
    mask = (np.arange(TOKENS) < lengths[:, None]).astype(np.int32)
    return ids * mask, mask


def is_within(share, expected, count):
    return abs(share - expected) < 3 * np.sqrt(expected * (1 - expected) / count)


@pytest.mark.parametrize("whole_words", [False, True])
def test_shares(batch, tokenizer, whole_words):
    ids, mask = batch
    vocabulary = tokenizer.vocabulary
    masked = Masking(vocabulary, whole_words=whole_words)(ids, mask, rows=np.arange(ROWS))
    real = np.arange(masked.positions.shape[1]) < masked.slots[:, None]
    seen = np.take_along_axis(masked.input_ids, masked.positions, axis=1)[real]
    true, count = masked.ids[real], int(real.sum())
    assert is_within((seen == vocabulary.mask_id).mean(), 0.8, count)
    same, pieces = (seen == true).mean(), len(vocabulary) - 6
    assert is_within(same, 0.1 + 0.1 / pieces, count)  # a random piece may be the true one
    if not whole_words:  # of whole words those that do not fit are left out, which short rows feel
        wanted = np.maximum(mask.sum(axis=1) * 0.15, 1).sum()
        assert abs(count - wanted) < 3 * np.sqrt(ROWS) / 2


@pytest.mark.parametrize("masking", [{}, {"whole_words": True}, {"probability": 0.9, "max_predictions_per_seq": 99}])
def test_masks_hold_the_true_pieces_and_no_special_piece_is_masked_or_drawn(batch, tokenizer, masking):
    ids, mask = batch
    vocabulary = tokenizer.vocabulary
    masked = Masking(vocabulary, **masking)(ids, mask, rows=np.arange(ROWS))
    real = np.arange(masked.ids.shape[1]) < masked.slots[:, None]
    assert (np.diff(masked.positions, axis=1)[real[:, 1:]] > 0).all()
    assert not masked.positions[~real].any()
    assert not masked.ids[~real].any()
    row = np.nonzero(real)[0]
    restored = masked.input_ids.copy()
    restored[row, masked.positions[real]] = masked.ids[real]
    assert (restored == ids).all()
    special = np.isin(ids, [vocabulary.cls_id, vocabulary.sep_id]) | (mask == 0)
    assert not special[row, masked.positions[real]].any()
    drawn = masked.input_ids[(masked.input_ids != ids) & (masked.input_ids != vocabulary.mask_id)]
    assert drawn.min() == 6  # after the special ones and [unused0]


def test_whole_words_are_masked_whole_and_a_rest_at_the_start_of_a_segment_is_one(batch, tokenizer):
    ids, mask = batch
    drawn = Masking(tokenizer.vocabulary, 0.3, whole_words=True)(ids, mask, rows=np.arange(ROWS))
    for row in range(0, ROWS, 7):
        masked, word = set(drawn.positions[row, : drawn.slots[row]].tolist()), set()
        for place, piece in enumerate([*(tokenizer.vocabulary.tokens[number] for number in ids[row]), "[SEP]"]):
            if not (piece.startswith("##") and word):
                assert len(masked & word) in (0, len(word))
                word = set()
            word |= set() if piece in ("[CLS]", "[SEP]", "[PAD]") else {place}
    assert (drawn.slots <= np.ceil(mask.sum(axis=1) * 0.3)).all()
    few = Masking(tokenizer.vocabulary, 0.5, max_predictions_per_seq=3)(*batch, rows=np.arange(ROWS))
    assert (few.slots.max(), few.positions.shape) == (3, (ROWS, 3))
    pieces = "[CLS] ##b ##c a [SEP] ##d e ##f [SEP] [PAD]".split()
    ids = np.array([tokenizer.vocabulary.ids(pieces)] * 2000, np.int32)
    mask = (ids != 0).astype(np.int32)
    mask[:, 0] = 1
    drawn = Masking(tokenizer.vocabulary, 0.25, whole_words=True)(ids, mask, rows=np.arange(2000))
    groups = {tuple(row[:slots]) for row, slots in zip(drawn.positions.tolist(), drawn.slots)}
    of_two = {(1, 2), (3, 5), (6, 7)}
    assert groups == of_two | {(1, 2, 3), (1, 2, 5), (3, 6, 7), (5, 6, 7)}


@pytest.mark.parametrize("whole_words", [False, True])
def test_nothing_but_seed_epoch_and_row_decides(batch, tokenizer, whole_words):
    ids, mask = batch
    masking = Masking(tokenizer.vocabulary, whole_words=whole_words)
    whole = masking(ids[:100], mask[:100], rows=np.arange(100), epoch=3)
    order = np.array([70, 3, 42])
    part = masking(ids[order], mask[order], rows=order, epoch=3)
    assert (part.input_ids == whole.input_ids[order]).all()
    assert (part.slots == whole.slots[order]).all()
    wide = masking(np.pad(ids[order], [(0, 0), (0, 9)]), np.pad(mask[order], [(0, 0), (0, 9)]), rows=order, epoch=3)
    assert (wide.input_ids[:, :TOKENS] == part.input_ids).all()
    assert (masking(ids[order], mask[order], rows=order, epoch=4).input_ids != part.input_ids).any()
    assert (masking(ids[order], mask[order], rows=order + 1, epoch=3).input_ids != part.input_ids).any()
    other = Masking(tokenizer.vocabulary, whole_words=whole_words, seed=1)
    assert (other(ids[order], mask[order], rows=order, epoch=3).input_ids != part.input_ids).any()


def test_a_random_order_has_each_number_once_and_tears_neighbours_apart():
    for size, seed in itertools.product([1, 2, 3, 5, 16, 17, 1000], [0, 12345, -1]):
        assert sorted(RandomOrder(size, seed)(np.arange(size))) == list(range(size))
    order, whole = RandomOrder(10_000, 3), np.arange(10_000)
    shuffled = order(whole)
    assert order(np.array([999, 3])).tolist() == shuffled[[999, 3]].tolist()
    assert (shuffled != RandomOrder(10_000, 2)(whole)).mean() > 0.98
    assert abs(np.corrcoef(shuffled, whole)[0, 1]) < 0.05
    assert abs(np.corrcoef(shuffled[1:], shuffled[:-1])[0, 1]) < 0.05

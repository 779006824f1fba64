from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from bert_tf.checkpoints import mean
from bert_tf.checkpoints.reader import write_checkpoint
from bert_tf.errors import CheckpointError

TABLE = np.random.default_rng(1).normal(size=(6, 3)).astype(np.float32)
BIAS = np.arange(6, dtype=np.float32)
OTHER = np.ones((6, 3), np.float32)
ENTRIES = {
    "bert/embeddings/word_embeddings": TABLE,
    "bert/embeddings/position_embeddings": OTHER,
    "cls/predictions/output_bias": BIAS,
    "cls.predictions.decoder.weight": TABLE,
}
PIECES = {1: [2, 3, 3], 6: [0, 5], 7: [4]}
KEPT = [0, 2, 3, 4, 5]


def checkpoint(folder, number, **entries):
    entries = {"bert/w": np.full(2, number, np.float32), "global_step": np.int64(number), **entries}
    write_checkpoint(folder / f"model.ckpt-{number}", entries)
    return str(folder / f"model.ckpt-{number}")


@pytest.mark.parametrize(
    ("shares", "expected"), [(None, 3.0), ([1, 0, 3], 4.75), ([1e308, 1e308, 1e308], 3.0), ([1e-320, 1e-320, 1e-320], 3.0)]
)
def test_only_the_ratio_of_shares_counts(tmp_path, shares, expected):
    found = mean.of([checkpoint(tmp_path, number) for number in (1, 2, 6)], shares)
    assert (found["bert/w"].tolist(), found["bert/w"].dtype, found["global_step"]) == ([expected] * 2, np.float32, 6)


def test_the_mean_of_one_has_its_bits(tmp_path):
    value = np.array([-0.0, 0.1], np.float32)
    assert mean.of([checkpoint(tmp_path, 1, **{"bert/w": value})])["bert/w"].tobytes() == value.tobytes()


def test_is_computed_in_float64(tmp_path):
    # In float32 the sum of 2^24 and 1 is 2^24.
    large, one = np.float32(2**24), np.float32(1.0)
    names = [checkpoint(tmp_path, number, **{"bert/w": value}) for number, value in enumerate((large, one, one))]
    assert mean.of(names)["bert/w"] == np.float32((2**24 + 2) / 3)


def test_what_only_training_needs_is_left_out(tmp_path):
    names = [checkpoint(tmp_path, n, **{"bert/w/adam_m": np.ones(2), "bert/w/ema": np.ones(2)}) for n in (1, 3)]
    assert mean.of(names).keys() == {"bert/w", "global_step"}


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ({"bert/w": np.ones(3, np.float32)}, r"model.ckpt-2: bert/w is \[3\], in .*/model.ckpt-1 \[2\]"),
        ({"bert/v": np.ones(1, np.float32)}, "has other weights than .*/model.ckpt-1: bert/v only in .*/model.ckpt-2"),
        ({"bert/w": np.array([np.nan, 1], np.float32)}, "model.ckpt-2: weights that are NaN or infinite: bert/w"),
        ({"bert/w": np.ones(2, np.int32)}, "model.ckpt-2: weights that are not floating-point numbers"),
    ],
)
def test_other_models_have_no_mean(tmp_path, entries, said):
    with pytest.raises(CheckpointError, match=said):
        mean.of([checkpoint(tmp_path, 1), checkpoint(tmp_path, 2, **entries)])


def test_new_rows_are_the_mean_of_their_pieces():
    done = mean.with_new_rows(ENTRIES, PIECES)
    table, bias = done["bert/embeddings/word_embeddings"], done["cls/predictions/output_bias"]
    np.testing.assert_allclose(table[1], (TABLE[2] + 2 * TABLE[3]) / 3, rtol=1e-6)
    np.testing.assert_allclose(table[6], (TABLE[0] + TABLE[5]) / 2, rtol=1e-6)
    np.testing.assert_array_equal(table[7], TABLE[4])
    np.testing.assert_allclose(bias[[1, 6, 7]], [8 / 3, 2.5, 4])
    # Other rows and arrays are the same bits; copies of the table are left out.
    assert table[KEPT].tobytes() == TABLE[KEPT].tobytes()
    assert bias[KEPT].tobytes() == BIAS[KEPT].tobytes()
    assert done["bert/embeddings/position_embeddings"] is OTHER
    assert "cls.predictions.decoder.weight" not in done


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16])
def test_the_type_stays(kind):
    done = mean.with_new_rows({mean.WORD_TABLE: np.ones((2, 3), kind)}, {2: [0, 1]})
    assert done[mean.WORD_TABLE].dtype == kind
    assert (done[mean.WORD_TABLE] == 1).all()


def test_rows_for_padding_of_the_table_are_used_before_it_grows():
    assert mean.with_new_rows({mean.WORD_TABLE: TABLE}, {5: [0]})[mean.WORD_TABLE].shape == TABLE.shape

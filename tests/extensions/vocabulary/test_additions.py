import ml_dtypes
import numpy as np
import pytest

from bert_tf.extensions.vocabulary.additions import WORD_TABLE, with_new_rows

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


def test_new_rows_are_the_mean_of_their_pieces():
    done = with_new_rows(ENTRIES, PIECES)
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
    done = with_new_rows({WORD_TABLE: np.ones((2, 3), kind)}, {2: [0, 1]})
    assert done[WORD_TABLE].dtype == kind
    assert (done[WORD_TABLE] == 1).all()


def test_rows_for_padding_of_the_table_are_used_before_it_grows():
    assert with_new_rows({WORD_TABLE: TABLE}, {5: [0]})[WORD_TABLE].shape == TABLE.shape

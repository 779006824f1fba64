import numpy as np
import pytest

from bert_tf.checkpoints.reader import write_checkpoint
from bert_tf.errors import CheckpointError
from bert_tf.extensions.average import mean


def checkpoint(folder, number, **entries):
    entries = {"bert/w": np.full(2, number, np.float32), "global_step": np.int64(number), **entries}
    write_checkpoint(folder / f"model.ckpt-{number}", entries)
    return str(folder / f"model.ckpt-{number}")


@pytest.mark.parametrize(
    ("shares", "expected"), [(None, 3.0), ([1, 0, 3], 4.75), ([1e308, 1e308, 1e308], 3.0), ([1e-320, 1e-320, 1e-320], 3.0)]
)
def test_only_the_ratio_of_shares_counts(tmp_path, shares, expected):
    means = mean.mean_weights([checkpoint(tmp_path, number) for number in (1, 2, 6)], shares)
    assert (means["bert/w"].tolist(), means["bert/w"].dtype, means["global_step"]) == ([expected] * 2, np.float32, 6)


def test_the_mean_of_one_has_its_bits(tmp_path):
    value = np.array([-0.0, 0.1], np.float32)
    assert mean.mean_weights([checkpoint(tmp_path, 1, **{"bert/w": value})])["bert/w"].tobytes() == value.tobytes()


def test_is_computed_in_float64(tmp_path):
    # In float32 the sum of 2^24 and 1 is 2^24.
    large, one = np.float32(2**24), np.float32(1.0)
    names = [checkpoint(tmp_path, number, **{"bert/w": value}) for number, value in enumerate((large, one, one))]
    assert mean.mean_weights(names)["bert/w"] == np.float32((2**24 + 2) / 3)


def test_what_only_training_needs_is_left_out(tmp_path):
    names = [checkpoint(tmp_path, n, **{"bert/w/adam_m": np.ones(2), "bert/w/ema": np.ones(2)}) for n in (1, 3)]
    assert mean.mean_weights(names).keys() == {"bert/w", "global_step"}


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
        mean.mean_weights([checkpoint(tmp_path, 1), checkpoint(tmp_path, 2, **entries)])

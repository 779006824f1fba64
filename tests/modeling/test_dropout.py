import numpy as np
import pytest
import tensorflow as tf

from bert_tf.modeling.execution import Dropout, no_dropout
from tests.graphs import evaluate

SHAPE = (100, 150)
TYPES = [tf.float32, tf.bfloat16, tf.float16]


def masks(*rates, shape=SHAPE, seed=1, step=5, dtype=tf.float32, **numbers):
    """Returns what a step multiplies elements with, call by call; `numbers` are those of replica and micro-batch."""

    def build():
        dropout = Dropout(seed, tf.constant(step, tf.int64), **numbers)
        return [dropout.mask(tf.constant(shape), rate, dtype) for rate in rates]

    return evaluate(build)


def mask(rate=0.3, **options):
    return masks(rate, **options)[0]


@pytest.mark.parametrize("dtype", [tf.bfloat16, tf.float16])
@pytest.mark.parametrize("rate", [0.003, 0.1, 0.25, 0.5, 0.9])
def test_in_half_precision_the_numbers_next_to_the_scale_have_it_as_their_mean(rate, dtype):
    scale = 65536 / (65536 - round(rate * 65536))
    drawn = mask(rate, dtype=dtype, shape=(1 << 20,)).astype(np.float64)
    kept = drawn[drawn > 0]
    step = float(np.spacing(dtype.as_numpy_dtype(scale)))
    assert np.abs(kept - scale).max() < step
    assert kept.mean() == pytest.approx(scale, abs=4 * step / 2 / np.sqrt(len(kept)) + step / 65536)
    np.testing.assert_array_equal(drawn == 0, mask(rate, shape=(1 << 20,)) == 0)  # what float32 drops


@pytest.mark.parametrize("rate", [0.1, 0.25, 0.5, 0.9])
def test_drops_its_share_and_keeps_the_mean_by_one_other_number(rate):
    values = mask(rate)
    deviation = np.sqrt(rate * (1 - rate) / values.size)
    assert set(values.ravel().tolist()) == {0, float(np.float32(65536 / (65536 - round(rate * 65536))))}
    assert (values == 0).mean() == pytest.approx(rate, abs=4 * deviation)
    assert values.mean() == pytest.approx(1, abs=4 * deviation / (1 - rate))


def test_a_rate_is_kept_to_its_last_bit():
    drawn = mask(65535 / 65536, shape=(1 << 20,))
    assert 4 <= (drawn == 65536).sum() <= 32  # one of 65536 levels stays, 16 are expected
    assert (drawn != 0).sum() == (drawn == 65536).sum()


@pytest.mark.parametrize("shape", [(1,), (3,), (5, 1), (2, 3, 7), (4, 4), (0, 3)], ids=str)
def test_sizes_need_not_be_multiples_of_four(shape):
    assert mask(shape=shape).shape == shape


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 2},
        {"step": 6},
        {"step": 5 + (1 << 20)},
        {"replica": 1},
        {"replica": 1, "seed": 0},
        {"seed": 2, "step": 4},
        {"micro_batch": 1},
        {"micro_batch": 1, "replica": 1},
        {"micro_batch": 1, "seed": 0},
    ],
    ids=str,
)
def test_masks_are_independent_of_those_of_another(change):
    differing = (mask() != mask(**change)).mean()
    assert differing == pytest.approx(2 * 0.3 * 0.7, abs=0.02)


def test_neighbours_are_dropped_independently():
    dropped = mask().ravel() == 0  # four neighbours come out of one random number
    for distance in (1, 2, 3, 4):
        both = (dropped[distance:] & dropped[:-distance]).mean()
        assert both == pytest.approx(0.3**2, abs=0.01)


def test_what_is_drawn_later_continues_where_the_stream_was():
    def build():
        dropout = Dropout(1, tf.constant(5, tf.int64))
        first = dropout.mask(tf.constant(SHAPE), 0.3, tf.float32)
        later = dropout.after(first)
        streams = (dropout, later)
        return [[stream.mask(tf.constant(SHAPE), rate, tf.float32) for rate in (0.3, 0.5)] for stream in streams]

    drawn, again = evaluate(build)
    np.testing.assert_array_equal(again, drawn)
    np.testing.assert_array_equal(drawn, masks(0.3, 0.3, 0.5)[1:])


def test_what_is_drawn_later_waits():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        event = tf.compat.v1.placeholder(tf.float32, [])
        drawn = Dropout(1, tf.constant(5)).after(event).mask(tf.constant(SHAPE), 0.3, tf.float32)
        with pytest.raises(tf.errors.InvalidArgumentError, match="must feed a value for placeholder"):
            session.run(drawn)
        assert session.run(drawn, {event: 1.0}).shape == SHAPE


@pytest.mark.parametrize("dropout", [Dropout(0, tf.constant(0)), no_dropout], ids=["rate 0", "none"])
def test_where_nothing_is_dropped_the_input_returns_and_there_is_no_mask(dropout):
    x, rate = tf.ones([2]), 0.9 if dropout is no_dropout else 0.0
    assert dropout(x, rate) is x
    assert dropout.mask(tf.shape(x), rate, tf.float32) is None


@pytest.mark.parametrize("dtype", TYPES)
def test_elements_and_their_gradient_are_multiplied_with_the_mask(dtype):
    def build():
        x = tf.cast(tf.fill([50], 3.0), dtype)
        out = Dropout(0, tf.constant(3))(x, 0.5)
        return Dropout(0, tf.constant(3)).mask(tf.shape(x), 0.5, dtype), out, tf.gradients(out, x)[0]

    kept, out, gradient = evaluate(build)
    np.testing.assert_array_equal(out, 3 * kept)
    np.testing.assert_array_equal(gradient, kept)

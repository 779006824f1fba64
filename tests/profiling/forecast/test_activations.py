"""What blocks of a layer keep, counted by hand."""

import dataclasses

import pytest

from bert_tf.config import BertConfig
from bert_tf.profiling.forecast.activations import ALL, Shape, layer_blocks

# 2 examples of 5 tokens, 7 of the 10 real; hidden size 8, intermediate size 16, 2 heads.
CONFIG = BertConfig.tiny()
SHAPE = Shape(examples=2, tokens=5, rows=7)
ROWS, PADDED, WIDE, SCORES, SCALE = 7 * 8 * 4, 10 * 8 * 4, 7 * 16 * 4, 2 * 2 * 5 * 5 * 4, 7 * 4
FIRST = 2 * 8 * 4  # rows of the first token of each example


def blocks(*, number=4, reads=ALL, custom_gradients=True, selected=None, **config):
    shape, model = dataclasses.replace(SHAPE, number=number), dataclasses.replace(CONFIG, **config)
    return layer_blocks(shape, model, custom_gradients=custom_gradients, selected=selected, reads=reads)


ATTENTION = {
    **dict.fromkeys(("query", "key", "value", "context"), PADDED),
    **dict.fromkeys(("weights", "dropped weights"), SCORES),
    **dict.fromkeys(("joined", "mask", "normal", "output"), ROWS),
    "scale": SCALE,
}
FEED_FORWARD = {
    **dict.fromkeys(("derivative", "activated"), WIDE),
    **dict.fromkeys(("mask", "normal", "output"), ROWS),
    "scale": SCALE,
}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def without(kept, *names):
    return {name: size for name, size in kept.items() if name not in names}


def test_tensors_that_are_kept():
    assert [block.kept for block in blocks()] == [ATTENTION, FEED_FORWARD]
    attention, feed_forward = blocks(**NO_DROPOUT)
    assert attention.kept == without(ATTENTION, "mask", "dropped weights")
    assert feed_forward.kept == without(FEED_FORWARD, "mask")
    attention, feed_forward = blocks(reads=())  # no inputs of its own matrices
    assert (attention.kept, feed_forward.kept) == (without(ATTENTION, "joined"), without(FEED_FORWARD, "activated"))
    half = blocks(number=2)[0].kept  # LayerNorm stays float32
    assert half == {name: size if name in ("normal", "scale") else size // 2 for name, size in ATTENTION.items()}


@pytest.mark.parametrize(
    ("options", "attention", "feed_forward"),
    [
        ({"custom_gradients": False}, 3 * PADDED + 3 * SCORES + 5 * ROWS + SCALE, 5 * WIDE + 4 * ROWS + SCALE),
        (  # the last layer keeps keys and values of all tokens, the rest of the first one
            {"selected": 1},
            2 * PADDED + 2 * FIRST + 2 * (2 * 2 * 5 * 4) + 4 * FIRST + 2 * 4,
            2 * (2 * 16 * 4) + 3 * FIRST + 2 * 4,
        ),
        ({"custom_gradients": False, "hidden_act": "relu"}, None, WIDE + 4 * ROWS + SCALE),
        ({"custom_gradients": False, "hidden_act": "gelu_erf"}, None, 4 * WIDE + 4 * ROWS + SCALE),
    ],
)
def test_bytes_that_are_kept(options, attention, feed_forward):
    kept = blocks(**options)
    assert attention in (None, kept[0].total)
    assert kept[1].total == feed_forward

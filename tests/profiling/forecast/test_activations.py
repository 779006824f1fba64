"""What blocks of a layer keep, counted by hand."""

from __future__ import annotations

import dataclasses

from bert_tf.config import BertConfig
from bert_tf.profiling.forecast.activations import Shape, layer_blocks

# 2 examples of 5 tokens, 7 of the 10 real; hidden size 8, intermediate size 16, 2 heads.
CONFIG = BertConfig.tiny()
SHAPE = Shape(examples=2, tokens=5, rows=7)
ROWS, PADDED, WIDE, SCORES = 7 * 8 * 4, 10 * 8 * 4, 7 * 16 * 4, 2 * 2 * 5 * 5 * 4


def blocks(config=CONFIG, shape=SHAPE, **options):
    return layer_blocks(shape, config, **{"custom_gradients": True, "selected": None, **options})


def test_attention_keeps_padded_tensors_and_rows():
    kept = blocks()[0].kept
    assert kept == {
        **dict.fromkeys(("query", "key", "value", "context"), PADDED),
        **dict.fromkeys(("weights", "dropped weights"), SCORES),
        **dict.fromkeys(("joined", "mask", "normal", "output"), ROWS),
        "scale": 7 * 4,
    }


def test_feed_forward_keeps_a_derivative_in_the_place_of_what_it_is_made_of():
    kept = blocks()[1].kept
    assert kept == {
        **dict.fromkeys(("derivative", "activated"), WIDE),
        **dict.fromkeys(("mask", "normal", "output"), ROWS),
        "scale": 7 * 4,
    }


def test_gradients_op_by_op_keep_more():
    attention, feed_forward = blocks(custom_gradients=False)
    assert attention.total == 3 * PADDED + 3 * SCORES + 5 * ROWS + 7 * 4
    assert feed_forward.total == 5 * WIDE + 4 * ROWS + 7 * 4


def test_the_last_layer_keeps_keys_and_values_of_all_and_the_rest_of_the_first_token():
    attention, feed_forward = blocks(selected=1)
    selected = 2 * 8 * 4
    assert attention.total == 2 * PADDED + 2 * selected + 2 * (2 * 2 * 5 * 4) + 4 * selected + 2 * 4
    assert feed_forward.total == 2 * (2 * 16 * 4) + 3 * selected + 2 * 4


def test_without_dropout_there_is_no_mask():
    sure = dataclasses.replace(CONFIG, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    attention, feed_forward = blocks(sure)
    assert blocks()[0].total - attention.total == SCORES + ROWS
    assert not {"mask", "dropped weights"} & {*attention.kept, *feed_forward.kept}


def test_half_precision_keeps_layer_norm_in_float32():
    kept = blocks(shape=dataclasses.replace(SHAPE, number=2))[0].kept
    assert kept["normal"] == ROWS
    assert kept["scale"] == 7 * 4
    assert kept["weights"] == SCORES // 2
    assert kept["output"] == ROWS // 2


def test_a_frozen_layer_keeps_no_inputs_of_its_matrices():
    attention, feed_forward = blocks(trained=False)
    assert blocks()[0].kept.keys() - attention.kept.keys() == {"joined"}
    assert blocks()[1].kept.keys() - feed_forward.kept.keys() == {"activated"}


def test_the_activation_decides_what_is_kept_of_it():
    plain = {
        act: blocks(dataclasses.replace(CONFIG, hidden_act=act), custom_gradients=False)[1] for act in ("relu", "gelu_erf")
    }
    assert plain["relu"].total == WIDE + 4 * ROWS + 7 * 4
    assert plain["gelu_erf"].total == 4 * WIDE + 4 * ROWS + 7 * 4

from __future__ import annotations

import dataclasses

import pytest

from bert_tf.checkpoints.names import encoder_shapes, has_task_head, is_expected_extra, name_pairs
from bert_tf.config import BertConfig

PAIRS = name_pairs(12)


def test_there_are_seven_variables_and_sixteen_a_layer_with_names_of_their_own():
    assert [len(name_pairs(layers)) for layers in (1, 12, 24)] == [23, 199, 391]
    for side in ("published", "huggingface"):
        assert len({getattr(pair, side) for pair in PAIRS}) == len(PAIRS)


def test_exactly_the_kernels_are_transposed():
    assert {pair.published for pair in PAIRS if pair.transposed} == {
        pair.published for pair in PAIRS if pair.published.endswith("/kernel")
    }


@pytest.mark.parametrize(
    ("published", "huggingface"),
    [
        ("bert/embeddings/word_embeddings", "embeddings.word_embeddings.weight"),
        ("bert/embeddings/LayerNorm/gamma", "embeddings.LayerNorm.weight"),
        ("bert/encoder/layer_0/attention/self/query/kernel", "encoder.layer.0.attention.self.query.weight"),
        ("bert/encoder/layer_11/output/LayerNorm/beta", "encoder.layer.11.output.LayerNorm.bias"),
        ("bert/encoder/layer_7/intermediate/dense/bias", "encoder.layer.7.intermediate.dense.bias"),
        ("bert/pooler/dense/kernel", "pooler.dense.weight"),
    ],
)
def test_known_pairs(published, huggingface):
    assert {pair.published: pair.huggingface for pair in PAIRS}[published] == huggingface


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("bert/embeddings/word_embeddings", (30, 8)),
        ("bert/embeddings/token_type_embeddings", (3, 8)),
        ("bert/embeddings/position_embeddings", (64, 8)),
        ("bert/embeddings/LayerNorm/beta", (8,)),
        ("bert/encoder/layer_1/attention/self/key/kernel", (8, 8)),
        ("bert/encoder/layer_1/attention/output/dense/kernel", (8, 8)),
        ("bert/encoder/layer_1/intermediate/dense/kernel", (8, 16)),
        ("bert/encoder/layer_1/intermediate/dense/bias", (16,)),
        ("bert/encoder/layer_1/output/dense/kernel", (16, 8)),
        ("bert/encoder/layer_1/output/dense/bias", (8,)),
        ("bert/pooler/dense/kernel", (8, 8)),
    ],
)
def test_shape_of_each_kind(name, shape):
    config = dataclasses.replace(BertConfig.tiny(vocab_size=30), type_vocab_size=3)
    assert encoder_shapes(config)[name] == shape


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cls/predictions/transform/dense/kernel", True),
        ("bert/pooler/dense/kernel/adam_m", True),
        ("global_step", True),
        ("output_weights", True),
        ("bert/encoder/layer_12/output/dense/kernel", False),
        ("roberta/pooler/dense/kernel", False),
        ("my_output_weights", False),
    ],
)
def test_knows_what_a_checkpoint_may_hold_beside_the_encoder(name, expected):
    assert is_expected_extra(name) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("output_weights", True),
        ("cls/squad/output_bias", True),
        ("head/tags/kernel", True),
        ("cls/predictions/output_bias", False),
        ("cls/seq_relationship/output_weights", False),
        ("bert/pooler/dense/bias", False),
    ],
)
def test_heads_of_tasks_are_told_from_those_of_pre_training(name, expected):
    assert has_task_head(["global_step", name]) is expected

"""Names of variables: published ones, of Hugging Face, and of the Model Garden's BertEncoder (tf-models-official 2.15)."""

import pytest

from bert_tf.checkpoints.names import is_expected_extra, name_pairs, task_head

pytestmark = pytest.mark.versions

PAIRS = name_pairs(12)


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
    assert task_head(["global_step", name]) == [name] * expected

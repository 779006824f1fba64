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
    ("name", "is_extra", "is_head"),
    [
        ("cls/predictions/transform/dense/kernel", True, False),
        ("cls/predictions/output_bias", True, False),
        ("cls/seq_relationship/output_weights", True, False),
        ("bert/pooler/dense/kernel/adam_m", True, None),
        ("global_step", True, None),
        ("output_weights", True, True),
        ("cls/squad/output_bias", None, True),
        ("head/tags/kernel", None, True),
        ("bert/encoder/layer_12/output/dense/kernel", False, None),
        ("bert/pooler/dense/bias", None, False),
        ("roberta/pooler/dense/kernel", False, None),
        ("my_output_weights", False, None),
    ],
)
def test_what_a_checkpoint_may_hold_beside_the_encoder_and_whether_it_is_the_head_of_a_task(name, is_extra, is_head):
    assert is_extra is None or is_expected_extra(name) is is_extra
    assert is_head is None or task_head(["global_step", name]) == [name] * is_head

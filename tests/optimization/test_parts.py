import pytest

from bert_tf.errors import FlagError
from bert_tf.optimization.parts import LayerDecay, check_layers, parse_frozen, part_of


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("bert/embeddings/word_embeddings:0", "embeddings"),
        ("bert/embeddings/LayerNorm/gamma", "embeddings"),
        ("bert/embeddings_project/kernel", "embeddings"),
        ("bert/encoder/layer_0/attention/self/query/kernel", 0),
        ("bert/encoder/layer_1/output/LayerNorm/beta", 1),
        ("bert/encoder/layer_11/intermediate/dense/bias:0", 11),
        ("bert/pooler/dense/kernel", "pooler"),
        ("output_weights", None),
        ("output_bias:0", None),
    ],
)
def test_a_name_tells_the_part(name, part):
    assert part_of(name) == part


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (None, set()),
        ("", set()),
        ("embeddings", {"embeddings"}),
        ("embeddings,0-2", {"embeddings", 0, 1, 2}),
        (" 3 , pooler,1-1,2-3", {1, 2, 3, "pooler"}),
    ],
)
def test_frozen_parts_are_read(text, parts):
    assert parse_frozen(text) == parts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("embedings", "--freeze: unknown part 'embedings'; did you mean embeddings? (known: N, N-M, embeddings, pooler)"),
        ("0-5,layer_6", "--freeze: unknown part 'layer_6' (known: N, N-M, embeddings, pooler)"),
        ("head", "--freeze: unknown part 'head' (known: N, N-M, embeddings, pooler)"),
        ("5-0", "--freeze: 5-0: the lower layer comes first, as in 0-5"),
    ],
)
def test_an_unknown_part_names_the_nearest(text, message):
    with pytest.raises(FlagError) as caught:
        parse_frozen(text)
    assert str(caught.value) == message


def test_layers_that_the_model_does_not_have_are_refused():
    check_layers({"embeddings", 0, 11}, 12)
    with pytest.raises(FlagError, match="^--freeze: layer 12: the model has 12 layers, 0 to 11$"):
        check_layers({"embeddings", 11, 12, 13}, 12)


@pytest.mark.parametrize(
    ("name", "factor"),
    [
        ("output_weights", 1.0),
        ("bert/pooler/dense/bias", 1.0),
        ("bert/encoder/layer_2/output/dense/kernel", 0.5),
        ("bert/encoder/layer_1/output/dense/kernel", 0.25),
        ("bert/encoder/layer_0/attention/self/key/bias", 0.125),
        ("bert/embeddings/position_embeddings", 0.0625),
    ],
)
def test_each_layer_has_its_share_of_the_rate_of_the_one_above(name, factor):
    assert LayerDecay(0.5, layers=3).factor_of(part_of(name)) == factor
    assert LayerDecay().factor_of(part_of(name)) == 1.0

"""Names of the Model Garden and of Hugging Face, there and back."""

import numpy as np
import pytest

from bert_tf.checkpoints.names import encoder_shapes, name_pairs
from bert_tf.config import BertConfig
from bert_tf.extensions.checkpoint import renaming

CONFIG = BertConfig(vocab_size=20, hidden_size=6, num_hidden_layers=1, num_attention_heads=2, intermediate_size=5)
GARDEN = {  # all variables of a model of one layer
    "word_embeddings/embeddings": (20, 6),
    "position_embedding/embeddings": (512, 6),
    "type_embeddings/embeddings": (2, 6),
    "embeddings/layer_norm/gamma": (6,),
    "embeddings/layer_norm/beta": (6,),
    **{f"transformer/layer_0/self_attention/{name}/kernel": (6, 2, 3) for name in ("query", "key", "value")},
    **{f"transformer/layer_0/self_attention/{name}/bias": (2, 3) for name in ("query", "key", "value")},
    "transformer/layer_0/self_attention/attention_output/kernel": (2, 3, 6),
    "transformer/layer_0/self_attention/attention_output/bias": (6,),
    "transformer/layer_0/self_attention_layer_norm/gamma": (6,),
    "transformer/layer_0/self_attention_layer_norm/beta": (6,),
    "transformer/layer_0/intermediate/kernel": (6, 5),
    "transformer/layer_0/intermediate/bias": (5,),
    "transformer/layer_0/output/kernel": (5, 6),
    "transformer/layer_0/output/bias": (6,),
    "transformer/layer_0/output_layer_norm/gamma": (6,),
    "transformer/layer_0/output_layer_norm/beta": (6,),
    "pooler_transform/kernel": (6, 6),
    "pooler_transform/bias": (6,),
}
WEIGHTS = {name: np.arange(np.prod(shape)).reshape(shape) for name, shape in encoder_shapes(CONFIG).items()}


def test_the_model_garden_has_every_variable_under_its_own_name_and_shape():
    by_name = renaming.model_garden(1, CONFIG.num_attention_heads)
    assert {renamed.name: renamed.there(WEIGHTS[name]).shape for name, renamed in by_name.items()} == GARDEN


def test_heads_are_cut_where_attention_cuts_them():
    """Column 4 of a query's kernel is number 1 of head 1; of the output's kernel it is row 4."""
    renamed = renaming.model_garden(1, CONFIG.num_attention_heads)
    query, output = (f"bert/encoder/layer_0/attention/{name}/kernel" for name in ("self/query", "output/dense"))
    assert (renamed[query].there(WEIGHTS[query])[:, 1, 1] == WEIGHTS[query][:, 4]).all()
    assert (renamed[output].there(WEIGHTS[output])[1, 1] == WEIGHTS[output][4]).all()


@pytest.mark.parametrize("before", ["", "bert_encoder_v2/", "bert_encoder_1/"])
def test_the_way_back_from_the_model_garden(before):
    renamed = renaming.model_garden(1, CONFIG.num_attention_heads)
    there = {f"{before}{new.name}": (name, new.there(WEIGHTS[name])) for name, new in renamed.items()}
    for key, (name, change) in renaming.published(there).items():
        wanted, array = there[key]
        assert name == wanted
        np.testing.assert_array_equal(change(array), WEIGHTS[wanted])


@pytest.mark.parametrize("before", ["", "bert."])
def test_the_way_back_from_hugging_face(before):
    for pair in name_pairs(3):
        name, change = renaming.published([f"{before}{pair.huggingface}", "bert.encoder.layer.2.output.dense.bias"])[
            f"{before}{pair.huggingface}"
        ]
        assert name == pair.published
        assert change(np.ones([2, 3])).shape == ((3, 2) if pair.transposed else (2, 3))


def test_names_of_the_first_pytorch_files_and_of_heads_are_known():
    names = ["bert.embeddings.LayerNorm.gamma", "classifier.weight", "qa_outputs.bias", "something"]
    names_here = [name for name, _ in renaming.published(names).values()]
    assert names_here == ["bert/embeddings/LayerNorm/gamma", "output_weights", "cls/squad/output_bias", "something"]

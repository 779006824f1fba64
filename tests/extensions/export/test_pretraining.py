"""A model of pre-training as what other software runs: Hugging Face's layout and a SavedModel; for other formats one line."""

import json

import numpy as np
import pytest
import safetensors.numpy

from bert_tf.batch import graph
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.errors import FlagError
from bert_tf.extensions.export import formats
from bert_tf.extensions.export.formats import OPENERS
from tests.extensions.export import models

BATCH = {
    "input_ids": np.array([[2, 9, 4, 7, 3, 8, 3], [2, 4, 4, 3, 0, 0, 0]], np.int32),
    "input_mask": np.array([[1] * 7, [1] * 4 + [0] * 3], np.int32),
    "segment_ids": np.array([[0] * 5 + [1] * 2, [0] * 7], np.int32),
    "slots": np.array([1, 2], np.int32),
    "masked_lm_positions": np.array([[2, 0], [1, 2]], np.int32),
    "masked_lm_ids": np.zeros((2, 2), np.int32),
}


def exported(folder, nsp=True):
    return models.exported(folder / "run", "pretraining", record={"labels": [], "nsp": nsp, "sampled_softmax": 0})


def written(folder, form, nsp=True):
    model = exported(folder, nsp)
    (folder / "out").mkdir()
    formats.FORMATS[form].write(model, folder / "out")
    return model, folder / "out"


@pytest.mark.parametrize(("nsp", "name"), [(True, "BertForPreTraining"), (False, "BertForMaskedLM")])
def test_huggingface_has_the_head_by_its_names(tmp_path, nsp, name):
    model, folder = written(tmp_path, "huggingface", nsp=nsp)
    reader, tensors = CheckpointReader(model.trained.prefix), safetensors.numpy.load_file(folder / "model.safetensors")
    assert json.loads((folder / "config.json").read_text())["architectures"] == [name]
    np.testing.assert_array_equal(tensors["cls.predictions.bias"], reader["cls/predictions/output_bias"])
    transform = tensors["cls.predictions.transform.dense.weight"]
    np.testing.assert_array_equal(transform, reader["cls/predictions/transform/dense/kernel"].T)
    assert ("cls.seq_relationship.weight" in tensors) == ("bert.pooler.dense.weight" in tensors) == nsp
    card = (folder / "README.md").read_text()
    assert f"`{name}`, pre-trained with bert_tf" in card
    assert "pipeline_tag: fill-mask" in card


def test_a_saved_model_computes_words_and_pairs(tmp_path):
    model, folder = written(tmp_path, "saved_model")

    def build():
        inputs = graph.inputs(model.trained)
        return inputs, graph.compute(model.trained, inputs, graph.PACKED)

    with graph.loaded(model.trained, build) as (session, (inputs, computed)):
        fed = {inputs[name]: values for name, values in BATCH.items()}
        expected = session.run({**computed.logits, **computed.served}, fed)
    outputs = OPENERS["saved_model"](folder)(BATCH)
    real = np.array([[True, False], [True, True]])
    for name in ("masked_lm_top_ids", "word_ids"):
        np.testing.assert_array_equal(outputs[name][real], expected[name][real])
    np.testing.assert_allclose(outputs["word_probabilities"][real], expected["word_probabilities"][real], atol=1e-6)
    np.testing.assert_allclose(outputs["next_sentence_probabilities"].sum(axis=1), [1, 1], rtol=1e-6)


@pytest.mark.parametrize("form", ["onnx", "openvino"])
def test_formats_of_one_output_are_one_line(tmp_path, form):
    with pytest.raises(FlagError, match="a head with several outputs, as that of pretraining, is not written for ONNX and"):
        written(tmp_path, form)

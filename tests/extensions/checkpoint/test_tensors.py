import json

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf

from bert_tf.checkpoints.reader import write_checkpoint
from bert_tf.errors import CheckpointError
from bert_tf.extensions.checkpoint.tensors import HUGGINGFACE, OBJECTS, TENSORFLOW, SafeTensors, TensorFlowTensors, step_of


def test_a_checkpoint_by_names(tmp_path):
    write_checkpoint(tmp_path / "c", {"b/w": np.ones([2, 3], np.float16), "global_step": np.int64(7)})
    tensors = TensorFlowTensors(str(tmp_path / "c"))
    assert (tensors.layout, list(tensors.entries), step_of(tensors)) == (TENSORFLOW, ["b/w", "global_step"], 7)
    assert tensors.entries["b/w"] == ((2, 3), "float16")
    assert tensors.entries["b/w"].bytes == 12


def test_a_checkpoint_of_format_v1(tmp_path):
    prefix = str(tmp_path / "c")
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        variable = tf.compat.v1.get_variable("b/w", initializer=2.0)
        session.run(variable.initializer)
        v1 = tf.compat.v1.train.SaverDef.V1
        tf.compat.v1.train.Saver(write_version=v1).save(session, prefix, write_meta_graph=False, write_state=False)
    tensors = TensorFlowTensors(prefix)
    assert tensors.read("b/w") == 2.0
    assert len(tensors.digest) == 64


def test_variables_of_a_checkpoint_by_objects_have_their_full_names(tmp_path):
    variables = [tf.Variable([1.0, 2.0], name="layer/kernel"), tf.Variable(3.0, name="same"), tf.Variable(4.0, name="same")]
    prefix = tf.train.Checkpoint(model=tf.train.Checkpoint(a=variables[0], b=variables[1], c=variables[2])).save(tmp_path / "c")
    tensors = TensorFlowTensors(prefix)
    assert tensors.layout == OBJECTS
    assert set(tensors.entries) == {"layer/kernel", "model/b", "model/c", "save_counter"}
    assert tensors.read("layer/kernel").tolist() == [1.0, 2.0]
    assert tensors.read("model/c") == 4.0


def test_safetensors_in_one_file_and_in_several(tmp_path):
    safetensors.numpy.save_file({"a": np.ones(2, np.float32)}, tmp_path / "model-1.safetensors")
    safetensors.numpy.save_file({"b": np.zeros(3, ml_dtypes.bfloat16)}, tmp_path / "model-2.safetensors")
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    tensors = SafeTensors(tmp_path)
    assert tensors.layout == HUGGINGFACE
    assert tensors.entries == {"a": ((2,), "float32"), "b": ((3,), "bfloat16")}
    assert tensors.read("b").shape == (3,)
    assert SafeTensors(tmp_path / "model-1.safetensors").entries == {"a": ((2,), "float32")}


@pytest.mark.parametrize("text", [b"", b"{}", b"[1]", b'{"weight_map": {"a": "gone.safetensors"}}'])
def test_a_list_of_files_that_is_damaged_is_one_line(tmp_path, text):
    (tmp_path / "model.safetensors.index.json").write_bytes(text)
    with pytest.raises(CheckpointError, match="safetensors"):
        SafeTensors(tmp_path)


def test_tensors_are_read_one_at_a_time(tmp_path, monkeypatch):
    """What is opened reads nothing: the list of entries comes from the index."""
    write_checkpoint(tmp_path / "c", {"b/w": np.ones(2, np.float32)})
    monkeypatch.setattr("bert_tf.checkpoints.reader.CheckpointReader.__getitem__", lambda *_: pytest.fail("read"))
    assert list(TensorFlowTensors(str(tmp_path / "c")).entries) == ["b/w"]


@pytest.mark.parametrize("name", ["../outside.safetensors", "/outside.safetensors", "a/b.safetensors"])
def test_an_index_names_only_files_beside_it(tmp_path, name):
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": name}}))
    with pytest.raises(CheckpointError, match="is not the name of a file beside it; fetch it again$"):
        SafeTensors(tmp_path)

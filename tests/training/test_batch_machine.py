"""Engines as settings: which one computes, and what the log says of it."""

import pytest

from bert_tf.batch.tensorflow_engine import TensorFlowEngine
from bert_tf.errors import FlagError
from bert_tf.extensions.engines.converted_engine import ConvertedEngine
from bert_tf.settings import read_settings
from bert_tf.training import batch_machine
from bert_tf.training.settings import MachineSettings


def inference(home, **settings):
    return batch_machine.inference(read_settings(MachineSettings, settings), None, [], environment={"BERT_TF_HOME": str(home)})


@pytest.mark.parametrize(
    ("settings", "kind", "precision", "said"),
    [
        ({}, TensorFlowEngine, "float32", ""),
        ({"engine": "onnxruntime", "precision": "int8"}, ConvertedEngine, "onnxruntime int8", ""),
        ({"engine": "openvino", "precision": "bfloat16"}, ConvertedEngine, "openvino bfloat16",
         "--precision=bfloat16: this CPU has no instructions for it; float32 may be faster"),
        ({"engine": "auto"}, ConvertedEngine, "openvino float32",
         "--engine=auto: openvino: is installed; for matrix products this CPU has "),
    ],
)  # fmt: skip
def test_the_engine_is_part_of_what_decides_on_rows(tmp_path, caplog, monkeypatch, settings, kind, precision, said):
    monkeypatch.setattr("bert_tf.runtime.precision.cpu_computes", lambda name: name in ("float32", "int8"))
    options = inference(tmp_path, **settings)
    assert isinstance(options.engine(), kind)
    assert options.precision == precision
    assert not said or any(line.startswith(said) for line in caplog.messages)
    with pytest.raises(FlagError, match="--precision=int8: --engine=tensorflow computes in default, float32"):
        inference(tmp_path, precision="int8")

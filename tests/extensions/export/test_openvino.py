"""Exports as OpenVINO, and how graphs are compared with TensorFlow."""

import numpy as np
import pytest

from bert_tf.errors import CheckpointError, FlagError
from bert_tf.extensions.export import openvino
from bert_tf.extensions.export.formats import FORMATS
from bert_tf.extensions.export.gate import require_agreement
from tests.extensions.export.models import exported
from tests.modeling.test_positions import ROTARY

pytestmark = pytest.mark.versions


def test_what_differs_is_refused(tmp_path):
    model = exported(tmp_path / "run")
    with pytest.raises(CheckpointError, match="logits differ from TensorFlow's by .*; nothing is exported"):
        require_agreement(model.trained, lambda batch: {"logits": np.ones((len(batch["input_ids"]), 3), np.float32)})


def test_openvino_is_a_pair_of_files(tmp_path):
    (tmp_path / "out").mkdir()
    openvino.write(exported(tmp_path / "run"), tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"model.bin", "model.xml", "tokenizer.json", "vocab.txt"}


def test_what_a_format_cannot_write_is_one_line():
    with pytest.raises(FlagError, match="--precision=int8: --format=huggingface supports float32"):
        FORMATS["huggingface"].require("int8")


def test_padding_beyond_a_window_is_not_compared(tmp_path):
    config = {"model_type": "modernbert", "num_hidden_layers": 2, "attention_window": 4, "whole_attention_every": 2}
    model = exported(tmp_path / "run", "tags", config={**config, **ROTARY})
    (tmp_path / "out").mkdir()
    FORMATS["onnx"].write(model, tmp_path / "out")
    assert (tmp_path / "out" / "model.onnx").is_file()

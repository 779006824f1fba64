"""Exports as OpenVINO, and how they are compared with TensorFlow."""

import numpy as np
import pytest

from bert_tf.errors import CheckpointError, FlagError
from bert_tf.export import converted
from bert_tf.export.formats import FORMATS
from tests.export.models import exported

pytestmark = pytest.mark.versions


def test_what_differs_is_refused(tmp_path):
    model = exported(tmp_path / "run")
    with pytest.raises(CheckpointError, match="logits differ from TensorFlow's by .*; nothing is exported"):
        converted.require_agreement(model.trained, lambda batch: {"logits": np.ones((len(batch["input_ids"]), 3), np.float32)})


def test_openvino_is_a_pair_of_files(tmp_path):
    (tmp_path / "out").mkdir()
    converted.write_openvino(exported(tmp_path / "run"), tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"model.bin", "model.xml", "tokenizer.json", "vocab.txt"}


def test_what_a_format_cannot_write_is_one_line(tmp_path):
    with pytest.raises(FlagError, match="--precision=int8: --format=huggingface supports float32"):
        FORMATS["huggingface"].require("int8")
    with pytest.raises(FlagError, match="use --format=onnx, and build the engine with trtexec"):
        FORMATS["tensorrt"].write(exported(tmp_path / "run"), tmp_path)

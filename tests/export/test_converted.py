"""Exports as ONNX and OpenVINO."""

import json
import subprocess
import sys

import numpy as np
import pytest

from bert_tf.errors import CheckpointError, FlagError
from bert_tf.export import converted
from bert_tf.export.formats import FORMATS
from tests.export.models import exported

pytestmark = pytest.mark.versions


@pytest.mark.parametrize("kind", ["classification", "span"])  # all heads: tests/engines
def test_onnx_is_compared_with_tensorflow(tmp_path, kind, caplog):
    caplog.set_level("INFO")
    converted.write_onnx(exported(tmp_path / "run", kind), tmp_path)
    assert "differ from TensorFlow's by" in caplog.text
    assert (tmp_path / "vocab.txt").is_file()


def test_what_differs_is_refused(tmp_path):
    model = exported(tmp_path / "run")
    with pytest.raises(CheckpointError, match="logits differ from TensorFlow's by .*; nothing is exported"):
        converted.require_agreement(model.trained, lambda batch: {"logits": np.ones((len(batch["input_ids"]), 3), np.float32)})


def test_the_same_bytes_each_time_that_run_without_this_package(tmp_path):
    model = exported(tmp_path / "run")
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        converted.write_onnx(model, tmp_path / name)
    assert (tmp_path / "a" / "model.onnx").read_bytes() == (tmp_path / "b" / "model.onnx").read_bytes()
    code = (
        "import json, sys, numpy, onnxruntime\n"
        f"session = onnxruntime.InferenceSession({str(tmp_path / 'a' / 'model.onnx')!r})\n"
        "ids = numpy.array([[2, 7, 3], [2, 3, 0]], numpy.int32)\n"
        "feed = {'input_ids': ids, 'input_mask': (ids > 0).astype('int32'), 'segment_ids': 0 * ids}\n"
        "labels = json.loads(session.get_modelmeta().custom_metadata_map['labels'])\n"
        "print(json.dumps([session.run(None, feed)[0].shape, labels, 'bert_tf' in sys.modules]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert json.loads(done.stdout) == [[2, 3], ["no", "yes", "maybe"], False]


def test_openvino_is_a_pair_of_files(tmp_path):
    (tmp_path / "out").mkdir()
    converted.write_openvino(exported(tmp_path / "run"), tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"model.bin", "model.xml", "tokenizer.json", "vocab.txt"}


def test_what_a_format_cannot_write_is_one_line(tmp_path):
    with pytest.raises(FlagError, match="--precision=int8: --format=huggingface supports float32"):
        FORMATS["huggingface"].require("int8")
    with pytest.raises(FlagError, match="use --format=onnx, and build the engine with trtexec"):
        FORMATS["tensorrt"].write(exported(tmp_path / "run"), tmp_path)

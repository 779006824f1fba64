import dataclasses
import os
import subprocess
import sys
import time
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

from bert_tf.checkpoints.reader import write_checkpoint
from bert_tf.config import BertConfig
from bert_tf.errors import CheckpointError, FlagError
from bert_tf.extensions.engines import converted, converted_engine, openvino_model
from bert_tf.extensions.engines.converted import FOLDER
from bert_tf.extensions.engines.registry import AUTOMATIC, ONNXRUNTIME_ROW, OPENVINO_ROW
from bert_tf.head_spec import VECTORS, HeadSpec
from bert_tf.training.tensorflow_machine import TensorFlow
from tests.batch.runs import inference
from tests.extensions.engines.models import HEADS, STEP, keep_training_texts, rows, trained
from tests.tiny import held

ENGINES = {row.name: row for row in (ONNXRUNTIME_ROW, OPENVINO_ROW)}
CONVERTED = ("onnxruntime", "openvino")


def engine(name, home, precision="float32", **changed):
    if name == "tensorflow":
        return inference(**changed).engine()
    return dataclasses.replace(inference(**changed), make=ENGINES[name].choose(precision, home).make).engine()


def outputs(name, home, model, features, precision="float32", **changed):
    made = engine(name, home, precision, **changed)
    assert made.load(model) == STEP
    (values,) = made.outputs(features).values()
    made.close()
    return values


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model beside the texts of its training; not to be changed."""
    folder = tmp_path_factory.mktemp("engines") / "run"
    made = trained(folder)
    keep_training_texts(folder)
    return made


@pytest.mark.parametrize("head", HEADS)
def test_computes_the_outputs_of_tensorflow(tmp_path, head):
    layers = 2 if head == "classification" or "two layers" in head else 1
    model, features = trained(tmp_path / "run", HEADS[head], num_hidden_layers=layers), rows()
    expected = outputs("tensorflow", tmp_path, model, features)
    for name in CONVERTED:
        np.testing.assert_allclose(outputs(name, tmp_path, model, features), expected, rtol=1e-5, atol=1e-5)


def test_of_the_heads_of_a_checkpoint_the_first_and_the_latest_stay_open(model):
    opened = []

    def open_model(trained, _):
        opened.append(trained.head)
        return lambda batch: {"logits": np.zeros((len(batch["input_ids"]), 2), np.float32)}

    vectors = [model.with_head(HeadSpec(8, VECTORS, (("pooling", pooling),))) for pooling in ("mean", "cls")]
    computing = converted_engine.ConvertedEngine(inference(), "float32", open_model)
    for asked in (model, vectors[0], model, vectors[1], model, vectors[0]):
        assert computing.load(asked) == STEP
    assert opened == [model.head, vectors[0].head, vectors[1].head, vectors[0].head]


def test_long_texts_are_warned_of_once(model, monkeypatch, caplog):
    monkeypatch.setattr(converted_engine, "_MUCH", 1000)
    computing = converted_engine.ConvertedEngine(
        inference(), "float32", lambda *_: lambda batch: {"logits": np.zeros((len(batch["input_ids"]), 3), np.float32)}
    )
    computing.load(model)
    for _ in range(2):
        computing.outputs(rows())
    (warned,) = (record.message for record in caplog.records if "--engine=tensorflow" in record.message)
    assert f"a text of {rows().lengths.max()} tokens" in warned


@pytest.mark.parametrize("activation", ["gelu_tanh", "gelu_erf", "relu", "tanh", "linear"])
def test_computes_every_activation(tmp_path, activation):
    model, features = trained(tmp_path / "run", hidden_act=activation, num_hidden_layers=1), rows()
    expected = outputs("tensorflow", tmp_path, model, features)
    np.testing.assert_allclose(outputs("onnxruntime", tmp_path, model, features), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", CONVERTED)
def test_size_of_batches_changes_nothing(model, tmp_path, name):
    one, all_at_once = (outputs(name, tmp_path, model, rows(20), batch_size=size) for size in (1, None))
    np.testing.assert_allclose(one, all_at_once, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", CONVERTED)
def test_less_precision_is_near(model, tmp_path, name):
    expected, actual = (
        outputs(*how) for how in (("tensorflow", tmp_path, model, rows()), (name, tmp_path, model, rows(), "int8"))
    )
    assert 0 < np.abs(actual - expected).mean() < 0.3 * np.abs(expected).mean()
    if name == "openvino":
        np.testing.assert_allclose(outputs(name, tmp_path, model, rows(), "bfloat16"), expected, atol=0.2)


@pytest.mark.parametrize("name", CONVERTED)
def test_an_int8_answer_does_not_depend_on_the_rows_beside_it(model, tmp_path, name):
    made, features = engine(name, tmp_path, "int8"), rows(40)
    made.load(model)
    (together,) = made.outputs(features).values()
    of_rows = (made.outputs(features.taken(np.array([row]))).values() for row in range(len(features)))
    alone = np.concatenate([values for (values,) in of_rows])
    np.testing.assert_allclose(alone, together, rtol=0, atol=1e-6 * np.abs(together).max())
    made.close()


def test_an_int8_product_by_hand():
    """Row [1, -2] has the unit 2 / 127: 64, -127. Columns [1, 0.5] and [0, 4] have 1 / 127 and 4 / 127: 127, 64 and 0, 127."""
    import onnxruntime
    from onnx import TensorProto, helper

    from bert_tf.extensions.engines.onnx_graph import OnnxGraph

    kernel, bias = np.array([[1.0, 0.0], [0.5, 4.0]], np.float32), np.array([0.0, 10.0], np.float32)
    graph = OnnxGraph({"x/kernel": kernel, "x/bias": bias}, int8=True)
    graph.add("Identity", graph.dense("rows", "x"), name="product")
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", 2]) for name in ("rows", "product")]
    made = graph.model(values[:1], values[1:])
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    (product,) = session.run(None, {"rows": np.array([[1.0, -2.0], [0.0, 0.0]], np.float32)})
    first = (64 * 127 - 127 * 64) * 2 / 127 / 127, 10 + (-127 * 127) * 2 / 127 * 4 / 127
    np.testing.assert_allclose(product, [first, [0.0, 10.0]], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("place", ["best", "fold-2", "fold-2/ema"])
def test_texts_of_the_training_are_found_above_the_folder_of_a_checkpoint(tmp_path, place):
    keep_training_texts(tmp_path)
    model = trained(tmp_path / place)
    for folder in (model.folder, model.folder.parent):
        (folder / "run_config.json").touch()
    assert openvino_model.Calibration(model).path.parent == tmp_path / "features"


def test_int8_needs_the_texts_of_the_training_undamaged(tmp_path):
    made, model = engine("openvino", tmp_path, "int8"), trained(tmp_path / "run")
    with pytest.raises(CheckpointError, match=r"int8 takes its ranges .* take the folder of the run, --precision"):
        made.load(model)
    keep_training_texts(tmp_path / "run")
    (path,) = (tmp_path / "run" / "features").iterdir()
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(CheckpointError, match=f"{path.name}: damaged features: .*; delete the file, and train again"):
        made.load(model)


@pytest.mark.parametrize("name", CONVERTED)
def test_weights_that_are_no_numbers_are_refused(tmp_path, name):
    model = trained(tmp_path / "run")
    write_checkpoint(model.prefix, {**held(model.prefix), "output_bias": np.full(3, np.nan, np.float32)})
    with pytest.raises(CheckpointError, match="NaN or infinite: output_bias"):
        engine(name, tmp_path).load(model)


def test_weights_that_another_run_has_replaced_are_not_converted(tmp_path):
    model = trained(tmp_path / "run")
    assert model.digest
    trained(tmp_path / "run", seed=4)
    with pytest.raises(CheckpointError, match="the checkpoint has changed; load it again"):
        engine("onnxruntime", tmp_path).load(model)
    assert not [path for path in (tmp_path / FOLDER).iterdir() if path.is_dir()]


def test_is_converted_once_unless_the_file_is_damaged_or_weights_are_others(model, tmp_path, monkeypatch):
    expected = outputs("onnxruntime", tmp_path, model, rows())
    with monkeypatch.context() as patch:
        patch.setattr("bert_tf.extensions.engines.onnx_model.save", lambda *_: pytest.fail("converted again"))
        for name in CONVERTED:
            outputs(name, tmp_path, model, rows())
    for file in ("onnx", "data"):
        (path,) = (tmp_path / FOLDER).glob(f"*/model.{file}")
        path.write_bytes(path.read_bytes()[:100])
        np.testing.assert_array_equal(outputs("onnxruntime", tmp_path, model, rows()), expected)
    other = outputs("onnxruntime", tmp_path, trained(tmp_path / "other", seed=4), rows())
    assert not np.allclose(other, expected)


def test_keeps_those_that_were_used_last(tmp_path, monkeypatch):
    monkeypatch.setattr(converted, "_KEPT", 2)
    models = [trained(tmp_path / f"{seed}", seed=seed) for seed in range(3)]
    for number, model in enumerate(models):
        engine("onnxruntime", tmp_path).load(model)
        for folder in (tmp_path / FOLDER).glob("[!.]*"):
            os.utime(folder, ns=(0, os.stat(folder).st_mtime_ns if number else 0))
    assert len(list((tmp_path / FOLDER).glob("[!.]*"))) == 2


def test_several_models_of_a_command_are_each_converted_once(tmp_path, monkeypatch):
    monkeypatch.setattr(converted, "_KEPT", 2)
    written = []
    monkeypatch.setattr(converted, "_write", lambda model, path: written.append(path.write_text(model.digest)))
    models = [SimpleNamespace(digest=str(number), config=BertConfig.tiny(), head=None) for number in range(4)]
    for _ in range(2):
        for model in models:
            converted.ConvertedModels(tmp_path).onnx(model, "float32")
    assert len(written) == 4


@pytest.mark.parametrize(("free", "idle_s", "kept"), [(1 << 40, 3600, 4), (1, 3600, 1), (1, 60, 4)])
def test_converted_models_of_the_last_day_take_no_more_than_is_free(tmp_path, monkeypatch, free, idle_s, kept):
    monkeypatch.setattr(converted, "_KEPT", 1)
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=free))
    for number in range(4):
        (tmp_path / FOLDER / f"{number}").mkdir(parents=True)
        (tmp_path / FOLDER / f"{number}" / "model.onnx").write_text("12")
        os.utime(tmp_path / FOLDER / f"{number}", (time.time() - idle_s + number,) * 2)
    converted.ConvertedModels(tmp_path)._tidy()
    assert sorted(path.name for path in (tmp_path / FOLDER).iterdir()) == ["0", "1", "2", "3"][-kept:]


def test_a_failed_conversion_leaves_nothing(model, tmp_path, monkeypatch):
    monkeypatch.setattr("onnx.save", mock.Mock(side_effect=OSError(28, "No space left on device")))
    with pytest.raises(Exception, match="No space left|no space left"):
        engine("onnxruntime", tmp_path).load(model)
    assert not [path for path in (tmp_path / FOLDER).iterdir() if path.is_dir()]


def test_a_missing_package_is_one_line_with_the_command(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "openvino" else name)
    with pytest.raises(FlagError, match=r"--engine=openvino needs openvino: pip install 'onnx"):
        OPENVINO_ROW.require("default")


@pytest.mark.parametrize(
    ("name", "precision", "known"),
    [("tensorflow", "int8", "bfloat16"), ("onnxruntime", "bfloat16", "int8"), ("openvino", "float16", "bfloat16")],
)
def test_a_precision_that_the_engine_lacks_names_those_it_has(name, precision, known):
    with pytest.raises(FlagError, match=rf"--precision={precision}: --engine={name} computes in .*{known}"):
        {**ENGINES, "tensorflow": TensorFlow()}[name].require(precision)


@pytest.mark.parametrize(
    ("missing", "on_gpu", "expected"),
    [
        ((), False, "openvino"),
        (("openvino",), False, "onnxruntime"),
        (("onnx",), False, "tensorflow"),
        ((), True, "tensorflow"),
    ],
)
def test_auto_takes_what_is_installed(monkeypatch, tmp_path, missing, on_gpu, expected):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name in missing else name)
    chosen = AUTOMATIC.choose("default", tmp_path, on_gpu=on_gpu)
    assert chosen.name == expected
    assert chosen.why


@pytest.mark.slow
def test_nothing_is_told_over_the_network():
    code = (
        "from bert_tf.extensions.engines import openvino_model\n"
        "from nncf.telemetry import wrapper\n"
        "print(isinstance(wrapper.telemetry, wrapper.NNCFTelemetry))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # NNCF knows pytest
    assert done.stdout == "False\n"

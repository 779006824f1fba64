"""How converted models are compared with TensorFlow, and what reduced precision costs."""

import dataclasses
import json

import numpy as np
import pytest

from bert_tf.errors import CheckpointError, FlagError
from bert_tf.extensions.engines import onnx_model, onnxruntime_session
from bert_tf.extensions.export import gate, openvino
from bert_tf.extensions.export.formats import FORMATS
from bert_tf.extensions.export.gate import GateError
from bert_tf.tasks.base import DEV
from tests.extensions.export.models import exported
from tests.modeling.test_positions import ROTARY

TEXTS = ("the old rain", "new bread and soup", "a red wind", "storm over the salt")


@pytest.fixture(name="model", scope="module")
def fixture_model(tmp_path_factory):
    """Of three labels; the examples have the label that it gives them, but for a few."""
    folder = tmp_path_factory.mktemp("model")
    made = exported(folder / "run", precision="int8")
    onnx_model.save(made.trained, folder / "model.onnx")
    compute = onnxruntime_session.opened(folder / "model.onnx", 1)
    texts = [f"{first} {second}" for first in TEXTS for second in TEXTS for _ in range(3)]
    labels = made.family.labels
    family = made.family
    unlabelled = family.from_rows(texts, DEV, labelled=False)
    features = family.features(unlabelled, made.trained.tokenizer, made.trained.limits)
    batch = features.batch(np.arange(len(texts)), int(features.lengths.max()))
    best = compute({name: batch[name] for name in ("input_ids", "input_mask", "segment_ids")})["logits"].argmax(axis=1)
    rows = [{"text": text, "label": labels[number]} for text, number in zip(texts, best)]
    examples = family.from_rows(rows, DEV, labelled=True)
    return dataclasses.replace(made, labelled=lambda: {DEV: examples}), compute


def worse(compute, share):
    """Wrong for a share of the rows."""

    def changed(batch):
        logits = np.array(compute(batch)["logits"])
        logits[: round(share * len(logits))] *= -1
        return {"logits": logits}

    return changed


def test_no_change_passes(model, tmp_path):
    gate.measure(*model, tmp_path)
    printed = json.loads((tmp_path / "gate.json").read_text())
    assert printed["precision"] == "int8"
    assert printed["data"][DEV]["examples"] == 48
    unchanged = {"float32": 100.0, "reduced": 100.0, "change": 0.0, "interval_95": [0.0, 0.0]}
    assert printed["data"][DEV]["metrics"]["accuracy"] == unchanged


def test_texts_are_tokenized_once(model, tmp_path, monkeypatch):
    made, compute = model
    calls = []
    features = type(made.family).features
    monkeypatch.setattr(
        type(made.family), "features", lambda self, *args: (calls.append(len(args[0])), features(self, *args))[1]
    )
    gate.measure(made, compute, tmp_path)
    assert calls == [48]


def test_too_great_a_loss_is_refused_unless_it_is_allowed(model, tmp_path):
    made, compute = model
    with pytest.raises(GateError, match=r"--precision=int8: accuracy of dev falls from 100.00 to .* --max_loss_of_metric=0.5"):
        gate.measure(made, worse(compute, 0.5), tmp_path)
    assert not (tmp_path / "gate.json").exists()
    made, compute = model
    allowed = dataclasses.replace(made, options=dataclasses.replace(made.options, max_loss_of_metric=100.0))
    gate.measure(allowed, worse(compute, 0.5), tmp_path)
    change = json.loads((tmp_path / "gate.json").read_text())["data"][DEV]["metrics"]["accuracy"]
    low, high = change["interval_95"]
    assert low < change["change"] < high
    assert change["change"] < 0


def test_the_interval_is_that_of_paired_examples():
    """Of a mean the jackknife by single examples is Student's interval."""
    each = np.array([0.0, 0.0, 1.0, -1.0, 0.0, 1.0, 0.0, 0.0])
    without = [(each.sum() - value) / (len(each) - 1) for value in each]
    low, high = gate._interval(each.mean(), without)
    half = 2.364624 * each.std(ddof=1) / np.sqrt(len(each))
    assert (low, high) == pytest.approx((each.mean() - half, each.mean() + half), abs=1e-5)


@pytest.mark.versions
def test_what_differs_is_refused(tmp_path):
    model = exported(tmp_path / "run")
    with pytest.raises(CheckpointError, match="logits differ from TensorFlow's by .*; nothing is exported"):
        gate.require_agreement(model.trained, lambda batch: {"logits": np.ones((len(batch["input_ids"]), 3), np.float32)})


@pytest.mark.versions
def test_openvino_is_a_pair_of_files(tmp_path):
    (tmp_path / "out").mkdir()
    openvino.write(exported(tmp_path / "run"), tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"model.bin", "model.xml", "tokenizer.json", "vocab.txt"}


def test_a_precision_in_which_openvino_does_not_compute_here_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(openvino.engines, "openvino_computes_bfloat16", lambda: False)
    (tmp_path / "out").mkdir()
    with pytest.raises(FlagError, match="--precision=bfloat16: OpenVINO computes in float32 on this CPU, so the loss cannot"):
        openvino.write(exported(tmp_path / "run", precision="bfloat16"), tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())


def test_what_a_format_cannot_write_is_one_line():
    with pytest.raises(FlagError, match="--precision=int8: --format=huggingface supports float32"):
        FORMATS["huggingface"].require("int8")


@pytest.mark.versions
def test_padding_beyond_a_window_is_not_compared(tmp_path):
    config = {"model_type": "modernbert", "num_hidden_layers": 2, "attention_window": 4, "whole_attention_every": 2}
    model = exported(tmp_path / "run", "tags", config={**config, **ROTARY})
    (tmp_path / "out").mkdir()
    FORMATS["onnx"].write(model, tmp_path / "out")
    assert (tmp_path / "out" / "model.onnx").is_file()

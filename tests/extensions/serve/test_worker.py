"""Real models behind the service: what comes out is what `Model.predict` returns, and what the document says."""

from __future__ import annotations

import json

import jsonschema
import numpy as np
import pytest

import bert_tf
from bert_tf import extension
from bert_tf.errors import FlagError
from bert_tf.extensions.serve import forms, openapi, question, worker
from bert_tf.extensions.serve.call import Failed, every, plain
from bert_tf.extensions.serve.settings import Limits, configured
from bert_tf.run_layout import RECORD
from tests import pretrained
from tests.batch.runs import write_run
from tests.extensions.serve.runs import KINDS, write

PREDICT, ENCODE, EXPLAIN = "predict", "encode", "explain"


def served_by(run, **settings):
    return worker.served(configured(str(run), **settings))


def parts_of(served, *asked, batch_tokens=2048):
    """Returns the parts of requests, each a call and its body."""
    reader = served.description.reader
    bodies = ((call, json.dumps(body).encode()) for call, body in asked)
    read = (question.read_parts(call, body, reader, Limits(), batch_tokens=batch_tokens) for call, body in bodies)
    return [part for parts in read for part in parts]


def answered(served, call, body, *, batch_tokens=2048):
    """Returns the values of an answer, each part computed by itself."""
    parts = parts_of(served, (call, body), batch_tokens=batch_tokens)
    return [json.loads(value) for part in parts for value in served.answers([part])[0]]


def close(actual, expected):
    """Whether values are the same but for the last digits of numbers."""
    if isinstance(expected, dict):
        return actual.keys() >= expected.keys() and all(close(actual[key], value) for key, value in expected.items())
    if isinstance(expected, list):
        return len(actual) == len(expected) and all(map(close, actual, expected))
    return actual == (pytest.approx(expected, abs=1e-5) if isinstance(expected, float) else expected)


def validated(document, schema, value):
    jsonschema.Draft202012Validator({**schema, "components": document["components"]}).validate(value)


@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_those_of_the_library_and_of_the_document(tmp_path, project, kind):
    run, rows = write(tmp_path / "run", project, kind), KINDS[kind][1]
    served = served_by(run)
    served.load()
    with bert_tf.load(run) as model:
        expected = [plain(one) for one in model.predict(rows)]
    actual = answered(served, PREDICT, {"rows": rows}, batch_tokens=1)
    for one in expected:
        one.pop("n_best", None)
    assert close(actual, expected)
    if kind == "span":
        (one,) = actual
        assert sum(candidate["probability"] for candidate in one["n_best"]) == pytest.approx(1.0)
        assert any((best["text"], best["start"]) == (one["label"], one["start"]) for best in one["n_best"])
    document = openapi.document([served.description], Limits(), paths=["/"])
    body = document["paths"]["/predict"]["post"]["requestBody"]["content"]["application/json"]
    for sent in ({"rows": rows}, body["example"], *(row for row in rows if isinstance(row, dict))):
        validated(document, body["schema"], sent)
    for one in actual:
        validated(document, forms.of(kind).prediction, one)
    assert len(answered(served, PREDICT, body["example"])) == 1


def test_a_model_of_pretraining_is_not_served(tmp_path):
    with pytest.raises(FlagError, match="pre-training models are not served; for masked words use python -m bert_tf"):
        served_by(pretrained.write_run(tmp_path / "run"))


def test_without_extensions_predictions_are_answered(tmp_path, project, monkeypatch):
    monkeypatch.setattr(extension, "installed", dict)
    monkeypatch.setattr(worker, "every", every.__wrapped__)
    run = write(tmp_path / "run", project, "similarity")
    assert served_by(run).description.calls == (PREDICT,)


class TestVectors:
    @pytest.fixture(scope="class")
    def served(self, tmp_path_factory, project):
        run = write(tmp_path_factory.mktemp("vectors") / "run", project, "similarity")
        return served_by(run, pooling="mean", layers="-1")

    def test_are_those_of_the_library(self, served):
        texts = ["rain came over", ["soup", "and bread"]]
        with bert_tf.load(served.description.checkpoint) as model:
            expected = model.encode([texts[0], tuple(texts[1])])
        vectors = answered(served, ENCODE, {"rows": texts})
        np.testing.assert_allclose(vectors, expected, atol=1e-6)
        unit = answered(served, ENCODE, {"rows": texts, "normalize": True})
        np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1.0, atol=1e-6)

    def test_are_offered_by_other_models_where_it_is_asked_for(self, tmp_path, project):
        run = write(tmp_path / "run", project, "tags")
        assert served_by(run).description.calls == (PREDICT, EXPLAIN)
        served = served_by(run, encode=True)
        assert served.description.calls == (PREDICT, EXPLAIN, ENCODE)
        assert len(answered(served, ENCODE, {"text": "rain"})) == 1

    def test_calls_may_share_a_batch(self, served):
        pair, text, rows = {"text_a": "rain", "text_b": "storm"}, {"text": "soup"}, {"rows": [["a", "b"]] * 2}
        parts = parts_of(served, (PREDICT, pair), (ENCODE, text), (PREDICT, rows), batch_tokens=99)
        vectors = [[json.loads(value) for value in answer] for answer in served.answers(parts)]
        assert [len(one) for one in vectors] == [1, 1, 2]
        assert [type(one[0]) for one in vectors] == [dict, list, dict]


class TestExplanations:
    @pytest.fixture(scope="class")
    def run(self, tmp_path_factory, project):
        return write(tmp_path_factory.mktemp("explained") / "run", project, "classification")

    @pytest.mark.parametrize("settings", [{}, {"engine": "onnxruntime"}])
    def test_are_those_of_the_library_and_of_the_document(self, run, settings):
        served = served_by(run, **settings)
        served.load()
        assert served.model.session("explain", "")._gradients is None  # until it is asked for
        asked = {"method": "occlusion", "label": "0"}
        (actual,) = answered(served, EXPLAIN, {"text_a": "rain came", "text_b": "storm", **asked})
        with bert_tf.load(run) as model:
            (expected,) = model.explain([["rain came", "storm"]], **asked)
        assert close(actual, plain(expected))
        document = openapi.document([served.description], Limits(), paths=["/"])
        post = document["paths"]["/explain"]["post"]
        body = post["requestBody"]["content"]["application/json"]
        validated(document, body["schema"], {"rows": [["rain came", "storm"]], **asked})
        validated(document, post["responses"]["200"]["content"]["application/json"]["schema"], actual)
        assert len(answered(served, EXPLAIN, body["example"])) == 1

    def test_that_cannot_be_made_fail_alone(self, run):
        served = served_by(run)
        asked = (EXPLAIN, {"text": "rain", "label": "2"}), (PREDICT, {"text": "rain"})
        failed, predicted = served.answers(parts_of(served, *asked))
        assert failed == Failed("label: unknown label '2' (known: 0, 1)")
        assert json.loads(predicted[0])["id"] == "row-0"


def test_a_model_has_the_name_of_its_folder(tmp_path, project, monkeypatch):
    monkeypatch.setenv("BERT_TF_HOME", str(tmp_path / "home"))
    with bert_tf.load(write(tmp_path / "run", project, "classification")) as model:
        model.export("huggingface", tmp_path / "finbert", pairs=False)
    for run, name in (("finbert", "finbert"), ("ru*", "run"), ("run:all", "run")):
        assert served_by(tmp_path / run).description.name == name


def test_weights_are_said_before_they_are_read(tmp_path, project):
    run = write(tmp_path / "run", project, "classification")
    on_disk = (run / "model.ckpt-20.data-00000-of-00001").stat().st_size
    described = served_by(run).description
    assert on_disk - 100 < described.weight_bytes <= on_disk
    assert (described.name, described.step) == ("run", "model.ckpt-20")
    assert served_by(run, encode=True).description.weight_bytes == described.weight_bytes
    assert served_by(run, encode=True, engine="onnxruntime").description.weight_bytes == 2 * described.weight_bytes


@pytest.mark.parametrize("command", ["", "run_classifier.py --train_file=train.csv --dev_file=dev.csv"])
@pytest.mark.parametrize(
    ("kind", "columns", "row", "texts"),
    [
        ("classification", {"text_a": "headline,body", "id_column": "key"}, {"headline": "a", "body": "b", "key": 7}, ("a b",)),
        ("classification", {"text_a": "headline,body"}, {"text": "a", "id": 7}, ("a",)),
        ("classification", {"text_a": "2"}, {"text": "a", "id": 7}, ("a",)),
        ("similarity", {"text_a": "title", "text_b": "body"}, {"title": "a", "body": "b", "id": 7}, ("a", "b")),
    ],
)
def test_rows_may_have_the_columns_of_the_training(project, tmp_path, kind, columns, row, texts, command):
    record = {"task_name": "custom", "kind": kind, **KINDS[kind][0], **columns}
    run = write_run(tmp_path / "run", project, [20], record=record)
    content = json.loads((run / RECORD).read_text())
    (run / RECORD).write_text(json.dumps({**content, "command": command}))
    served = served_by(run, encode=True)
    for call in (PREDICT, ENCODE):
        (part,) = parts_of(served, (call, row))
        assert [(one.guid, one.texts) for one in part.examples] == [("7", texts)]
    schema = openapi.document([served.description], Limits(), paths=())["components"]["schemas"]["Row"]
    jsonschema.validate(row, schema)

"""A service of several models: what is asked of which, and answers with the bytes of each one's own service."""

from __future__ import annotations

import dataclasses
import json
import urllib.parse

import jsonschema
import pytest

from bert_tf.errors import FlagError
from bert_tf.extensions.serve import question
from bert_tf.extensions.serve.settings import Limits, configured, names_of
from bert_tf.extensions.serve.worker import served
from bert_tf.extensions.together.joint import JointForward
from tests.extensions.serve.fakes import READER, Loading, Running, Toy, description, message
from tests.extensions.serve.runs import write

RUNS = ("/runs/first", "/runs/a b")
PAIRS = dataclasses.replace(READER, family=dataclasses.replace(READER.family, texts=2))


class Toys(Toy):
    """Answers with the name of the model and the texts of each row."""

    descriptions = (
        description(name="x", calls=("predict", "encode", "explain")),
        description(name="x", digest="d2" * 32, checkpoint="/runs/a b/model.ckpt-7", calls=("predict",)),
    )

    def __init__(self, *descriptions):
        self.descriptions = descriptions or self.descriptions
        super().__init__(self.descriptions[0])

    def answers(self, batch):
        self.batches.append([(one.call, one.models, one.tokens) for one in batch])
        return [
            [
                json.dumps([number, one.call, *example.texts]).encode()
                for number, some in one.of_models(one.examples)
                for example in some
            ]
            for one in batch
        ]


@pytest.fixture(scope="module")
def service():
    with Running(Toys(), runs=RUNS, admin=True, max_rows=4) as running:
        yield running


class TestAnswers:
    def test_of_one_model_are_as_those_of_its_own_service(self, service):
        status, said, _ = service.ask("/predict/a%20b", {"rows": ["a", ["b", "c"]]})
        assert status == 200
        assert said == {
            "model": {"name": "a b", "checkpoint": "model.ckpt-7", "digest": "d2d2d2d2d2d2"},
            "predictions": [[1, "predict", "a"], [1, "predict", "b", "c"]],
        }
        assert service.ask("/explain/first", {"text": "a"})[1] == [0, "explain", "a"]
        assert service.ask("/encode/first", {"rows": ["a"]})[1]["vectors"] == [[0, "encode", "a"]]

    @pytest.mark.parametrize(("more", "names"), [({}, ["first", "a b"]), ({"models": ["a b", "first"]}, ["a b", "first"])])
    def test_of_several_are_one_response(self, service, more, names):
        status, said, _ = service.ask("/predict", {"rows": ["a", "b"], **more})
        assert status == 200
        assert list(said["answers"]) == names
        for name in names:
            number = ["first", "a b"].index(name)
            assert said["answers"][name]["predictions"] == [[number, "predict", "a"], [number, "predict", "b"]]
            assert said["answers"][name] == service.ask(f"/predict/{urllib.parse.quote(name)}", {"rows": ["a", "b"]})[1]

    def test_a_row_may_be_the_body_and_of_no_rows_there_are_none(self, service):
        _, said, _ = service.ask("/predict", {"text": "a", "models": ["first"]})
        assert said["answers"]["first"]["predictions"] == [[0, "predict", "a"]]
        assert [one["predictions"] for one in service.ask("/predict", {"rows": []})[1]["answers"].values()] == [[], []]

    @pytest.mark.parametrize(
        ("trunks", "tokens"), [(("a", "a", "a"), 4 + 3), (("a", "b", "a"), 2 * (4 + 3)), (("a", "b", "c"), 3 * (4 + 3))]
    )
    def test_tokens_of_a_row_count_once_for_models_that_share_layers(self, trunks, tokens):
        toys = Toys(*(description(trunk=trunk) for trunk in trunks))
        with Running(toys, runs=(*RUNS, "/runs/c"), max_request_tokens=tokens) as running:
            assert running.ask("/predict", {"rows": ["a b", "c"]})[0] == 200
            assert toys.batches == [[("predict", (0, 1, 2), tokens)]]
            status, line = message(running.ask("/predict", {"rows": ["a b", "c d"]}))
            assert (status, f"at most {tokens}; send less" in line) == (413, True)

    def test_batches_have_the_tokens_of_all_models_that_share_nothing(self):
        toys = Toys(description(trunk="a"), description(trunk="b"))
        with Running(toys, runs=RUNS, batch_tokens=12) as running:
            running.ask("/predict", {"rows": ["a", "b", "c"]})
            assert sorted(tokens for batch in toys.batches for *_, tokens in batch) == [6, 12]


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("/predict/other", {"rows": []}, 404, "there is no model 'other'; there are first, a b"),
        ("/encode", {"rows": []}, 404, "encode takes one model: POST /encode/NAME, with one of first, a b"),
        ("/encode/a%20b", {"rows": []}, 404, "this model offers only predict; start the service with --encode"),
        ("/predict", {"rows": [], "models": []}, 422, "models is empty; list some of first, a b"),
        ("/predict", {"rows": [], "models": "first"}, 422, "models is a string; list some of first, a b"),
        ("/predict", {"rows": [], "models": ["no"]}, 422, "models: there is no model 'no'; there are first, a b"),
        ("/predict", {"rows": [], "models": [["a"]]}, 422, "models: there is no model ['a']; there are first, a b"),
        ("/predict", {"rows": [], "models": ["first", "first"]}, 422, "models: name each model once"),
        ("/predict", {"rows": ["a"] * 5}, 413, "5 rows, at most 4"),
        ("/predict", {"rows": ["a", 5]}, 422, "model first: row 1: is 5; give a text"),
        ("/predict/first", {"rows": [], "models": []}, 422, "unknown key 'models' beside rows"),
    ],
)
def test_what_cannot_be_asked_is_one_line(service, path, body, status, said):
    answered, line = message(service.ask(path, body))
    assert answered == status
    assert said in line


def test_health_and_metrics_tell_the_models_apart(service):
    assert [one["name"] for one in service.ask("/health")[1]["models"]] == ["first", "a b"]
    assert [one["name"] for one in service.ask("/reload", method="POST")[1]["models"]] == ["first", "a b"]
    service.ask("/predict/a%20b", {"rows": ["a"]})
    figures = service.ask("/metrics")[1]
    assert 'bert_tf_model{checkpoint="a b/model.ckpt-7",digest="d2d2d2d2d2d2"} 1.0' in figures
    assert 'bert_tf_requests_total{path="/predict/a b",status="200"}' in figures


def test_the_document_describes_each_model(service):
    document = service.ask("/openapi.json")[1]
    assert [path for path, methods in document["paths"].items() if "post" in methods] == [
        "/predict",
        "/predict/first",
        "/explain/first",
        "/encode/first",
        "/predict/a%20b",
        "/reload",
    ]
    post = document["paths"]["/predict"]["post"]
    content = post["requestBody"]["content"]["application/json"]
    status, _, _ = service.ask("/predict", content["example"])
    assert status == 200
    components = {"components": document["components"]}
    jsonschema.validate(content["example"], {**content["schema"], **components})
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"rows": [], "models": ["other"]}, {**content["schema"], **components})
    answer = post["responses"]["200"]["content"]["application/json"]["schema"]
    model = service.ask("/health")[1]["models"][0]
    jsonschema.validate({"answers": {"first": {"model": model, "predictions": []}}}, {**answer, **components})
    assert "POST /predict/a%20b" in service.ask("/docs")[1]


def test_the_document_names_the_models_while_they_are_loading(service):
    loading = Loading()
    with Running(loading, runs=RUNS, admin=True, waits=False) as running:
        document = running.ask("/openapi.json")[1]
        assert "POST /predict/a%20b" in running.ask("/docs")[1]
        loading.free.set()
    of_loaded = service.ask("/openapi.json")[1]["paths"]
    assert set(of_loaded) - set(document["paths"]) == {"/explain/first", "/encode/first"}  # calls of a loaded model
    assert document["paths"]["/reload"] == of_loaded["/reload"]
    asked, known = (
        paths["/predict"]["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"]["models"]
        for paths in (document["paths"], of_loaded)
    )
    assert asked == known


def test_the_log_has_the_most_that_the_weights_can_be(caplog):
    caplog.set_level("INFO")
    toys = Toys(description(weight_bytes=20_000_000), description(weight_bytes=30_000_000))
    with Running(toys, runs=RUNS, workers=2):
        assert "2 models: weights of at most 50 MB for each of 2 workers" in caplog.text


def test_the_page_is_of_a_model_and_links_to_the_others(service):
    page = service.ask("/?model=a%20b")[1]
    assert 'data-model="/a%20b"' in page
    assert '<a href="?model=first">first</a>' in page
    assert 'data-model="/first"' in service.ask("/")[1]


def test_a_row_that_one_model_does_not_take_names_it():
    with Running(Toys(description(), description(reader=PAIRS)), runs=RUNS) as running:
        assert message(running.ask("/predict", {"rows": ["a"]}))[1].startswith("model a b: row 0: ")
        assert running.ask("/predict", {"rows": ["a"], "models": ["first"]})[0] == 200


class TestSettings:
    def test_models_of_one_name_are_refused(self, tmp_path):
        for run in ("a/mrpc/best", "b/mrpc", "b/best", "c/model.ckpt-1.index"):
            path = tmp_path / run
            (path.parent if path.suffix else path).mkdir(parents=True)
            if path.suffix:
                path.touch()
        names = names_of([str(tmp_path / run) for run in ("a/mrpc/best", "c/model.ckpt-1", "b/best")])
        assert names == ("mrpc", "c", "b")
        with pytest.raises(
            FlagError,
            match="two models are named mrpc, by which requests tell them apart; give a link to the folder .*/b/mrpc with",
        ):
            configured(str(tmp_path / "a/mrpc"), str(tmp_path / "b/mrpc"))

    @pytest.mark.parametrize(
        ("runs", "remedy"),
        [
            (
                ("hub:a/bert", "hub:b/bert"),
                "fetch one into a folder (hf download b/bert --local-dir=NAME) and give that instead",
            ),
            (("hub:a/bert", "hub:a/bert@v2"), "(hf download a/bert --revision=v2 --local-dir=NAME) and give that instead"),
            (("hub:a/bert", "hub:a/bert"), "they are the same: leave one out"),
            (("/no/bert", "hub:a/bert"), "give a link to the folder /no/bert with another name (ln -s)"),
            (("hub:a/bert", "/no/bert"), "give a link to the folder /no/bert with another name (ln -s)"),
            (("/no/bert", "/no/bert/"), "they are the same: leave one out"),
        ],
    )
    def test_what_gives_models_of_one_name_others(self, runs, remedy):
        with pytest.raises(FlagError) as refused:
            names_of(runs)
        assert str(refused.value).endswith(remedy)

    def test_checkpoints_of_one_run_have_names_of_their_own(self, tmp_path):
        for checkpoint in ("model.ckpt-1", "model.ckpt-2", "best/model.ckpt-1"):
            (tmp_path / "my run" / checkpoint).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "my run" / f"{checkpoint}.index").touch()
        runs = ("my run/model.ckpt-1", "my run/model.ckpt-2", "my run/best", "my run", "other")
        names = ("my run-model.ckpt-1", "my run-model.ckpt-2", "my run-best", "my run", "other")
        assert names_of([str(tmp_path / run) for run in runs]) == names

    def test_what_is_not_computed_together_is_refused(self, tmp_path):
        with pytest.raises(FlagError, match="--engine=onnxruntime: several checkpoints are computed by TensorFlow"):
            configured("a", "b", engine="onnxruntime")
        (tmp_path / "exported").mkdir()
        (tmp_path / "exported/model.onnx").touch()
        with pytest.raises(FlagError, match="exported is an exported model; name runs alone, or export them to one folder"):
            configured("a", str(tmp_path / "exported"))


KINDS = {"classes": "classification", "words": "tags", "number": "regression"}


class TestRealModels:
    @pytest.fixture(scope="class")
    def runs(self, tmp_path_factory, project):
        """Runs of several tasks on one encoder; not to be changed."""
        folder = tmp_path_factory.mktemp("several")
        return [write(folder / name, project, kind) for name, kind in KINDS.items()]

    @pytest.fixture(scope="class")
    def together(self, runs):
        made = served(configured(*map(str, runs), encode=True))
        made.load()
        return made

    def parts(self, together, body):
        return question.read_several(json.dumps(body).encode(), together.descriptions, Limits(), batch_tokens=99)[1]

    def test_each_answers_with_the_bytes_of_its_own_service(self, runs, together):
        rows = ["rain came over the old wind", "a red pear", "rain came over the old wind"]
        (part,) = self.parts(together, {"rows": rows})
        (answer,) = together.answers([part])
        for (number, own_answer), run in zip(part.of_models(answer), runs):
            alone = served(configured(str(run)))
            body = json.dumps({"rows": rows[:2]}).encode()
            (own,) = question.read_parts("predict", body, alone.description.reader, Limits(), batch_tokens=99)
            assert own_answer[:2] == alone.answers([own])[0], number
            assert json.loads(own_answer[2]) == {**json.loads(own_answer[0]), "id": "row-2"}

    def test_a_trunk_is_computed_once_for_requests_of_all_models(self, together, monkeypatch):
        computed, outputs_of = [], JointForward.outputs_of

        def counted(joint, features, asked, **options):
            computed.append((len(features), {number: rows.tolist() for number, rows in asked.items()}))
            return outputs_of(joint, features, asked, **options)

        monkeypatch.setattr(JointForward, "outputs_of", counted)
        both = self.parts(together, {"rows": ["soup", "salt"], "models": ["classes", "words"]})
        alone = self.parts(together, {"rows": ["rain", "soup"], "models": ["number"]})
        together.answers([*both, *alone])
        assert computed == [(3, {0: [True, True, False], 1: [True, True, False], 2: [True, False, True]})]

    def test_the_trunk_tells_models_of_other_lowest_layers_apart(self, runs, project, tmp_path):
        other = write(tmp_path / "other", project, "classification", [21])
        trunks = [one.trunk for one in served(configured(*map(str, runs), str(other))).descriptions]
        assert len(set(trunks[:3])) == 1
        assert trunks[3] not in trunks[:3]

    def test_weights_are_those_of_predictions_and_of_other_calls(self, runs, together):
        for run, described in zip(runs, together.descriptions):
            own = served(configured(str(run))).model.weight_bytes
            assert described.weight_bytes == 2 * own

    def test_the_engine_is_closed_with_the_models(self, runs, monkeypatch):
        closed = []
        monkeypatch.setattr(JointForward, "close", lambda joint: closed.append(joint))
        served(configured(*map(str, runs))).close()
        assert closed == []
        made = served(configured(*map(str, runs)))
        made.load()
        made.close()
        assert len(closed) == 1

    def test_other_calls_are_of_one_model(self, runs, together):
        (part,) = question.read_parts("explain", b'{"text": "rain", "method": "occlusion"}', READER, Limits(), batch_tokens=99)
        alone = served(configured(str(runs[0])))
        (predict,) = self.parts(together, {"text": "rain"})
        answer, predicted = together.answers([dataclasses.replace(part, models=(0,)), predict])
        assert (answer, len(predicted)) == (alone.answers([part])[0], 3)

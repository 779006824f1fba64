"""A SavedModel says what the package says, in a process that knows nothing of it."""

import contextlib
import functools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

import bert_tf
from bert_tf.errors import FlagError
from bert_tf.modeling.heads import registry as heads
from bert_tf.tasks import families
from bert_tf.tasks import registry as tasks
from tests import toy_tags
from tests.extensions.export.runs import CASES, LENGTH, random_rows, values, write_run

tf1 = tf.compat.v1

CLIENT = Path(__file__).with_name("client.py")
IDS = {"input_ids": [[2, 5, 6, 3], [2, 7, 3, 0]], "input_mask": [[1, 1, 1, 1], [1, 1, 1, 0]], "segment_ids": [[0] * 4] * 2}
CLOSE = 1e-5


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Loaded models by case."""
    folder = tmp_path_factory.mktemp("runs")
    with contextlib.ExitStack() as opened:

        @functools.cache
        def of_case(name):
            run = write_run(folder / name, CASES[name].record, CASES[name].decision)
            return opened.enter_context(bert_tf.load(run))

        yield of_case


@pytest.fixture(scope="module")
def exported(models, tmp_path_factory):
    """Folders of SavedModels by case."""
    folder = tmp_path_factory.mktemp("exported")
    return functools.cache(lambda name: models(name).export("saved_model", folder / name, **CASES[name].options))


@pytest.fixture(scope="module")
def all_said(exported):
    """What each model says of its rows, of random ones, and of none, by case; each model is loaded once."""

    @functools.cache
    def of_case(name):
        case, rows = CASES[name], values(CASES[name])
        nothing = {key: np.zeros([0, *np.shape(value)[1:]], object) for key, value in rows.items()}
        calls = (rows, values(case, random_rows(name, 60, seed=4)), nothing)
        return [said for _, said in answers(exported(name), [("serving_default", inputs) for inputs in calls])]

    return of_case


def outputs(folder, signature, inputs):
    """Returns the outputs of a call, as lists; TensorFlow's first loader is quick."""
    ((_, said),) = answers(folder, [(signature, inputs)])
    return said


def answers(folder, calls):
    """Yields signature and outputs of each call."""
    with tf.Graph().as_default(), tf1.Session() as session:
        signatures = tf1.saved_model.load(session, ["serve"], str(folder)).signature_def
        for name, inputs in calls:
            fed = {signatures[name].inputs[key].name: value for key, value in inputs.items()}
            values = session.run({key: info.name for key, info in signatures[name].outputs.items()}, fed)
            yield name, {key: plain(value.tolist()) for key, value in values.items()}


def plain(value):
    return value.decode() if isinstance(value, bytes) else [plain(one) for one in value] if isinstance(value, list) else value


@pytest.mark.several_machines
def test_a_process_without_the_package_hears_the_same(exported, all_said, tmp_path):
    calls = {str(exported("tags")): {"serving_default": values(CASES["tags"])}}
    done = subprocess.run(
        [sys.executable, "-I", CLIENT],
        input=json.dumps(calls),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    heard = json.loads(done.stdout)
    assert not heard["foreign"]
    for folder, answers in heard["answers"].items():
        wanted = all_said(Path(folder).name)[0]
        assert answers["serving_default"].keys() == wanted.keys()
        for name, said in answers["serving_default"].items():
            assert_alike(said, wanted[name])


def assert_alike(said, wanted):
    """Lists are padded with empty texts and zeros."""
    if isinstance(wanted, list):
        for one, other in zip(said, wanted):
            assert_alike(one, other)
        assert not any(said[len(wanted) :])
    else:
        assert said == (wanted if isinstance(wanted, str) else pytest.approx(wanted, abs=CLOSE))


@pytest.mark.parametrize("name", CASES)
def test_texts_of_any_number_and_length_have_the_predictions_of_the_package(all_said, models, name):
    of_rows, of_random, of_none = all_said(name)
    for said, rows in ((of_rows, CASES[name].rows), (of_random, random_rows(name, 60, seed=4))):
        for number, one in enumerate(models(name).predict(rows)):
            wanted = {key: of_prediction(one) for key, of_prediction in CASES[name].wanted.items()}
            for key in (key for key in wanted if wanted[key] is not None):  # odds where there is no candidate
                assert_alike(said[key][number], wanted[key])
    assert not any(map(np.size, of_none.values()))


@pytest.mark.parametrize(("name", "first"), [("similarity", "text_a"), ("options", "context")])
def test_texts_that_differ_in_number_are_not_mixed_up(exported, name, first):
    inputs = values(CASES[name])
    assert len(inputs[first]) > 1
    with pytest.raises(tf.errors.InvalidArgumentError):
        outputs(exported(name), "serving_default", {**inputs, first: inputs[first][:1]})


def test_words_and_answers_are_cut_out_of_their_text_with_the_accents_that_follow(all_said, models):
    tags, rows = all_said("tags")[0], CASES["tags"].rows
    for number, one in enumerate(models("tags").predict(rows)):
        spans = zip(tags["first_characters"][number], tags["after_characters"][number])
        assert tuple(rows[number][start:end] for start, end in spans if start >= 0) == one.words
    answers = all_said("answers")[0]
    for row, answer, start, end in zip(CASES["answers"].rows, answers["answer"], answers["start"], answers["end"]):
        assert row["context"][start:end] == answer


@pytest.mark.parametrize("name", ["pairs", "similarity"])
def test_vectors_are_those_of_the_package(exported, models, name):
    texts = ["rain and wind", "soup"]
    wanted = models(name).encode(texts, normalize=name == "similarity")
    np.testing.assert_allclose(outputs(exported(name), "vectors", {"text": texts})["vectors"], wanted, atol=CLOSE)


def example(**columns):
    lists = {name: tf.train.Feature(int64_list=tf.train.Int64List(value=values)) for name, values in columns.items()}
    return tf.train.Example(features=tf.train.Features(feature=lists)).SerializeToString()


@pytest.mark.parametrize("segment", [-1, 2])
def test_a_segment_that_the_model_does_not_know_is_refused(exported, segment):
    inputs = {**IDS, "segment_ids": [[0, 0, segment, 0], [0] * 4]}
    with pytest.raises(tf.errors.InvalidArgumentError, match="segment_ids are 0 to 1: 0 for the first text, 1 for the second"):
        outputs(exported("pairs"), "ids", inputs)


@pytest.mark.versions
def test_requests_for_warming_up_can_be_answered(exported):
    for name in ("options", "answers"):
        path = exported(name) / "assets.extra" / "tf_serving_warmup_requests"
        logs = [PredictionLog.FromString(record.numpy()) for record in tf.data.TFRecordDataset(str(path))]
        requests = [log.predict_log.request for log in logs]
        calls = [
            (request.model_spec.signature_name, {key: tf.make_ndarray(value) for key, value in request.inputs.items()})
            for request in requests
        ]
        answered = [signature for signature, said in answers(exported(name), calls) if said]
        assert len(answered) == 2 * len(set(answered)) == len(calls)
        assert {"serving_default", "ids", "examples", "vectors"} <= set(answered)


def test_assets_hold_vocabulary_and_thresholds_and_of_the_run_only_weights_are_kept(exported, models):
    with tf.Graph().as_default(), tf1.Session() as session:
        meta_graph = tf1.saved_model.load(session, ["serve"], str(exported("pairs")))
    assert {asset.filename for asset in meta_graph.asset_file_def} == {"vocab.txt", "decisions.json"}
    said = json.loads((exported("several labels") / "assets" / "decisions.json").read_text())
    assert (said["labels"], said["decision"]) == (["x", "y", "z"], {"thresholds": [0.2, 0.9, 0.5]})
    assert "threshold" not in said  # one for all labels, where none was chosen
    vocabulary = (Path(models("pairs").checkpoint).parent / "vocab.txt").read_bytes()
    assert (exported("pairs") / "assets" / "vocab.txt").read_bytes() == vocabulary
    saved = tf.train.load_checkpoint(str(exported("pairs") / "variables" / "variables"))
    assert not [name for name in saved.get_variable_to_shape_map() if "adam" in name.lower() or "step" in name]
    assert b"device:" not in (exported("pairs") / "saved_model.pb").read_bytes()


def test_the_same_bytes_twice_wherever_they_are_written(exported, models, tmp_path):
    again = models("pairs").export("saved_model", tmp_path / "another" / "place")
    files = {path.relative_to(again): path for path in again.rglob("*") if path.is_file()}
    assert len(files) == 7
    for name, path in files.items():
        assert path.read_bytes() == (exported("pairs") / name).read_bytes(), name
    assert str(tmp_path).encode() not in (again / "saved_model.pb").read_bytes()


def test_inputs_are_as_long_as_the_model_reads_them_and_examples_of_any_length_are_those_of_ids(exported):
    texts = {"text_a": ["wind " * 40, "wind " * 11], "text_b": ["wind " * 50, "wind " * 10]}
    long, cut = outputs(exported("pairs"), "serving_default", texts)["probabilities"]
    assert LENGTH < 40
    np.testing.assert_allclose(long, cut, atol=CLOSE)
    long, short = ({name: rows[number][:size] for name, rows in IDS.items()} for number, size in enumerate((4, 3)))
    examples = [example(**long), example(**short), example(input_ids=short["input_ids"])]
    probabilities = np.array(outputs(exported("pairs"), "examples", {"examples": examples})["probabilities"])
    wanted = np.array(outputs(exported("pairs"), "ids", IDS)["probabilities"])
    np.testing.assert_allclose(probabilities, wanted[[0, 1, 1]], atol=CLOSE)


def test_models_of_texts_in_memory_have_to_be_told_whether_they_read_pairs(models, tmp_path):
    with pytest.raises(FlagError, match="unknown whether its inputs are text pairs; give --pairs or --nopairs"):
        models("texts").export("saved_model", tmp_path / "a")
    assert not list(tmp_path.iterdir())


def test_kinds_from_outside_take_ids(tmp_path, monkeypatch):
    monkeypatch.setitem(families._FAMILIES, toy_tags.KIND, toy_tags.TagFamily)
    monkeypatch.setitem(heads._HEADS, toy_tags.KIND, toy_tags.TagHead)
    monkeypatch.setitem(tasks._registered, toy_tags.NAME, toy_tags.TagTask())
    record = {"task_name": toy_tags.NAME, "kind": toy_tags.KIND, "labels": list(toy_tags.TAGS)}
    with bert_tf.load(write_run(tmp_path / "run", record)) as model:
        folder = model.export("saved_model", tmp_path / "exported")
    assert outputs(folder, "serving_default", IDS) == outputs(folder, "ids", IDS)

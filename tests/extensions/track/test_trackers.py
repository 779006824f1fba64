"""TensorBoard's files, what goes to Weights & Biases, and models for MLflow."""

import json
import os
import resource
import shutil
import threading
from types import SimpleNamespace

import numpy as np
import pandas
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.errors import OutputError
from bert_tf.extensions.track import replay, to_tensorboard, to_wandb
from bert_tf.library import mlflow_model
from tests.batch.runs import MRPC, decide, write_run
from tests.extensions.report import example
from tests.extensions.track.test_replay import POINTS

ROWS = [("the old rain", "a storm came"), ("bread", "the wind")]


def summaries(folder):
    for path in sorted((folder / "tracking" / "tensorboard").iterdir()):
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                yield event.step, value


def scalars(folder):
    return [(value.tag, step, value.simple_value) for step, value in summaries(folder) if not value.HasField("tensor")]


def test_tensorboard_gets_scalars_once_and_its_files_are_written_anew_without_a_state(folder):
    for expected in (POINTS, 0):
        assert bert_tf.track(folder, tracker="tensorboard")[0].points == expected
    points = scalars(folder)
    assert len(points) == len(set(points)) == POINTS
    assert ("train/loss", 20, 0.5) in points
    (folder / "tracking" / "tensorboard.json").unlink()
    bert_tf.track(folder, tracker="tensorboard")
    assert len(scalars(folder)) == POINTS


def test_long_fields_of_protobuf_have_lengths_of_several_bytes():
    assert to_tensorboard._field(1, b"x" * 300) == b"\x0a\xac\x02" + b"x" * 300


def test_tensorboard_has_settings_metrics_and_status_of_each_run_of_a_sweep(tmp_path):
    """What its page HParams makes a table of; numbers of fields are those of its plugin's messages."""
    rates = {f"MRPC-trial{number}": 10.0**-number for number in (4, 5)}
    (tmp_path / "sweep.tsv").touch()
    for name, rate in rates.items():
        example.write_json(tmp_path / name / "run_config.json", example.record(learning_rate=rate))
        example.write_json(tmp_path / name / "eval_results.json", example.results(rate))
    assert [sent.run.name for sent in bert_tf.track(tmp_path, tracker="tensorboard")] == list(rates)
    for name, rate in rates.items():
        by_tag = {value.tag: value for _, value in summaries(tmp_path / name)}
        begun, ended = (by_tag[f"_hparams_/session_{part}_info"].metadata.plugin_data for part in ("start", "end"))
        assert begun.plugin_name == ended.plugin_name == "hparams"
        assert b"\x0a\x0dlearning_rate\x12\x09\x11" + np.float64(rate).tobytes() in begun.content  # a number
        assert b"\x0a\x09task_name\x12\x05\x1a\x03RTE" in begun.content
        assert ended.content == b"\x22\x02\x08\x01"  # field 4: status (1) is success (1)
        assert by_tag["dev/accuracy"].simple_value == np.float32(rate)
        assert tf.make_ndarray(by_tag["bert_tf.sweep"].tensor) == tmp_path.name.encode()


@pytest.fixture
def _small_disk():
    """No file may have more than 1,000 bytes: what writes more fails like on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("_small_disk")
def test_event_files_that_cannot_be_written_are_one_line(folder, monkeypatch, caplog):
    of_threads = []
    monkeypatch.setattr(threading, "excepthook", of_threads.append)
    with pytest.raises(
        OutputError, match="not all was sent to tensorboard: .*File too large.*; repeat the command to send the"
    ):
        bert_tf.track(folder, tracker="tensorboard")
    assert of_threads == []
    assert "thread error" not in caplog.text


@pytest.fixture
def wandb(tmp_path, monkeypatch):
    """A double of wandb: the settings and the session of each run that began."""
    begun = []

    def init(**settings):
        begun.append((settings, Session(tmp_path)))
        return begun[-1][1]

    package, connect = SimpleNamespace(init=init, Settings=lambda **_: None), replay.connect
    doubles = {"wandb": lambda _, place: to_wandb.Wandb(package, place)}
    monkeypatch.setattr(replay, "connect", lambda name, place: doubles.get(name, connect)(name, place))
    return begun


def send(folder):
    with replay.opened(folder, "wandb") as sender:
        sender.send()


@pytest.mark.parametrize("marker", ["sweep.tsv", "sweep.json"])
def test_a_run_of_a_sweep_has_its_name_as_group_and_tag(folder, server, wandb, marker):
    (folder.parent / marker).touch()
    bert_tf.track(folder, tracker="mlflow")
    assert next(iter(server()["runs"].values()))["tags"]["bert_tf.sweep"] == folder.parent.name
    send(folder)
    assert wandb[0][0]["group"] == folder.parent.name


class Session:
    """A double of a run of wandb."""

    def __init__(self, folder):
        self.dir, self.summary, self.rows, self.saved, self.ended = str(folder), {}, [], [], None
        self.config = SimpleNamespace(update=lambda values, **_: self.summary.update(config=values))

    def define_metric(self, *_, **__):
        pass

    def log(self, row):
        self.rows.append(row)

    def save(self, path, base_path, policy):
        assert os.path.dirname(path) == base_path
        assert policy == "now"
        self.saved.append(os.path.basename(path))

    def finish(self, exit_code):
        self.ended = exit_code


def test_wandb_gets_a_row_for_each_step_once(folder, wandb):
    for _ in range(2):
        send(folder)
    ((settings, session),) = wandb  # the second has nothing to send
    assert settings["id"]
    assert "group" not in settings  # of a run that belongs to no sweep
    assert [row["step"] for row in session.rows] == [10, 20]
    assert sum(len(row) - 1 for row in session.rows) == POINTS
    assert session.summary["config"]["seed"] == "1"
    assert (session.saved, session.ended) == (["run_config.json", "vocab.txt"], 0)
    assert len(json.loads(session.summary["bert_tf_sent"])) == POINTS // 2


def test_mlflow_predicts_what_the_package_does_and_a_checkpoint_is_registered_once(server, tmp_path, project):
    run = decide(write_run(tmp_path / "run", project, steps=[20], record={**MRPC, "texts": 2}), 20)
    for _ in range(2):
        (sent,) = bert_tf.track(run, tracker="mlflow", register="mine")
        assert sent.version == "1"
    shutil.copytree(run, tmp_path / "fold-1").rename(run / "fold-1")
    sent = bert_tf.track(run, tracker="mlflow", register="mine")
    assert [(one.run.name, one.version) for one in sent] == [
        ("run", "1"),
        ("fold-1", ""),
    ]  # of a part of the rows
    (version,) = server()["versions"]
    model = tmp_path / "server" / version["source"].removeprefix("store/")
    module, (inputs, outputs), requirements = json.loads((model / "MLmodel").read_text())
    assert (module, inputs) == (mlflow_model.__name__, [["string", "text_a"], ["string", "text_b"]])
    assert [name for _, name in outputs] == ["label", "probability_0", "probability_1"]
    assert requirements[0] == f"bert_tf=={bert_tf.__version__}"
    frame = mlflow_model._load_pyfunc(str(model / "data")).predict(pandas.DataFrame(ROWS, columns=["text_a", "text_b"]))
    with bert_tf.load(run) as expected:
        results = expected.predict(ROWS)
    assert list(frame["label"]) == [one.label for one in results]
    assert list(frame["probability_1"]) == [one.probabilities["1"] for one in results]

"""TensorBoard's files, what goes to Weights & Biases, and models for MLflow."""

from __future__ import annotations

import json
import os
from types import SimpleNamespace

import numpy as np
import pandas
import tensorflow as tf

import bert_tf
from bert_tf.library import mlflow_model
from bert_tf.tracking import replay, to_tensorboard, to_wandb
from tests.batch.runs import MRPC, write_run
from tests.tracking.test_replay import POINTS

ROWS = [("the old rain", "a storm came"), ("bread", "the wind")]


def summaries(folder):
    for path in sorted((folder / "tracking" / "tensorboard").iterdir()):
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                yield event.step, value


def test_tensorboard_gets_scalars_once(folder):
    for expected in (POINTS, 0):
        assert bert_tf.track(folder, tracker="tensorboard")[0].points == expected
    found = [(value.tag, step, value.simple_value) for step, value in summaries(folder) if not value.HasField("tensor")]
    assert len(found) == len(set(found)) == POINTS
    assert ("train/loss", 20, 0.5) in found


def test_tensorboard_s_files_are_written_anew_without_a_state(folder):
    bert_tf.track(folder, tracker="tensorboard")
    (folder / "tracking" / "tensorboard.json").unlink()
    bert_tf.track(folder, tracker="tensorboard")
    assert len([value for _, value in summaries(folder) if not value.HasField("tensor")]) == POINTS


def test_tensorboard_gets_settings_as_hyperparameters(folder):
    bert_tf.track(folder, tracker="tensorboard")
    found = {value.tag: value.metadata.plugin_data for _, value in summaries(folder) if value.metadata.plugin_data.content}
    assert {data.plugin_name for data in found.values()} == {"hparams"}
    assert found["_hparams_/session_end_info"].content == b"\x22\x02\x08\x01"  # field 4: status (1) is success (1)
    start = found["_hparams_/session_start_info"].content
    assert b"\x0a\x04seed\x12\x09\x11" + np.float64(1).tobytes() in start  # key: "seed", value: a number
    assert b"\x0a\x09task_name\x12\x05\x1a\x03RTE" in start


def test_long_fields_of_protobuf_have_lengths_of_several_bytes():
    assert to_tensorboard._field(1, b"x" * 300) == b"\x0a\xac\x02" + b"x" * 300


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


def test_wandb_gets_a_row_for_each_step_once(folder, tmp_path, monkeypatch):
    sessions = []

    def init(**settings):
        assert settings["id"]
        sessions.append(Session(tmp_path))
        return sessions[-1]

    package = SimpleNamespace(init=init, Settings=lambda **_: None)
    monkeypatch.setattr(replay, "connect", lambda _, place: to_wandb.Wandb(package, place))
    for _ in range(2):
        with replay.opened(folder, "wandb") as sender:
            sender.send()
    (session,) = sessions  # the second has nothing to send
    assert [row["step"] for row in session.rows] == [10, 20]
    assert sum(len(row) - 1 for row in session.rows) == POINTS
    assert session.summary["config"]["seed"] == "1"
    assert (session.saved, session.ended) == (["run_config.json", "vocab.txt"], 0)
    assert len(json.loads(session.summary["bert_tf_sent"])) == POINTS // 2


def test_mlflow_predicts_what_the_package_does_and_a_checkpoint_is_registered_once(server, tmp_path, project):
    run = write_run(tmp_path / "run", project, record={**MRPC, "texts": 2})
    for _ in range(2):
        (sent,) = bert_tf.track(run, tracker="mlflow", register="mine")
        assert sent.version == "1"
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

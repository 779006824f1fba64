"""A run is reported while it trains: by a process of its own, for which training does not wait."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from bert_tf.errors import FlagError
from bert_tf.extensions.track import follow, trackers
from bert_tf.training.run_spec import configured
from tests import classifier
from tests.extensions.report import example
from tests.extensions.report.example import write_lines
from tests.extensions.track.conftest import write_results
from tests.tiny import held


@pytest.fixture
def training():
    """A process that stands for a training."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.communicate()


@pytest.fixture(autouse=True)
def _not_nice(monkeypatch):
    monkeypatch.setattr(follow.os, "nice", lambda _: None)


def followed(folder, pid, **settings):
    said = []
    follow.follow(folder, "mlflow", pid, say=said.append, **{"pause_s": 0.01, **settings})
    return said


def test_follows_until_training_ends_and_sends_what_it_wrote_last(server, folder, training, monkeypatch):
    (folder / ".writer.json").write_text(json.dumps({"host": socket.gethostname(), "pid": training.pid}))
    write_lines(folder / "metrics.jsonl", example.METRICS[:1])
    waited = follow._wait

    def ending(seconds, is_training):
        assert server()["runs"]["remote-0"]["status"] == "RUNNING"
        assert is_training()
        write_lines(folder / "metrics.jsonl", example.METRICS)
        write_results(folder)
        training.communicate()
        waited(seconds, is_training)

    monkeypatch.setattr(follow, "_wait", ending)
    assert followed(folder, training.pid) == ["all is sent to mlflow, run remote-0"]
    (run,) = server()["runs"].values()
    assert run["status"] == "FINISHED"
    assert {"train/loss", "dev/accuracy"} <= {name for name, step, _ in run["metrics"] if step == 20}


def test_a_training_ends_before_its_notebook(server, folder, training):
    assert followed(folder, training.pid) == ["all is sent to mlflow, run remote-0"]  # it no longer writes to the folder
    assert server()["runs"]


@pytest.mark.usefixtures("server")
def test_a_tracker_that_stays_away_is_given_up(folder, training, monkeypatch):
    training.communicate()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "/nowhere/store.json")
    said = followed(folder, training.pid, patience_s=0.05)
    assert len(said) == 2  # an error is said once
    assert said[0].endswith("not all was sent to mlflow: no server; repeat the command to send the rest")
    assert said[1].startswith("given up; python -m bert_tf track ")


def test_a_tracker_that_comes_back_gets_everything(server, folder, training, monkeypatch):
    training.communicate()
    place = os.environ["MLFLOW_TRACKING_URI"]
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "/nowhere/store.json")
    monkeypatch.setattr(follow, "_wait", lambda *_: monkeypatch.setenv("MLFLOW_TRACKING_URI", place))
    assert followed(folder, training.pid)[-1] == "all is sent to mlflow, run remote-0"
    assert len(server()["runs"]) == 1


def test_ends_if_the_folder_holds_another_run(server, folder, training, monkeypatch):
    (folder / ".writer.json").write_text(json.dumps({"host": socket.gethostname(), "pid": training.pid}))
    other = json.dumps(example.record(seed=2))
    monkeypatch.setattr(follow, "_wait", lambda *_: (folder / "run_config.json").write_text(other))
    assert followed(folder, training.pid) == [f"{folder}: holds another run by now"]
    assert len(server()["runs"]) == 1


def train(project, output, capfd, **flags):
    assert classifier.run(*project.flags(output, num_train_steps=2, do_train=True, **flags)) == 0
    return capfd.readouterr().err


def process_of(log):
    (line,) = re.findall(r"process (\d+) reports the run to mlflow; its log is (.+)", log)
    return psutil.Process(int(line[0])), Path(line[1])


def test_training_does_not_depend_on_a_tracker_that_cannot_be_reached(server, project, tmp_path, capfd, monkeypatch):
    del server
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "/nowhere/store.json")
    train(project, tmp_path / "plain", capfd)
    log = train(project, tmp_path / "tracked", capfd, tracker="mlflow")
    process, path = process_of(log)
    try:
        end = time.monotonic() + 60
        while "no server" not in path.read_text() and time.monotonic() < end:
            time.sleep(0.1)
        assert re.fullmatch(
            r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d .+: no server; repeat the command to send the rest\n", path.read_text()
        )
        assert process.nice() == 19
        assert os.getsid(process.pid) == process.pid
    finally:
        process.send_signal(signal.SIGKILL)
    weights = [held(tmp_path / name / "model.ckpt-2") for name in ("plain", "tracked")]
    assert weights[0].keys() == weights[1].keys()
    assert all((weights[0][name] == weights[1][name]).all() for name in weights[0])
    records = [json.loads((tmp_path / name / "run_config.json").read_text()) for name in ("plain", "tracked")]
    assert records[0] == {**records[1], "command": records[0]["command"]}
    assert "tracker" not in records[1]["command"]
    assert "no server" not in log


def test_a_tracked_training_arrives_after_it_has_ended(server, project, tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if sys.version_info >= (3, 11):
        Path("queue.py").write_text("raise ImportError('a script of the user')")
    process, path = process_of(train(project, tmp_path / "out", capfd, tracker="mlflow"))
    process.wait(60)
    assert path.read_text().endswith("all is sent to mlflow, run remote-0\n")
    (run,) = server()["runs"].values()
    assert (run["status"], max(step for _, step, _ in run["metrics"])) == ("FINISHED", 2)


def test_a_process_that_cannot_be_started_is_a_warning(folder, caplog):
    (folder / "tracking").write_text("a file")
    follow.start(folder, "mlflow")
    assert "nothing is reported to mlflow: " in caplog.text


def test_a_missing_package_is_said_before_training(monkeypatch):
    monkeypatch.setattr(trackers.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(FlagError, match="^--tracker=wandb: wandb is not installed: pip install 'wandb"):
        configured(task_name="MRPC", tracker="wandb")

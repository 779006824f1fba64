"""What is sent of a run, and that nothing is sent twice."""

import importlib
import json
import os
import shutil
import socket
import traceback
from pathlib import Path

import pytest

import bert_tf
from bert_tf.errors import FlagError, OutputError
from bert_tf.estimator import run_folder
from bert_tf.extensions.report.run_files import read_runs
from bert_tf.extensions.track import FOLDER, trackers
from bert_tf.extensions.track.replay import read_contents
from bert_tf.io import lock
from tests import lines
from tests.extensions.report import example
from tests.extensions.report.example import write_lines
from tests.extensions.track.conftest import write_results

POINTS = len(example.METRICS) * (len(example.METRICS[0]) - 1) + 4  # and two evaluations of two metrics


def track(folder):
    (sent,) = bert_tf.track(folder, tracker="mlflow")
    return sent


def test_settings_metrics_results_and_files_are_sent(server, folder):
    write_results(folder)
    sent = track(folder)
    assert (sent.remote, sent.points) == ("remote-0", POINTS + 2)
    (run,) = server()["runs"].values()
    assert run["params"] == {"task_name": "RTE", "train_batch_size": "8", "seed": "1", "bert_config.hidden_size": "8"}
    assert run["tags"]["command"].startswith("python ")
    assert ["train/loss", 20, 0.5] in run["metrics"]
    assert ["eval/accuracy", 10, 0.6] in run["metrics"]
    assert [one for one in run["metrics"] if one[0].startswith("dev/")] == [["dev/accuracy", 20, 0.8], ["dev/loss", 20, 0.7]]
    assert run["files"] == ["run_config.json", "vocab.txt", "eval_results.json"]
    assert (run["name"], run["status"], run["experiment"]) == ("run", "FINISHED", "number of bert_tf")


def test_results_of_averaged_weights_have_their_step(folder):
    splits = {"dev": {"accuracy": 0.8}, "dev (ema)": {"accuracy": 0.9}}
    example.write_json(folder / "eval_results.json", {"global_step": 10, "global_step_ema": 20, "splits": splits})
    assert [point[1:] for point in read_contents(read_runs([folder])[0]).results] == [(10, 0.8), (20, 0.9)]


def test_a_repeated_replay_sends_only_what_is_new(server, folder):
    write_lines(folder / "metrics.jsonl", example.METRICS[:1])
    assert track(folder).points == 6 + 4
    sent = track(folder)
    assert (sent.points, sent.files) == (0, 0)
    write_lines(folder / "metrics.jsonl", example.METRICS)
    write_results(folder)
    sent = track(folder)
    assert (sent.points, sent.files) == (6 + 2, 1)
    (run,) = server()["runs"].values()
    assert len(run["metrics"]) == len(set(map(tuple, run["metrics"]))) == POINTS + 2


@pytest.mark.parametrize("content", [None, "{", "[]", '{"marks": 3}'])
def test_a_lost_state_makes_no_second_run_and_no_second_point(server, folder, content):
    track(folder)
    state = folder / "tracking" / "mlflow.json"
    state.unlink() if content is None else state.write_text(content)
    assert track(folder).points == 0
    (run,) = server()["runs"].values()
    assert len(run["metrics"]) == POINTS


def test_a_request_that_was_received_before_the_connection_broke_is_not_repeated(server, folder):
    track(folder)
    requests = server()["requests"]
    for fails_at in range(1, requests + 1):
        copied = shutil.copytree(folder, folder.with_name(f"copy-{fails_at}"), ignore=shutil.ignore_patterns("tracking"))
        store = server()
        store["fails_at"] = store["requests"] + fails_at
        Path(os.environ["MLFLOW_TRACKING_URI"]).write_text(json.dumps(store))
        with pytest.raises(OutputError, match="not all was sent to mlflow: reset by peer; repeat"):
            track(copied)
        track(copied)
    sizes = {run["name"]: len(run["metrics"]) for run in server()["runs"].values()}
    assert set(sizes.values()) == {POINTS}
    assert len(server()["runs"]) == requests + 1


def test_a_moved_folder_is_the_same_run_and_one_with_other_settings_is_not(server, folder):
    track(folder)
    moved = folder.rename(folder.with_name("moved"))
    assert (track(moved).remote, track(moved).points) == ("remote-0", 0)
    (moved / "run_config.json").write_text(json.dumps(example.record(seed=2)))
    assert track(moved).remote == "remote-1"
    assert len(server()["runs"]) == 2
    (moved / "run_config.json").write_text(json.dumps({**example.record(seed=3), "schedule": {"steps": 30}}))
    track(moved)
    assert server()["runs"]["remote-2"]["status"] == "KILLED"  # its training was


@pytest.mark.parametrize(
    ("schedule", "ending"),
    [
        ({"steps": 20}, "FINISHED"),
        ({"steps": 30}, "KILLED"),
        ({"steps": 30, "stopped_at": 20}, "FINISHED"),
        ({"steps": 20, "phase2_steps": 5}, "KILLED"),
        ({"steps": "30"}, "FINISHED"),
    ],
)
def test_a_run_without_results_has_finished_at_its_last_step_or_its_early_end(folder, schedule, ending):
    (folder / "run_config.json").write_text(json.dumps({**example.record(), "schedule": schedule}))
    assert read_contents(read_runs([folder])[0]).ending == ending


def test_a_run_that_is_trained_meanwhile_is_not_one_that_was_killed(server, folder):
    (folder / "run_config.json").write_text(json.dumps({**example.record(), "schedule": {"steps": 30}}))
    with lock.writing_folder(folder):
        track(folder)
        assert [run["status"] for run in server()["runs"].values()] == ["RUNNING"]
    note = json.dumps({"host": socket.gethostname(), "pid": os.getpid()})
    for name, text in ((".writer.lock", ""), (".writer.json", note)):  # as a kill leaves them
        (folder / name).write_text(text)
    track(folder)
    assert [run["status"] for run in server()["runs"].values()] == ["KILLED"]


def test_folds_below_their_final_model_are_runs_and_not_its_tasks(server, folder):
    write_results(folder)
    for name in ("fold-1", "fold-2"):
        shutil.copytree(folder, folder.parent / "copy")
        (folder.parent / "copy").rename(folder / name)
    sent = bert_tf.track(folder, tracker="mlflow")
    assert [(one.run.name, one.points) for one in sent] == [(name, POINTS + 2) for name in ("run", "fold-1", "fold-2")]
    assert len(server()["runs"]) == 3


def test_the_command_prints_a_line(server, folder, capsys):
    assert lines.run("track", folder, tracker="mlflow") == 0
    assert capsys.readouterr().out == f"{folder}: mlflow run remote-0, new: {POINTS} values, 2 files\n"
    assert server()["runs"]


@pytest.mark.usefixtures("server")
def test_what_keeps_a_run_from_being_sent_is_one_line(folder, monkeypatch):
    (folder / "tracking").mkdir()
    with lock.claiming(folder / "tracking" / "mlflow"), pytest.raises(OutputError, match="has been writing to it since"):
        track(folder)  # a second process does not send at the same time
    with pytest.raises(FlagError, match="^--register belongs to --tracker=mlflow"):
        bert_tf.track(folder, tracker="tensorboard", register="name")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "/nowhere/store.json")
    with pytest.raises(OutputError, match=r"run: not all was sent to mlflow: no server; repeat the command to send the rest$"):
        track(folder)
    monkeypatch.setattr(trackers.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(FlagError, match=r"^--tracker=mlflow: mlflow is not installed: pip install 'mlflow-skinny>=.*pandas"):
        track(folder)


def test_overwriting_a_run_deletes_its_state(tmp_path):
    run_folder.claim(tmp_path, {"training": {"seed": 1}}, overwrite=False)
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "mlflow.json").write_text("{}")
    run_folder.claim(tmp_path, {"training": {"seed": 1}}, overwrite=True)
    assert (tmp_path / FOLDER).is_dir()
    run_folder.claim(tmp_path, {"training": {"seed": 2}}, overwrite=True)
    assert not (tmp_path / FOLDER).exists()


@pytest.mark.parametrize("link", ["tracking", "tracking/mlflow", "tracking/mlflow.json"])
def test_nothing_is_written_through_a_link_of_the_run(server, folder, tmp_path, link):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "mlflow.json").write_text("mine")
    (folder / link).parent.mkdir(exist_ok=True)
    (folder / link).symlink_to(mine / "mlflow.json" if link.endswith("json") else mine)
    if link.endswith("json"):
        track(folder)
        assert len(server()["runs"]) == 1
    else:
        with pytest.raises(OutputError, match=f"{link}: is a link to .*/mine, where nothing is written; delete the link"):
            track(folder)
    assert {path.name: path.read_text() for path in mine.iterdir()} == {"mlflow.json": "mine"}


def test_no_file_is_sent_that_a_link_of_the_run_leads_to(server, folder, tmp_path):
    (tmp_path / "secret").write_text("mine")
    (folder / "report.html").symlink_to(tmp_path / "secret")
    track(folder)
    (run,) = server()["runs"].values()
    assert run["files"] == ["run_config.json", "vocab.txt"]


def test_the_password_of_a_server_is_not_shown(server, folder, monkeypatch):
    def refused(*_):
        raise ConnectionError("http://user:hunter2@host:5000/api: refused")

    del server
    mlflow = importlib.import_module("mlflow")
    monkeypatch.setattr(mlflow.MlflowClient, "get_experiment_by_name", refused)
    with pytest.raises(
        OutputError, match=r"not all was sent to mlflow: http://\*\*\*@host:5000/api: refused; repeat"
    ) as caught:
        track(folder)
    assert "hunter2" not in "".join(traceback.format_exception(None, caught.value, caught.tb))

"""Whole jobs with a tiny model: what they write, what they take from an earlier run, which data they put up with."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar, NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import __main__ as front
from bert_tf import home
from bert_tf.checkpoints.reader import write_checkpoint
from bert_tf.estimator import run_folder
from bert_tf.estimator.run import Outcome
from bert_tf.io import lock
from bert_tf.profiling.wall_clock import FIRST_STEPS, WALL
from bert_tf.runtime.machine import Machine, Plan
from bert_tf.tasks.in_memory import SentenceTask
from bert_tf.training import fine_tune, inference, settings, sources, training
from bert_tf.training.run_spec import configured
from tests import classifier, huggingface
from tests.classifier import run
from tests.tiny import TinyProject, held, write_project
from tests.training import reading

pytestmark = pytest.mark.versions


class Trained(NamedTuple):
    project: TinyProject
    folder: Path
    log: str = ""


class NoForward:
    """Every example has the same logits, without a graph; of those that were built, each checkpoint that was loaded."""

    def __init__(self, model, machine):
        del model, machine
        self.built.append(self)
        self.loaded = []

    built: ClassVar[list[NoForward]] = []

    def load(self, checkpoint):
        self.loaded.append(checkpoint)
        return 5

    def outputs(self, features, **_):
        return {"logits": np.zeros([features.examples, 2])}

    def log_graph(self, tokens, loaded):
        pass

    def close(self):
        pass


@pytest.fixture
def _nothing_computed(monkeypatch):
    monkeypatch.setattr(NoForward, "built", [])
    monkeypatch.setattr(inference, "Forward", NoForward)


without_computing = pytest.mark.usefixtures("_nothing_computed")


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Trained:
    """A run that trained, evaluated and predicted, in a folder with a blank in its name; not to be changed."""
    folder = tmp_path_factory.mktemp("job") / "a project"
    project = write_project(folder, layers=1)
    tasks = {"do_train": True, "do_eval": True, "do_predict": True}
    WALL.restart()  # other tests of this process took steps
    with contextlib.redirect_stderr(io.StringIO()) as log:
        assert run(*project.flags(folder / "out", num_train_epochs=1, **tasks)) == 0
    return Trained(project, folder / "out", log.getvalue())


@pytest.fixture
def copied(trained, tmp_path) -> Trained:
    """The same run, to be changed."""
    return Trained(trained.project, shutil.copytree(trained.folder, tmp_path / "out"))


def stopped(*_, **__) -> Outcome:
    """Takes the place of training that a signal ends."""
    return Outcome(3, signal.SIGTERM)


def test_the_folder_has_the_files_it_began_with_and_a_command_that_repeats_the_run(trained):
    for name in ("vocab.txt", "bert_config.json"):
        assert (trained.folder / name).read_text() == (trained.project.vocab_file.parent / name).read_text()
    record = reading.record(trained.folder)
    assert record["command"].startswith("python run_classifier.py ")
    config, project = repeated(trained.folder), trained.project
    assert (config.data.data_dir, config.model.init_checkpoint) == (str(project.data_dir), project.init_checkpoint)
    assert (config.train.num_train_epochs, config.data.max_seq_length) == (1.0, 24)
    kept = {"save_checkpoints_steps", "keep_checkpoint_max", "keep_optimizer_slots", "log_every_n_steps", "xla"}
    assert not record["training"].keys() & {*kept, *settings.EXACT}
    digests = {"train_examples_sha256", "vocabulary_sha256", "checkpoint_sha256"}
    assert record["training"].keys() >= {"group_by_length", "precision", "seed", "learning_rate", *digests}
    name, *rows = (line.split("\t")[0] for line in (trained.folder / "variables.tsv").read_text().splitlines())
    assert (name, len(rows)) == ("name", 25)
    examples = re.findall(r"^guid: (\S+)", (trained.folder / "examples.txt").read_text(), re.MULTILINE)
    assert examples == [f"{split}-{number}" for split in ("train", "dev", "test") for number in range(1, 6)]

    # No other file has an absolute path, so that a folder can be shared; TensorFlow's own graph and events name checkpoints,
    # docs/commands.md says so.
    folder = trained.project.data_dir.parents[1].as_posix().encode()
    files = [path for path in trained.folder.rglob("*") if path.is_file() and not path.name.startswith(("events", "graph"))]
    assert [path.name for path in files if folder in path.read_bytes()] == ["run_config.json"]


def repeated(folder: Path):
    """The settings of the command that repeats the run of a folder."""
    command = reading.record(folder)["command"]
    assert "None" not in command
    return classifier.parse(shlex.split(command)[1:])


@pytest.mark.parametrize(
    "ways",
    [
        "",
        "--published_layout --fused_adam",
        "--xla --group_by_length",
        "--precision=bfloat16 --nodefer_embeddings --nopad_to_longest",
        "--seed=7 --adam_bias_correction --learning_rate=3e-05 --nodo_eval --save_checkpoints_steps=2",
    ],
)
def test_the_recorded_command_has_the_same_settings(trained, tmp_path, monkeypatch, ways, caplog):
    seen = []
    monkeypatch.setattr(training, "train_with", lambda *given, **_: seen.append(given[-1]) or stopped())
    monkeypatch.setattr(fine_tune.speed, "set_up", lambda _: None)  # of this process
    arguments = [*trained.project.flags(tmp_path / "out", do_train=True), *ways.split()]
    assert run(*arguments) == 130
    asked, config = classifier.parse(["run_classifier.py", *arguments]), repeated(tmp_path / "out")
    assert (config.data, config.model) == (asked.data, asked.model)
    assert (config.train, config.speed) == (asked.train, asked.speed)
    is_saved_by_steps = "save_checkpoints_steps" in ways  # else by the clock too
    assert seen[0].save_checkpoints_steps == (2 if is_saved_by_steps else None)
    assert ("save_checkpoints_steps" in config.given) == is_saved_by_steps
    assert not (tmp_path / "out" / "eval_results.txt").exists()
    assert "stopped by SIGTERM at step 3; the same command continues there" in caplog.messages
    monkeypatch.setattr("bert_tf.training.record.home.clone", lambda *_: None)  # a wheel brings another command
    assert run(*arguments, f"--output_dir={tmp_path / 'wheel'}") == 130
    assert reading.record(tmp_path / "wheel")["command"].startswith("bert-tf fine-tune --task_name=")


def test_an_account_that_cannot_be_written_stops_nothing(trained, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(training, "train_with", WALL.span(FIRST_STEPS)(stopped))
    (tmp_path / "out" / "timing.json").mkdir(parents=True)
    assert run(*trained.project.flags(tmp_path / "out")) == 130
    assert sum("timing.json: cannot write" in message for message in caplog.messages) == 1
    assert caplog.messages[-1].startswith("wall time ")


@pytest.mark.parametrize(("ways", "precision"), [("--published_layout", "default"), ("--xla", "float32")])
def test_another_way_to_the_same_numbers_continues_the_run(copied, monkeypatch, ways, precision):
    change_record(copied.folder, precision=precision)  # an earlier version was strictly float32
    monkeypatch.setattr(fine_tune.speed, "set_up", lambda _: None)
    before = sorted(path.name for path in copied.folder.glob("model.ckpt-*"))
    assert run(*copied.project.flags(copied.folder, num_train_epochs=1, do_train=True), ways) == 0
    assert sorted(path.name for path in copied.folder.glob("model.ckpt-*")) == before
    assert run_folder.trained(copied.folder)["precision"] == precision


def test_the_record_knows_how_long_once_and_frozen_parts_in_order(trained, tmp_path, monkeypatch):
    ways = {"num_train_steps": 2, "freeze": "0,embeddings", "do_train": True}
    with monkeypatch.context() as patch:
        patch.setattr(training, "train_with", stopped)
        assert run(*trained.project.flags(tmp_path / "out", **ways)) == 130
        assert run(*trained.project.flags(tmp_path / "out", **{**ways, "freeze": "embeddings,0-0"})) == 130
    record = reading.record(tmp_path / "out")
    assert record["training"].keys() & {"num_train_epochs", "num_train_steps", "polynomial_power"} == {"num_train_steps"}
    assert record["training"]["freeze"] == ["0", "embeddings"]
    assert repeated(tmp_path / "out").actions == settings.ActionSettings(do_train=True)


@pytest.mark.parametrize(
    ("gpus", "place", "defers"),
    [("0", None, False), ("", None, True), ("0", "encoder/layer_0:/CPU:0", False), ("0", "embeddings:/CPU:0", True)],
)
def test_with_determinism_updates_are_put_off_but_of_words_on_a_gpu(gpus, place, defers, caplog):
    """What --place names nothing for is on a GPU that is seen, whatever the plan's devices."""
    flags = ["--deterministic", *([f"--place={place}"] if place else [])]
    session = tf.compat.v1.ConfigProto(gpu_options=tf.compat.v1.GPUOptions(visible_device_list=gpus))
    devices = ("/device:GPU:0",) if gpus and not place else ("/device:CPU:0",)
    machine = Machine(session, Plan(devices=devices))
    config = fine_tune._deferring(classifier.mrpc(*flags), machine)
    assert (config.speed.defer_embeddings, "--nodefer_embeddings: " in caplog.text) == (defers, not defers)
    assert fine_tune._deferring(classifier.mrpc(*flags[1:]), machine).speed.defer_embeddings


@without_computing
def test_results_of_the_sample_say_so(copied, monkeypatch, tmp_path, caplog):
    shutil.copytree(copied.project.data_dir, tmp_path / "data" / "sample" / "MRPC")
    monkeypatch.setattr(home, "SAMPLE", tmp_path / "data" / "sample")
    monkeypatch.setenv("BERT_TF_HOME", str(tmp_path))
    assert run("--task_name=MRPC", "--do_eval", f"--output_dir={copied.folder}") == 0
    results = reading.results(copied.folder)
    assert results["note"] == "bundled sample, written for this project: not comparable with published figures"
    assert f"this is the {sources.SAMPLE_NOTE}" in caplog.messages
    assert reading.record(copied.folder)["data_note"] == ""  # it was trained on other data


@without_computing
def test_a_run_is_evaluated_with_one_graph_and_says_what_it_uses(copied, caplog):
    folder = copied.folder
    left = (
        "features/.MRPC-dev-1.safetensors.77-0a1b2c3d.tmp",
        "model.ckpt-9.index.tempstate1",
        "best/model.ckpt-9.index.tempstate2",
    )
    own = (".draft.2.tmp", "data.tempstate_backup", "notes-2024_temp", "eval_forward")
    change_record(folder, do_lower_case=False)  # of a training that a tokenizer_config.json allowed
    (folder / "best").mkdir()
    for name in (*left, *own):  # the former by a command that was killed
        (folder / name).touch()
    (folder / "model.ckpt-9_temp").mkdir()
    account, examples = (folder / "timing.json").read_bytes(), (folder / "examples.txt").read_text()
    (folder / "examples.txt").write_text(examples.replace("guid: dev-1\n", "guid: other\n"))
    idle = {"label_smoothing": 0.5, "memory_trace_step": 3, "max_train_examples": 9}
    assert run(*copied.project.flags(folder, do_eval=True, do_predict=True, **idle)) == 0
    (forward,) = NoForward.built
    assert forward.loaded == [f"{folder}/model.ckpt-5"]
    assert (folder / "timing.json").read_bytes() == account
    assert (folder / "examples.txt").read_text() == examples
    assert [name for name in (*left, "model.ckpt-9_temp", *own) if (folder / name).exists()] == [*own]
    assert {
        f"task MRPC, data from {copied.project.data_dir} (--data_dir)",
        f"checkpoint {copied.project.init_checkpoint} (--init_checkpoint)",
        f"output to {folder} (--output_dir)",
        "nothing is trained, so these have no effect: "
        "--label_smoothing, --max_train_examples, --memory_trace_step, --train_batch_size",
    } <= {*caplog.messages}
    assert any(message.startswith("wall time ") and "first steps" not in message for message in caplog.messages)
    assert "do_lower_case" not in caplog.text
    package = Path(fine_tune.__file__).parents[1]
    assert [record.message for record in caplog.records if package not in Path(record.pathname).parents] == []
    caplog.clear()
    assert run(*copied.project.flags(folder, do_eval=True, verbosity=-1)) == 0
    assert [record.message for record in caplog.records if record.levelname == "INFO"] == []


def test_a_model_that_computes_no_number_is_not_measured(copied, capsys):
    """Its weights are numbers: the checkpoint is not refused for them."""
    prefix = copied.folder / "model.ckpt-5"
    entries = held(prefix)
    large = {"bert/pooler/dense/kernel": 0.0, "bert/pooler/dense/bias": 5.0, "output_weights": 3e38}
    write_checkpoint(prefix, {**entries, **{name: np.full_like(entries[name], value) for name, value in large.items()}})
    assert run(*copied.project.flags(copied.folder, do_eval=True)) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"error: {prefix}: its outputs are NaN or infinite")


def test_evaluating_alone_takes_the_model_from_the_run(copied, caplog):
    before = reading.text_results(copied.folder)
    line = ("--task_name=MRPC", f"--data_dir={copied.project.data_dir}", "--do_eval", f"--output_dir={copied.folder}")
    assert run(*line) == 0
    assert reading.text_results(copied.folder) == before
    assert any("truncated to 24" in message for message in caplog.messages)  # its max_seq_length, not the default
    assert run(*line, "--max_seq_length=12") == 0
    assert any("truncated to 12" in message for message in caplog.messages)
    (copied.folder / "run_config.json").unlink()
    assert run(*copied.project.flags(copied.folder, do_eval=True)) == 0
    assert reading.text_results(copied.folder) == before


def change_record(folder, **changes):
    record = reading.record(folder)
    record.pop(run_folder.LEARNED)  # as of a run that was trained so
    record["training"].update(changes)
    (folder / "run_config.json").write_text(json.dumps(record))


@without_computing
def test_a_model_of_another_task_with_the_same_labels_leaves_its_own_results_alone(copied, caplog):
    change_record(copied.folder, task_name="QQP")
    earlier = {name: (copied.folder / name).read_bytes() for name in ("eval_results.json", "predictions.tsv")}
    assert run(*copied.project.flags(copied.folder, do_eval=True, do_predict=True)) == 0
    assert {name: (copied.folder / name).read_bytes() for name in earlier} == earlier
    assert {path.name for path in (copied.folder / "MRPC").iterdir()} >= {*earlier, "eval_results.txt", "submission"}
    assert f"the model was not trained on MRPC: results go to {copied.folder / 'MRPC'}" in caplog.text


@pytest.mark.parametrize(("evaluates", "expected"), [(0, 130), (5, 2)])
def test_another_dev_file_is_another_run_only_where_it_chooses_the_best_checkpoint(
    tmp_path, monkeypatch, capsys, evaluates, expected
):
    monkeypatch.setattr(training, "train_with", stopped)
    project = write_project(tmp_path / "project")
    command = project.flags(tmp_path / "out", num_train_epochs=1, do_train=True, eval_every_n_steps=evaluates)
    assert run(*command) == 130
    dev = project.data_dir / "dev.tsv"
    dev.write_text(dev.read_text().rpartition("\n")[0].rpartition("\n")[0] + "\n")
    assert run(*command) == expected
    assert ("holds another run (other dev rows" in capsys.readouterr().err) == (expected == 2)


def test_data_of_one_s_own_from_training_to_prediction(tmp_path, capsys):
    project = write_project(tmp_path / "project", layers=1)
    rows = [f"{'red' if number % 2 else 'blue'};{number}" for number in range(16)]
    (tmp_path / "train.csv").write_text("mood,said,how\n" + "".join(f'{row.split(";")[0]},"the {row}",\n' for row in rows))
    dev = [{"said": "the 5", "how": "", "mood": "red"}, {"said": "the 6", "how": "so", "mood": "blue"}]
    (tmp_path / "dev.jsonl").write_text("".join(json.dumps(row) + "\n" for row in dev))
    (tmp_path / "test.tsv").write_text("number\thow\tsaid\n7\tso\tthe 5\n8\t\tthe 6\n9\t\tthe 7\n")
    ways = {"task_name": "custom", "train_file": tmp_path / "train.csv", "text_a": "said,how", "label_column": "mood"}
    flags = project.flags(tmp_path / "out", **ways, num_train_epochs=1, dev_file=tmp_path / "dev.jsonl")
    flags = [flag for flag in flags if not flag.startswith("--data_dir")]
    assert run(*flags, f"--test_file={tmp_path / 'test.tsv'}") == 0
    assert "nothing is predicted without --do_predict, so these have no effect: --test_file\n" in capsys.readouterr().err
    assert reading.record(tmp_path / "out")["columns"]["text_a"] == "said,how"
    # The column of the ids is no part of what was learned, and the other columns are those of the training.
    predict = (f"--test_file={tmp_path / 'test.tsv'}", "--id_column=number", "--do_predict")
    assert run("--task_name=custom", f"--output_dir={tmp_path / 'out'}", *predict) == 0
    table = (tmp_path / "out" / "predictions.tsv").read_text().splitlines()
    assert table[0] == "id\tlabel\tprobability_blue\tprobability_red"
    assert [line.partition("\t")[0] for line in table[1:]] == ["7", "8", "9"]
    assert run(*flags, *predict, "--do_train") == 0
    assert run(*flags, f"--data_dir={tmp_path}") == 2
    assert "--data_dir: custom takes --train_file, --dev_file and --test_file" in capsys.readouterr().err


@pytest.mark.parametrize("use", ["do_eval", "do_predict", "init_checkpoint"])
def test_a_folder_whose_parts_were_changed_since_its_training_is_refused(copied, tmp_path, capsys, use):
    folder = copied.folder
    if use == "do_predict":
        config = json.loads((folder / "bert_config.json").read_text())
        (folder / "bert_config.json").write_text(json.dumps({**config, "num_attention_heads": 4}))
    else:
        *pieces, last, other = (folder / "vocab.txt").read_text().splitlines()
        (folder / "vocab.txt").write_text("\n".join([*pieces, other, last]) + "\n")
    further = (f"--init_checkpoint={folder}", f"--output_dir={tmp_path / 'further'}")
    named = further if use == "init_checkpoint" else (f"--{use}", f"--output_dir={folder}")
    data = ("--task_name=MRPC", f"--data_dir={copied.project.data_dir}", "--max_seq_length=24", "--verbosity=-1")
    assert run(*data, *named) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: {folder}: the ")
    assert "differs from the one recorded in run_config.json" in line
    assert not (tmp_path / "further").exists()


@pytest.mark.parametrize(
    ("use", "value", "problem"),
    [
        ("do_eval", np.ones(8, np.int32), "are not floating-point numbers: "),
        ("do_predict", np.full(8, np.nan, np.float32), "are NaN or infinite: "),
        ("do_train", np.full(8, np.nan, np.float32), "are NaN or infinite: "),
    ],
)
def test_weights_that_are_no_usable_numbers_are_refused_before_anything_is_written(
    copied, tmp_path, capsys, use, value, problem
):
    results = {name: (copied.folder / name).read_bytes() for name in ("eval_results.json", "predictions.tsv")}
    project = write_project(tmp_path / "project", layers=1) if use == "do_train" else copied.project
    prefix, output = (
        (project.init_checkpoint, tmp_path / "new") if use == "do_train" else (copied.folder / "model.ckpt-5", copied.folder)
    )
    write_checkpoint(prefix, {**held(prefix), "bert/pooler/dense/bias": value})
    assert run(*project.flags(output, verbosity=-1, **{use: True})) == 2
    *_, line = capsys.readouterr().err.splitlines()
    assert f": weights that {problem}bert/pooler/dense/bias" in line
    assert {name: (copied.folder / name).read_bytes() for name in results} == results
    assert not (tmp_path / "new").exists()


def test_a_trained_folder_can_be_trained_further_elsewhere(trained, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "train_with", stopped)  # the first step is far enough
    settings = ("--max_seq_length=24", f"--data_dir={trained.project.data_dir}", f"--output_dir={tmp_path}")
    assert run("--task_name=MRPC", f"--init_checkpoint={trained.folder}", *settings) == 130
    record = reading.record(tmp_path)
    assert f"--init_checkpoint={trained.folder / 'model.ckpt-5'}" in shlex.split(record["command"])


def test_the_account_of_the_wall_time_is_whole_and_the_log_fits_on_two_screens(trained):
    timing = json.loads((trained.folder / "timing.json").read_text())
    assert timing["first_steps"] == 5  # the account comes beside what is known of the steps
    assert list(timing["wall"]["parts"]) == [
        *("start", "devices", "data", "kernels", "features", "graph", "first_steps", "saves", "log", "between", "closing"),
        *("evaluation", "prediction", "page", "unaccounted"),
    ]
    assert timing["wall"]["seconds"] == pytest.approx(sum(timing["wall"]["parts"].values()))
    assert min(timing["wall"]["parts"].values()) >= 0
    saving = timing["saving"]
    assert saving["checkpoints"] == 1
    assert saving["bytes"] == sum(path.stat().st_size for path in trained.folder.glob("model.ckpt-5.*"))
    assert 0 < saving["share"] < 1
    assert "Wall time of the command by part" in (trained.folder / "report.html").read_text()
    lines = [line for line in trained.log.splitlines() for _ in range(-(-len(line) // 120))]  # as a terminal wraps them
    assert len(lines) + 20 <= 100  # a longer run has 20 steps more
    assert max(len(line) for line in lines if " step " in line) <= 120
    assert "\x1b" not in trained.log
    assert "\r" not in trained.log


def test_recipe_values_are_logged(trained, tmp_path, monkeypatch, caplog):
    model = trained.project.vocab_file.parent
    monkeypatch.setattr("bert_tf.checkpoints.default.ensure", lambda _: model)
    arguments = ("--do_train", "--num_train_epochs=0", "--max_seq_length=24", f"--output_dir={tmp_path / 'out'}")
    assert run("--task_name=MRPC", f"--data_dir={trained.project.data_dir}", *arguments) == 2  # no step
    assert any("recipe for the default checkpoint: " in m and "--train_batch_size=12" in m for m in caplog.messages)


@without_computing
def test_no_text_breaks_a_row_or_a_cell(copied, tmp_path):
    texts = ('"rain', 'a " b', "'", "rain\u2028salt", "rain\x85\x0b\x0csalt", "\x00", "\U0001f327", "\u0663 \u96e8")
    lines = ["index\t#1 ID\t#2 ID\t#1 String\t#2 String", *(f"0\t1\t2\t{text}\t{text}" for text in texts)]
    (tmp_path / "test.tsv").write_text("\n".join(lines))
    assert run("--task_name=MRPC", f"--data_dir={tmp_path}", "--do_predict", f"--output_dir={copied.folder}") == 0
    rows = [line.split("\t") for line in (copied.folder / "predictions.tsv").read_bytes().decode().split("\n")]
    assert [row[0] for row in rows] == ["id", *(f"test-{n}" for n in range(1, len(texts) + 1)), ""]
    assert {len(row) for row in rows[:-1]} == {4}


@pytest.mark.parametrize("start", ["", "best"])
def test_training_from_files_in_its_own_output_folder_is_refused(copied, capsys, start):
    folder = copied.folder
    for name in ("vocab.txt", "bert_config.json", "checkpoint", *(path.name for path in folder.glob("model.ckpt-5*"))):
        (folder / "best").mkdir(exist_ok=True)
        shutil.copy(folder / name, folder / "best")
    start_from = f"--init_checkpoint={folder / start}"
    arguments = (f"--data_dir={copied.project.data_dir}", "--do_train", start_from, "--overwrite_output_dir")
    before = sorted(path.name for path in folder.iterdir())
    assert run("--task_name=MRPC", *arguments, "--max_seq_length=24", f"--output_dir={folder}") == 2
    assert f"{folder}: training starts from files in this folder" in capsys.readouterr().err
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize("file", ["model.safetensors", "bert_model.ckpt.index"])
def test_training_into_a_folder_that_is_a_model_is_refused(trained, tmp_path, capsys, file):
    """Commands would read that model, not the trained one."""
    folder = shutil.copytree(trained.project.vocab_file.parent, tmp_path / "model")
    if file == "model.safetensors":
        shutil.rmtree(folder)
        huggingface.write_folder(folder)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert run(*trained.project.flags(folder)) == 2
    assert f"{folder / file}: commands would read this model instead of the trained one" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("ways", [{"do_eval": True}, {"do_train": True, "overwrite_output_dir": True, "seed": 9}])
def test_a_folder_that_another_command_writes_is_left_alone(copied, capsys, ways):
    before = {path: path.read_bytes() for path in copied.folder.rglob("*") if path.is_file()}
    with lock.writing_folder(copied.folder):
        assert run(*copied.project.flags(copied.folder, verbosity=-1, **ways)) == 2
        assert front.main(["bert_tf", "report", str(copied.folder)]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(f"error: {copied.folder}: process {os.getpid()} on ")
    assert first.endswith("; wait until it ends, or name another --output_dir")
    assert second.endswith("; wait until it ends, or write the page elsewhere with --output=FILE")
    assert {path: path.read_bytes() for path in copied.folder.rglob("*") if path.is_file()} == before


def test_a_task_given_as_a_value_is_learned_and_the_figures_come_back(trained, tmp_path):
    model = trained.project.vocab_file.parent / "bert_model.ckpt"
    actions = {"do_train": True, "do_eval": True, "do_predict": True}
    values = {"init_checkpoint": model, "output_dir": tmp_path / "out", "num_train_steps": 2, "max_seq_length": 24, **actions}
    rows = [("rain", "wet"), ("sun", "dry")] * 8
    task = SentenceTask(train=rows, dev=rows, test=[text for text, _ in rows])
    done = fine_tune.fine_tune(configured(task, train_batch_size=8, **values), environment={}, task=task)
    results = reading.results(tmp_path / "out")
    assert (done.step, done.stopped_by, done.evaluations["dev"].examples) == (2, None, 16)
    assert (done.metrics["accuracy"], done.metrics["loss"]) == (results["eval_accuracy"], results["eval_loss"])
    assert done.predictions == {"test": tmp_path / "out" / "predictions.tsv"}
    again = fine_tune.fine_tune(configured(task, output_dir=tmp_path / "out", do_eval=True), environment={}, task=task)
    assert (again.step, again.metrics) == (done.step, done.metrics)


@pytest.mark.parametrize(
    ("is_chief", "actions", "started"),
    [
        (True, {"do_eval": True}, ["page", "graph"]),
        (True, {"do_predict": True}, ["page", "graph"]),
        (True, {}, ["page"]),
        (False, {"do_eval": True}, []),
    ],
)
def test_what_follows_training_starts_ahead_as_far_as_it_is_asked_for(is_chief, actions, started, monkeypatch):
    begun = []
    monkeypatch.setattr(fine_tune.results, "start_page_ahead", lambda: begun.append("page"))
    machine = SimpleNamespace(is_chief=is_chief)
    run = SimpleNamespace(machine=machine, spec=SimpleNamespace(actions=settings.ActionSettings(**actions)))
    fine_tune._prepare_end(run, SimpleNamespace(build_ahead=lambda: begun.append("graph")))
    assert begun == started

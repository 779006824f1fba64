"""A run of the whole command: what it leaves and says, how it is stopped, and what docs/batch_jobs.md does with it."""

import contextlib
import csv
import json
import random
import re
import resource
import shlex
import signal
import subprocess
import types
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.__main__ import main
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.operations.command import BEAM, VERBOSITY, flags_of
from bert_tf.settings import settings_of
from bert_tf.training.settings import MachineSettings
from tests import classifier, lines
from tests.integration import commands
from tests.integration.commands import PROJECT
from tests.tiny import SIZES
from tests.training import reading

LAST = 30
DOCS = PROJECT / "docs" / "batch_jobs.md"
ALL_STEPS = 5


def test_results_are_written_in_both_forms_and_shown(finished):
    folder, result = finished
    results = reading.results(folder)
    assert results.pop("splits").keys() == {"dev"}
    assert results.pop("precision") == "float32"
    lines = (folder / "eval_results.txt").read_text().splitlines()
    assert lines == [f"{key} = {results[key]}" for key in sorted(results)]
    assert results.keys() == {"eval_accuracy", "eval_f1", "eval_loss", "global_step", "loss"}
    assert results["global_step"] == LAST
    mistakes = reading.objects(folder / "wrong_examples.jsonl")
    assert len(mistakes) == round((1 - results["eval_accuracy"]) * SIZES["dev"])
    assert all(line["label"] != line["predicted"] and line["confidence"] > 0.5 for line in mistakes)
    assert f"{results['eval_accuracy']:.4f}" in (folder / "report.html").read_text(encoding="utf-8")
    assert f"the report is {folder / 'report.html'}" in result.stderr


def test_nothing_but_results_is_in_the_folder_and_the_log_says_what_is_done_in_one_form(finished):
    folder, _ = finished
    names = {re.sub(r"ckpt-\d+.*|tfevents.*", "*", path.name) for path in folder.iterdir()}
    assert names == {
        *("bert_config.json", "checkpoint", "eval", "eval_results.json", "eval_results.txt", "events.out.*", "examples.txt"),
        *("features", "variables.tsv"),
        *("metrics.jsonl", "model.*", "predictions.tsv", "report.html", "run_config.json", "submission", "test_results.tsv"),
        *("timing.json", "vocab.txt", "wrong_examples.jsonl"),
    }
    assert [line for line in LINES if line not in finished[1].stderr] == []
    strangers = [line for line in finished[1].stderr.splitlines() if not re.match(r"\d\d:\d\d:\d\d ", line)]
    assert strangers == []


LINES = (
    *("***** Running training *****", "  Num examples = 40", "  Batch size = 8", "  Num steps = 30"),
    *("step 30 of 30: loss = ", "***** Running evaluation *****", "***** Eval results *****", "  eval_accuracy = "),
    "***** Running prediction *****",
)


# Runs that are killed, stopped or refused


def steps_reported(folder):
    return [json.loads(line)["step"] for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_a_killed_run_continues_as_if_it_had_not_been(tmp_path, train_flags, finished):
    step = random.Random().randint(1, LAST - 5)
    process = commands.start(train_flags(tmp_path / "out"))
    commands.wait_for_step(tmp_path / "out", step, process)
    process.send_signal(signal.SIGKILL)
    assert commands.finish(process).returncode == -signal.SIGKILL, f"killed after step {step}"
    result = commands.run(train_flags(tmp_path / "out"))
    assert result.returncode == 0, f"killed after step {step}: {result.stderr}"
    ours, theirs = (commands.weights(folder, LAST) for folder in (tmp_path / "out", finished[0]))
    assert commands.same_bits(ours, theirs), f"killed after step {step}"
    assert steps_reported(tmp_path / "out") == list(range(1, LAST + 1))


def test_an_interrupt_keeps_the_step_that_it_names_and_says_how_to_continue(tmp_path, train_flags):
    """With more steps than can be taken meanwhile."""
    folder = tmp_path / "out"
    process = commands.start(train_flags(folder, num_train_epochs=1200, save_checkpoints_steps=100000))
    commands.wait_for_step(folder, 4, process)
    process.send_signal(signal.SIGINT)
    result = commands.finish(process)
    assert result.returncode == 130
    assert "Traceback" not in result.stderr
    step = int(re.search(r"stopped by SIGINT at step (\d+); the same command continues there", result.stderr)[1])
    assert (folder / f"model.ckpt-{step}.index").is_file()
    assert "output_weights/adam_m" in CheckpointReader(folder / "optimizer" / f"moments-{step}").shapes
    assert steps_reported(folder)[-1] == step
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Not finished: the last logged step is " in page
    assert "Training loss" in page


@contextlib.contextmanager
def small_disk(folder, size):
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("no permission to mount a file system")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk_is_one_line_for_the_user(tmp_path, train_flags):
    with small_disk(tmp_path / "disk", "64k"):
        result = commands.run(train_flags(tmp_path / "disk" / "out", save_checkpoints_steps=100000))
        left = [path.name for path in (tmp_path / "disk" / "out").glob("*temp*")]
    (error,) = commands.errors(result)
    assert result.returncode == 2
    assert error.startswith(f"error: {tmp_path}/disk/out: cannot write: ")
    assert "No space left on device" in error
    assert "Traceback" not in result.stderr
    assert left == []


def limit_files():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (9_000, 9_000))


def test_a_limit_on_file_sizes_is_one_line_for_the_user(tmp_path, train_flags):
    # The first file beyond the limit is a checkpoint or the event file, which a thread writes.
    result = commands.run(train_flags(tmp_path / "out", log_every_n_steps=30, verbosity=-1), before=limit_files)
    assert result.returncode == 2, result.stderr
    (error,) = commands.errors(result)
    assert error.startswith(f"error: {tmp_path}/out: cannot write: ")
    assert "Traceback" not in result.stderr


# The examples of docs/batch_jobs.md


@pytest.fixture
def _as_documented(finished, tmp_path, monkeypatch):
    """A folder with the run where the examples look for it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GLUE_DIR", raising=False)
    Path("out").mkdir()
    Path("out/mrpc").symlink_to(finished[0])
    for name in ("data", "docs"):
        Path(name).symlink_to(PROJECT / name)


def examples(command: str) -> list[str]:
    """Returns the lines of the page that call a command, those that go on in the next line joined."""
    text = DOCS.read_text(encoding="utf-8").replace("\\\n", "")
    return [line.strip() for line in text.splitlines() if line.startswith("    ") and f"python -m bert_tf {command} " in line]


def documented(line: str) -> int:
    program, _, _, *arguments = shlex.split(line)
    assert program == "python"
    # Beam's own switch between its direct runners would look for a program on the network.
    ours = [a for a in arguments if not a.startswith("--direct_")]
    return main(["bert_tf", *(a.replace("=DirectRunner", "=BundleBasedDirectRunner") for a in ours)])


def probabilities(file: Path) -> np.ndarray:
    return np.array([line.split("\t")[2:] for line in file.read_text().splitlines()[1:]], float)


def table(folder: str) -> list[dict[str, str]]:
    with open(f"{folder}/results.tsv", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


@pytest.mark.usefixtures("_as_documented")
def test_evaluation():
    by_flags, steps, tasks = examples("evaluate")
    assert documented(by_flags) == 0
    first = table("out/eval")
    assert [int(row["step"]) for row in first] == sorted(int(row["step"]) for row in first)
    assert len(first) == ALL_STEPS
    assert documented(steps) == 0
    assert table("out/eval") == first  # nothing is measured twice
    assert documented(tasks) == 0
    by_task, by_split, by_file = table("out/eval_tasks")
    assert [row["split"] for row in (by_task, by_split, by_file)] == ["dev", "train", "data/sample/MRPC/dev.tsv"]
    assert by_task["loss"] == by_file["loss"] != by_split["loss"]


@pytest.mark.usefixtures("_as_documented")
def test_prediction(monkeypatch, capsysbinary):
    from_file, from_pipe, files, on_beam = examples("predict")
    assert documented(from_file) == 0
    written = Path("out/test_predictions.tsv").read_bytes()
    assert written.count(b"\n") == 1 + 220
    cat, rest = from_pipe.split(" | ")
    with Path(cat.removeprefix("cat ")).open("rb") as source:
        monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=source))
        assert documented(rest.partition(" > ")[0]) == 0
    assert capsysbinary.readouterr().out == written
    assert documented(files) == 0
    assert Path("out/predictions/test.tsv").read_bytes() == written
    assert Path("out/predictions/pairs.tsv").read_bytes().count(b"\n") == 3
    assert documented(on_beam) == 0
    (shard,) = Path("out").glob("by_beam-*.tsv")
    assert shard.read_bytes() == written


def test_what_the_classifier_predicted_with_its_best_checkpoint_is_predicted_again(train_flags, project, tmp_path):
    folder = tmp_path / "out"
    evaluates = {"eval_every_n_steps": 3, "num_train_epochs": 2, "learning_rate": 0.05, "do_predict": True}
    assert classifier.main(["run_classifier.py", *train_flags(folder, **evaluates)]) == 0
    by_classifier = probabilities(folder / "predictions.tsv")

    def again(checkpoint) -> np.ndarray:
        output = tmp_path / "again.tsv"
        flags = [f"--checkpoint={checkpoint}", f"--input={project.data_dir / 'test.tsv'}", f"--output={output}"]
        assert main(["x", "predict", *flags]) == 0
        return probabilities(output)

    by_best, by_newest = again(folder), again(tf.train.latest_checkpoint(str(folder)))
    np.testing.assert_array_equal(by_best, by_classifier)
    assert np.abs(by_newest - by_classifier).max() > 0.01


def test_every_key_is_on_the_page():
    text = DOCS.read_text(encoding="utf-8")
    others = {"job", *(row.name for row in (*settings_of(MachineSettings), VERBOSITY, BEAM))}  # flags alone
    rows = {row.name for name in ("evaluate", "predict") for row in flags_of(lines.command(name))} - others
    assert [name for name in sorted(rows) if f"`{name}`" not in text] == []

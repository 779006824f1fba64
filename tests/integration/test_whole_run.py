"""A run of the whole command: what it leaves and says, how it is stopped, and what is predicted with it."""

import contextlib
import json
import random
import re
import signal
import subprocess

import numpy as np
import pytest

from bert_tf.__main__ import main
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.operations.command import BEAM, VERBOSITY, flags_of
from bert_tf.settings import settings_of
from bert_tf.training.settings import MachineSettings
from tests import lines
from tests.integration import commands
from tests.integration.commands import PROJECT
from tests.tiny import SIZES
from tests.training import reading

LAST = 30
DOCS = PROJECT / "docs" / "batch_jobs.md"


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
    strangers = [line for line in finished[1].stderr.splitlines() if not re.match(r"(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d ", line)]
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


# What is predicted with it, and the page of such jobs


def test_predictions_of_the_run_are_predicted_again(finished, project, tmp_path):
    output = tmp_path / "again.tsv"
    flags = [f"--checkpoint={finished[0]}", f"--input={project.data_dir / 'test.tsv'}", f"--output={output}"]
    assert main(["x", "predict", *flags]) == 0
    actual, expected = (
        np.array([line.split("\t")[2:] for line in path.read_text().splitlines()[1:]], float)
        for path in (output, finished[0] / "predictions.tsv")
    )
    np.testing.assert_allclose(actual, expected, atol=1e-6)


def test_every_key_is_on_the_page():
    text = DOCS.read_text(encoding="utf-8")
    others = {"job", *(row.name for row in (*settings_of(MachineSettings), VERBOSITY, BEAM))}  # flags alone
    rows = {row.name for name in ("evaluate", "predict") for row in flags_of(lines.command(name))} - others
    assert [name for name in sorted(rows) if f"`{name}`" not in text] == []

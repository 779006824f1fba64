"""Runs that are killed, stopped or refused, and what is left of them."""

from __future__ import annotations

import contextlib
import json
import random
import re
import resource
import signal
import subprocess

import pytest

from bert_tf.checkpoints.reader import CheckpointReader
from tests.integration import commands

LAST = 60


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
    result = commands.run(train_flags(tmp_path / "out", log_every_n_steps=60, verbosity=-1), before=limit_files)
    assert result.returncode == 2, result.stderr
    (error,) = commands.errors(result)
    assert error.startswith(f"error: {tmp_path}/out: cannot write: ")
    assert "Traceback" not in result.stderr

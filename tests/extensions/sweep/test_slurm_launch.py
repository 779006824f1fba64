"""The script of a Slurm array: valid, and run by bash with a leader that takes signals; Slurm's programs are stubs."""

import os
import signal
import subprocess
import sys
import time

import pytest

from bert_tf.errors import FlagError
from bert_tf.extensions.sweep import slurm_launch

LEADER = """import signal, sys, time
def stop(*_):
    print("saved", flush=True)
    sys.exit(130)
signal.signal(signal.SIGTERM, stop)
print("ready", flush=True)
time.sleep(float(sys.argv[1]))"""


def stub(folder, name, line):
    path = folder / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


@pytest.fixture
def environment(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    stub(tmp_path, "scontrol", 'echo "scontrol $*"')
    return {**os.environ, "SLURM_JOB_ID": "7"}


def test_the_script_is_valid_and_has_the_options(tmp_path):
    folder = tmp_path / "a folder with 100% of it's runs"
    text = slurm_launch.script(["-m", "bert_tf", "sweep", f"{folder}/a.yaml"], folder, 4, "--partition=gpu --time=12:00:00")
    assert subprocess.run(["bash", "-n"], input=text, text=True, check=True, stderr=subprocess.PIPE, timeout=10)
    assert "#SBATCH --job-name=sweep --array=1-4 --nodes=1 --requeue" in text
    assert "\n#SBATCH --partition=gpu --time=12:00:00\n" in text
    assert "100%% of it" in text


@pytest.mark.parametrize(
    ("seconds", "tell", "output"),
    [
        (0, lambda _: None, ""),
        (60, lambda number: os.kill(number, signal.SIGUSR1), "saved\nscontrol requeue 7\n"),  # near the time limit, by Slurm
        (60, lambda number: os.killpg(number, signal.SIGTERM), "saved\n"),  # cancelled
    ],
)
def test_the_job_ends_with_its_leader_and_requeues_itself_before_the_time_limit(tmp_path, environment, seconds, tell, output):
    text = slurm_launch.script(["-c", LEADER, str(seconds)], tmp_path, 4, None)
    process = subprocess.Popen(["bash", "-c", text], env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout.readline() == "ready\n"
    tell(process.pid)
    assert process.communicate(timeout=30) == (output, None)
    assert seconds or process.returncode == 0


def test_a_leader_that_has_finished_is_not_started_again(tmp_path, environment):
    """The signal comes while it ends."""
    text = slurm_launch.script(["-c", "print('ready', flush=True); input()"], tmp_path, 1, None).replace(" &\n", " <&0 &\n")
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen(["bash", "-c", text.replace("kill -TERM", "true")], env=environment, **streams)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGUSR1)
    time.sleep(0.2)
    assert process.communicate("\n", timeout=30) == ("", None)
    assert process.returncode == 0


def test_the_script_is_submitted_if_slurm_is_here_and_printed_otherwise(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    printed = slurm_launch.submit(["-m", "bert_tf"], tmp_path, 2, None)
    assert f"{printed}\n" == (tmp_path / "sweep.sbatch").read_text()
    assert f"submit the script on another: sbatch {tmp_path}/sweep.sbatch" in caplog.text
    assert sys.executable in printed

    stub(tmp_path, "sbatch", 'echo "Submitted batch job 7: $1"')
    assert slurm_launch.submit(["-m", "bert_tf"], tmp_path, 2, None) == f"Submitted batch job 7: {tmp_path}/sweep.sbatch"

    stub(tmp_path, "sbatch", 'echo "sbatch: error: invalid partition specified: x" >&2; exit 1')
    with pytest.raises(FlagError, match="^--launch=slurm: error: invalid partition specified: x; correct --slurm, or edit"):
        slurm_launch.submit(["-m", "bert_tf"], tmp_path, 2, None)


@pytest.mark.parametrize("options", ["partition=gpu", "--time=1:00\nrm x", "--comment='a", " "])
def test_options_are_those_of_sbatch_in_one_line(tmp_path, options):
    with pytest.raises(FlagError, match="^--slurm="):
        slurm_launch.script([], tmp_path, 2, options)


@pytest.mark.parametrize("name", ["a\nrm -r ~ #", "a\r", "a\x1b[2J", "a\u2028b"])
def test_a_folder_whose_name_would_leave_its_line_is_refused(tmp_path, name):
    folder = tmp_path / name
    with pytest.raises(FlagError, match=r"^--output_dir='.*\\.*': a name with control characters cannot stand in a script"):
        slurm_launch.submit(["-m", "bert_tf"], folder, 2, None)
    assert list(tmp_path.iterdir()) == []

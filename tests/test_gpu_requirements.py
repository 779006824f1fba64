"""What a GPU needs is installed by one command, and a machine with a card is told of it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from bert_tf.runtime.build import Build
from bert_tf.runtime.diagnosis import CUDA_LIBRARIES, Facts, causes
from bert_tf.runtime.nvidia import Gpu, System

ROOT = Path(__file__).resolve().parents[1]
HINT = "there is an NVIDIA GPU: make run GPU=1 installs CUDA's libraries"


def requirements(name):
    lines = (line.partition("#")[0].strip() for line in (ROOT / name).read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]


def test_the_version_of_tensorflow_is_said_once():
    assert requirements("requirements-gpu.txt") == ["-r requirements.txt", "tensorflow[and-cuda]"]
    pinned = [line for line in requirements("requirements.txt") if re.match(r"tensorflow\b(?!-)", line)]
    assert pinned == ["tensorflow==2.15.1"]  # and-cuda of 2.15.0 cannot be installed


def test_the_extra_brings_every_library_that_tensorflow_loads():
    asked = [Requirement(line) for line in metadata.requires("tensorflow")]
    wheels = {row.name for row in asked if row.marker and row.marker.evaluate({"extra": "and-cuda"})}
    assert {"nvidia-cuda-nvcc-cu12", "nvidia-nccl-cu12"} <= wheels
    for library in CUDA_LIBRARIES["12"]:
        name = re.sub(r"^lib|Lt$", "", library.partition(".")[0]).replace("cudart", "cuda-runtime")
        assert f"nvidia-{name}-cu12" in wheels


def would_do(*arguments, target="run", there=".venv/runs"):
    """What make would run, were the virtual environment there."""
    command = ["make", "--dry-run", f"--assume-old={there}", target, *arguments]
    environment = {**os.environ, "MAKEFLAGS": ""}  # else a make that runs the tests decides
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, env=environment).stdout


def test_make_run_installs_the_libraries_where_asked():
    assert "requirements-gpu.txt" in would_do("GPU=1", "NVIDIA=")
    assert "requirements-gpu.txt" not in would_do("NVIDIA=") + would_do("GPU=0", "NVIDIA=")


@pytest.mark.parametrize(
    ("card", "libraries", "told"),
    [("", False, False), ("/dev/nvidia0", False, True), ("/dev/nvidia0", True, False)],
)
def test_make_run_tells_of_a_card_in_one_line(tmp_path, card, libraries, told):
    if libraries:
        (tmp_path / ".venv").mkdir()
        (tmp_path / ".venv/gpu").touch()
    check = would_do(f"NVIDIA={card}").rpartition(".venv/bin/python run_classifier")[0].partition("[ -e")
    done = subprocess.run(["sh", "-c", check[1] + check[2]], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert [HINT in line for line in done.stderr.splitlines()] == [True] * told


@pytest.mark.parametrize(("installed", "named"), [("2.15.1", "2.15.1"), ("2.15.0", "2.15.1")])
def test_a_remedy_can_be_pasted(monkeypatch, installed, named):
    monkeypatch.setattr("sys.executable", "/home/me/my env/bin/python")
    facts = Facts(System((Gpu(),)), Build(installed, False), None, sees_another=False)
    ((cause,),) = causes((Gpu(),), facts)
    words = ["/home/me/my env/bin/python", "-m", "pip", "install", f"tensorflow[and-cuda]=={named}"]
    assert shlex.split(cause.remedy) == words
    assert "'tensorflow[and-cuda]" in cause.remedy  # a shell reads brackets as a pattern


def test_the_checks_of_a_change_try_the_requirements_out():
    assert "make check-gpu" in (ROOT / ".ci/run").read_text(encoding="utf-8")
    commands = would_do(target="check-gpu", there=".venv/develops")
    assert "pip install --quiet --dry-run -r requirements-gpu.txt" in commands

"""What a GPU needs is installed by one command, and a machine with a card is told of it."""

import os
import re
import shlex
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from bert_tf.runtime import diagnosis
from bert_tf.runtime.diagnosis import Build, Facts, causes, libraries
from bert_tf.runtime.nvidia import Gpu, System

FILES = ("requirements.txt", "requirements-2.15.txt")
ROOT = Path(__file__).resolve().parents[1]
HINT = "there is an NVIDIA GPU: make run GPU=1 installs CUDA's libraries"


def requirements(name):
    lines = (line.partition("#")[0].strip() for line in (ROOT / name).read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("requirements-gpu.txt", ["tensorflow[and-cuda]"]),
        ("requirements.txt", ['tensorflow==2.21.0; python_version >= "3.10"', 'tensorflow==2.20.0; python_version < "3.10"']),
        ("requirements-2.15.txt", ["tensorflow==2.15.1"]),  # and-cuda of 2.15.0 cannot be installed
    ],
)
def test_the_versions_of_tensorflow_are_said_once(name, lines):
    packages = [line for line in requirements(name) if not line.startswith("tensorflow-text")]
    assert packages == ["-r requirements-base.txt", *lines]


@pytest.mark.parametrize(("name", "python"), [(name, python) for name in FILES for python in ("3.9", "3.10", "3.13")])
def test_each_file_chooses_one_tensorflow_and_its_text_within_the_range_of_the_package(name, python):
    ranges = {row.name: row.specifier for row in map(Requirement, requirements("requirements-base.txt"))}
    rows = [Requirement(line) for line in requirements(name) if not line.startswith("-r")]
    chosen = [row for row in rows if row.marker is None or row.marker.evaluate({"python_version": python})]
    assert [row.name for row in chosen] == ["tensorflow", "tensorflow-text"]
    versions = [next(iter(row.specifier)).version for row in chosen]
    assert len({version.rpartition(".")[0] for version in versions}) == 1
    assert all(version in ranges[row.name] for row, version in zip(chosen, versions))


def test_the_extra_brings_every_library_that_tensorflow_loads():
    asked = [Requirement(line) for line in metadata.requires("tensorflow")]
    wheels = {row.name for row in asked if row.marker and row.marker.evaluate({"extra": "and-cuda"})}
    assert {"nvidia-cuda-nvcc-cu12", "nvidia-nccl-cu12"} <= wheels
    for library in libraries(diagnosis.installed_build()):
        name = re.sub(r"^lib|Lt$", "", library.partition(".")[0]).replace("cudart", "cuda-runtime")
        assert f"nvidia-{name}-cu12" in wheels


def would_do(*arguments, target="run", there="runs"):
    """What make would run, were the virtual environment there."""
    command = ["make", "--dry-run", f"PYTHON={sys.executable}", "VENV=absent", f"--assume-old=absent/{there}"]
    decided = ("MAKEFLAGS", "MAKEOVERRIDES", "TF", "VENV", "PYTHON")  # by a make that runs the tests
    environment = {name: value for name, value in os.environ.items() if name not in decided}
    done = subprocess.run([*command, target, *arguments], cwd=ROOT, capture_output=True, text=True, check=True, env=environment)
    return done.stdout


def test_make_run_installs_the_libraries_where_asked():
    assert "requirements-gpu.txt" in would_do("GPU=1", "NVIDIA=")
    assert "requirements-gpu.txt" not in would_do("NVIDIA=") + would_do("GPU=0", "NVIDIA=")


@pytest.mark.parametrize(("card", "libraries", "told"), [("", 0, 0), ("/dev/nvidia0", 0, 1), ("/dev/nvidia0", 1, 0)])
def test_make_run_tells_of_a_card_in_one_line(tmp_path, card, libraries, told):
    if libraries:
        (tmp_path / "absent").mkdir()
        (tmp_path / "absent/gpu").touch()
    check = would_do(f"NVIDIA={card}").rpartition("absent/bin/python run_classifier")[0].partition("[ -e")
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

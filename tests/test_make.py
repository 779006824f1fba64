"""Which Python and which TensorFlow make takes, on machines made of a few programs, and what CI makes of failures."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ("sh", "bash", "make", "head", "dirname", "mkdir", "touch", "rm", "cat", "chmod", "mktemp", "tee", "grep")


class Machine:
    """A clone of the build files, and a PATH with nothing on it but a few tools and the Pythons that a test adds."""

    def __init__(self, folder: Path):
        self.folder, self.bin = folder / "clone", folder / "bin"
        self.bin.mkdir()
        shutil.copytree(ROOT / ".ci", self.folder / ".ci")
        for name in ("Makefile", *(path.name for path in ROOT.glob("requirements*.txt"))):
            shutil.copy(ROOT / name, self.folder / name)
        for name in TOOLS:
            (self.bin / name).symlink_to(shutil.which(name))

    def python(self, version: str, name: str = "python3", *, pip: str = "exit 0") -> Path:
        """Adds a program that says it is this Python; its virtual environments have it as python, and this pip."""
        path = self.bin / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f"""#!/bin/sh
case "$1" in
  --version) echo Python {version}.0 ;;
  -c) echo {version} {path} ;;
  -m) case "$*" in *--upgrade-deps*) ;; *) exit 1 ;; esac
      for last; do :; done
      rm -rf "$last"; mkdir -p "$last/bin"; : > "$last/pyvenv.cfg"; cat "$0" > "$last/bin/python"; echo '#!/bin/sh
echo pip "$@" >> "{self.folder}/done"; {pip}' > "$last/bin/pip"; echo venv {version} >> "{self.folder}/done"
      for tool in ruff mypy pytest; do echo '#!/bin/sh
echo "${{0##*/}}" "$@" >> "{self.folder}/done"
[ ! -e "{self.folder}/$1-fails" ] || {{ cat "{self.folder}/$1-fails"; exit 1; }}' > "$last/bin/$tool"; done
      chmod +x "$last"/bin/* ;;
esac
"""
        )
        path.chmod(0o755)
        return path

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": os.fspath(self.bin), "HOME": os.fspath(self.folder / "home")}
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)

    def make(self, *arguments: str) -> list[str]:
        """Returns what was done."""
        (self.folder / "done").write_text("")
        result = self.run("make", "NVIDIA=", *arguments)
        assert result.returncode == 0, result.stderr
        return self.done()

    def done(self) -> list[str]:
        return (self.folder / "done").read_text().splitlines()


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_python3_is_taken_if_tensorflow_supports_it(machine):
    machine.python("3.13", "python3.13")
    for version in ("3.9", "3.10", "3.11", "3.12", "3.13"):
        machine.python(version)
        assert machine.make("run", f"VENV={version}")[0] == f"venv {version}"


@pytest.mark.parametrize("name", ["python3.12", "../clone/home/.pyenv/versions/3.12.1/bin/python", "elsewhere/python"])
def test_another_python_is_looked_for_the_newest_first_and_by_uv_last(machine, name):
    machine.python("3.14")
    machine.python("3.12", name)
    if "elsewhere" in name:
        (machine.bin / "uv").write_text(f'#!/bin/sh\n[ "$4" != 3.12 ] || echo {machine.bin}/elsewhere/python\n')
        (machine.bin / "uv").chmod(0o755)
    else:
        machine.python("3.9", "python3.9")
    assert machine.make("run") == ["venv 3.12", "pip install --quiet --no-compile -r requirements.txt"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "bert_tf needs Python 3.9 to 3.13; python3 is Python 3.14.0. Install one of them, or name it: make PYTHON="),
        (("TF=2.15", "PYTHON=python3.12"), "TensorFlow 2.15 needs Python 3.9 to 3.11; python3.12 is Python 3.12.0."),
        (("PYTHON=python9",), "PYTHON=python9 is not a program"),
        (("TF=2.16",), "TF is newest or 2.15, not 2.16"),
    ],
)
def test_without_a_python_that_fits_one_line_says_which_do(machine, arguments, said):
    machine.python("3.14")
    if arguments:
        machine.python("3.12", "python3.12")
    result = machine.run("make", "run", *arguments)
    assert result.returncode != 0
    assert result.stderr.count("\n") == 1
    assert said in result.stderr
    assert not (machine.folder / ".venv").exists()  # nothing that the next attempt would take for an environment
    machine.python("3.11", "python3.11")
    assert machine.make("run", "PYTHON=python3.11")[0] == "venv 3.11"


def test_the_environment_is_kept_as_it_was_made(machine):
    machine.python("3.13")
    machine.python("3.11", "python3.11")
    assert machine.make("run", "TF=2.15") == ["venv 3.11", "pip install --quiet --no-compile -r requirements-2.15.txt"]
    assert machine.make("run") == []
    assert machine.make("install") == ["pip install --quiet --no-compile -r requirements-2.15.txt -r requirements-dev.txt"]
    assert machine.make("install", "PYTHON=python3.11") == []
    locked = machine.make("install", "TF=newest", "PYTHON=python3", "LOCKED=1")  # the versions of the lock alone
    assert locked[1:] == 2 * ["pip install --quiet --no-compile --require-hashes -r .ci/locks/newest-3.13.txt"]


@pytest.mark.parametrize("lock", sorted((ROOT / ".ci/locks").glob("*.txt")), ids=lambda path: path.stem)
def test_a_lock_has_what_the_requirements_ask_for(lock):
    """By hash; a range that was changed since wants another `make lock`."""
    tensorflow, _, version = lock.stem.partition("-")
    lines = lock.read_text(encoding="utf-8").splitlines()[1:]
    assert [line for line in lines if not re.fullmatch(r"\S+==\S+ --hash=sha256:[0-9a-f]{64}", line)] == []
    locked = {canonicalize_name(line.partition("==")[0]): line.split()[0].partition("==")[2] for line in lines}
    files = ("requirements-base.txt", "requirements-dev.txt", f"requirements{'-2.15' if tensorflow == '2.15' else ''}.txt")
    rows = [
        row for name in files for row in (ROOT / name).read_text(encoding="utf-8").splitlines() if row and row[0] not in "#-"
    ]
    here = {"python_version": version, "python_full_version": f"{version}.0"}
    wanted = [one for one in map(Requirement, rows) if one.marker is None or one.marker.evaluate(here)]
    assert [str(one) for one in wanted if not one.specifier.contains(locked.get(canonicalize_name(one.name), "0"))] == []


def test_a_wheel_lists_what_it_needs_by_hash():
    """In the fields that CycloneDX requires, and names as a package URL has them."""
    bill = runpy.run_path(str(ROOT / ".ci/lock.py"))["bill"]([("ml_dtypes", "0.6.0", "ab")])
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["components"] == [
        {"type": "library", "name": "ml_dtypes", "version": "0.6.0", "purl": "pkg:pypi/ml-dtypes@0.6.0",
         "hashes": [{"alg": "SHA-256", "content": "ab"}]}
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "made"),
    [(("TF=newest",), "venv 3.11"), (("PYTHON=python3.10",), "venv 3.10"), (("VENV=.other",), "venv 3.13")],
)
def test_another_python_tensorflow_or_folder_makes_another_environment(machine, arguments, made):
    machine.python("3.13")
    for version in ("3.11", "3.10"):
        machine.python(version, f"python{version}")
    machine.make("run", "TF=2.15")
    assert machine.make("run", *arguments)[0] == made
    assert machine.make("run", *arguments) == []


def test_an_environment_that_failed_lost_its_python_or_is_of_before_is_made_again(machine):
    machine.python("3.12", pip="exit 1")
    assert machine.run("make", "run").returncode != 0
    machine.python("3.13", "python3.13")
    assert machine.make("run", "PYTHON=python3.13")[0] == "venv 3.13"
    (machine.folder / ".venv/bin/python").unlink()
    assert machine.make("run", "PYTHON=python3.13")[0] == "venv 3.13"
    (machine.folder / ".before/bin").mkdir(parents=True)
    (machine.folder / ".before/pyvenv.cfg").touch()
    (machine.folder / ".before/runs").touch()
    assert machine.make("run", "PYTHON=python3.13", "VENV=.before")[0] == "venv 3.13"


def test_a_folder_that_is_no_environment_is_left_alone(machine):
    machine.python("3.12")
    (machine.folder / "thesis").mkdir()
    (machine.folder / "thesis/chapter1").touch()
    result = machine.run("make", "run", "VENV=thesis")
    assert result.returncode != 0
    assert "make: thesis is no virtual environment: name another VENV" in result.stderr
    assert (machine.folder / "thesis/chapter1").exists()


def test_of_an_environment_the_python_behind_it_is_taken(tmp_path):
    """So that the environment can be made anew by it: real ones, since Pythons differ in what they say of themselves."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "made"], check=True)
    command = [ROOT / ".ci/find_python", "newest", "only", tmp_path / "made/bin/python"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    path, version = done.stdout.rsplit(maxsplit=1)
    assert version == "{}.{}".format(*sys.version_info)
    assert not Path(path).is_relative_to(tmp_path)
    assert Path(path).resolve() == Path(sys.executable).resolve()


def test_ci_tests_the_oldest_and_the_newest(machine):
    machine.python("3.11")
    for version in ("3.9", "3.10", "3.13"):
        machine.python(version, f"python{version}")
    assert {"2.15-3.9", "newest-3.13"} <= {path.stem for path in (ROOT / ".ci/locks").glob("*.txt")}
    result = machine.run(".ci/run")
    assert result.returncode == 0, result.stderr
    assert sorted(line for line in machine.done() if line.startswith("venv")) == ["venv 3.13", "venv 3.9"]
    assert [line for line in machine.done() if line.startswith(("pytest", "mypy"))] == [
        "mypy",
        "pytest tests/test_architecture.py",
        *(
            f"pytest -m {tests} -n 2 --dist worksteal"
            for tests in ("not slow and not several_machines", "several_machines", "versions and not slow")
        ),
    ]
    assert re.findall(r"\d s  (.*)", result.stdout) == [
        *(f"TensorFlow newest: make {target}" for target in ("check", "test", "test-machines")),
        "TensorFlow 2.15: make test-versions",
        "in all",
    ]


def test_ci_fails_when_a_suite_fails_twice_and_runs_the_others(machine):
    machine.python("3.11")
    for option in ("-m", "-p"):
        (machine.folder / f"{option}-fails").write_text("1 failed, 7 passed in 0.10s\n")
    result = machine.run(".ci/run")
    assert result.returncode == 1
    failed = [line.partition(" PYTHON")[0] for line in result.stderr.splitlines() if line.startswith("failed:")]
    assert failed == [
        "failed: make test TF=newest",
        "failed: make test-machines TF=newest",
        "failed: make test-versions TF=2.15",
    ]


@pytest.mark.parametrize(
    "log", ["", "1 failed, 7 passed, 1 error in 0.10s\n", "worker 'gw0' crashed\n1 failed, 7 passed in 0.10s\n"]
)
def test_ci_runs_nothing_again_if_a_suite_ended_early(machine, log):
    machine.python("3.13")
    (machine.folder / "-m-fails").write_text(log)
    result = machine.run(".ci/run")
    assert (result.returncode, "what failed, again" in result.stdout) == (1, False)


def test_ci_lists_tests_that_pass_the_second_time(machine):
    machine.python("3.13")
    (machine.folder / "-m-fails").write_text("2 failed, 7 passed, 1 skipped, 2 warnings in 288.95s (0:04:48)\n")
    result = machine.run(".ci/run")
    assert result.returncode == 0, result.stderr
    assert "  TensorFlow newest: make test: failed\n" in result.stdout
    assert "  TensorFlow newest: make test, what failed, again\n" in result.stdout
    assert result.stdout.count("unsteady: TensorFlow newest: ") == 2

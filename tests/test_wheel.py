"""The package as a wheel, installed in a virtual environment outside of the clone."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

import bert_tf
from tests.extensions.export.runs import MRPC, write_run

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("bert_tf", "pyproject.toml", "requirements-base.txt", "README.md", "LICENSE")
QUICKSTART = """
import bert_tf
model = bert_tf.fine_tune("MRPC", output_dir="out", num_train_epochs=2)
assert model.evaluate("dev").metrics["accuracy"] > 145 / 220
print(model.predict([("He left.", "He went away.")])[0].label in model.labels)
"""


def run(*command, cwd, **environment):
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "BERT_BASE_DIR", "GLUE_DIR")}
    line = [str(word) for word in command]
    done = subprocess.run(line, cwd=cwd, env={**variables, **environment}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built of a copy: a build leaves folders beside its sources."""
    folder = tmp_path_factory.mktemp("sources")
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", folder / "dist")
    run(sys.executable, "-m", "pip", "wheel", *options, folder, cwd=folder)
    return next((folder / "dist").glob("*.whl"))


def made(folder, *, with_pip=False):
    """Returns the programs of a fresh virtual environment; pip fetches the default checkpoint."""
    venv.create(folder, with_pip=with_pip, symlinks=True)
    return folder / "bin"


def install(programs, *arguments):
    run(sys.executable, "-m", "pip", "--python", programs / "python", "install", "--quiet", *arguments, cwd=programs)


@pytest.fixture(scope="module")
def programs(tmp_path_factory, wheel):
    """Those of an environment that sees the libraries of the tests' own."""
    bin_dir = made(tmp_path_factory.mktemp("light") / "venv")
    install(bin_dir, "--no-deps", "--no-index", wheel)
    library = run(bin_dir / "python", "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])", cwd=bin_dir).strip()
    (Path(library) / "tests.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return bin_dir


@pytest.mark.several_machines
def test_a_wheel_has_command_types_sample_and_page_and_keeps_files_in_the_users_folder(programs, tmp_path):
    text = run(programs / "bert-tf", "--help", cwd=tmp_path)
    assert text.startswith("usage: bert-tf COMMAND [FLAGS]\n")
    assert "fine-tune" in text
    code = """
import os, bert_tf
from bert_tf import home
from bert_tf.training.sources import find_data
from bert_tf.tasks.registry import get_task
print(home.clone())
page = ("page.html.j2", "style.css", "notices.txt")
for path in ("py.typed", *(f"extensions/report/{name}" for name in page), "native/kernels/ops.h"):
    print((home.PACKAGE / path).is_file())
print(home.folder(os.environ))
print(find_data(get_task("MRPC"), None, environment=os.environ).folder.relative_to(home.PACKAGE))
"""
    printed = run(programs / "python", "-c", code, cwd=tmp_path, BERT_TF_HOME=str(tmp_path / "home")).split()
    assert printed == ["None", *5 * ["True"], str(tmp_path / "home"), "sample/MRPC"]
    cache = run(programs / "python", "-c", code, cwd=tmp_path, BERT_TF_HOME="", XDG_CACHE_HOME=str(tmp_path / "cache")).split()
    if sys.platform == "linux":
        assert cache[6] == str(tmp_path / "cache" / "bert_tf")


@pytest.mark.slow
def test_the_quickstart_runs_in_a_fresh_environment(wheel, tmp_path):
    bin_dir = made(tmp_path / "venv", with_pip=True)
    install(bin_dir, wheel)
    home = tmp_path / "home"
    printed = run(bin_dir / "python", "-c", QUICKSTART, cwd=tmp_path, BERT_TF_HOME=str(home))
    assert printed == "True\n"
    assert (tmp_path / "out" / "report.html").is_file()
    assert (home / "checkpoints" / "all-MiniLM-L6-v2" / "vocab.txt").is_file()


@pytest.mark.several_machines
def test_an_exported_model_needs_the_wheel_and_its_own_requirements(wheel, tmp_path):
    """In an environment of its own, from the package registry; without TensorFlow."""
    with bert_tf.load(write_run(tmp_path / "run", MRPC)) as model:
        folder = model.export("onnx", tmp_path / "exported")
        expected = model.predict([("rain", "wind")])[0]
    bin_dir = made(tmp_path / "venv")
    install(bin_dir, "--no-deps", "--no-index", wheel)
    install(bin_dir, "-r", folder / "requirements.txt")
    (tmp_path / "rows.jsonl").write_text('{"text_a": "rain", "text_b": "wind"}\n')
    run(bin_dir / "bert-tf", "predict", folder, "--input=rows.jsonl", "--output=out.jsonl", cwd=tmp_path)
    predicted = json.loads((tmp_path / "out.jsonl").read_text())
    assert predicted["label"] == expected.label
    assert predicted["probability_1"] == pytest.approx(expected.probabilities["1"], abs=1e-5)
    code = "import importlib.util as u; print(u.find_spec('tensorflow'), u.find_spec('scipy'))"
    assert run(bin_dir / "python", "-c", code, cwd=tmp_path) == "None None\n"

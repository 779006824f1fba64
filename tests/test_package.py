"""What importing bert_tf checks, and what it leaves alone."""

import ast
import os
import runpy
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

import bert_tf
from bert_tf.versions import platform_problem, without_tensorflow

ROOT = Path(__file__).resolve().parents[1]
INIT = ROOT / "bert_tf" / "__init__.py"
ROOMS_WITHOUT_TENSORFLOW = (
    *("errors.py", "config.py", "io/*.py", "metrics/*.py"),
    *("tokenization/*.py", "tasks/**/*.py", "features/*.py"),
)


def installed(monkeypatch, **versions):
    """Makes importlib.metadata know these packages only; an underscore stands for a hyphen."""

    def version(package):
        try:
            return versions[package.replace("-", "_")]
        except KeyError:
            raise metadata.PackageNotFoundError(package) from None

    monkeypatch.setattr(metadata, "version", version)


SUPPORTED = ("2.15.0", "2.15.1", "2.15.0.post1", "2.16.2", "2.20.0", "2.21.0", "2.21.0rc1")
NEWER = ("2.22.0", "2.22.0.dev20260309", "2.30.1", "2.150.0")  # accepted, untested
MEND = "Run: pip install -r requirements.txt"


@pytest.mark.parametrize(
    ("python", "tensorflow", "problem"),
    [
        *(((3, minor), version, None) for minor in range(9, 14) for version in SUPPORTED),
        *(((3, 13), version, None) for version in NEWER),
        *(((major, minor), "2.21.0", f"bert_tf needs Python 3.9 or newer; this is Python {major}.{minor}.")
          for major, minor in ((3, 8), (2, 7))),
        *(((3, 11), version, f"bert_tf needs TensorFlow 2.15 to 2.21; {version} is installed. {MEND}")
          for version in ("2.14.1", "1.15.5", "2.1.5", "3.0.0", "20.15.0", "2", "unknown")),
        ((3, 11), None, None),  # for exported models
        ((3, 14), None, None),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named_with_what_mends_it(python, tensorflow, problem):
    assert platform_problem(python, tensorflow) == problem
    assert platform_problem(python, tensorflow, "nt") == "bert_tf runs on Linux, under Windows in WSL 2."


def test_what_needs_tensorflow_says_how_to_install_it():
    assert without_tensorflow((3, 11)).endswith(MEND)
    # No TensorFlow can be installed there, so the advice names another Python.
    assert without_tensorflow((3, 14)).endswith(f"{MEND} with Python 3.9 to 3.13 (this is 3.14)")


@pytest.mark.parametrize("versions", [{"tensorflow": "2.14.1"}])
def test_import_ends_in_one_line_where_the_platform_does_not_fit(monkeypatch, versions):
    installed(monkeypatch, **versions)
    with pytest.raises(ImportError) as caught:
        runpy.run_path(str(INIT), run_name="bert_tf")
    assert str(caught.value) == platform_problem(sys.version_info[:2], versions.get("tensorflow"))
    assert caught.value.name == "bert_tf"


def test_a_package_in_a_zip_file_is_one_line(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as file:
        for name in ("__init__.py", "versions.py"):
            file.write(INIT.with_name(name), f"bert_tf/{name}")
    code = "import sys; sys.path.insert(0, 'a.zip'); import bert_tf"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.stderr.endswith("a.zip: install its wheel on each machine\n")


@pytest.mark.parametrize("package", ["tensorflow", "tensorflow_cpu", "tensorflow_macos", "tensorflow_intel"])
def test_import_accepts_tensorflow_under_each_of_its_package_names(monkeypatch, package):
    installed(monkeypatch, **{package: "2.15.0"})
    assert runpy.run_path(str(INIT))["_problem"] is None


def test_old_pythons_can_parse_the_check():
    # A syntax error would hide the line that says which Python is needed.
    ast.parse(INIT.read_text(encoding="utf-8"), feature_version=(3, 6))


def test_the_library_imports_in_a_moment_and_its_lower_rooms_without_tensorflow():
    files = [file for room in ROOMS_WITHOUT_TENSORFLOW for file in INIT.parent.glob(room)]
    # graph.py is the tokenizer inside the TensorFlow graph; the other modules must do without it.
    names = [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files if file.name != "graph.py"]
    code = (
        "import sys, bert_tf; print(sorted({'tensorflow', 'numpy', 'absl', 'sklearn'} & set(sys.modules)))\n"
        f"import {', '.join(names)}; print(sorted({{'tensorflow', 'sklearn'}} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]", "[]"]
    assert len(names) > 30


@pytest.mark.parametrize(("command", "status"), [(["run_classifier.py"], 2), (["-m", "bert_tf", "devices"], 1)])
def test_a_command_ends_in_one_line_where_the_platform_does_not_fit(tmp_path, command, status):
    for name in ("bert_tf", "run_classifier.py"):
        (tmp_path / name).symlink_to(ROOT / name)
    metadata_of = tmp_path / "tensorflow-2.14.1.dist-info"
    metadata_of.mkdir()
    (metadata_of / "METADATA").write_text("Metadata-Version: 2.1\nName: tensorflow\nVersion: 2.14.1\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == status  # of `-m` it is that of Python, which cannot import the package
    assert done.stderr.count("\n") == 1
    assert "bert_tf needs TensorFlow 2.15 to 2.21; 2.14.1 is installed" in done.stderr


def test_names_of_the_library_are_found_and_no_others():
    assert {"load", "fine_tune", "BertError"} < set(bert_tf.__all__) <= set(dir(bert_tf))
    assert all(getattr(bert_tf, name) is not None for name in bert_tf.__all__)
    with pytest.raises(AttributeError, match="module 'bert_tf' has no attribute 'fine_tun'"):
        bert_tf.fine_tun  # noqa: B018
    assert [part.isdigit() for part in bert_tf.__version__.split(".")] == [True] * 3

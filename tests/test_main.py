"""`python -m bert_tf` and run_classifier.py."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from bert_tf import __main__ as front
from bert_tf.io import streams

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def _streams_of_pytest(monkeypatch):
    """The doors take the place of a process's standard streams, which here are pytest's."""
    monkeypatch.setattr(streams, "make_safe", lambda: None)


def test_help_has_a_line_on_each_command_and_is_an_error_without_one(capsys):
    text = front.help_text()
    entries = [" ".join(entry.split()) for entry in re.split(r"\n(?!   )", text)]
    assert {f"{name} {line}" for name, line in front.COMMANDS.items()} < set(entries)
    assert all(f"{group}:" in text.splitlines() for group in front.GROUPS)
    for word in ("--help", "--help=all", "-h", "help"):
        assert (front.main(["bert_tf", word]), capsys.readouterr()) == (0, (text, ""))
    assert (front.main(["bert_tf"]), capsys.readouterr()) == (2, ("", text))


UNKNOWN = "error: unknown command 'evalute'; did you mean evaluate? (known: benchmark, calibrate, card, "


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["evalute"], UNKNOWN),
        (["data", "fecth"], "data: unknown action 'fecth'; did you mean "),
        (["memory", "reprot"], "memory: unknown action 'reprot'; did you mean "),
    ],
)
def test_a_misspelt_name_is_one_line_with_the_nearest(line, message, capsys):
    assert front.main(["bert_tf", *line]) == 2
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert message in err


def test_every_command_is_a_module_and_none_is_left_out():
    folder = ROOT / "bert_tf" / "operations"
    paths = [path for path in (*folder.glob("*.py"), *folder.glob("*/__init__.py")) if "\nCOMMAND = " in path.read_text()]
    found = {path.stem.replace("__init__", path.parent.name) for path in paths}
    assert {name.replace("-", "_") for name in front.COMMANDS.keys() - {"benchmark"}} == found


def replace_import(monkeypatch, imported) -> None:
    monkeypatch.setattr(front, "importlib", SimpleNamespace(import_module=imported))


def test_hands_the_rest_of_the_line_to_the_command(monkeypatch):
    seen = []
    replace_import(monkeypatch, lambda name: SimpleNamespace(main=lambda argv: seen.append((name, argv)) or 3))
    monkeypatch.setattr(sys, "path", [])
    assert front.main(["bert_tf", "benchmark", "--peers"]) == 3
    assert (seen, sys.path) == ([("benchmarks.command_line", ["benchmark", "--peers"])], [str(ROOT)])


def test_outside_of_a_clone_one_line_says_where_the_benchmark_is(monkeypatch, capsys):
    monkeypatch.setattr(front.home, "clone", lambda: None)
    assert front.run(["bert_tf", "benchmark"]) == 2
    message = "the benchmark is not installed with the package: clone the project, and run this command there"
    assert capsys.readouterr().err == f"error: {message}\n"


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (KeyboardInterrupt(), 130, "error: stopped\n"),
        (ModuleNotFoundError("No module named 'absl'", name="absl"), 2, "pip install -r requirements.txt"),
        (PermissionError(13, "Permission denied", "site-packages/absl"), 2, "error: site-packages/absl: Permission denied"),
    ],
)
def test_what_fails_at_an_import_is_one_line(error, status, line, monkeypatch, capsys):
    def fail(_):
        raise error

    replace_import(monkeypatch, fail)
    assert front.run(["bert_tf", "classifier"]) == status
    said = capsys.readouterr().err
    assert line in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(("argument", "status"), [("--help", 0), ("--colour=blue", 2)])
@pytest.mark.parametrize("door", ["run_classifier.py", "bert_tf/__main__.py"])
def test_both_doors_exit_with_the_status_of_the_command(door, argument, status, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["x", argument] if door == "run_classifier.py" else ["x", "classifier", argument])
    with pytest.raises(SystemExit) as caught:
        runpy.run_path(str(ROOT / door), run_name="__main__")
    assert caught.value.code == status


def test_run_classifier_is_the_classifier(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["run_classifier.py"])
    with pytest.raises(SystemExit, match="2"):
        runpy.run_path(str(ROOT / "run_classifier.py"), run_name="__main__")
    assert capsys.readouterr().err.startswith("error: --task_name is required")


def test_no_command_loads_tensorflow_for_its_help():
    code = (
        "import sys; from bert_tf.__main__ import COMMANDS, main\n"
        "main(['x', '--help'])\n"
        "for name in COMMANDS:\n"
        "    main(['x', name, '--help'])\n"
        "    main(['x', name, '--help=all'])\n"
        "    assert 'tensorflow' not in sys.modules, name"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")

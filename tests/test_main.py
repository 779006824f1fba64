"""`python -m bert_tf` and run_classifier.py."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from bert_tf import __main__ as front

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("arguments", [[], ["classify"], ["--help"]])
def test_names_the_commands_where_none_is_asked_for(arguments, capsys):
    assert front.main(["bert_tf", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.err == f"usage: python -m bert_tf COMMAND [FLAGS]; commands: {', '.join(front.COMMANDS)}\n"
    assert captured.out == ""


def test_hands_the_rest_of_the_line_to_the_command(monkeypatch):
    monkeypatch.setitem(front.COMMANDS, "classifier", lambda argv: argv)
    assert front.main(["bert_tf", "classifier", "--task_name=MRPC"]) == ["classifier", "--task_name=MRPC"]


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

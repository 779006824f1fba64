"""The benchmark is run where it stands beside the package, in a clone."""

from __future__ import annotations

from benchmarks import command_line
from bert_tf.commands import benchmark


def test_a_clone_runs_its_own(monkeypatch):
    monkeypatch.setattr(command_line, "main", lambda argv: len(argv))
    assert benchmark.main(["benchmark", "--peers", "--rounds=1"]) == 3


def test_outside_of_a_clone_one_line_says_where_it_is(tmp_path, capsys):
    assert benchmark.main(["benchmark"], project=tmp_path) == 2
    assert capsys.readouterr().err == (
        "error: the benchmark is not installed with the package: clone the project, and run this command there\n"
    )

"""How a command ends where nobody reads on; other endings are in the tests of the commands."""

from __future__ import annotations

import os
import sys

import pytest

from bert_tf.cli.ending import run_command


@pytest.mark.parametrize("lines", [1, 100_000])  # within what is buffered, and beyond
def test_nobody_who_reads_on_is_no_traceback(monkeypatch, capsys, lines):
    read, write = os.pipe()
    os.close(read)

    def work():
        sys.stdout.write("a line of a table\n" * lines)
        return 0

    with os.fdopen(write, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert run_command(work, help_text=str, stopped="stopped") == 141
    assert capsys.readouterr().err == ""

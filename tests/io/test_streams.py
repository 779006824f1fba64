"""Standard streams that are closed, full or broken, in small processes: pytest needs its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PRELUDE = "import sys; from bert_tf.io import streams; streams.make_safe(); "


def shell(code: str, redirections: str) -> subprocess.CompletedProcess:
    """Runs a line of Python with the streams of a shell's redirections."""
    line = f"{sys.executable} -c '{PRELUDE}{code}' {redirections}"
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", "<&- 2>&-"])
def test_notices_are_dropped_where_nobody_reads_them(redirection):
    done = shell('print("lost", file=sys.stderr, flush=True); print("kept")', redirection)
    assert (done.returncode, done.stdout, done.stderr) == (0, "kept\n", "")


@pytest.mark.parametrize(("redirection", "reason"), [(">&-", "Bad file descriptor"), (">/dev/full", "No space left on device")])
def test_results_that_cannot_be_written_are_an_error_once(redirection, reason):
    code = "print(1)\ntry: sys.stdout.flush()\nexcept Exception as error: print(type(error).__name__, error, file=sys.stderr)"
    done = shell(code.replace("'", '"'), redirection)
    assert done.stderr.startswith(f"OutputError standard output: cannot write: {reason}")
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)


def test_a_closed_number_goes_to_no_other_file(tmp_path):
    code = f'import os; f = open("{tmp_path}/weights", "w"); os.write(2, b"log"); print(f.fileno() > 2)'
    assert shell(code, "<&- 2>&-").stdout == "True\n"
    assert (tmp_path / "weights").read_bytes() == b""


def test_a_closed_input_is_an_error_where_it_is_read():
    assert "Bad file descriptor" in shell("sys.stdin.read()", "<&-").stderr


@pytest.mark.parametrize(("encoding", "expected"), [("ascii", b"caf\\xe9 a\xff\n"), ("utf-8", b"caf\xc3\xa9 a\xff\n")])
def test_any_text_and_any_name_of_a_file_can_be_printed(encoding, expected):
    line = f"PYTHONIOENCODING={encoding} {sys.executable} -c '{PRELUDE}print(\"caf\\u00e9 a\\udcff\")'"
    assert subprocess.run(["bash", "-c", line], capture_output=True, check=True).stdout == expected


@pytest.mark.parametrize(
    ("command", "redirection"), [("-m bert_tf report --help", ">&-"), ("run_classifier.py --help", ">/dev/full")]
)
def test_help_that_nobody_can_read_is_one_line(command, redirection):
    line = f"{sys.executable} {command} {redirection}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 2
    assert done.stderr.startswith("error: standard output: cannot write: ")
    assert done.stderr.count("\n") == 1

"""What TensorFlow's libraries write while they are loaded, and what else is written meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from bert_tf.runtime import noise
from bert_tf.runtime.noise import LEVEL, allowed

HEADING = b"WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\n"
INFO = b"I0000 00:00:1795446098.248589   24071 port.cc:153] oneDNN custom operations are on.\n"
ERROR = b"E0000 00:00:1758131045.203298 3722035 cuda_dnn.cc:8579] Unable to register cuDNN factory\n"
OLDER = b"2025-09-17 14:44:05.157831: I external/local_xla/cudart_stub.cc:32] Could not find cuda drivers\n"
OURS = b"12:00:01 output to out/mrpc\n"
OTHERS = (b"Illegal instruction\n", b"E1 is no line of TensorFlow's\n", b"I cannot open the plug-in\n", b"E   assert 1 == 2\n")
LINES = (HEADING, INFO, ERROR, OLDER, OURS, *OTHERS)


@pytest.mark.parametrize(
    ("least", "hidden"),
    [(0, ()), (1, (HEADING, INFO, OLDER)), (2, (HEADING, INFO, OLDER)), (3, (HEADING, INFO, OLDER, ERROR))],
)
def test_lines_of_tensorflow_are_shown_from_a_severity_on(least, hidden):
    assert {line for line in LINES if not allowed(line, least)} == set(hidden)


CODE = """
import os, sys, threading
from bert_tf.runtime.noise import held_back

def say(text):
    os.write(2, text)

with held_back:
    say({info!r})
    inner = threading.Thread(target=lambda: held_back.__enter__() or say({ours!r}) or held_back.__exit__(None))
    inner.start()
    inner.join()
    print("of Python", file=sys.stderr)
    say({info!r})
{after}
"""


def said(after="", **variables):
    """Standard error of a process that writes while it is held back."""
    code = CODE.format(info=INFO, ours=OURS, after=after)
    environment = {**os.environ, LEVEL: "3", **variables}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, env=environment).stderr


def test_what_is_not_of_tensorflow_is_passed_on_in_its_order():
    assert said("    pass\nsay(b'afterwards')") == OURS + b"of Python\nafterwards"


def test_all_is_passed_on_where_the_user_wants_to_hear():
    assert said("    pass", **{LEVEL: "0"}) == INFO + OURS + b"of Python\n" + INFO


def test_all_is_passed_on_after_an_error():
    assert said("    raise ImportError('libtensorflow')").startswith(INFO + OURS + b"of Python\n" + INFO + b"Traceback")


def test_a_forked_process_writes_for_itself():
    after = """    sys.stderr.flush()
    child = os.fork()
    if not child:
        say(b"of the child")
        os._exit(0)
    os.waitpid(child, 0)
say(b" of the parent")"""
    assert said(after) == b"of the child" + OURS + b"of Python\n of the parent"


def test_an_output_that_nobody_reads_is_no_error():
    code = CODE.format(info=INFO, ours=OURS, after="    pass\nprint('through')")
    reader, writer = os.pipe()
    os.close(reader)
    environment = {**os.environ, LEVEL: "3"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=writer, check=True, env=environment)
    os.close(writer)
    assert done.stdout == b"through\n"


def test_where_nothing_can_be_held_all_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(noise, "_file", lambda: (tmp_path / "no" / "file").open("w+b"))
    monkeypatch.setenv(LEVEL, "3")
    held = noise._HeldBack()
    with held:
        assert held._file is None


def test_an_old_cpu_is_told_why_tensorflow_aborts(monkeypatch):
    monkeypatch.setenv(LEVEL, "3")
    monkeypatch.setattr(noise, "_is_too_old", lambda: True)
    assert noise._min_severity() == 0


def test_nothing_fails_without_standard_error():
    code = "import os; os.close(2)\nfrom bert_tf.runtime.noise import held_back\nwith held_back: print('held')"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True, env={**os.environ, LEVEL: "3"})
    assert done.stdout == b"held\n"

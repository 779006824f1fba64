from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from bert_tf.runtime import closing

SCRIPT = """
import sys, time
from bert_tf.runtime import closing

class Session:
    def close(self):
        time.sleep({seconds})

session = Session()
closing.close_in_background(session)
session.close()
session.close()
print("said")
sys.exit(closing.leave(7))
"""


class Session:
    """Closes when it is let."""

    def __init__(self):
        self.may, self.closed = threading.Event(), 0

    def close(self):
        self.may.wait(10)
        self.closed += 1


@pytest.fixture
def session(monkeypatch):
    monkeypatch.setattr(closing, "_THREADS", [])
    session = Session()
    closing.close_in_background(session)
    return session


def test_a_session_is_closed_once_and_nobody_waits(session):
    assert closing.leave(3) == 3  # not closed yet
    for _ in range(2):
        session.close()
    assert session.closed == 0
    session.may.set()
    closing._THREADS[0].join(10)
    assert session.closed == 1
    assert closing.leave(3) == 3


@pytest.mark.parametrize("seconds", [0, 60])
def test_the_process_ends_with_its_status_and_all_that_it_said(seconds):
    command = [sys.executable, "-c", SCRIPT.format(seconds=seconds)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert (result.returncode, result.stdout) == (7, "said\n")

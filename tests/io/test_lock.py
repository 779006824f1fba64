"""Locks between writers."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest

from bert_tf.errors import OutputError
from bert_tf.io import lock

HOLD = (
    "import sys; from bert_tf.io import lock\n"
    "with lock.writing_folder(sys.argv[1]): print('held', flush=True); sys.stdin.read()"
)


def refused(folder) -> str:
    """Returns what a second writer is told."""
    with pytest.raises(OutputError) as caught, lock.writing_folder(folder):
        pass
    return str(caught.value)


def test_a_second_writer_is_told_who_writes_and_since_when(tmp_path):
    with lock.writing_folder(tmp_path):
        said = refused(tmp_path)
    host = re.escape(os.uname().nodename)
    since = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
    who = rf"process {os.getpid()} on {host} has been writing to it since {since}"
    assert re.fullmatch(rf"{re.escape(str(tmp_path))}: {who}; wait until it ends, or name another folder", said)


def test_a_process_that_is_killed_holds_nothing(tmp_path):
    with subprocess.Popen([sys.executable, "-c", HOLD, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        assert f"process {process.pid} on " in refused(tmp_path)
        process.send_signal(signal.SIGKILL)
    with lock.writing_folder(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_stays_empty_is_deleted_with_its_parents_and_what_was_written_stays(tmp_path):
    for _ in range(2):  # a failure gives the folder free
        with pytest.raises(KeyError, match="True"), lock.writing_folder(tmp_path / "a" / "b"):
            raise KeyError(str((tmp_path / "a" / "b").is_dir()))
        assert list(tmp_path.iterdir()) == []
    with lock.writing_folder(tmp_path / "a"):
        (tmp_path / "a" / "x").touch()
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["x"]


def test_a_folder_that_is_deleted_meanwhile_spoils_nothing(tmp_path):
    with lock.writing_folder(tmp_path / "a"):
        (tmp_path / "a" / ".writer.json").write_text("[")  # as of a holder that has not yet said so
        assert refused(tmp_path / "a").startswith(f"{tmp_path / 'a'}: another process is writing to it; wait")
        shutil.rmtree(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_files_of_one_folder_have_their_own_writers(tmp_path):
    refusal = pytest.raises(OutputError, match="x: process .*; wait until it ends, or name another output$")
    with lock.writing_file(tmp_path / "x"), lock.writing_file(tmp_path / "y"), refusal, lock.writing_file(tmp_path / "x"):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EACCES])
def test_a_file_system_without_locks_is_written_to_with_a_warning(tmp_path, monkeypatch, caplog, number):
    def fail(*_, **__):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", fail)
    if number == errno.EACCES:
        assert refused(tmp_path).startswith(f"{tmp_path}: cannot write: Permission denied; grant this user access")
        return
    for _ in range(2):  # said once, however many locks are taken
        with caplog.at_level("WARNING", logger="absl"), lock.writing_folder(tmp_path):
            pass
    why = "this file system does not support locks; do not start a second command that writes to it"
    assert caplog.messages == [f"{tmp_path}: {why}"]


def test_a_folder_that_was_deleted_and_made_anew_belongs_to_its_new_writer(tmp_path):
    folder = tmp_path / "out"
    with contextlib.ExitStack() as first, contextlib.ExitStack() as second:
        first.enter_context(lock.writing_folder(folder))
        shutil.rmtree(folder)
        second.enter_context(lock.writing_folder(folder))
        first.close()
        assert "wait until it ends" in refused(folder)
    assert not folder.exists()


def test_a_lock_file_that_its_last_holder_deletes_meanwhile_locks_nothing(tmp_path, monkeypatch):
    take, others = fcntl.flock, contextlib.ExitStack()

    def take_late(descriptor, how):
        monkeypatch.setattr(fcntl, "flock", take)
        (tmp_path / ".writer.lock").unlink()  # as its last holder does, and another makes it anew
        others.enter_context(lock.writing_folder(tmp_path))
        take(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", take_late)
    with others:
        assert f"process {os.getpid()} on " in refused(tmp_path)
    assert list(tmp_path.iterdir()) == []

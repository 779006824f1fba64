"""Files are written whole or not at all, and by one writer."""

import contextlib
import errno
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from unittest import mock

import pytest

from bert_tf.errors import OutputError
from bert_tf.io import atomic, lock
from bert_tf.io.atomic import make_folder, replacing, write_text
from tests.tasks.refusals import refusal

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def through(path, content=b"new"):
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def fail_halfway(path, error) -> None:
    with replacing(path) as temporary:
        if path.is_dir():
            temporary.mkdir()
        (temporary / "weights" if path.is_dir() else temporary).write_text("half of the ne")
        raise error


def test_a_file_or_folder_takes_the_place_of_the_old_one_at_the_end_of_the_block(tmp_path):
    path = tmp_path / "a" / "b" / "results.txt"  # missing parents are made
    for text, before in (("old", None), ("new", "old")):
        with replacing(path) as temporary:
            temporary.write_text(text)
            assert (path.read_text() if path.exists() else None) == before
            # A rename is atomic within one file system only.
            assert (temporary.parent, temporary.name[:13]) == (path.parent, ".results.txt.")
    assert (path.read_text(), names(path.parent)) == ("new", ["results.txt"])
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "old").touch()
    with replacing(folder) as temporary:
        temporary.mkdir()
        (temporary / "new").touch()
    assert (names(folder), names(tmp_path)) == (["new"], ["a", "model"])


@pytest.mark.parametrize("part", ["results.txt", "model/weights"])  # a file, and one in a folder that is written
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, FULL])
def test_a_failing_block_leaves_what_is_there_alone(tmp_path, error, part):
    path = tmp_path / part.partition("/")[0]
    (tmp_path / part).parent.mkdir(exist_ok=True)
    (tmp_path / part).write_text("old")
    with pytest.raises(OutputError if error is FULL else error) as caught:
        fail_halfway(path, error)
    assert ((tmp_path / part).read_text(), names(tmp_path)) == ("old", [path.name])
    if error is FULL:
        why = "No space left on device; free some space, or name another place; nothing was changed"
        assert str(caught.value) == f"{path}: cannot write: {why}"


@pytest.mark.parametrize("error", [FULL, KeyboardInterrupt()])
def test_a_folder_whose_replacement_fails_is_put_back(tmp_path, monkeypatch, error):
    folder = tmp_path / "model"
    (folder / "weights").mkdir(parents=True)
    rename = os.replace

    def replace(old, new):
        if os.fspath(old).endswith(".tmp"):
            raise error
        rename(old, new)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises((OutputError, KeyboardInterrupt)), replacing(folder) as temporary:
        temporary.mkdir()
    assert (names(tmp_path), names(folder)) == (["model"], ["weights"])


def test_a_folder_that_a_killed_process_was_replacing_is_put_back(tmp_path):
    for number, name in enumerate((".model.7-0a.old", ".model.8-0b.old", ".model.1.9-0c.old", ".model.7-0a.tmp")):
        (tmp_path / name / str(number)).mkdir(parents=True)
        os.utime(tmp_path / name, (number, number))
    atomic.delete_unfinished(tmp_path / "model")
    assert (names(tmp_path), names(tmp_path / "model")) == ([".model.1.9-0c.old", "model"], ["1"])


def test_what_is_in_the_place_of_a_folder_or_file_is_kept_and_parents_of_a_folder_are_made(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError, match=r"file/results.txt: cannot write: "):
        write_text(tmp_path / "file" / "results.txt", "text")
    with pytest.raises(OutputError, match="Is a directory"):
        write_text(tmp_path / "folder", "text")
    with pytest.raises(OutputError, match="file: cannot write: File exists; nothing was changed"):
        make_folder(tmp_path / "file")
    assert names(tmp_path) == ["file", "folder"]
    for _ in range(2):
        assert make_folder(str(tmp_path / "a" / "b")) == tmp_path / "a" / "b"
        (tmp_path / "a" / "b" / "results.txt").touch()
    assert names(tmp_path / "a" / "b") == ["results.txt"]
    (tmp_path / "out").symlink_to("disk/out")  # of a link: what it leads to
    assert make_folder(tmp_path / "out") == tmp_path / "out"
    assert (tmp_path / "disk" / "out").is_dir()
    # Asked of the operating system, since a folder's mode does not bind the root user that tests may run as.
    monkeypatch.setattr(os, "access", lambda _path, mode: not mode & os.W_OK)
    assert refusal(OutputError, make_folder, tmp_path) == f"{tmp_path}: cannot write: no permission; name another folder"


def test_data_is_on_the_disk_before_it_gets_its_name_so_that_a_power_cut_leaves_no_empty_file(tmp_path, monkeypatch):
    done = []
    monkeypatch.setattr(os, "fsync", lambda number: done.append(("fsync", os.readlink(f"/proc/self/fd/{number}"))))
    rename = os.replace
    monkeypatch.setattr(os, "replace", lambda old, new: (done.append(("rename", os.fspath(old))), rename(old, new)))
    through(tmp_path / "file")
    (fsync, synced), (replace, renamed) = done
    assert (fsync, replace, synced) == ("fsync", "rename", renamed)
    done.clear()
    with replacing(tmp_path / "folder") as temporary:
        (temporary / "inner").mkdir(parents=True)
        (temporary / "inner" / "file").touch()
    assert done == [("fsync", f"{temporary}/inner/file"), ("rename", str(temporary))]


def test_text_is_written_as_utf8_and_a_reader_that_leaves_is_not_a_mistake(tmp_path):
    write_text(tmp_path / "results.txt", "caf\u00e9\n\r\n\udcff")  # the last is a byte of a name
    assert (tmp_path / "results.txt").read_bytes() == b"caf\xc3\xa9\n\r\n\\udcff"
    with pytest.raises(BrokenPipeError), atomic.replacing(tmp_path / "x"):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there/results.txt")
    (tmp_path / "loop").symlink_to("loop")
    through(tmp_path / "link", b"first")
    through(tmp_path / "link", b"second")
    with pytest.raises(OutputError, match="loop: cannot write: Too many levels of symbolic links"):
        through(tmp_path / "loop")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "loop").is_symlink()
    assert (tmp_path / "there" / "results.txt").read_bytes() == b"second"
    assert names(tmp_path / "there") == ["results.txt"]


def test_devices_and_pipes_are_written_into(tmp_path):
    through(os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    with pytest.raises(OutputError, match="/dev/full: cannot write: No space left on device"):
        through("/dev/full")
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_text(tmp_path / "pipe", "new")
    assert (os.read(reader, 10), names(tmp_path)) == (b"new", ["pipe"])
    os.close(reader)


@pytest.mark.parametrize("folder", ["/dev/fd", "/proc/self/fd"])
def test_an_open_file_is_not_replaced_under_who_has_opened_it(tmp_path, folder):
    with (tmp_path / "log").open("w+b") as file:
        os.write(file.fileno(), b"old ")
        through(f"{folder}/{file.fileno()}")
        os.write(file.fileno(), b" end")
        assert (tmp_path / "log").read_bytes() == b"old new end"
    assert names(tmp_path) == ["log"]


def test_the_longest_name_has_room_for_a_temporary_one_and_leftovers_are_told_apart(tmp_path):
    through(tmp_path / ("é" * 127))
    assert names(tmp_path) == ["é" * 127]
    with pytest.raises(OutputError, match="cannot write: File name too long"):
        through(tmp_path / ("é" * 128))
    (tmp_path / ("é" * 127)).unlink()
    paths = [tmp_path / f"{'n' * 60}{end}" for end in "ab"]
    rests = [atomic._beside(path, "tmp") for path in paths]
    for rest in rests:
        rest.touch()
    atomic.delete_unfinished(paths[0])
    assert list(tmp_path.iterdir()) == rests[1:]


HOLD = (
    "import sys; from bert_tf.io import lock\n"
    "with lock.writing_folder(sys.argv[1]): print('held', flush=True); sys.stdin.read()"
)


def refused(folder) -> str:
    """Returns what a second writer is told."""
    with pytest.raises(OutputError) as caught, lock.writing_folder(folder):
        pass
    return str(caught.value)


def test_a_second_writer_is_told_who_writes_and_a_process_that_is_killed_holds_nothing(tmp_path):
    with lock.writing_folder(tmp_path):
        said = refused(tmp_path)
    host = re.escape(os.uname().nodename)
    since = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
    who = rf"process {os.getpid()} on {host} has been writing to it since {since}"
    assert re.fullmatch(rf"{re.escape(str(tmp_path))}: {who}; wait until it ends, or name another folder", said)
    with subprocess.Popen([sys.executable, "-c", HOLD, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        assert f"process {process.pid} on " in refused(tmp_path)
        process.send_signal(signal.SIGKILL)
    with lock.writing_folder(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("take", "name"), [(lock.claiming, "a"), (lock.taking_turns, "")])
def test_who_waits_says_for_whom(tmp_path, monkeypatch, caplog, take, name):
    def wait():
        with take(tmp_path / name, **({"wait": True} if name else {})):
            pass

    monkeypatch.setattr(lock, "_SILENT_S", 0.01)
    waiting = threading.Thread(target=wait)
    with caplog.at_level("INFO", logger="absl"):
        with take(tmp_path / name):
            waiting.start()
            deadline = time.monotonic() + 60
            while not caplog.messages and time.monotonic() < deadline:
                time.sleep(0.01)
        waiting.join()
        wait()
    said = rf"{re.escape(str(tmp_path))}: process {os.getpid()} on .* has been writing to it since .*; waiting until it ends"
    assert [bool(re.fullmatch(said, message)) for message in caplog.messages] == [True]


def test_a_folder_that_stays_empty_is_deleted_with_its_parents_and_files_of_one_have_their_own_writers(tmp_path):
    for _ in range(2):  # a failure gives the folder free
        with pytest.raises(KeyError, match="True"), lock.writing_folder(tmp_path / "a" / "b"):
            raise KeyError(str((tmp_path / "a" / "b").is_dir()))
        assert list(tmp_path.iterdir()) == []
    with lock.writing_folder(tmp_path / "a"):
        (tmp_path / "a" / "x").touch()
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["x"]
    shutil.rmtree(tmp_path / "a")
    refusal = pytest.raises(OutputError, match="x: process .*; wait until it ends, or name another output$")
    with lock.writing_file(tmp_path / "x"), lock.writing_file(tmp_path / "y"), refusal, lock.writing_file(tmp_path / "x"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_deleted_meanwhile_spoils_nothing_and_made_anew_belongs_to_its_new_writer(tmp_path):
    with lock.writing_folder(tmp_path / "a"):
        (tmp_path / "a" / ".writer.json").write_text("[")  # as of a holder that has not yet said so
        assert refused(tmp_path / "a").startswith(f"{tmp_path / 'a'}: another process is writing to it; wait")
        shutil.rmtree(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []
    folder = tmp_path / "out"
    with contextlib.ExitStack() as first, contextlib.ExitStack() as second:
        first.enter_context(lock.writing_folder(folder))
        shutil.rmtree(folder)
        second.enter_context(lock.writing_folder(folder))
        first.close()
        assert "wait until it ends" in refused(folder)
    assert not folder.exists()
    with lock.writing_folder(folder):
        assert not lock.is_lost(folder)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lock.os, "stat", mock.Mock(side_effect=OSError(errno.ESTALE, "Stale file handle")))
            assert not lock.is_lost(folder)
        folder.rename(tmp_path / "old")
        assert lock.is_lost(folder)
        folder.mkdir()
        assert lock.is_lost(folder)


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
            assert lock.is_written(tmp_path)
        assert names(tmp_path) == []
    why = "this file system does not support locks; do not start a second command that writes to it"
    assert caplog.messages == [f"{tmp_path}: {why}"]


@pytest.mark.parametrize(("host", "is_written"), [(socket.gethostname(), True), ("another", False)])
def test_without_locks_only_a_process_of_this_machine_is_known_to_write(tmp_path, monkeypatch, host, is_written):
    monkeypatch.setattr(fcntl, "flock", mock.Mock(side_effect=OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))))
    (tmp_path / ".writer.lock").touch()  # as a kill leaves them
    (tmp_path / ".writer.json").write_text(json.dumps({"host": host, "pid": os.getpid()}))
    assert lock.is_written(tmp_path) == is_written


def test_others_can_lock_what_a_kill_leaves_behind_whatever_the_umask_and_a_linked_file_stays_private(tmp_path):
    mine, modes = tmp_path / "mine", []
    before = os.umask(0o077)
    try:
        mine.write_text("mine")
        for linked in (False, True):
            if linked:
                os.link(mine, tmp_path / ".writer.lock")
            with lock.writing_folder(tmp_path):
                modes.append(stat.S_IMODE((tmp_path / ".writer.lock").stat().st_mode))
    finally:
        os.umask(before)
    assert modes == [0o666, 0o600]


def test_a_lock_file_that_another_users_killed_process_left_blocks_nobody(tmp_path, monkeypatch):
    opened = os.open

    def of_another(path, flags, *mode, **options):
        if flags & os.O_RDWR and str(path).endswith(".writer.lock"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return opened(path, flags, *mode, **options)

    monkeypatch.setattr(os, "open", of_another)
    assert "cannot write: Permission denied" in refused(tmp_path)  # a folder that may not be written to
    (tmp_path / ".writer.lock").touch()
    (tmp_path / ".writer.json").write_text("old")
    os.link(tmp_path / ".writer.json", tmp_path / "link")
    with lock.writing_folder(tmp_path):
        assert "wait until it ends" in refused(tmp_path)
    assert (tmp_path / "link").read_text() == "old"  # the other user's file was not written to
    assert os.listdir(tmp_path) == ["link"]


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

"""Files are written whole or not at all."""

from __future__ import annotations

import errno
import os
import stat

import pytest

from bert_tf import atomic
from bert_tf.atomic import make_folder, replacing, write_text
from bert_tf.errors import OutputError


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def fail_halfway(path, error, *, folder=False) -> None:
    with replacing(path) as temporary:
        if folder:
            temporary.mkdir()
        (temporary / "weights" if folder else temporary).write_text("half of the ne")
        raise error


def test_a_file_takes_the_place_of_the_old_one_at_the_end_of_the_block(tmp_path):
    path = tmp_path / "a" / "b" / "results.txt"  # missing parents are made
    for text, before in (("old", None), ("new", "old")):
        with replacing(path) as temporary:
            temporary.write_text(text)
            assert (path.read_text() if path.exists() else None) == before
            # A rename is atomic within one file system only.
            assert (temporary.parent, temporary.name[:13]) == (path.parent, ".results.txt.")
    assert (path.read_text(), names(path.parent)) == ("new", ["results.txt"])


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_failing_block_leaves_the_old_file_alone(tmp_path, error):
    path = tmp_path / "results.txt"
    path.write_text("old")
    with pytest.raises(error):
        fail_halfway(path, error)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["results.txt"]


def test_failing_block_deletes_the_folder_it_filled(tmp_path):
    with pytest.raises(RuntimeError):
        fail_halfway(tmp_path / "model", RuntimeError, folder=True)
    assert names(tmp_path) == []


def test_folder_takes_the_place_of_the_old_one(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "old").touch()
    with replacing(folder) as temporary:
        temporary.mkdir()
        (temporary / "new").touch()
    assert names(folder) == ["new"]
    assert names(tmp_path) == ["model"]


def test_full_disk_names_the_file_and_the_reason(tmp_path):
    path = tmp_path / "results.txt"
    with pytest.raises(OutputError) as caught, replacing(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    why = "No space left on device; free some space, or name another place; nothing was changed"
    assert str(caught.value) == f"{path}: cannot write: {why}"


def test_what_is_in_the_place_of_a_folder_or_file_is_kept(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError, match=r"file/results.txt: cannot write: "):
        write_text(tmp_path / "file" / "results.txt", "text")
    with pytest.raises(OutputError, match="Is a directory"):
        write_text(tmp_path / "folder", "text")
    with pytest.raises(OutputError, match="file: cannot write: File exists; nothing was changed"):
        make_folder(tmp_path / "file")
    assert names(tmp_path) == ["file", "folder"]


def test_text_is_written_as_utf8_with_its_line_ends_kept(tmp_path):
    write_text(tmp_path / "results.txt", "caf\u00e9\n\r\n\udcff")  # the last is a byte of a name
    assert (tmp_path / "results.txt").read_bytes() == b"caf\xc3\xa9\n\r\n\\udcff"


def test_make_folder_makes_the_parents_too_and_keeps_what_is_there(tmp_path):
    for _ in range(2):
        assert make_folder(str(tmp_path / "a" / "b")) == tmp_path / "a" / "b"
        (tmp_path / "a" / "b" / "results.txt").touch()
    assert names(tmp_path / "a" / "b") == ["results.txt"]
    (tmp_path / "out").symlink_to("disk/out")  # of a link: what it leads to
    assert make_folder(tmp_path / "out") == tmp_path / "out"
    assert (tmp_path / "disk" / "out").is_dir()


def test_make_folder_reports_missing_permission(tmp_path, monkeypatch):
    # Asked of the operating system, since a folder's mode does not bind the root user that tests may run as.
    monkeypatch.setattr(os, "access", lambda _path, mode: not mode & os.W_OK)
    with pytest.raises(OutputError) as caught:
        make_folder(tmp_path)
    assert str(caught.value) == f"{tmp_path}: cannot write: no permission; name another folder"


def through(path, content=b"new") -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there/results.txt")
    through(tmp_path / "link", b"first")
    through(tmp_path / "link", b"second")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there" / "results.txt").read_bytes() == b"second"
    assert names(tmp_path / "there") == ["results.txt"]


def test_a_link_to_itself_is_reported(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OutputError, match="loop: cannot write: Too many levels of symbolic links"):
        through(tmp_path / "loop")
    assert (tmp_path / "loop").is_symlink()


def test_a_device_is_written_into():
    through(os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    with pytest.raises(OutputError, match="/dev/full: cannot write: No space left on device"):
        through("/dev/full")


def test_a_pipe_is_written_into(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_text(tmp_path / "pipe", "new")
    assert os.read(reader, 10) == b"new"
    os.close(reader)
    assert names(tmp_path) == ["pipe"]


@pytest.mark.parametrize("folder", ["/dev/fd", "/proc/self/fd"])
def test_an_open_file_is_not_replaced_under_who_has_opened_it(tmp_path, folder):
    with (tmp_path / "log").open("w+b") as file:
        os.write(file.fileno(), b"old ")
        through(f"{folder}/{file.fileno()}")
        os.write(file.fileno(), b" end")
        assert (tmp_path / "log").read_bytes() == b"old new end"
    assert names(tmp_path) == ["log"]


def test_the_longest_name_has_room_for_a_temporary_one(tmp_path):
    through(tmp_path / ("é" * 127))
    assert names(tmp_path) == ["é" * 127]
    with pytest.raises(OutputError, match="cannot write: File name too long"):
        through(tmp_path / ("é" * 128))


def test_leftovers_of_a_long_name_are_deleted_and_those_of_another_are_not(tmp_path):
    names = ["n" * 60 + end for end in ("a", "b")]
    rests = [atomic._beside(tmp_path / name, "tmp") for name in names]
    for rest in rests:
        rest.touch()
    atomic.delete_unfinished(tmp_path / names[0])
    assert list(tmp_path.iterdir()) == rests[1:]


def test_a_reader_that_leaves_is_not_a_mistake(tmp_path):
    with pytest.raises(BrokenPipeError), atomic.replacing(tmp_path / "x"):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

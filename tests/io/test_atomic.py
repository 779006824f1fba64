"""Files are written whole or not at all."""

from __future__ import annotations

import errno
import os
import stat

import pytest

from bert_tf.errors import OutputError
from bert_tf.io import atomic
from bert_tf.io.atomic import make_folder, replacing, write_text

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def through(path, content=b"new") -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def fail_halfway(path, error) -> None:
    with replacing(path) as temporary:
        if path.is_dir():
            temporary.mkdir()
        (temporary / "weights" if path.is_dir() else temporary).write_text("half of the ne")
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


def test_folder_takes_the_place_of_the_old_one(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "old").touch()
    with replacing(folder) as temporary:
        temporary.mkdir()
        (temporary / "new").touch()
    assert (names(folder), names(tmp_path)) == (["new"], ["model"])


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


def test_make_folder_makes_the_parents_too_and_keeps_what_is_there(tmp_path, monkeypatch):
    for _ in range(2):
        assert make_folder(str(tmp_path / "a" / "b")) == tmp_path / "a" / "b"
        (tmp_path / "a" / "b" / "results.txt").touch()
    assert names(tmp_path / "a" / "b") == ["results.txt"]
    (tmp_path / "out").symlink_to("disk/out")  # of a link: what it leads to
    assert make_folder(tmp_path / "out") == tmp_path / "out"
    assert (tmp_path / "disk" / "out").is_dir()
    # Asked of the operating system, since a folder's mode does not bind the root user that tests may run as.
    monkeypatch.setattr(os, "access", lambda _path, mode: not mode & os.W_OK)
    with pytest.raises(OutputError) as caught:
        make_folder(tmp_path)
    assert str(caught.value) == f"{tmp_path}: cannot write: no permission; name another folder"


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


def test_a_reader_that_leaves_is_not_a_mistake(tmp_path):
    with pytest.raises(BrokenPipeError), atomic.replacing(tmp_path / "x"):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

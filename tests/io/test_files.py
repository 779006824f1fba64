"""What a user names is refused before a read that would not end, and in the words of the operating system."""

from __future__ import annotations

import builtins
import errno
import os
import socket

import pytest

from bert_tf.io import files


@pytest.fixture
def odd(tmp_path):
    """A folder of what is no file."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "file").touch()
    with socket.socket(socket.AF_UNIX) as line:
        line.bind(os.fspath(tmp_path / "socket"))
        yield tmp_path


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("folder", "Is a directory; name a file"),
        ("pipe", "it is a pipe, which can be read only once; save its output to a file"),
        ("socket", "it is a socket; name a file"),
        ("/dev/zero", "it is a device, which may never end; name a file"),
        ("loop", "Too many levels of symbolic links; a link leads to itself"),
        ("dangling", "no such file"),
        ("none", "no such file"),
        ("file/below", "Not a directory; a part of the path is a file"),
        ("n" * 300, "File name too long; most file systems allow 255 bytes a name"),
        ("a\0b", "the name holds a NUL character"),
    ],
)
def test_says_why_a_path_is_no_file(odd, name, why):
    assert files.missing(odd / name) == why
    with pytest.raises(OSError, match=" "):
        files.read_bytes(odd / name)


def test_says_why_a_path_is_no_folder(odd):
    loop = "Too many levels of symbolic links; a link leads to itself"
    expected = {"none": "no such folder", "file": "it is not a folder", "loop": loop, "folder": None}
    assert {name: files.missing_folder(odd / name) for name in expected} == expected


def test_permission_denied_is_called_so(odd, monkeypatch):
    def refuse(path, *_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(builtins, "open", refuse)
    assert files.missing(odd / "file").startswith("Permission denied; grant this user access")


def test_reads_what_there_is_up_to_a_limit(odd):
    (odd / "file").write_bytes(b"\xef\xbb\xbfa\r\nb")
    assert files.read_text(odd / "file") == "a\nb"
    with pytest.raises(OSError, match="it is larger than 0 MB; is it the right file?"):
        files.read_bytes(odd / "file", most=3)


def test_what_is_not_there_yet_is_as_good_as_a_file(odd):
    assert [name for name in ("file", "none", "folder", "pipe", "/dev/null") if files.is_plain(odd / name)] == ["file", "none"]

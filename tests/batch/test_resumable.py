"""A file that several processes write, one after the other."""

from __future__ import annotations

import json
import os

import pytest

from bert_tf.batch import resumable
from bert_tf.batch.resumable import ResumableFile
from bert_tf.errors import OutputError

SETTINGS = {"labels": ("a", "b"), "chunk": 2}


class Killed(BaseException):
    """Takes the place of a signal."""


def write(path, chunks, *, until=None, settings=SETTINGS):
    """Adds what is missing of the chunks; ends before the number `until` as a process does that is killed."""
    file = ResumableFile(path, settings)
    start = file.chunks
    with file:
        for number in range(start, len(chunks)):
            if number == until:
                raise Killed
            file.add(chunks[number], rows=2)
    return start


CHUNKS = [b"header\nab\n", b"cd\n", b"\xc3\xa9\n", b"gh\n"]


def test_a_whole_file(tmp_path):
    path = tmp_path / "new" / "x.tsv"
    assert write(path, CHUNKS) == 0
    assert path.read_bytes() == b"".join(CHUNKS)
    assert sorted(found.name for found in path.parent.iterdir()) == ["x.tsv", "x.tsv.job.json"]
    again = ResumableFile(path, SETTINGS)
    assert (again.finished, again.rows, again.chunks) == (True, 8, 4)


@pytest.mark.parametrize("until", [1, 3])
def test_what_is_done_is_not_done_again(tmp_path, until):
    path = tmp_path / "x.tsv"
    with pytest.raises(Killed):
        write(path, CHUNKS, until=until)
    assert not path.exists()
    with (tmp_path / "x.tsv.part").open("ab") as file:
        file.write(b"half a li")  # of a chunk that was being written
    assert write(path, CHUNKS) == until
    assert path.read_bytes() == b"".join(CHUNKS)


def test_what_was_there_stays_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "x.tsv"
    write(path, CHUNKS)
    other = {**SETTINGS, "chunk": 3}
    with pytest.raises(Killed):
        write(path, CHUNKS[1:], until=2, settings=other)
    assert path.read_bytes() == b"".join(CHUNKS)
    assert write(path, CHUNKS[1:], settings=other) == 2
    assert path.read_bytes() == b"".join(CHUNKS[1:])


def test_other_settings_start_anew(tmp_path):
    path = tmp_path / "x.tsv"
    with pytest.raises(Killed):
        write(path, CHUNKS, until=3)
    assert write(path, [b"new\n"], settings={**SETTINGS, "labels": ("a", "c")}) == 0
    assert path.read_bytes() == b"new\n"


def test_a_file_that_was_changed_since_is_made_again(tmp_path):
    path = tmp_path / "x.tsv"
    write(path, CHUNKS)
    path.write_bytes(b"cut")
    assert not ResumableFile(path, SETTINGS).finished
    assert write(path, CHUNKS) == 0
    path.write_bytes(b"".join(CHUNKS).upper())  # by another command, of the same size
    assert not ResumableFile(path, SETTINGS).finished
    with pytest.raises(Killed):
        write(path, CHUNKS, until=2, settings={})
    (tmp_path / "x.tsv.part").write_bytes(b"cut")
    assert ResumableFile(path, {}).chunks == 0


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"finished": 3}'])
def test_an_unreadable_state_counts_as_none(tmp_path, text):
    path = tmp_path / "x.tsv"
    write(path, CHUNKS)
    (tmp_path / "x.tsv.job.json").write_text(text)
    assert ResumableFile(path, SETTINGS).chunks == 0


class FullDisk:
    """Takes the place of an open file."""

    def __init__(self, file):
        self.close = file.close

    def write(self, _):
        raise OSError(28, "No space left on device")


def write_until_full(file):
    with file:
        file.add(CHUNKS[0], rows=2)
        file._file = FullDisk(file._file)
        file.add(CHUNKS[1], rows=2)


def test_a_full_disk_is_one_line_and_keeps_what_is_done(tmp_path):
    path = tmp_path / "x.tsv"
    with pytest.raises(OutputError, match=r"x\.tsv: cannot write: No space left on device; .*; the same command continues"):
        write_until_full(ResumableFile(path, SETTINGS))
    assert json.loads((tmp_path / "x.tsv.job.json").read_text())["chunks"] == 1
    assert write(path, CHUNKS) == 1


@pytest.mark.parametrize("last", [0, 1])
def test_what_cannot_be_renamed_is_not_said_to_be_unchanged(tmp_path, monkeypatch, last):
    path, replace, times = tmp_path / "x.tsv", os.replace, iter(range(9))

    def full(*names):
        if next(times) >= last:
            raise OSError(28, "No space left on device")
        replace(*names)

    monkeypatch.setattr(os, "replace", full)  # of the notes after the first chunk, and after the second
    with pytest.raises(OutputError, match=r"x.tsv: cannot write: No space .*; the same command continues where it stopped"):
        write(path, CHUNKS)
    monkeypatch.undo()
    assert write(path, CHUNKS) == last
    assert path.read_bytes() == b"".join(CHUNKS)


def test_what_stands_beside_a_file_can_be_forgotten(tmp_path):
    path = tmp_path / "x.tsv"
    write(path, CHUNKS)
    with pytest.raises(Killed):
        write(path, CHUNKS, until=2, settings={})
    resumable.forget(path)
    assert [found.name for found in tmp_path.iterdir()] == ["x.tsv"]


def test_what_failed_before_its_first_chunk_leaves_nothing(tmp_path):
    with pytest.raises(Killed):
        write(tmp_path / "x.tsv", CHUNKS, until=0)
    assert list(tmp_path.iterdir()) == []


def test_of_two_jobs_at_a_time_the_second_is_refused(tmp_path):
    path = tmp_path / "x.tsv"
    with ResumableFile(path, SETTINGS) as first:
        first.add(CHUNKS[0], rows=2)
        with pytest.raises(
            OutputError, match=rf"x\.tsv: process {os.getpid()} on .* since .*; wait until it ends, or name another output$"
        ):
            write(path, [b"other\n"], settings={})
        first.add(CHUNKS[1], rows=2)
    assert path.read_bytes() == b"".join(CHUNKS[:2])


def test_a_job_that_another_has_overtaken_is_refused(tmp_path):
    path = tmp_path / "x.tsv"
    late = ResumableFile(path, {})
    write(path, CHUNKS)
    with pytest.raises(OutputError, match="another job has written to it meanwhile"), late:
        pass
    assert path.read_bytes() == b"".join(CHUNKS)

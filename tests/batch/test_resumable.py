"""A file that several processes write, one after the other."""

import json
import os
import resource
from types import SimpleNamespace

import pytest

from bert_tf.batch.stream import ResumableFile
from bert_tf.errors import OutputError

SETTINGS = {"labels": ("a", "b"), "chunk": 2}
CHUNKS = [b"header\nab\n", b"cd\n", b"\xc3\xa9\n", b"gh\n"]
WHOLE = b"".join(CHUNKS)


class Killed(BaseException):
    """Takes the place of a signal."""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new" / "x.tsv"


def write(path, chunks=CHUNKS, *, until=None, settings=SETTINGS):
    """Adds the missing chunks and returns how many were there; ends before the number `until` as a killed process does."""
    file = ResumableFile(path, settings)
    start = file.chunks
    with file:
        for number in range(start, len(chunks)):
            if number == until:
                raise Killed
            file.add(chunks[number], rows=2)
    return start


def kill(path, until, **settings):
    with pytest.raises(Killed):
        write(path, until=until, **settings)


def names(path):
    return sorted(file.name for file in path.parent.iterdir())


@pytest.mark.parametrize("until", [0, 1, 3])
def test_finished_chunks_are_not_written_again(path, until):
    kill(path, until)
    assert names(path) == ["x.tsv.job.json", "x.tsv.part"][: 2 * until]
    if until:
        with open(f"{path}.part", "ab") as file:
            file.write(b"half a li")  # of a chunk that was being written
        path.with_name(".x.tsv.4711-0a1b2c3d.tmp").touch()  # that was being assembled
    assert write(path) == until
    assert (path.read_bytes(), names(path)) == (WHOLE, ["x.tsv", "x.tsv.job.json"])
    again = ResumableFile(path, SETTINGS)
    assert (again.finished, again.rows, again.chunks) == (True, 8, 4)


def test_a_file_is_made_again_if_it_was_changed_and_stays_until_one_of_other_settings_is_whole(path):
    write(path)
    other = {**SETTINGS, "chunk": 3}
    kill(path, 2, chunks=CHUNKS[1:], settings=other)
    assert path.read_bytes() == WHOLE
    assert write(path, CHUNKS[1:], settings=other) == 2
    assert path.read_bytes() == b"".join(CHUNKS[1:])
    write(path)
    path.write_bytes(b"cut")
    assert not ResumableFile(path, SETTINGS).finished
    assert write(path) == 0
    path.write_bytes(WHOLE.upper())  # by another command, of the same size
    assert not ResumableFile(path, SETTINGS).finished
    kill(path, 2, settings={})
    path.with_name("x.tsv.part").write_bytes(b"cut")
    assert ResumableFile(path, {}).chunks == 0


@pytest.mark.parametrize(("skips", "kept", "said"), [((False, True), 2, []), ((True, False), 0, [True])])
def test_an_output_that_starts_over_says_why_and_rows_without_a_bad_one_stay(path, caplog, skips, kept, said):
    before, now = ({**SETTINGS, "skip_bad_rows": skip} for skip in skips)
    kill(path, 2, settings=before)
    assert write(path, settings=now) == kept
    begun = f"{path}: an unfinished output was begun with another skip_bad_rows; it starts over"
    assert [message == begun for message in caplog.messages] == said
    assert ResumableFile(path, now).finished


def test_a_part_of_another_program_is_left_alone(path):
    path.parent.mkdir()
    part = path.with_name("x.tsv.part")
    part.write_bytes(b"half of a download")
    with pytest.raises(OutputError, match=r"x\.tsv\.part: another program's file has the name of the unfinished output"):
        write(path)
    assert (names(path), part.read_bytes()) == (["x.tsv.part"], b"half of a download")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"finished": 3}'])
def test_an_unreadable_state_counts_as_none(path, text):
    write(path)
    path.with_name("x.tsv.job.json").write_text(text)
    assert ResumableFile(path, SETTINGS).chunks == 0


CONTINUES = r"x\.tsv: cannot write: No space left on device; .*the same command continues where it stopped"


def full(*_):
    raise OSError(28, "No space left on device")


def write_until_full(file):
    with file:
        file.add(CHUNKS[0], rows=2)
        file._file = SimpleNamespace(close=file._file.close, write=full)
        file.add(CHUNKS[1], rows=2)


def test_a_full_disk_is_one_line_and_keeps_finished_chunks(path):
    with pytest.raises(OutputError, match=CONTINUES):
        write_until_full(ResumableFile(path, SETTINGS))
    assert json.loads(path.with_name("x.tsv.job.json").read_text())["chunks"] == 1
    assert write(path) == 1


def test_a_limit_that_a_buffer_meets_is_one_line(path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (6_000, before[1]))
    try:
        with pytest.raises(OutputError, match=CONTINUES.replace("No space left on device", "File too large")):
            write(path, [b"x" * 2_500] * 4)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert write(path, [b"x" * 2_500] * 4) == 2


@pytest.mark.parametrize(("last", "kept"), [(0, 0), (2, 1)])
def test_what_cannot_be_renamed_is_not_said_to_be_unchanged(path, monkeypatch, last, kept):
    replace, times = os.replace, iter(range(9))
    monkeypatch.setattr(os, "replace", lambda *paths: full() if next(times) >= last else replace(*paths))
    with pytest.raises(OutputError, match=CONTINUES):
        write(path)
    monkeypatch.undo()
    assert write(path) == kept
    assert path.read_bytes() == WHOLE


def test_of_two_jobs_at_a_time_the_second_is_refused(path):
    late = ResumableFile(path, {})
    running = rf"x\.tsv: process {os.getpid()} on .* since .*; wait until it ends, or name another output$"
    with ResumableFile(path, SETTINGS) as first:
        first.add(CHUNKS[0], rows=2)
        with pytest.raises(OutputError, match=running):
            write(path, [b"other\n"], settings={})
        first.add(CHUNKS[1], rows=2)
    with pytest.raises(OutputError, match="another job has written to it meanwhile"), late:
        pass
    assert path.read_bytes() == b"".join(CHUNKS[:2])

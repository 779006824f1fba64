"""Patterns and folders of files."""

from __future__ import annotations

import pytest

from bert_tf.batch.file_pairs import FilePair, expanded
from bert_tf.errors import FlagError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("b.txt.gz", "a.txt", "a.csv"):
        (tmp_path / name).touch()
    (tmp_path / "c.txt").mkdir()
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_a_folder_gets_a_file_for_each_that_matches():
    wanted = [FilePair("a.txt", "out/a.npz", "npz"), FilePair("b.txt.gz", "out/b.npz", "npz")]
    assert expanded(FilePair("*.txt*", "out/", "npz"), "npz") == wanted


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("files", [FilePair("a.txt", "x.npz"), FilePair("-", "-"), FilePair("none.txt", "x.npz")])
def test_other_names_stay(files):
    assert expanded(files, None) == [files]


@pytest.mark.usefixtures("folder")
def test_a_pattern_that_one_file_matches_is_that_file():
    assert expanded(FilePair("*.csv", "x.npz"), None) == [FilePair("a.csv", "x.npz")]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("files", "problem"),
    [
        (FilePair("*.txt*", "x.npz"), "--input=*.txt*: 2 files; name a folder for their vectors: --output=FOLDER/"),
        (FilePair("*.md", "out/", "npz"), "--input=*.md: no file matches"),
        (FilePair("a.txt", "out/"), "--output=out/: is a folder; add --output_format, or name a file to write"),
        (FilePair("a.*", "out/", "npz"), "a.csv: its vectors and those of another file would be out/a.npz; rename one of them"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_line(files, problem):
    with pytest.raises(FlagError) as caught:
        expanded(files, files.output_format)
    assert str(caught.value) == problem

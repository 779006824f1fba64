"""Files for GLUE's server."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest

from bert_tf.errors import FlagError, OutputError
from bert_tf.jobs import results


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "submission").mkdir()
    for name in ("MNLI-mm.tsv", "MNLI-m.tsv"):
        (tmp_path / "submission" / name).write_text(name)
    return tmp_path


def test_the_zip_file_holds_the_files_without_folders(folder):
    path = results.zip_submissions(folder)
    assert path == folder / "submission.zip"
    with zipfile.ZipFile(path) as archive:
        assert {name: archive.read(name).decode() for name in archive.namelist()} == {
            "MNLI-m.tsv": "MNLI-m.tsv",
            "MNLI-mm.tsv": "MNLI-mm.tsv",
        }


def test_the_same_predictions_make_the_same_zip_file(folder):
    first = results.zip_submissions(folder).read_bytes()
    (folder / "submission" / "MNLI-m.tsv").touch()
    assert results.zip_submissions(folder).read_bytes() == first


def test_a_zip_file_that_cannot_be_written_leaves_the_old_one(folder, monkeypatch):
    old = results.zip_submissions(folder).read_bytes()
    monkeypatch.setattr("zipfile.ZipFile.writestr", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OutputError, match="No space left on device"):
        results.zip_submissions(folder)
    assert (folder / "submission.zip").read_bytes() == old


def test_without_files_there_is_nothing_to_zip(tmp_path):
    with pytest.raises(FlagError, match="--submission_zip: .* holds no predictions of a task of GLUE"):
        results.zip_submissions(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_documented_command_finds_the_files_of_all_tasks(tmp_path):
    readme = (Path(__file__).resolve().parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")
    [patterns] = re.findall(r"`zip -j glue\.zip (out/.*?)`", readme)
    files = {"mnli/submission/MNLI-m.tsv", "mnli/AX/submission/AX.tsv", "cola/submission/CoLA.tsv"}
    others = ("mnli/predictions_matched.tsv", "mnli/AX/test_results.tsv", "rte/seed-1/submission/RTE.tsv")
    for name in (*files, *others):
        path = tmp_path / "out" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    found = [path for pattern in patterns.split() for path in tmp_path.glob(pattern)]
    assert {str(path.relative_to(tmp_path / "out")) for path in found} == files

"""Files for GLUE's server."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest

from bert_tf.commands import submission
from bert_tf.errors import DataError, FlagError, OutputError
from bert_tf.tasks.glue import TASKS

RTE, STS_B = TASKS["RTE"], TASKS["STS-B"]
LOGITS = np.array([[1, 0], [0, 1]], np.float32)


def test_lines_are_index_and_label_below_a_header():
    assert submission.lines(RTE, LOGITS) == ["index\tprediction", "0\tentailment", "1\tnot_entailment"]


def test_numbers_have_three_decimals_from_0_to_5():
    logits = np.array([[3.14159], [-0.7], [-0.0], [5.2], [4.9996], [2]], np.float32)
    cells = [line.split("\t")[1] for line in submission.lines(STS_B, logits)[1:]]
    assert cells == ["3.142", "0.000", "0.000", "5.000", "5.000", "2.000"]


@pytest.mark.parametrize(
    ("task", "text", "message"),
    [
        (RTE, "prediction\tindex\n", r":1: the header line is not 'index\\tprediction'"),
        (RTE, "index\tprediction\n0\tentailment\n", ": 1 whole lines below the header line, expected 2"),
        (RTE, "index\tprediction\n0\tentailment\n1\tentailment", ": 1 whole lines below"),
        (RTE, "index\tprediction\n" + "0\tentailment\n" * 3, ": 3 whole lines below"),
        (RTE, "index\tprediction\n0\tentailment\n2\tentailment\n", ":3: index '2', expected 1"),
        (RTE, "index\tprediction\n0\tentailment\n1\t1\n", ":3: '1' is none of entailment, not_entailment"),
        (RTE, "index\tprediction\n0\n1\tentailment\n", ":2: '' is none of"),
        *(
            (STS_B, f"index\tprediction\n0\t{number}\n1\t2.000\n", f":2: '{number}' is no number of three decimals from 0 to 5")
            for number in ("5.001", "-0.500", "2.5", "nan", "10.000")
        ),
    ],
)
def test_what_the_server_would_refuse_is_named_with_its_line(tmp_path, task, text, message):
    path = tmp_path / "RTE.tsv"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        submission.check_submission(path, task, 2)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "submission").mkdir()
    for name in ("MNLI-mm.tsv", "MNLI-m.tsv"):
        (tmp_path / "submission" / name).write_text(name)
    return tmp_path


def test_the_zip_file_holds_the_files_without_folders(folder):
    path = submission.zip_submissions(folder)
    assert path == folder / "submission.zip"
    with zipfile.ZipFile(path) as archive:
        assert {name: archive.read(name).decode() for name in archive.namelist()} == {
            "MNLI-m.tsv": "MNLI-m.tsv",
            "MNLI-mm.tsv": "MNLI-mm.tsv",
        }


def test_the_same_predictions_make_the_same_zip_file(folder):
    first = submission.zip_submissions(folder).read_bytes()
    (folder / "submission" / "MNLI-m.tsv").touch()
    assert submission.zip_submissions(folder).read_bytes() == first


def test_a_zip_file_that_cannot_be_written_leaves_the_old_one(folder, monkeypatch):
    old = submission.zip_submissions(folder).read_bytes()
    monkeypatch.setattr("zipfile.ZipFile.writestr", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OutputError, match="No space left on device"):
        submission.zip_submissions(folder)
    assert (folder / "submission.zip").read_bytes() == old


def test_without_files_there_is_nothing_to_zip(tmp_path):
    with pytest.raises(FlagError, match="--submission_zip: .* holds no predictions of a task of GLUE"):
        submission.zip_submissions(tmp_path)
    assert list(tmp_path.iterdir()) == []

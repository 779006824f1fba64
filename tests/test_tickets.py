"""The support tickets of docs/your_data.md."""

import csv
import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "docs" / "tickets.py"


@pytest.fixture(scope="module")
def tickets(tmp_path_factory):
    """Returns the rows of each file."""
    folder = tmp_path_factory.mktemp("tickets")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        runpy.run_path(str(SCRIPT), run_name="__main__")
    return {path.stem: list(csv.DictReader(path.open(encoding="utf-8", newline=""))) for path in folder.glob("tickets/*.csv")}


def test_files_have_the_rows_and_queues_that_the_page_names(tickets):
    assert {name: len(rows) for name, rows in tickets.items()} == {"train": 400, "dev": 120, "new": 60, "wrong_labels": 20}
    assert {row["queue"] for row in tickets["train"]} == {"account", "billing", "delivery", "technical"}
    assert list(tickets["new"][0]) == ["ticket", "subject", "message"]


def test_the_list_of_wrong_labels_is_that_of_the_rows(tickets):
    written = {row["ticket"]: row["queue"] for row in (*tickets["train"], *tickets["dev"])}
    assert all(written[row["ticket"]] == row["written"] != row["right"] for row in tickets["wrong_labels"])


def test_the_tickets_are_the_same_everywhere(tickets):
    """The page shows outputs of a run with them."""
    assert tickets["wrong_labels"][0] == {"ticket": "T005", "right": "technical", "written": "account"}
    assert tickets["new"][-1]["message"] == (
        "Dear team, My login has been locked since January. I tried it three times. Please answer by e-mail."
    )


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda folder: (folder / "tickets").touch(), "tickets: File exists; move what is in the way, or work in"),
        (lambda folder: (folder / "tickets" / "dev.csv").mkdir(parents=True), "tickets/dev.csv: Is a directory; move what"),
    ],
    ids=["a file", "a folder of a file's name"],
)
def test_a_folder_that_cannot_be_written_is_one_line(tmp_path, monkeypatch, make, said):
    make(tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match=f"^cannot write {said}"):
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert not [path for path in tmp_path.rglob("*.csv") if path.is_file()]


def test_own_files_of_the_same_names_are_not_overwritten(tmp_path, monkeypatch):
    own = tmp_path / "tickets" / "train.csv"
    own.parent.mkdir()
    own.write_text("text,label\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match=r"nothing was written.*: tickets/train\.csv; move them"):
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert [*own.parent.iterdir()] == [own]
    assert own.read_text() == "text,label\n"

"""The support tickets of docs/your_data.md."""

from __future__ import annotations

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
    assert {name: len(rows) for name, rows in tickets.items()} == {"train": 400, "dev": 120, "new": 60, "wrong_labels": 16}
    assert {row["queue"] for row in tickets["train"]} == {"account", "billing", "delivery", "technical"}
    assert list(tickets["new"][0]) == ["ticket", "subject", "message"]


def test_the_list_of_wrong_labels_is_that_of_the_training_rows(tickets):
    written = {row["ticket"]: row["queue"] for row in tickets["train"]}
    assert all(written[row["ticket"]] == row["written"] != row["right"] for row in tickets["wrong_labels"])


def test_the_tickets_are_the_same_everywhere(tickets):
    """The page shows outputs of a run with them."""
    assert tickets["train"][0] == {
        "ticket": "T001",
        "subject": "Two accounts",
        "message": (
            "Sorry to bother you again. I registered twice by mistake, please merge both profiles."
            " I noticed this only today. Kind regards"
        ),
        "queue": "account",
    }

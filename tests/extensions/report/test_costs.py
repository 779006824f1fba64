"""Where time went."""

import pytest

from bert_tf import run_layout
from bert_tf.extensions.report import costs, run_files
from tests.extensions.report import example

pytestmark = pytest.mark.usefixtures("_pictures_drawn_once")


@pytest.fixture
def folder(tmp_path):
    return example.finished(tmp_path / "run")


def of(folder):
    return costs.costs_of(run_files.read_runs([folder])[0])


def shares(parts):
    return [(part["name"], pytest.approx(part["seconds"]), pytest.approx(part["percent"])) for part in parts]


def test_parts_of_time_by_hand(folder):
    shown = of(folder)
    # batch_cost 0.4 s, of it 0.1 s waiting; the largest first.
    assert shares(shown["parts"]) == [("computing", 0.3, 75), ("waiting for the batch (reader_cost)", 0.1, 25)]
    assert shown["spreads"] == [("batch_cost", [0.4, 0.39, 0.5, 0.6]), ("reader_cost", [0.1, 0.1, 0.2, 0.3])]
    assert shown["diagnosis"] == "The run was input-bound."
    wall = {"start of Python, imports": 4.0, "steps": 108.0, "evaluating while training": 102.0, "unaccounted": 2.0}
    assert shares(shown["wall"]) == [(name, seconds, 100 * seconds / 216) for name, seconds in wall.items()]


def test_run_without_any(tmp_path):
    folder = example.begun(tmp_path)
    assert not of(folder)["is_known"]


@pytest.mark.parametrize(
    "content", [*("", "{", "[]", '{"batch": 3, "steps": null, "diagnosis": [], "wall": {"parts": {"steps": "x"}}}')]
)
def test_damaged_files_count_as_none(folder, content):
    (folder / run_layout.TIMING).write_text(content)
    shown = of(folder)
    unknown = {"parts": [], "spreads": [], "diagnosis": "", "wall": []}
    assert {name: shown[name] for name in unknown} == unknown

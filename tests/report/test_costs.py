"""Where time and memory went."""

from __future__ import annotations

import pytest

from bert_tf import run_layout
from bert_tf.report import costs, run_files
from tests.report import example

pytestmark = pytest.mark.usefixtures("_pictures_drawn_once")


@pytest.fixture
def folder(tmp_path):
    return example.finished(tmp_path / "run")


def of(folder):
    return costs.of(run_files.read([folder])[0])


def test_parts_of_a_step_by_hand(folder):
    # batch_cost 0.4 s, of it 0.1 s waiting.
    parts = {part.name.split()[0]: (part.seconds, part.percent) for part in of(folder).parts}
    assert parts == {
        "computing": pytest.approx((0.3, 75)),
        "waiting": pytest.approx((0.1, 25)),
    }


def test_wall_time_by_part_in_the_order_of_a_run(folder):
    assert [(part.name, part.seconds, part.percent) for part in of(folder).wall] == [
        ("start of Python, imports", 4.0, pytest.approx(100 * 4 / 216)),
        ("steps", 108.0, 50),
        ("evaluating while training", 102.0, pytest.approx(100 * 102 / 216)),
        ("unaccounted", 2.0, pytest.approx(100 * 2 / 216)),
    ]


def test_largest_part_first(folder):
    assert of(folder).parts[0].name == "computing"


def test_spreads_of_what_took_time(folder):
    assert of(folder).spreads == [("batch_cost", [0.4, 0.39, 0.5, 0.6]), ("reader_cost", [0.1, 0.1, 0.2, 0.3])]


def test_diagnosis(folder):
    assert of(folder).diagnosis == "The run was input-bound."


def test_phases_of_a_recorded_step_by_hand(folder):
    # Of 0.4 s the phases have 0.35 s.
    found = of(folder)
    assert [(part.name, part.seconds, part.percent) for part in found.phases] == [
        ("data", 0.01, pytest.approx(2.5)),
        ("forward", 0.1, pytest.approx(25)),
        ("backward", 0.2, pytest.approx(50)),
        ("optimizer", 0.04, pytest.approx(10)),
        ("between the phases", pytest.approx(0.05), pytest.approx(12.5)),
    ]
    assert found.recorded == 3


def test_phases_that_fill_the_step_leave_nothing_between(folder):
    example.write_json(folder / run_layout.PHASES, {"steps": 1, "forward": 0.3, "all-reduce": 0.0999, "batch": 0.4})
    assert [part.name for part in of(folder).phases] == ["forward", "all-reduce"]


def test_run_without_any(tmp_path):
    assert not of(example.begun(tmp_path)).is_known


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"batch": 3, "steps": null, "diagnosis": [], "wall": {"parts": {"steps": "x"}}}',
        '{"batch": {"mean": "x"}}',
    ],
)
def test_damaged_times_count_as_none(folder, content):
    (folder / "timing.json").write_text(content)
    found = of(folder)
    assert (found.parts, found.spreads, found.diagnosis, found.wall) == ([], [], "", [])


@pytest.mark.parametrize("content", ["", "[1]", "{}", '{"steps": [], "forward": "x", "batch": null}'])
def test_damaged_phases_count_as_none(folder, content):
    (folder / run_layout.PHASES).write_text(content)
    assert (of(folder).phases, of(folder).recorded) == ([], 0)

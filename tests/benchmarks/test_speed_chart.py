"""The bar chart of the README."""

import json

import pytest

from benchmarks import speed_chart

RECORD = json.loads(speed_chart.RECORD.read_text(encoding="utf-8"))


def test_bars_are_the_ratios_of_the_record():
    drawn = speed_chart.comparisons(RECORD)
    assert list(drawn) == list(speed_chart.BARS)
    for comparison in drawn.values():
        own = next(row for row in comparison["rows"] if row["library"] == "bert_tf")
        other = next(row for row in comparison["rows"] if row.get("ratio", {}).get("median") == 1)
        assert other["contender"] == comparison["baseline"]
        assert speed_chart.ratio(comparison)["median"] == pytest.approx(own["median"] / other["median"], rel=0.15)


def test_the_conditions_name_machine_versions_and_days():
    text = speed_chart.conditions(RECORD)
    for part in (
        *("family 25, model 17 (Zen 4)", "2 shared cores", "TensorFlow 2.21.0"),
        *("transformers 5.24.0", "3 alternating", "2026"),
    ):
        assert part in text


def test_the_chart_is_a_small_picture(tmp_path):
    pytest.importorskip("matplotlib")
    speed_chart.draw(RECORD, tmp_path / "speed.png")
    assert (tmp_path / "speed.png").read_bytes().startswith(b"\x89PNG")
    assert speed_chart.PICTURE.stat().st_size < 150_000

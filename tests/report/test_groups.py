"""Which runs belong together."""

from __future__ import annotations

import pytest

from bert_tf.report import groups, run_files
from tests.report import example


def series(folder, *seeds, **training):
    for seed in seeds:
        example.begun(folder / f"seed-{seed}", seed=seed, **training)
    return folder


def names(*folders):
    return [(group.name, len(group.runs)) for group in groups.of(run_files.read(folders))]


def samples(*folders):
    return [(sample.name, sample.runs) for sample in groups.samples(run_files.read(folders))]


def test_series_is_one_group(tmp_path):
    assert names(series(tmp_path / "a", 1, 2, 3)) == [("a", 3)]


def test_two_series_are_two(tmp_path):
    assert names(series(tmp_path / "a", 1, 2), series(tmp_path / "b", 1, 2)) == [("a", 2), ("b", 2)]


def test_seeds_that_are_named_one_by_one_are_lines_of_their_own(tmp_path):
    folder = series(tmp_path / "a", 1, 2)
    assert names(folder / "seed-1", folder / "seed-2") == [("seed-1", 1), ("seed-2", 1)]


def test_series_trained_in_two_ways_is_no_group(tmp_path):
    folder = series(tmp_path / "a", 1, 2)
    series(folder, 3, learning_rate=1.0)
    assert names(folder) == [("seed-1", 1), ("seed-2", 1), ("seed-3", 1)]


def test_series_of_one_seed_is_a_run(tmp_path):
    assert names(series(tmp_path / "a", 1)) == [("seed-1", 1)]


def test_seeds_are_a_sample_whether_trained_as_a_series_or_not(tmp_path):
    folder = series(tmp_path / "a", 1, 2)
    assert samples(folder) == [("a", ["seed-1", "seed-2"])]
    assert samples(folder / "seed-1", folder / "seed-2") == [("seed-1, seed-2", ["seed-1", "seed-2"])]


@pytest.mark.parametrize("other", [{"task_name": "MRPC"}, {"bert_config": {"hidden_size": 16}}, {"learning_rate": 1.0}])
def test_what_differs_in_more_than_the_seed_is_no_sample(tmp_path, other):
    assert samples(example.begun(tmp_path / "a", seed=1), example.begun(tmp_path / "b", seed=2, **other)) == []


def test_same_seed_twice_is_no_sample(tmp_path):
    assert samples(example.begun(tmp_path / "a"), example.begun(tmp_path / "b")) == []


def test_runs_without_a_record_are_no_sample(tmp_path):
    for name in "ab":
        example.begun(tmp_path / name)
        (tmp_path / name / "run_config.json").unlink()
    assert samples(tmp_path / "a", tmp_path / "b") == []

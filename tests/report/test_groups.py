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


def test_series_is_one_group_and_a_sample(tmp_path):
    first, second = series(tmp_path / "a", 1, 2, 3), series(tmp_path / "b", 1, 2)
    assert names(first, second) == [("a", 3), ("b", 2)]
    assert names(series(tmp_path / "c", 1)) == [("seed-1", 1)]
    assert samples(second) == [("b", ["seed-1", "seed-2"])]


def test_seeds_that_are_named_one_by_one_are_lines_of_their_own_and_a_sample(tmp_path):
    one, other = (series(tmp_path / "a", 1, 2) / f"seed-{seed}" for seed in (1, 2))
    assert names(one, other) == [("seed-1", 1), ("seed-2", 1)]
    assert samples(one, other) == [("seed-1, seed-2", ["seed-1", "seed-2"])]


def test_series_trained_in_two_ways_is_no_group(tmp_path):
    folder = series(tmp_path / "a", 1, 2)
    series(folder, 3, learning_rate=1.0)
    assert names(folder) == [("seed-1", 1), ("seed-2", 1), ("seed-3", 1)]


@pytest.mark.parametrize(
    "other", [{"task_name": "MRPC"}, {"bert_config": {"hidden_size": 16}}, {"learning_rate": 1.0}, {"seed": 1}, None]
)
def test_what_differs_in_other_than_the_seed_is_no_sample(tmp_path, other):
    runs = [example.begun(tmp_path / "a", seed=1), example.begun(tmp_path / "b", **{"seed": 2, **(other or {})})]
    for run in runs if other is None else ():
        (run / "run_config.json").unlink()
    assert samples(*runs) == []

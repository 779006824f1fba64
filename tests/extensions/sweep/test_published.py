"""The published grid beside a search: which of its points are trained, and what is said of them; training is a formula."""

import dataclasses
import json
import logging
import math

import pytest

from bert_tf.errors import BertError
from bert_tf.extensions.sweep import published, table
from bert_tf.extensions.sweep.plan import Range, SweepFile
from bert_tf.extensions.sweep.search import Search

RATES = {"learning_rate": Range(1e-5, 1e-3, log=True)}
FILE = SweepFile(("MRPC", "RTE"), (1,), {}, {"train_batch_size": (8, 16, 32)}, RATES)
SIX = [(rate, size) for size in (16, 32) for rate in (2e-5, 3e-5, 5e-5)]


@pytest.fixture
def begin(tmp_path, glue):
    def of(trials, first, file=FILE):
        return Search(file, tmp_path, sampler="tpe", trials=trials, seconds=None, environment=glue, first=first)

    return of


def drawn(search):
    return [(run.name, run.varying["learning_rate"], run.varying["train_batch_size"]) for run in iter(search.ask, None)]


def result(number, value, *, unseen=None, rate=1e-4, size=8, task="MRPC", metric="accuracy", **more):
    metrics = {f"eval_{metric}": value, **({} if unseen is None else {f"held_out_{metric}": unseen})}
    varying = {"learning_rate": rate, "train_batch_size": size}
    return table.Result(
        f"{task}-trial{number}", task, 1, varying, 20, {} if more.get("error") else metrics, 1.0, f"eval_{metric}", **more
    )


def grid(values, **more):
    return [
        result(number, value, rate=rate, size=size, **more) for number, ((rate, size), value) in enumerate(zip(SIX, values))
    ]


def test_the_points_of_the_grid_are_trained_first_and_count_as_trials(begin):
    trials = drawn(begin(8, published.points(FILE, 8)))
    for task in ("MRPC", "RTE"):
        of_task = {name: values for name, *values in trials if name.startswith(task)}
        assert set(of_task) == {f"{task}-trial{number}" for number in range(8)}
        assert [tuple(of_task[f"{task}-trial{number}"]) for number in range(6)] == SIX
        assert all(tuple(of_task[f"{task}-trial{number}"]) not in SIX for number in (6, 7))


def test_a_command_that_continues_trains_no_point_twice(begin):
    points = published.points(FILE, 8)
    first = begin(8, points)
    earlier = [first.ask() for _ in range(5)]
    second = begin(8, points)
    assert [run.name for run in second.unfinished()] == [f"MRPC-trial{n}" for n in range(3)] + ["RTE-trial0", "RTE-trial1"]
    every = [(run.task, *run.varying.values()) for run in (*earlier, *iter(second.ask, None))]
    assert len(every) == len(set(every)) == 16


def test_a_search_that_is_finished_takes_the_grid_with_more_trials(begin):
    file = dataclasses.replace(FILE, tasks=("MRPC",))
    assert len(drawn(begin(4, (), file))) == 4
    assert [(rate, size) for _, rate, size in drawn(begin(10, published.points(file, 10), file))] == SIX


def test_values_outside_the_file_are_left_out_with_a_line_and_other_settings_have_their_defaults(caplog):
    grid = {"num_train_epochs": (1.0, 3.0), "warmup_proportion": (0.0, 0.1)}
    file = SweepFile(("MRPC",), (1,), {}, grid, {"learning_rate": Range(3e-5, 1e-4)})
    with caplog.at_level(logging.INFO):
        points = published.points(file, 20)
    assert points == [{"num_train_epochs": 3.0, "warmup_proportion": 0.1, "learning_rate": rate} for rate in (3e-5, 5e-5)]
    assert [record.getMessage() for record in caplog.records] == [
        "--with_grid: num_train_epochs: published values outside the file's list or range are left out: 2.0, 4.0",
        "--with_grid: learning_rate: published values outside the file's list or range are left out: 2e-05",
    ]


@pytest.mark.parametrize(
    ("settings", "ranges", "trials", "problem"),
    [
        ({}, {"warmup_proportion": Range(0.0, 0.2)}, 20, "needs a list or range of learning_rate, train_batch_size, num_tr"),
        ({}, {"learning_rate": Range(1e-4, 1e-3)}, 20, "learning_rate: no published value (2e-05, 3e-05, 5e-05) is in the"),
        ({"warmup_proportion": (0.0, 0.2)}, RATES, 20, "warmup_proportion: no published value (0.1) is in the file's"),
        ({"train_batch_size": (16, 32)}, {}, 20, "the file's lists have only published values, so nothing is left to search"),
        ({}, RATES, 3, "the grid has 3 points; --trials=3 leaves no run to the search"),
    ],
)
def test_a_file_without_a_point_is_refused(settings, ranges, trials, problem):
    with pytest.raises(BertError) as caught:
        published.points(SweepFile(("MRPC",), (1,), {}, settings, ranges), trials)
    assert str(caught.value).startswith(f"--with_grid: {problem}")


LOW = [0.6, 0.7, 0.6, 0.6, 0.6, 0.6]


@pytest.mark.parametrize(
    ("values", "searched", "verdict"),
    [
        ([0.5] * 8, "0.5000 (best of its first 6) and 0.5000 (best of all 8)", "did not beat the published grid"),
        ([0.7] * 6, "0.7000 (best of its first 6)", "did not beat the published grid"),
        ([0.5, 0.8], "0.8000 (best of its first 2)", "beat the published grid"),
        (
            [0.5] * 7 + [0.8],
            "0.5000 (best of its first 6) and 0.8000 (best of all 8)",
            "beat the published grid, with more runs only",
        ),
    ],
)
def test_searched_scores_decide_without_held_out_examples(tmp_path, values, searched, verdict):
    runs = [*grid(LOW), *(result(6 + number, value) for number, value in enumerate(values))]
    (line,) = published.notes(runs, tmp_path)
    assert line == f"MRPC: accuracy: published grid 0.7000 (best of 6), search {searched}: the search {verdict}"


def test_a_point_of_the_grid_that_is_drawn_again_is_of_the_search(tmp_path):
    rate, size = SIX[0]
    runs = [*grid(LOW), result(6, 0.8, rate=rate, size=size), result(7, 0.9)]
    (line,) = published.notes(runs[::-1], tmp_path)
    assert line.startswith("MRPC: accuracy: published grid 0.7000 (best of 6), search 0.9000 (best of its first 2): ")


@pytest.mark.parametrize(("unseen", "is_better"), [(0.70, False), (0.72, False), (0.74, True)])
@pytest.mark.parametrize(("task", "metric"), [("MRPC", "accuracy"), ("STS-B", "pearson")])
def test_held_out_scores_decide_within_the_standard_error_of_their_number(tmp_path, task, metric, unseen, is_better):
    of = {"task": task, "metric": metric}
    runs = [*grid(LOW, unseen=0.7, **of), result(6, 0.9, unseen=unseen, **of), result(7, 0.8, unseen=0.99, **of)]
    folder = tmp_path / f"{task}-trial6" / "held_out"
    folder.mkdir(parents=True)
    spread = 1 - unseen**2 if metric == "pearson" else math.sqrt(unseen * (1 - unseen))
    examples = round((spread / 0.03) ** 2)  # so that the error is 0.03
    (folder / "eval_results.json").write_text(json.dumps({"splits": {"dev": {"examples": examples}}}))
    (line,) = published.notes(runs, tmp_path)
    said = "the search beat" if is_better else "the search did not beat"
    assert line.partition("; ")[2] == f"held out 0.7000 and {unseen:.4f}, standard error 0.0300: {said} the published grid"


def test_runs_that_failed_or_stopped_early_win_nothing_and_a_task_without_both_has_no_line(tmp_path):
    runs = [*grid(LOW), result(6, 0.9, pruned=True), result(7, 0.9, error="no memory"), result(8, 0.65)]
    (line,) = published.notes([*runs, result(0, 0.9, task="RTE")], tmp_path)
    assert line.startswith("MRPC: accuracy: published grid 0.7000 (best of 6), search 0.6500 (best of its first 3): ")

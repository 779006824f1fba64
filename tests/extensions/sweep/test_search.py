"""Search for settings: what is drawn, what the study remembers, and which runs are stopped; training is a formula."""

import dataclasses
import itertools
import json
import logging
import math
import os
import sys
from unittest import mock

import pytest

from bert_tf.errors import BertError
from bert_tf.estimator import evaluations
from bert_tf.extensions.sweep import command, leader, table
from bert_tf.extensions.sweep.command import SweepSettings, run_all
from bert_tf.extensions.sweep.leader import Leader, Slot
from bert_tf.extensions.sweep.plan import Range, SweepFile
from bert_tf.extensions.sweep.search import Search, pruned
from tests import lines

FILE = SweepFile(
    ("MRPC", "RTE"),
    (1,),
    {"num_train_steps": 20},
    {"train_batch_size": (8, 16)},
    {"learning_rate": Range(1e-5, 1e-3, log=True)},
)


@pytest.fixture
def begin(tmp_path, glue):
    def of(sampler="random", trials=3, seconds=None, file=FILE):
        (tmp_path / "sweep").mkdir(exist_ok=True)
        return Search(file, tmp_path / "sweep", sampler=sampler, trials=trials, seconds=seconds, environment=glue)

    return of


def result(run, value, **more):
    return table.Result(run.name, run.task, run.seed, dict(run.varying), 20, {"eval_accuracy": value}, 1.0, run.metric, **more)


def finish(search, result):
    table.write(search._folder, result)
    search.tell(result)


def asked(search):
    return list(iter(search.ask, None))


def test_each_task_has_its_runs_with_values_of_the_lists_and_ranges(begin):
    runs = asked(begin())
    assert sorted(run.name for run in runs) == [f"{task}-trial{n}" for task, n in itertools.product(("MRPC", "RTE"), range(3))]
    for run in runs:
        assert run.varying["train_batch_size"] in (8, 16)
        assert 1e-5 <= run.varying["learning_rate"] <= 1e-3
        assert run.config.train.learning_rate == run.varying["learning_rate"]
        assert run.config.output.folder.name == run.name
    assert len({run.varying["learning_rate"] for run in runs if run.task == "MRPC"}) == 3


def test_a_command_that_continues_has_the_runs_without_a_result_and_draws_others(begin):
    first = begin()
    earlier = [first.ask() for _ in range(2)]
    finish(first, result(earlier[0], 0.7))
    second = begin()
    assert [(run.name, run.varying) for run in second.unfinished()] == [(earlier[1].name, earlier[1].varying)]
    table.forget(second._folder, [earlier[0].name])  # a result that was damaged
    assert [(run.name, run.varying) for run in begin().unfinished()] == [(run.name, run.varying) for run in earlier]
    new = asked(second)
    assert len(new) == 4
    assert not {run.varying["learning_rate"] for run in new} & {run.varying["learning_rate"] for run in earlier}


def test_a_finished_search_that_is_repeated_has_all_results(begin, tmp_path):
    folder = tmp_path / "sweep"
    for run in asked(begin()):
        table.write(folder, result(run, 0.5))
    table.write(folder, table.Result("MRPC-trial99", "MRPC", 1, {}))  # of no trial
    again = Leader([], folder, [Slot({})], begin(), start=lambda *_: pytest.fail("trained again")).lead()
    assert sorted(one.name for one in again) == [f"{task}-trial{n}" for task, n in itertools.product(("MRPC", "RTE"), range(3))]
    assert len((folder / "sweep.tsv").read_text().splitlines()) == 7


def test_all_runs_of_an_earlier_command_with_more_trials_count(begin, tmp_path, caplog):
    folder = tmp_path / "sweep"
    for run in asked(begin()):
        table.write(folder, result(run, 0.5))
    with caplog.at_level(logging.INFO):
        Leader([], folder, [Slot({})], begin(trials=1)).lead()
    assert caplog.messages == ["6 of 6 runs have a result already"]


def test_tpe_draws_near_the_best(begin):
    """The score has its peak at a rate of 1e-4; drawn at random, half of the rates are at most a factor of 3.2 away."""
    file = SweepFile(("MRPC",), (1,), {}, {}, {"learning_rate": Range(1e-6, 1e-2, log=True)})
    search, distances = begin("tpe", trials=30, file=file), []
    for run in iter(search.ask, None):
        distances.append(abs(math.log10(run.varying["learning_rate"]) + 4))
        search.tell(result(run, 1.0 - distances[-1] / 4))
    assert sum(distances[15:]) / 15 < 0.7 * sum(distances[:10]) / 10


def test_no_run_begins_after_the_budget_nor_without_the_package(begin, monkeypatch):
    assert begin(seconds=0.0).ask() is None
    assert begin(seconds=100.0).ask() is not None
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(BertError, match="^--search needs Optuna: pip install 'optuna"):
        begin()


def test_a_run_that_is_behind_at_its_step_is_stopped_and_keeps_its_last_evaluation(begin, tmp_path):
    search = begin(trials=20, file=dataclasses.replace(FILE, fixed={"eval_every_n_steps": 5}))
    runs = [run for run in asked(search) if run.task == "RTE"]
    for number, run in enumerate(runs):
        folder = tmp_path / "sweep" / run.name
        folder.mkdir()
        value = 0.9 - 0.02 * number  # each worse than all before
        evaluations.write(folder, [evaluations.line(5, {"eval_accuracy": value, "eval_loss": 0.5})])
    stopped = [number for number, run in enumerate(runs) if search.lags(run)]
    assert stopped[-1] == 19
    assert 0 not in stopped
    assert not search.lags(runs[-1])  # without a new evaluation nothing is decided
    result = pruned(runs[-1], tmp_path / "sweep")
    assert (result.steps, result.metrics["eval_accuracy"], result.pruned) == (5, pytest.approx(0.52), True)
    finish(search, result)
    assert runs[-1].name not in {run.name for run in begin(trials=20).unfinished()}


def evaluated(folder, step, value, **schedule):
    """A run that has evaluated a step, of those that its record plans."""
    folder.mkdir(exist_ok=True)
    evaluations.write(folder, [evaluations.line(step, {"eval_accuracy": value, "eval_loss": 0.5})])
    (folder / "run_config.json").write_text(json.dumps({"schedule": schedule}))


ONE_TASK = dataclasses.replace(FILE, tasks=("MRPC",), fixed={"eval_every_n_steps": 5})


@pytest.mark.parametrize(("schedule", "stops"), [({"steps": 5}, 0), ({"steps": 6, "stopped_at": 5}, 0), ({"steps": 6}, 19)])
def test_a_run_at_its_last_step_is_not_stopped(begin, tmp_path, schedule, stops):
    search = begin(trials=20, file=ONE_TASK)
    runs = asked(search)
    for number, run in enumerate(runs):
        evaluated(tmp_path / "sweep" / run.name, 5, 0.9 - 0.02 * number, **schedule)
    assert sum(map(search.lags, runs)) == stops


@pytest.mark.parametrize("reached", [5, 20])
def test_a_run_that_has_reached_its_last_step_when_it_is_stopped_is_continued(begin, tmp_path, monkeypatch, caplog, reached):
    """The leader looks at evaluations once a second."""
    folder, started = tmp_path / "sweep", []

    class Stopped:
        exitcode = None

        def __init__(self, run):
            self.run, self.sentinel = run, os.open(os.devnull, os.O_RDONLY)
            evaluated(folder / run.name, 5, 0.5, steps=20)

        def terminate(self):
            evaluated(folder / self.run.name, reached, 0.75, steps=20)
            self.exitcode = table.EXIT_STOPPED

        def __del__(self):
            os.close(self.sentinel)

    def start(run, *_):
        started.append(run.name)
        process = Stopped(run)
        if len(started) == 2:
            table.write(folder, result(run, 0.75))
            process.exitcode = table.EXIT_DONE
        return process

    search = begin(trials=1, file=ONE_TASK)
    monkeypatch.setattr(search, "lags", lambda _: True)
    with caplog.at_level(logging.INFO):
        (trained,) = Leader([], folder, [Slot({})], search, start=start).lead()
    assert (trained.pruned, len(started)) == ((False, 2) if reached == 20 else (True, 1))
    assert ("stopped early at step 5: accuracy 0.7500, loss 0.5000" in caplog.messages[-1]) == trained.pruned


@pytest.fixture
def journal(tmp_path):
    return tmp_path / "sweep" / "study.journal"


def test_a_trial_whose_leader_was_killed_while_it_drew_gets_its_settings(begin, journal):
    run = begin().ask()
    lines = journal.read_bytes().splitlines(keepends=True)
    drawn = [number for number, line in enumerate(lines) if b"param_name" in line]
    for kept in (drawn[0], drawn[1]):  # none of its settings, one of them
        journal.write_bytes(b"".join(lines[:kept]))
        (again,) = begin().unfinished()
        assert again.name == run.name
        assert again.varying["train_batch_size"] == run.varying["train_batch_size"]
        assert 1e-5 <= again.varying["learning_rate"] <= 1e-3
    journal.write_bytes(b"".join(lines[: drawn[0]]))
    assert begin().known(run.name) is None


def test_the_rest_of_a_line_in_the_journal_is_dropped(begin, journal):
    run = begin().ask()
    with journal.open("ab") as file:
        file.write(b'{"op_code": 5, "worker')
    again = begin()
    assert [one.name for one in again.unfinished()] == [run.name]
    finish(again, result(run, 0.5))
    assert list(begin().unfinished()) == []


def test_another_list_kind_of_range_or_seed_is_refused_and_other_ends_are_not(begin):
    begin().ask()
    begin(file=dataclasses.replace(FILE, ranges={"learning_rate": Range(1e-5, 1e-2, log=True)}))
    for ranges, now in (
        ({"learning_rate": Range(1e-5, 1e-3)}, "a range of numbers, without log"),
        ({}, "none of the ranges"),
    ):
        with pytest.raises(
            BertError, match=f"^learning_rate: was a range of numbers, with log in the search of .*, now {now};"
        ):
            begin(file=dataclasses.replace(FILE, ranges=ranges))
    with pytest.raises(BertError, match=r"^train_batch_size: was \[8, 16\] in the search of .*, now \[8, 32\]; name another"):
        begin(file=dataclasses.replace(FILE, grid={"train_batch_size": (8, 32)}))
    begin(file=dataclasses.replace(FILE, seeds=(1, 2)))
    with pytest.raises(BertError, match="^seeds: was 1 in the search of .*, now 2; name another --output_dir$"):
        begin(file=dataclasses.replace(FILE, seeds=(2, 1)))


def test_evaluation_at_the_end_alone_stops_no_run(begin):
    search = begin(file=dataclasses.replace(FILE, fixed={"eval_every_n_steps": 0}))
    assert not search.lags(search.ask())


def test_a_failed_run_is_tried_again_by_the_next_command_with_its_settings(begin):
    search = begin(trials=1)
    run, other = asked(search)
    search.tell(table.failed(run, "no memory"))
    finish(search, result(other, 0.5))
    assert list(search.unfinished()) == []
    again = begin(trials=1)
    assert [(one.name, one.varying) for one in again.unfinished()] == [(run.name, run.varying)]
    finish(again, result(run, 0.5))
    assert list(begin(trials=1).unfinished()) == asked(begin(trials=1)) == []


def test_a_command_that_is_repeated_forgets_the_failures_of_its_search_alone(begin, tmp_path, monkeypatch, glue):
    """Earlier versions told failures to the study, which are final there."""
    run, other, *_ = asked(begin())
    state = begin()._optuna.trial.TrialState.FAIL
    begin()._studies[run.task].tell(int(run.name[-1]), state=state)
    of_grid = dataclasses.replace(run, name="MRPC-learning_rate=0.1-seed1")
    for one in (run, of_grid):
        table.write(tmp_path / "sweep", table.failed(one, "no memory"))
    assert run.name not in {one.name for one in begin().unfinished()}
    lists = {"train_batch_size": [8, 16], "learning_rate": {"low": 1e-5, "high": 1e-3, "log": True}}
    sweep_file = {"tasks": ["MRPC", "RTE"], "settings": {"num_train_steps": 20, **lists}}
    (tmp_path / "sweep.json").write_text(json.dumps(sweep_file))
    monkeypatch.setenv("GLUE_DIR", glue["GLUE_DIR"])
    monkeypatch.setattr(leader, "Leader", mock.Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        run_all(SweepSettings(str(tmp_path / "sweep.json"), str(tmp_path / "sweep"), search="random", trials=3, slots=1))
    assert table.finished(tmp_path / "sweep") == [of_grid.name]
    unfinished = {one.name: one.varying for one in begin().unfinished()}
    assert (unfinished[run.name], unfinished[other.name]) == (run.varying, other.varying)


def test_a_lock_of_a_killed_process_leads_to_the_journal(begin, journal, monkeypatch, tmp_path):
    """Optuna compares the age of what it leads to; a relative one led nowhere, and was waited for without an end."""
    monkeypatch.chdir(tmp_path)
    search = begin()
    backend = search._studies["MRPC"]._storage._backend
    assert os.path.isabs(backend._lock._lock_target_file)
    assert os.path.samefile(backend._lock._lock_target_file, journal)


SLURM = "--launch=slurm needs --nodes; --nodes and --slurm belong to --launch=slurm"


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"budget": "2h"}, "--budget belongs to --search=random or --search=tpe"),
        ({"trials": 5}, "--trials belongs to --search=random or --search=tpe"),
        ({"search": "tpe", "from_mnli": True}, "--from_mnli belongs to a grid, without --search"),
        ({"search": "tpe", "spread": True}, "--spread belongs to a grid"),
        ({"search": "tpe", "budget": "2 days"}, "--budget=2 days: write hours, minutes or seconds, as 2h, 30m or 90s"),
        ({"hold_out": 1.0}, "--hold_out=1: must be at most 0.9"),
        ({"hold_out": 0.5}, "--hold_out: dev is measured without a threshold, so leave out threshold"),
        ({"with_grid": True}, "--with_grid belongs to --search=random or --search=tpe"),
        *((of_slurm, SLURM) for of_slurm in ({"launch": "slurm"}, {"nodes": 2}, {"launch": "ray", "slurm": "--time=1:00"})),
    ],
)
def test_settings_that_do_not_fit_are_refused_before_anything_is_written(tmp_path, settings, problem):
    (tmp_path / "sweep.yaml").write_text("tasks: MRPC\nsettings: {learning_rate: {low: 1e-5, high: 1e-4}, threshold: f1}")
    asked = SweepSettings(str(tmp_path / "sweep.yaml"), str(tmp_path / "sweep"), **settings)
    for way in (run_all, lambda asked: command._plan(asked, None)):
        with pytest.raises(BertError) as caught:
            way(asked)
        assert str(caught.value).startswith(problem)
    assert not (tmp_path / "sweep").exists()


def test_a_search_needs_something_to_draw_and_takes_the_first_seed(tmp_path, caplog, glue, monkeypatch):
    monkeypatch.setenv("GLUE_DIR", glue["GLUE_DIR"])
    (tmp_path / "sweep.yaml").write_text("tasks: MRPC\nsettings: {num_train_steps: 20}")
    settings = SweepSettings(str(tmp_path / "sweep.yaml"), str(tmp_path / "sweep"), search="tpe")
    with pytest.raises(BertError, match="^--search=tpe: settings have no list or range to draw from; leave out --search$"):
        run_all(settings)
    (tmp_path / "sweep.yaml").write_text("tasks: MRPC\nseeds: 3-5\nsettings: {learning_rate: [0.1, 0.2]}")
    monkeypatch.setattr(command, "_led", mock.Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        run_all(settings)
    assert "--search=tpe: trials have the seed 3, the first of 3" in caplog.text


def test_data_that_change_during_a_sweep_are_said(tmp_path, glue, monkeypatch, caplog):
    monkeypatch.setenv("GLUE_DIR", glue["GLUE_DIR"])
    folder = tmp_path / "sweep"
    (tmp_path / "sweep.yaml").write_text("tasks: MRPC\nsettings: {num_train_steps: 20}")

    def led(_, __, runs, ___):
        (tmp_path / "glue" / "MRPC" / "train.tsv").write_text("")
        table.write(folder, table.result(runs[0]))
        return []

    monkeypatch.setattr(command, "_led", led)
    assert run_all(SweepSettings(str(tmp_path / "sweep.yaml"), str(folder))).table.is_file()
    assert "MRPC/train.tsv has changed since its runs were trained" in caplog.text


def test_a_plan_is_that_of_a_grid(tmp_path, capsys):
    (tmp_path / "sweep.yaml").write_text("tasks: MRPC\nsettings: {learning_rate: [1e-5, 1e-4]}")
    assert lines.run("sweep", tmp_path / "sweep.yaml", "--plan", "--search=tpe", output_dir=tmp_path / "sweep") == 2
    assert "error: --plan: is for the lists of a grid, without --search" in capsys.readouterr().err
    assert lines.run("sweep", tmp_path / "sweep.yaml", "--tokens_per_second=9", output_dir=tmp_path / "sweep") == 2
    assert "error: --tokens_per_second belongs to --plan" in capsys.readouterr().err


def test_a_folder_that_holds_a_run_is_not_that_of_a_sweep(tmp_path):
    (tmp_path / "sweep.yaml").write_text("tasks: MRPC")
    (tmp_path / "run_config.json").write_text("{}")
    with pytest.raises(BertError, match=r"^--output_dir=.*: holds a run; name another folder for the sweep"):
        run_all(SweepSettings(str(tmp_path / "sweep.yaml"), str(tmp_path)))
    assert len(list(tmp_path.iterdir())) == 2

"""Comparisons carried out by fake workers, and what is made of them."""

from __future__ import annotations

import dataclasses
import json

import pytest

from benchmarks import plot, records, report, results
from benchmarks.comparisons import COMPARISONS, Comparison, Contender, Requirement
from benchmarks.stage import Stage

OURS = Contender("bert_tf")
ROW = Comparison(
    "fake",
    "Training",
    "train",
    contenders=(OURS, Contender("theirs", "transformers")),
    baselines=("theirs", "bert_tf"),
    batch_size=10,
)


TRAINING = dataclasses.replace(ROW, requirements=(Requirement(report.TRAINING, "bert_tf", 1.8, against="theirs"),))


def record_in(folder):
    """The one record of a run."""
    [path] = (folder / "results").iterdir()
    return json.loads(path.read_text())


def with_ways(*ways: str, **changes) -> Comparison:
    """A comparison of ours with others that behave in these ways."""
    others = tuple(Contender(way, "transformers", way=way) for way in ways)
    return dataclasses.replace(ROW, contenders=(OURS, *others), baselines=("bert_tf",), **changes)


def rows(comparison, bench):
    return {row["contender"]: row for row in results.compare(comparison, bench)["rows"]}


def test_rates_and_ratios_to_the_baseline(bench):
    found = rows(ROW, bench)
    assert found["bert_tf"]["samples"] == [20.0] * 3  # the fake says: ten examples a step, ours twice as fast
    assert found["bert_tf"]["ratio"]["median"] == 2.0
    assert found["theirs"]["ratio"]["median"] == 1.0
    assert found["theirs"]["versions"] == {"fake": "1.0"}
    ours = found["bert_tf"]
    assert ours["share_of_peak"]["median"] == pytest.approx(20.0 * ours["flops_per_example"] / 50e9)


@pytest.mark.parametrize(
    ("way", "status", "changes"),
    [
        ("other ids", "not comparable: token ids of example 0 are 3 (101, 100, 102), not 3 (101, 7, 102)", {}),
        ("other loss", "not comparable: loss before training is 0.9, not 0.7", {}),
        ("dies early", "failed: ended with status 3: RuntimeError: out of luck", {}),
        ("dies late", "failed: killed by SIGABRT: hello", {}),
        ("other loss", "measured", {"size": "mini"}),  # random weights are compared by ids alone
        ("other ids", "not comparable: token ids of example 0 are 3 (101, 100, 102), not 3 (101, 7, 102)", {"size": "mini"}),
        ("other ids", "not comparable: token ids of example 0 are 3 (101, 100, 102), not 3 (101, 7, 102)", {"suite": "memory"}),
        ("other ids", "measured", {"suite": "scaling"}),  # of different sizes
    ],
)
def test_who_cannot_be_measured_has_a_reason_and_no_figures(way, status, changes, bench):
    found = rows(with_ways("dynamic", way, **changes), bench)
    assert found[way]["status"] == status
    assert ("samples" in found[way]) == (status == "measured")
    assert found["dynamic"]["status"] == "measured"


def test_nothing_is_believed_without_our_own_answer(bench):
    row = dataclasses.replace(ROW, contenders=(dataclasses.replace(OURS, way="cannot"), ROW.contenders[1]))
    found = rows(row, bench)
    assert found["bert_tf"]["status"] == "failed: no such way: try another"
    assert found["theirs"]["status"] == "not comparable: bert_tf gave no answer to compare with"


def test_where_a_library_is_missing_the_next_baseline_is_taken(bench):
    found = results.compare(dataclasses.replace(ROW, contenders=(OURS, Contender("theirs", "keras_hub"))), bench)
    assert (found["rows"][1]["status"], found["baseline"]) == ("missing: not here", "bert_tf")


def test_each_takes_its_best_batch_size(bench):
    row = dataclasses.replace(ROW, suite="predict", try_batch_sizes=(8, 16, 32))
    assert {row["batch_size"] for row in rows(row, bench).values()} == {16}


def test_start_is_timed_by_fresh_processes(bench):
    row = dataclasses.replace(ROW, suite="start")
    found = rows(row, bench)["bert_tf"]
    assert len(found["samples"]) == 3
    assert 0.0 < found["lowest"] < found["highest"] < 5.0


def test_memory_is_that_of_fresh_processes(bench):
    assert rows(dataclasses.replace(ROW, suite="memory"), bench)["bert_tf"]["samples"] == [110.0] * 3


def test_curves_are_losses_of_single_steps(bench):
    row = dataclasses.replace(ROW, suite="curves")
    found = rows(row, bench)["bert_tf"]
    assert len(found["samples"]) == 50
    assert found["samples"][:2] == [pytest.approx(0.699), pytest.approx(0.698)]


def verdict(requirement, bench, monkeypatch, **changes):
    row = dataclasses.replace(ROW, requirements=(requirement,), **changes)
    monkeypatch.setattr(report, "COMPARISONS", (row,))
    [found] = report.judge([results.compare(row, bench)])
    return found


SPEED = Requirement("speed", "bert_tf", 1.8, against="theirs")


@pytest.mark.parametrize(
    ("requirement", "changes", "median", "held"),
    [
        (SPEED, {}, 2.0, True),
        (dataclasses.replace(SPEED, bound=2.1), {}, 2.0, False),
        (Requirement("memory", "bert_tf", 1.0, against="theirs", at_least=False), {"suite": "memory"}, 1.0, True),
        (Requirement("losses", "bert_tf", 1e-4, kind="difference", at_least=False), {"suite": "curves"}, 0.0, True),
        (Requirement("share", "bert_tf", 0.7, kind="share"), {}, pytest.approx(1e-6, abs=1e-3), False),
    ],
)
def test_a_requirement_is_held_or_missed(requirement, changes, median, held, bench, monkeypatch):
    found = verdict(requirement, bench, monkeypatch, **changes)
    assert (found["median"], found["held"]) == (median, held)
    assert found["required"] == f"{'at least' if requirement.at_least else 'at most'} {requirement.bound:.3g}"


@pytest.mark.parametrize(
    ("requirement", "changes", "note"),
    [
        (SPEED, {"contenders": (OURS, Contender("theirs", "keras_hub"))}, "theirs: missing: not here"),
        (dataclasses.replace(SPEED, contender="bert_tf, new"), {}, "bert_tf, new: not measured"),  # the record is older
    ],
)
def test_what_was_not_measured_is_neither_held_nor_missed(requirement, changes, note, bench, monkeypatch):
    found = verdict(requirement, bench, monkeypatch, **changes)
    assert (found["held"], found["note"]) == (None, note)


def test_a_ratio_beside_that_of_another_comparison(bench, monkeypatch):
    ratio = Requirement("as there", "bert_tf", 0.8, kind="beside", against="theirs", beside="other")
    here, other = dataclasses.replace(ROW, requirements=(ratio,)), dataclasses.replace(ROW, name="other")
    monkeypatch.setattr(report, "COMPARISONS", (here, other))
    [found] = report.judge([results.compare(here, bench), results.compare(other, bench)])
    assert (found["median"], found["held"]) == (1.0, True)
    [found] = report.judge([results.compare(here, bench)])
    assert (found["held"], found["note"]) == (None, "the other side of it was not measured")


def test_a_comparison_may_have_threads_of_its_own(bench):
    assert Stage(ROW, bench).threads == 1
    assert Stage(dataclasses.replace(ROW, threads=4), bench).threads == 4


def test_what_was_measured_counts_more_than_what_was_told(bench, monkeypatch):
    monkeypatch.setattr(report, "COMPARISONS", (TRAINING,))
    told = {report.TRAINING: 1.18}
    assert [report.judge(found, told)[0]["median"] for found in ([], [results.compare(TRAINING, bench)])] == [1.18, 2.0]


def test_every_requirement_of_the_table_is_listed():
    verdicts = report.judge([])
    assert len(verdicts) == sum(len(row.requirements) for row in COMPARISONS)
    assert {found["note"] for found in verdicts} == {"not asked for"}


def test_the_report_names_machine_command_and_verdicts(bench, tmp_path):
    memory = dataclasses.replace(with_ways("dynamic", suite="memory", size="mini"), name="fake memory")
    comparisons = (with_ways("dynamic", "other ids"), memory)
    results.run(comparisons, bench, tmp_path / "out", command="python -m bert_tf benchmark", data="some | texts")
    written = record_in(tmp_path / "out")
    assert written["finished"] is True
    assert written["comparisons"][0]["measured"]["machine"]["cores"] >= 1
    text = (tmp_path / "out" / "results.md").read_text()
    for part in (
        "    python -m bert_tf benchmark\n",
        "fake 1.0",
        "## By CPU model",
        "| other ids |",
        "not comparable",
        "50 GFLOP/s",
    ):
        assert part in text
    assert "not finished" not in text


@pytest.mark.parametrize(
    ("name", "turns"),
    [
        ("train", "2 threads, 3 rounds of 20 steps"),
        ("features", "2 threads, 3 rounds"),
        ("squad-features-1", "1 thread, 3 rounds"),
        ("curves", "2 threads, 1 round of 50 steps"),
        ("memory", "2 threads, 3 rounds of 12 steps"),
        ("command", "2 threads, 3 rounds"),
    ],
)
def test_the_report_says_how_long_each_comparison_was_measured(name, turns):
    (row,) = (row for row in COMPARISONS if row.name == name)
    settings = {"threads": 2, "rounds": 3, "steps": 20, "data": "d"}
    measured = {"command": "c", "date": "today", "commit": "e", "settings": settings}
    found = {**dataclasses.asdict(row), "unit": "s", "baseline": None, "peak_gflops": None, "rows": [], "measured": measured}
    assert f"today, commit e; {turns}; d." in report._comparison(found)


def test_a_picture_is_drawn_of_what_is_scaled_alone(bench, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(plot, "draw_scaling", lambda _, comparisons: drawn.append(len(comparisons)))
    scaling = dataclasses.replace(ROW, name="scaling-batch", suite="scaling")
    results.run((scaling, ROW), bench, tmp_path, command="c", data="d")
    assert drawn == [1]


def test_an_interrupted_run_leaves_what_it_has_measured(bench, tmp_path, monkeypatch):
    original = results.compare

    def compare(comparison, bench):
        if comparison.name == "second":
            raise KeyboardInterrupt
        return original(comparison, bench)

    monkeypatch.setattr(results, "compare", compare)
    second = dataclasses.replace(ROW, name="second")
    with pytest.raises(KeyboardInterrupt):
        results.run((ROW, second), bench, tmp_path, command="c", data="d")
    written = record_in(tmp_path)
    assert ([found["name"] for found in written["comparisons"]], written["finished"]) == (["fake"], False)
    assert "not finished" in report.to_markdown([written])


def test_a_later_run_keeps_what_it_does_not_measure_again(bench, tmp_path):
    second = dataclasses.replace(ROW, name="second")
    results.run((ROW, second), bench, tmp_path, command="first command", data="d")
    results.run((second,), bench, tmp_path, command="second command", data="d")
    written = record_in(tmp_path)
    commands = {found["name"]: found["measured"]["command"] for found in written["comparisons"]}
    assert commands == {"fake": "first command", "second": "second command"}


def test_each_cpu_model_has_a_record_and_a_column(bench, tmp_path, monkeypatch):
    monkeypatch.setattr(report, "COMPARISONS", (TRAINING,))
    for model in ("17", "43"):
        monkeypatch.setattr(records, "cpu", lambda model=model: {"name": "Some CPU", "family": "6", "model": model})
        monkeypatch.setattr(records, "when", lambda n=model: {"date": f"2026-01-01T00:00:{n}", "commit": f"abcdef{n}"})
        results.run((TRAINING,), bench, tmp_path, command="c", data="d")
    assert [path.name for path in sorted((tmp_path / "results").iterdir())] == ["some-cpu-6-17.json", "some-cpu-6-43.json"]
    text = (tmp_path / "results.md").read_text()
    assert "| Some CPU, family 6, model 17, not measured since abcdef1 | Some CPU, family 6, model 43, abcdef4 |" in text
    assert "| training against transformers, dynamic padding | at least 1.8 | 2 | 2 |" in text


def test_a_cpu_is_up_to_date_where_the_latest_commit_was_measured_on_it(bench, tmp_path, monkeypatch):
    for name in ("One", "Another"):
        monkeypatch.setattr(records, "cpu", lambda name=name: {"name": name})
        monkeypatch.setattr(records, "when", lambda name=name: {"date": f"2026-01-01, {len(name)}", "commit": "abcdef1"})
        results.run((ROW,), bench, tmp_path, command="c", data="d")
    assert "| Another, abcdef1 | One, abcdef1 |" in (tmp_path / "results.md").read_text()


def test_figures_that_were_told_are_in_the_table(bench, tmp_path, monkeypatch):
    monkeypatch.setattr(report, "COMPARISONS", (TRAINING,))
    results.run((TRAINING,), bench, tmp_path, command="c", data="d")
    told = {"figures": {report.TRAINING: 1.18}, "date": "2026-01-01", "commit": "6d8ea43", "source": "a user."}
    other = {"cpu": {"name": "Another"}, "finished": True, "comparisons": [], "told": told}
    text = report.to_markdown([record_in(tmp_path), other])
    assert "| training against transformers, dynamic padding | at least 1.8 | **1.18** | 2 |" in text  # the lowest first
    assert "Another: a user." in text
    assert "Another, not measured since 6d8ea43" in text


def test_a_damaged_record_is_replaced(bench, tmp_path):
    results.run((ROW,), bench, tmp_path, command="c", data="d")
    [path] = (tmp_path / "results").iterdir()
    path.write_text("{")
    found = results.run((ROW,), bench, tmp_path, command="c", data="d")
    assert [comparison["name"] for comparison in found["comparisons"]] == ["fake"]

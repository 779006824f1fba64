"""Comparisons carried out by fake workers, and what is made of them."""

import dataclasses
import json

import pytest

from benchmarks import plot, records, report, results
from benchmarks.comparisons import AUTOMATIC, COMPARISONS, Comparison, Contender, Requirement
from benchmarks.stage import Stage

OURS, THEIRS, MISSING = Contender("bert_tf"), Contender("theirs", "transformers"), Contender("theirs", "keras_hub")
ROW = Comparison("fake", "Training", "train", (OURS, THEIRS), batch_size=10)
FASTER = Contender("faster", "transformers", batch_size=16)
SECOND = dataclasses.replace(ROW, name="second")
TRAINING = dataclasses.replace(ROW, requirements=(Requirement(report.TRAINING, 1.8, "bert_tf", against="theirs"),))
SPEED = Requirement("speed", 1.8, "bert_tf", against="theirs")
OTHER_IDS = "not comparable: token ids of example 0 are 3 (101, 100, 102), not 3 (101, 7, 102)"


def row(**changes) -> Comparison:
    return dataclasses.replace(ROW, **changes)


def run(bench, folder, *comparisons, command="c"):
    """Returns the one record that a run leaves."""
    results.run(comparisons, bench, folder, command=command, data="some | texts")
    return read(folder)


def read(folder):
    [path] = (folder / "results").iterdir()
    return json.loads(path.read_text())


def with_ways(*ways: str, **changes) -> Comparison:
    """A comparison of ours with others that behave in these ways."""
    others = tuple(Contender(way, "transformers", way=way) for way in ways)
    return row(contenders=(OURS, *others), baselines=("bert_tf",), **changes)


def rows(comparison, bench):
    return {measured["contender"]: measured for measured in results.compare(comparison, bench)["rows"]}


def test_rates_and_ratios_to_the_baseline(bench):
    by_contender = rows(ROW, bench)
    ours, theirs = by_contender["bert_tf"], by_contender["theirs"]
    assert ours["samples"] == [20.0] * 3  # the fake says: ten examples a step, ours twice as fast
    assert (ours["ratio"]["median"], theirs["ratio"]["median"], theirs["versions"]) == (2.0, 1.0, {"fake": "1.0"})
    assert ours["share_of_peak"]["median"] == pytest.approx(20.0 * ours["flops_per_example"] / 50e9)
    half = rows(row(contenders=(OURS, dataclasses.replace(OURS, name="half", precision="bfloat16"))), bench)
    shares = [half[name]["share_of_peak"]["median"] for name in ("bert_tf", "half")]
    assert shares[1] == pytest.approx(shares[0] / 2)  # the fake's products are twice as fast in bfloat16


def test_prediction_has_a_share_of_the_peak_but_not_in_int8(bench):
    int8 = dataclasses.replace(OURS, name="int8", precision="int8")
    by_contender = rows(row(suite="predict", contenders=(OURS, int8, THEIRS)), bench)
    ours, trained = by_contender["bert_tf"], rows(ROW, bench)["bert_tf"]
    assert 3 * ours["flops_per_example"] == pytest.approx(trained["flops_per_example"])
    assert ours["share_of_peak"]["median"] == pytest.approx(20.0 * ours["flops_per_example"] / 50e9)
    assert "share_of_peak" not in by_contender["int8"]


@pytest.mark.parametrize(
    ("way", "status", "changes"),
    [
        ("other ids", OTHER_IDS, {}),
        ("other loss", "not comparable: loss before training is 0.9, not 0.7", {}),
        ("dies early", "failed: ended with status 3: RuntimeError: out of luck", {}),
        ("dies late", "failed: killed by SIGABRT: hello", {}),
        ("other loss", "measured", {"size": "mini"}),  # random weights are compared by ids alone
        ("other ids", OTHER_IDS, {"size": "mini"}),
        ("other ids", OTHER_IDS, {"suite": "memory"}),
        ("other ids", "measured", {"suite": "scaling"}),  # of different sizes
    ],
)
def test_who_cannot_be_measured_has_a_reason_and_no_figures(way, status, changes, bench):
    by_contender = rows(with_ways("dynamic", way, **changes), bench)
    assert by_contender[way]["status"] == status
    assert ("samples" in by_contender[way]) == (status == "measured")
    assert by_contender["dynamic"]["status"] == "measured"


def test_nothing_is_believed_without_our_own_answer_and_if_a_library_is_missing_the_next_baseline_is_taken(bench):
    by_contender = rows(row(contenders=(dataclasses.replace(OURS, way="cannot"), THEIRS)), bench)
    assert by_contender["bert_tf"]["status"] == "failed: no such way: try another"
    assert by_contender["theirs"]["status"] == "not comparable: bert_tf gave no answer to compare with"
    by_contender = results.compare(row(contenders=(OURS, MISSING)), bench)
    assert (by_contender["rows"][1]["status"], by_contender["baseline"]) == ("missing: not here", "bert_tf")


def test_each_takes_its_best_batch_size_or_its_own(bench):
    tried = row(suite="predict", try_batch_sizes=(8, 16, 32))
    assert {measured["batch_size"] for measured in rows(tried, bench).values()} == {16}
    by_default = dataclasses.replace(tried, contenders=(dataclasses.replace(OURS, batch_size=AUTOMATIC), THEIRS))
    assert [measured["batch_size"] for measured in rows(by_default, bench).values()] == [AUTOMATIC, 16]


def test_start_and_memory_are_those_of_fresh_processes_and_curves_of_single_steps(bench):
    suites = ("start", "memory", "whole", "curves")
    start, memory, whole, curves = (rows(row(suite=suite), bench)["bert_tf"] for suite in suites)
    assert len(start["samples"]) == 3
    assert 0.0 < start["lowest"] < start["highest"]
    assert memory["samples"] == [110.0] * 3
    assert whole["samples"] == [20.0] * 3
    assert len(curves["samples"]) == 50
    assert curves["samples"][:2] == [pytest.approx(0.699), pytest.approx(0.698)]


@pytest.mark.parametrize(
    ("requirement", "changes", "median", "held"),
    [
        (SPEED, {}, 2.0, True),
        (dataclasses.replace(SPEED, bound=2.1), {}, 2.0, False),
        (Requirement("memory", 1.0, "bert_tf", against="theirs", at_least=False), {"suite": "memory"}, 1.0, True),
        (Requirement("losses", 1e-4, "bert_tf", kind="difference", at_least=False), {"suite": "curves"}, 0.0, True),
        (Requirement("share", 0.7, "bert_tf", kind="share"), {}, pytest.approx(1e-6, abs=1e-3), False),
        (Requirement("fastest", 1.8, "bert_tf", kind="fastest"), {"contenders": (*ROW.contenders, FASTER)}, 0.5, False),
        (SPEED, {"contenders": (OURS, MISSING)}, "theirs: missing: not here", None),
        (dataclasses.replace(SPEED, contender="bert_tf, new"), {}, "bert_tf, new: not measured", None),  # the record is older
    ],
)
def test_a_requirement_is_held_missed_or_not_measured(requirement, changes, median, held, bench, monkeypatch):
    judged = row(requirements=(requirement,), **changes)
    monkeypatch.setattr(report, "COMPARISONS", (judged,))
    [verdict] = report.judge([results.compare(judged, bench)])
    assert (verdict["note" if held is None else "median"], verdict["held"]) == (median, held)
    assert verdict["required"] == f"{'at least' if requirement.at_least else 'at most'} {requirement.bound:.3g}"


def test_a_ratio_beside_that_of_another_comparison(bench, monkeypatch):
    ratio = Requirement("as there", 0.8, "bert_tf", kind="beside", against="theirs", beside="second")
    here = row(requirements=(ratio,))
    monkeypatch.setattr(report, "COMPARISONS", (here, SECOND))
    measured = results.compare(here, bench)
    [verdict] = report.judge([measured, results.compare(SECOND, bench)])
    assert (verdict["median"], verdict["held"]) == (1.0, True)
    [verdict] = report.judge([measured])
    assert (verdict["held"], verdict["note"]) == (None, "the other side of it was not measured")


def test_a_comparison_may_have_threads_of_its_own(bench):
    assert [Stage(row(threads=threads), bench).threads for threads in (None, 4)] == [1, 4]


def test_every_requirement_of_the_table_is_listed():
    verdicts = report.judge([])
    assert len(verdicts) == sum(len(compared.requirements) for compared in COMPARISONS)
    assert {verdict["note"] for verdict in verdicts} == {"not asked for"}


def test_the_report_names_machine_command_and_verdicts(bench, tmp_path):
    memory = dataclasses.replace(with_ways("dynamic", suite="memory", size="mini"), name="fake memory")
    written = run(bench, tmp_path, with_ways("dynamic", "other ids"), memory, command="python -m bert_tf benchmark")
    assert written["finished"] is True
    assert written["comparisons"][0]["measured"]["machine"]["cores"] >= 1
    text = (tmp_path / "results.md").read_text()
    for part in (
        "    python -m bert_tf benchmark\n",
        "fake 1.0",
        "## By CPU model",
        "| other ids |",
        "not comparable",
        "float32 50.",
    ):
        assert part in text
    assert "not finished" not in text


def test_a_picture_is_drawn_of_what_is_scaled_alone(bench, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(plot, "draw_scaling", lambda _, comparisons: drawn.append(len(comparisons)))
    run(bench, tmp_path, row(name="scaling-batch", suite="scaling"), ROW)
    assert drawn == [1]


def test_an_interrupted_run_leaves_what_it_has_measured(bench, tmp_path, monkeypatch):
    original = results.compare

    def compare(comparison, bench):
        if comparison.name == "second":
            raise KeyboardInterrupt
        return original(comparison, bench)

    monkeypatch.setattr(results, "compare", compare)
    with pytest.raises(KeyboardInterrupt):
        run(bench, tmp_path, ROW, SECOND)
    written = read(tmp_path)
    assert ([entry["name"] for entry in written["comparisons"]], written["finished"]) == (["fake"], False)
    assert "not finished" in report.to_markdown([written])


def test_a_later_run_keeps_what_it_does_not_measure_again_and_replaces_a_damaged_record(bench, tmp_path):
    run(bench, tmp_path, ROW, SECOND, command="first command")
    written = run(bench, tmp_path, SECOND, command="second command")
    commands = {comparison["name"]: comparison["measured"]["command"] for comparison in written["comparisons"]}
    assert commands == {"fake": "first command", "second": "second command"}
    [path] = (tmp_path / "results").iterdir()
    path.write_text("{")
    assert [comparison["name"] for comparison in run(bench, tmp_path, ROW)["comparisons"]] == ["fake"]


def test_each_cpu_model_has_a_record_and_a_column(bench, tmp_path, monkeypatch):
    monkeypatch.setattr(report, "COMPARISONS", (TRAINING,))
    for model, commit in (("17", 1), ("43", 4), ("44", 4)):
        monkeypatch.setattr(records, "cpu", lambda model=model: {"name": "Some CPU", "family": "6", "model": model})
        when = {"date": f"2026-01-01T00:00:{model}", "commit": f"abcdef{commit}"}
        monkeypatch.setattr(records, "when", lambda when=when: when)
        results.run((TRAINING,), bench, tmp_path, command="c", data="d")
    names = [path.name for path in sorted((tmp_path / "results").iterdir())]
    assert names == [f"some-cpu-6-{model}.json" for model in (17, 43, 44)]
    text = (tmp_path / "results.md").read_text()
    first, *others = (f"Some CPU, family 6, model {model}" for model in (17, 43, 44))
    assert f"| {first}, not measured since abcdef1 | {', abcdef4 | '.join(others)}, abcdef4 |" in text  # the latest commit's
    assert "| training against transformers, dynamic padding | at least 1.8 | 2 | 2 | 2 |" in text

"""Runs of a sweep on its page: what is read, drawn and said of them."""

import json
import random
import sys
from unittest import mock

import pytest

from bert_tf.extensions.report import charts, page, run_files
from bert_tf.extensions.sweep import panel, trials
from tests.extensions.report import example
from tests.extensions.report.drawn import picture, texts

pytestmark = pytest.mark.usefixtures("_pictures_drawn_once")


@pytest.fixture(autouse=True)
def _few_trees(monkeypatch):
    """Forests that are grown in a moment, and see what matters all the same."""
    monkeypatch.setattr(trials, "_TREES", 10)


def write(folder, name, score=None, *, task="MRPC", metric="accuracy", error=None, pruned=False, **varying):
    metrics = {} if score is None else {"eval_accuracy": 0.5, f"eval_{metric}": score, "eval_loss": 0.9}
    told = {} if metric == "bleu" else {"metric": f"eval_{metric}"}  # by another program
    content = {"name": name, "task": task, "varying": varying, "metrics": metrics, "error": error, "pruned": pruned, **told}
    example.write_json(folder / "results" / f"{name}.json", content)
    if not error:
        example.begun(folder / name, task_name=task)


@pytest.fixture
def folder(tmp_path):
    """A search of twelve runs, whose score depends on the rate alone; one was stopped early, one failed."""
    folder, values = tmp_path / "search", random.Random(1)
    for number in range(12):
        varying = {"learning_rate": 10 ** (-5 + number / 6), "train_batch_size": values.choice([8, 16, 32])}
        write(folder, f"MRPC-trial{number}", 0.6 + number / 100, **varying)
    write(folder, "MRPC-trial12", 0.99, pruned=True, learning_rate=1e-5, train_batch_size=8)
    write(folder, "MRPC-trial13", error="no memory", learning_rate=1e-5, train_batch_size=8)
    (folder / "sweep.tsv").write_text("")
    return folder


def only(folder):
    (of_task,) = trials.read_trials(folder)
    return of_task


def test_runs_are_read_in_the_order_in_which_they_were_drawn(folder):
    (folder / "results" / "damaged.json").write_text("{")
    of_task = only(folder)
    assert [one.number for one in of_task.every] == list(range(14))
    assert [one.state for one in of_task.every[11:]] == ["done", "pruned", "failed"]
    assert (of_task.metric, of_task.settings, len(of_task.done)) == ("accuracy", ["learning_rate", "train_batch_size"], 12)


def test_the_score_is_the_metric_that_selects_and_tasks_are_apart(folder, tmp_path):
    write(folder, "CoLA-trial0", 0.3, task="CoLA", metric="matthews_correlation", learning_rate=1.0)
    scores = [("CoLA", "matthews_correlation", 0.3), ("MRPC", "accuracy", 0.6)]
    assert [(one.task, one.metric, one.score(one.every[0])) for one in trials.read_trials(folder)] == scores
    write(tmp_path, "x-trial0", 0.3, task="of another program", metric="bleu")
    assert only(tmp_path).metric == "accuracy"  # of which more is better


def test_history_has_the_best_of_runs_that_are_done(folder):
    spec = panel.history(only(folder))
    line, *marks, _ = spec["layer"]
    assert line["data"]["values"][-2:] == [{"x": 11, "y": 0.71}, {"x": 13, "y": 0.71}]
    states = [f"datum.state === '{state}'" for state in ("done", "pruned", "failed")]
    assert [mark["transform"][0]["filter"] for mark in marks] == states
    circles = [path for path in picture(spec).iter() if path.get("aria-roledescription") == "point" or "A" in path.get("d", "")]
    assert len(circles) == 13  # the failed one is a cross


def test_a_line_for_each_run_that_is_done_and_the_best_on_top(folder):
    spec = panel.parallel(only(folder))
    rows = spec["data"]["values"]
    assert [row["name"] for row in rows] == [f"MRPC-trial{number}" for number in range(12)]
    assert [row["level"] for row in rows] == sorted(row["level"] for row in rows)
    assert {rows[0]["level"], rows[-1]["level"]} == {0, 4}
    assert [row["y"][0] for row in rows[:2]] == pytest.approx([0, 1 / 11], abs=1e-3)  # the rate's axis is logarithmic
    labels = {"1e-5", "2e-5", "5e-5", "1e-4", "8", "16", "32", "learning_rate", "accuracy"}
    assert labels <= set(texts(spec))
    for number in range(11):
        write(folder, f"MRPC-trial{number}", 0.71, learning_rate=10.0**-number, train_batch_size=number % 2)
    assert {row["level"] for row in panel.parallel(only(folder))["data"]["values"]} == {4}  # equal scores


def test_of_many_runs_the_best_have_a_line(folder, monkeypatch):
    monkeypatch.setattr(panel, "_MOST_LINES", 5)
    (section,) = panel.sections(folder, named=False)
    chart = section["charts"][-1]
    assert [row["name"] for row in chart.spec["data"]["values"]] == [f"MRPC-trial{number}" for number in range(7, 12)]
    assert chart.caption.endswith("The best 5.")


def test_the_best_score_stands_beside_its_held_out_one(folder):
    path = folder / "results" / "MRPC-trial11.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "metrics": {**content["metrics"], "held_out_accuracy": 0.65}}))
    assert "Best accuracy: 0.7100, held out 0.6500 (MRPC-trial11: " in panel.note(only(folder))


@pytest.fixture
def grid(tmp_path):
    """Two rates with three seeds each: one run collapsed, one failed."""
    folder = tmp_path / "grid"
    for rate, scores in ((2e-5, (0.5, 0.62, 0.64)), (5e-5, (0.7, 0.72, None))):
        for seed, score in enumerate(scores):
            name = f"RTE-learning_rate={rate:.4g}-seed{seed}"
            error = "no memory" if score is None else None
            write(folder, name, score, task="RTE", error=error, learning_rate=rate)
            path = folder / "results" / f"{name}.json"
            collapsed = "all predictions are no" if score == 0.5 else None
            example.write_json(path, {**json.loads(path.read_text()), "collapsed": collapsed})
            if score:
                example.finished(folder / name, accuracy=score, seed=seed, learning_rate=rate)
    (folder / "sweep.tsv").write_text("")
    return folder


def test_settings_stand_best_first_with_their_seeds(grid):
    of_task = only(grid)
    assert [(one.varying["learning_rate"], one.mean, one.sd, one.marks) for one in of_task.ranked] == [
        (5e-5, pytest.approx(0.71), pytest.approx(0.0141, abs=1e-4), ["1 failed"]),
        (2e-5, pytest.approx(0.5867, abs=1e-4), pytest.approx(0.0757, abs=1e-4), ["1 collapsed"]),
    ]
    note = "6 runs, 1 failed, 1 collapsed. Best accuracy: 0.7100 (mean of 2 of 3 runs: learning_rate=5e-05)."
    assert panel.note(of_task) == note


def test_a_mean_of_zero_is_a_score(tmp_path):
    for name, score in (("none", None), ("below", -0.5), ("zero", 0.0)):
        write(tmp_path, name, score, error=None if score is not None else "no memory", learning_rate=name)
    assert [one.varying["learning_rate"] for one in only(tmp_path).ranked] == ["zero", "below", "none"]


def test_the_page_of_a_sweep_has_the_settings_first_and_names_those_of_each_mean(grid):
    text = rendered(grid)
    order = [text.index(f'id="{name}"') for name in ("search", "results", "mistakes", "runs", "learning", "speed")]
    assert order == sorted(order)
    assert text.index('<th scope="row" data-name="learning_rate">5e-05') < text.index('data-name="learning_rate">2e-05')
    for rate, mean, count in (("5e-05", 0.71, 2), ("2e-05", 0.5867, 3)):
        row = f'mean of {count} seeds<small class="soft">RTE-learning_rate={rate}</small></th><td class="n">{mean:.4f}'
        assert row in text
    assert "<u style=" in text

    curves = [group.name for group in run_files.groups(run_files.read_runs([grid]))]
    assert curves == ["RTE-learning_rate=2e-05", "RTE-learning_rate=5e-05"]


@pytest.mark.parametrize(
    ("values", "ticks", "places"),
    [
        ([8, 32, 16, 8], ["8", "16", "32"], [0, 1, 0.5, 0]),
        (["lamb", "adamw"], ["adamw", "lamb"], [1, 0]),
        ([True, False], ["False", "True"], [1, 0]),
        ([1, "x"], ["1", "x"], [0, 1]),
        ([0.01, 0.05, 0.1, 0.12, 0.15, 0.18, 0.21], ["0.05", "0.1", "0.15", "0.2"], [0, 0.2, 0.45, 0.55, 0.7, 0.85, 1]),
        ([10.0**place for place in range(-6, 3)], ["1e-6", "1e-4", "0.01", "1", "100"], [place / 8 for place in range(9)]),
    ],
)
def test_axes(values, ticks, places):
    axis = panel.axis("some_setting", values)
    assert [said for _, said in axis.ticks] == ticks
    assert axis.places == pytest.approx(places, abs=1e-3)


def test_many_or_long_choices_are_thinned_and_cut():
    axis = panel.axis("gradient_accumulation_steps", [f"{number}{'x' * 100}" for number in range(90)])
    assert len(axis.ticks) <= 12
    assert max(len(said) for _, said in axis.ticks) <= 24
    assert axis.title == ["gradient_", "accumulation_", "steps"]


def test_the_setting_that_decides_is_the_most_important(folder):
    importance = trials.importance(only(folder))
    assert (importance.runs, next(iter(importance.shares))) == (12, "learning_rate")
    assert sum(importance.shares.values()) == pytest.approx(1)
    assert importance.shares["learning_rate"] > 0.8


def test_importance_is_unknown_from_few_runs_equal_scores_or_noise(folder):
    def rewrite(score):
        for number in range(20):
            write(folder, f"MRPC-trial{number}", score(), learning_rate=number, train_batch_size=number % 3)

    for number in range(2, 5):
        (folder / "results" / f"MRPC-trial{number}.json").unlink()
    assert trials.importance(only(folder)) is None
    rewrite(lambda: 0.7)
    assert trials.importance(only(folder)) is None
    rewrite(random.Random(2).random)
    assert trials.importance(only(folder)) is None


def rendered(*folders):
    """A page with empty pictures."""
    with mock.patch.object(charts, "svg", return_value="<svg></svg>"):
        return page.render(run_files.read_runs(folders))


def test_the_page_has_the_search_without_optuna(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    text = rendered(folder)
    assert all(f"<h3>{title}</h3>" in text for title in ("Accuracy by run", "Importance of settings", "Settings and accuracy"))
    assert "14 runs, 1 stopped early, 1 failed. Best accuracy: 0.7100 (MRPC-trial11: learning_rate=0.000681" in text
    assert 'href="#search"' in text


def test_the_page_of_a_grid_has_no_history_and_of_one_setting_nothing(tmp_path):
    for folder, settings in ((tmp_path / "grid", 2), (tmp_path / "line", 1)):
        for number in range(4):
            varying = {"learning_rate": number % 2 + 1.0, "train_batch_size": number // 2}
            write(folder, f"MRPC-{number}", number / 10, **dict(list(varying.items())[:settings]))
        (folder / "sweep.tsv").write_text("")
    text = rendered(tmp_path / "grid")
    assert "Settings and accuracy</h3>" in text
    assert "by run</h3>" not in text
    line = rendered(tmp_path / "line")
    assert 'id="search"' in line
    assert "Settings and accuracy</h3>" not in line
    (tmp_path / "grid" / "sweep.tsv").unlink()  # a folder of ordinary runs
    assert 'id="search"' not in rendered(*(tmp_path / "grid" / f"MRPC-{number}" for number in range(4)))


def test_each_of_several_sweeps_has_its_name(folder, tmp_path):
    (tmp_path / "other").mkdir()
    for path in folder.iterdir():
        path.rename(tmp_path / "other" / path.name) if path.name.endswith("trial0") else None
    for number in (1, 2):
        write(tmp_path / "other", f"MRPC-trial{number}", 0.5, learning_rate=1.0 * number)
    (tmp_path / "other" / "sweep.tsv").write_text("")
    text = rendered(folder, tmp_path / "other")
    assert "<h3>search, MRPC</h3>" in text
    assert "<h3>other, MRPC</h3>" in text


def test_no_text_of_a_result_is_markup(folder):
    mark = "</script><img src=x onerror=alert(1)>"
    for path in (folder / "results").iterdir():
        content = json.loads(path.read_text())
        content["varying"] = {mark: content["varying"]["learning_rate"], f"{mark}.[0]": mark + path.stem}
        content["task"] = mark
        path.write_text(json.dumps(content))
    text = page.render(run_files.read_runs([folder]))
    assert "Settings and accuracy</h3>" in text
    assert "<img" not in text

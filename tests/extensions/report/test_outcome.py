"""What runs reached, as a page shows it, and how far they came."""

import dataclasses
import json
import tracemalloc

import pytest

from bert_tf.extensions.report import outcome, page, run_files
from tests.extensions.report import example

pytestmark = pytest.mark.usefixtures("_pictures_drawn_once")

KEY = ("RTE", "dev", "accuracy")


def runs(tmp_path, *accuracies):
    return run_files.read_runs([example.finished(tmp_path / f"{a}", accuracy=a) for a in accuracies])


REACHED = {"metric": "eval_accuracy", "target": 0.8, "step": 120, "value": 0.81, "seconds": 93.0, "training_seconds": 80.0}


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (REACHED, "accuracy of at least 0.8: first reached at step 120, after 1 min 33 s (1 min 20 s of it in training steps)"),
        ({**REACHED, "seconds": None}, "accuracy of at least 0.8: first reached at step 120"),
        ({"metric": "eval_loss", "target": 0.4, "step": None}, "loss of at most 0.4: not reached"),
        ({"metric": "eval_loss"}, None),
        ("soon", None),
        (None, None),
    ],
)
def test_time_to_a_target(tmp_path, entry, text):
    (run,) = runs(tmp_path, 0.75)
    run.own.results["time_to_target"] = entry
    assert outcome.time_to_target(run) == text
    if entry == REACHED:
        assert f'<p class="target">{text}' in page.render([run])


def test_score_with_its_interval_on_a_scale_that_several_runs_share(tmp_path):
    (run,) = runs(tmp_path, 0.75)
    ((key, (score,)),) = outcome.scores([run]).items()
    assert key == KEY
    assert (score.value, score.interval, score.examples) == (0.75, pytest.approx((0.65, 0.85)), 8)
    assert score.scale.place(0.75) == 75
    del run.own.results["splits"]["dev"]["intervals_95"]
    assert outcome.scores([run])[KEY][0].interval is None
    first, second = outcome.scores(runs(tmp_path, 0.5, 0.7))[KEY]
    # From 0.4 to 0.8, and a twentieth more at either end.
    assert (first.value, second.value) == (0.7, 0.5)  # best first
    assert first.scale == second.scale == pytest.approx((0.38, 0.82))
    assert first.scale.place(0.6) == pytest.approx(50)


def test_results_of_other_rows_have_tables_of_their_own(tmp_path):
    read = runs(tmp_path, 0.5, 0.7, 0.9)
    for run, digest in zip(read, ("a" * 64, "b" * 64, "a" * 64)):
        run.own.splits["dev"].update(examples_sha256=digest, file=f"{digest[0]}.csv")
    tables = {split: [row.value for row in rows] for (_, split, _), rows in outcome.scores(read).items()}
    assert tables == {"dev (rows aaaaaaaa)": [0.9, 0.5], "dev (rows bbbbbbbb)": [0.7]}
    assert "accuracy on RTE dev (rows bbbbbbbb), 8 examples of b.csv" in page.render(read)


def test_scale_of_a_correlation_has_a_negative_half_and_what_is_to_be_small_none(tmp_path):
    (run,) = runs(tmp_path, -0.5)
    run.own.splits["dev"]["perplexity"] = 965.7
    (score,) = outcome.scores([run])[KEY]
    assert (score.scale, score.scale.place(-0.5)) == ((-1, 1), 25)
    (score,) = outcome.scores([run])[KEY[:2] + ("perplexity",)]
    assert score.scale[0] == score.scale[1]
    assert "965.7" in page.render([run])


def test_confusion_by_hand_and_many_labels_by_frequency():
    shown = outcome.confusion({"labels": ["no", "yes", "never"], "confusion": [[3, 1, 0], [0, 4, 0], [0, 0, 0]]})
    assert [[tuple(cell.values()) for cell in row] for row in shown["rows"]] == [
        [(3, 0.75, True), (1, 0.25, False), (0, 0.0, False)],
        [(0, 0.0, False), (4, 1.0, True), (0, 0.0, False)],
        [(0, 0.0, False), (0, 0.0, False), (0, 0.0, True)],
    ]
    assert outcome.confusion({"labels": [*range(12)], "confusion": [[1] * 12] * 12})["rows"]
    counts = [[0] * 20 for _ in range(20)]
    counts[3][4], counts[7][2], counts[5][5] = 2, 9, 50
    shown = outcome.confusion({"labels": [f"l{place}" for place in range(20)], "confusion": counts})
    assert not shown["rows"]
    frequent = [(label, predicted, cell["count"]) for label, predicted, cell in shown["frequent"]]
    assert frequent == [("l7", "l2", 9), ("l3", "l4", 2)]
    assert shown["kinds"] == 2


def test_the_most_frequent_label_by_hand():
    details = {"labels": ["no", "yes", "never"], "confusion": [[3, 1, 0], [0, 4, 2], [0, 0, 0]], "examples": 10}
    label, values = outcome.majority(details)
    assert (label, values["accuracy"], values["macro_f1"]) == ("yes", 0.6, pytest.approx(0.75 / 2))
    two = {"labels": ["no", "yes"], "confusion": [[3, 1], [2, 4]], "examples": 10}
    assert outcome.majority(two)[1]["f1"] == pytest.approx(0.75)
    assert outcome.majority({**two, "confusion": [[5, 1], [2, 2]]})[1]["f1"] == 0.0
    assert outcome.majority({**details, "examples": 4}) is None  # the table counts words, not examples
    assert outcome.majority({**details, "confusion": 3}) is None


@pytest.mark.parametrize(
    ("confusion", "sentence"),
    [
        ([[3, 1], [1, 3]], None),
        ([[0, 2], [0, 6]], "Not more accurate than always predicting yes, whose accuracy is 0.7500."),
        ([[0, 3], [0, 5]], "Not clearly better than always predicting yes: its accuracy of 0.6250 is inside the interval."),
    ],
)
def test_a_run_that_only_predicts_the_most_frequent_label_says_so(tmp_path, confusion, sentence):
    (run,) = runs(tmp_path, 0.7)
    run.own.splits["dev"]["confusion"] = confusion
    text = page.render([run])
    assert ('class="warn"' in text) is (sentence is not None)
    assert sentence is None or sentence in text


@pytest.mark.parametrize("counts", [None, [[1, 2]], [[1], [2, 3]], "x", [[1, "a"], [2, 3]]])
def test_damaged_confusion_is_none(counts):
    assert outcome.confusion({"labels": ["no", "yes"], "confusion": counts}) is None


def test_wrong_examples_of_a_split(tmp_path):
    (run,) = runs(tmp_path, 0.75)
    (one,) = outcome.wrong(run.own, "dev", 5)
    assert (one["label"], one["predicted"], one["sure"]) == ("yes", "no", "98.7% sure")
    assert one["texts"][1] == [("a second text", "")]
    assert outcome.wrong(run.own, "dev_other", 5) == outcome.wrong(run.own, "dev", 0) == []


def wrong(tmp_path, **line):
    (run,) = runs(tmp_path, 0.75)
    (one,) = outcome.wrong(dataclasses.replace(run.own, wrong=[{"split": "dev", **line}]), "dev", 5)
    return one


def test_wrong_numbers_say_how_far_off_and_several_labels_are_listed(tmp_path):
    one = wrong(tmp_path, text_a="a", label=4.0, predicted=1.5, confidence=None, error=-2.5)
    assert (one["label"], one["predicted"], one["sure"], len(one["texts"])) == ("4", "1.5", "off by -2.50", 1)
    one = wrong(tmp_path, label=["a", "b"], predicted=[])
    assert (one["label"], one["predicted"]) == ("a, b", "none")


def marked(tmp_path, text, marks):
    return wrong(tmp_path, text_a=text, text_b="who?", label="a", predicted="b", marks=marks)["texts"]


def test_marks_are_shown_in_the_first_text_and_of_a_long_one_what_is_near_them(tmp_path):
    first, second = marked(tmp_path, "Ann met Bob.", [[8, 11, "predicted"], [0, 3, "label"]])
    assert first == [("Ann", "label"), (" met ", ""), ("Bob", "predicted"), (".", "")]
    assert second == [("who?", "")]
    assert outcome.cut("x" * 800) == "x" * 700 + " … (100 more characters)"
    first, _ = marked(tmp_path, "x" * 5000 + "Ann" + "y" * 5000, [[5000, 5003, "both"]])
    assert [(len(piece), mark) for piece, mark in first] == [(353, ""), (3, "both"), (353, "")]
    assert (first[0][0][:4], first[2][0][-4:]) == (" … x", "y … ")


@pytest.mark.parametrize(
    "marks", ["x", [[0, 99, "label"]], [[0, 5, "label"], [3, 6, "label"]], [[0, 1, "<b>"]], [[0, 1]], [None]]
)
def test_damaged_marks_are_left_out(tmp_path, marks):
    assert marked(tmp_path, "Ann met Bob.", marks)[0] == [("Ann met Bob.", "")]


EXPLANATION = {
    "split": "dev", "id": "dev-3", "label": "no", "words": ["<b>", "second"], "scores": [-1.0, 4.0], "segments": [0, 1],
}  # fmt: skip


def explained(tmp_path, **changed):
    (run,) = runs(tmp_path, 0.75)
    own = dataclasses.replace(run.own, explanations=[{**EXPLANATION, **changed}])
    return dataclasses.replace(run, evaluated=[own])


def test_words_of_an_explained_mistake_are_coloured_instead_of_its_texts(tmp_path):
    run = explained(tmp_path)
    (one,) = outcome.wrong(run.own, "dev", 5)
    assert (one["texts"], one["scored"]) == ([], [[("<b>", -0.25)], [("second", 1.0)]])
    text = page.render([run])
    assert "Words that raise <b>no</b> are green" in text
    assert '<mark style="background: rgba(220, 60, 50, 0.12)" title="-0.25">&lt;b&gt;</mark>' in text
    assert '<mark style="background: rgba(40, 160, 60, 0.50)" title="+1.00">second</mark>' in text


@pytest.mark.parametrize("changed", [{"id": "dev-4"}, {"split": "x"}, {"words": 3}, {"scores": ["a", 1]}, {"segments": []}])
def test_without_an_explanation_of_it_a_mistake_has_its_texts(tmp_path, changed):
    (one,) = outcome.wrong(explained(tmp_path, **changed).own, "dev", 5)
    assert (len(one["texts"]), one["scored"]) == (2, [])


PANEL = {"title": "By length", "columns": ["words", "F1"], "rows": [["1 to 5", 0.5]], "note": ""}


def test_panels_are_those_that_are_whole():
    bad = [7, {}, {**PANEL, "rows": [["1"]]}, {**PANEL, "rows": [3]}, {**PANEL, "title": None}]
    assert outcome.panels({"panels": [PANEL, *bad]}) == [{**PANEL, "left_out": 0}]
    assert outcome.panels({}) == outcome.panels({"panels": 3}) == []


def test_a_page_of_many_labels_is_bounded_and_says_what_is_left_out(tmp_path):
    names = [f"label {place}" for place in range(1000)]
    counts = [[int((row + column) % 5 == 0) for column in range(1000)] for row in range(1000)]
    rows = [{"label": name, "precision": 0.5, "recall": 0.5, "f1": 0.5, "support": 3} for name in names]
    content = example.results()
    panel = {**PANEL, "rows": [[name, 0.5] for name in names]}
    content["splits"]["dev"].update(labels=names, confusion=counts, per_class=rows, panels=[panel])
    example.write_json(example.finished(tmp_path / "run") / "eval_results.json", content)
    (run,) = run_files.read_runs([tmp_path / "run"])
    tracemalloc.start()
    outcome.confusion(content["splits"]["dev"])
    assert tracemalloc.get_traced_memory()[1] < 60e6  # 8 MB for each array of counts; a dictionary for each count has 200 MB
    tracemalloc.stop()
    text = page.render([run])
    assert "The most frequent confusions of 1000 labels, 15 of 199800" in text
    assert "By label, the first 50; 950 more are in eval_results.json" in text
    assert "950 more rows are in eval_results.json." in text


def figures(*folders):
    (group,) = run_files.groups(run_files.read_runs(folders))
    return {name: (value, *notes) for name, value, notes in outcome.headline(group)}


def test_run_has_its_own_figures_and_not_those_of_other_tasks(tmp_path):
    folder = example.finished(tmp_path)
    example.write_json(folder / "AX" / "eval_results.json", example.results(0.1))
    shown = figures(folder)
    assert shown == {
        "accuracy, dev": ("0.7500", "95 %: 0.650 to 0.850", "always no: 0.500"),
        "loss, dev": ("0.5500",),
        "time in training steps": ("6 s",),
    }


def test_a_run_is_compared_with_the_one_that_it_replaced(tmp_path):
    folder = example.finished(tmp_path)
    earlier = {"task_name": "RTE", "splits": {"dev": {"accuracy": 0.7, "examples": 8}}}
    example.write_json(folder / "run_config.json", {**example.record(), "replaced": earlier})
    assert figures(folder)["accuracy, dev"][-1] == "last run: 0.7000 (+0.0500)"
    others = [{"accuracy": 0.7, "examples": 9}, {"accuracy": 0.7, "examples": 8, "examples_sha256": "other"}]
    for change in ({"task_name": "MRPC"}, *({"splits": {"dev": other}} for other in others), {"splits": 3}):
        example.write_json(folder / "run_config.json", {**example.record(), "replaced": {**earlier, **change}})
        assert len(figures(folder)["accuracy, dev"]) == 3


def test_series_has_means_and_their_ends_over_the_seeds_that_are_finished(tmp_path):
    for seed, accuracy in ((1, 0.5), (2, 0.7), (3, 0.9)):
        example.finished(tmp_path / f"seed-{seed}", seed=seed, accuracy=accuracy)
    shown = figures(tmp_path)
    assert shown["accuracy, dev"] == ("0.7000", "mean of 3: 0.5000 to 0.9000")
    assert shown["loss, dev"] == ("0.5500", "mean of 3: 0.5500 to 0.5500")
    assert shown["time in training steps"] == ("6 s", "a seed")
    (tmp_path / "seed-3" / "eval_results.json").unlink()
    assert figures(tmp_path)["accuracy, dev"] == ("0.6000", "mean of 2: 0.5000 to 0.7000")


@pytest.mark.parametrize(
    ("results", "metrics", "schedule", "sentence"),
    [
        (example.results(), None, {"steps": 20}, "Trained and evaluated at step 20 of 20."),
        (
            *({**example.results(), "global_step": 10}, None, {"steps": 20}),
            "Evaluated at step 10, the best checkpoint; trained to step 20 of 20.",
        ),
        (example.results(), None, {"steps": 15, "phase2_steps": 5}, "Trained and evaluated at step 20 of 20."),
        (None, None, {"steps": 20}, "Trained to the last step, 20, and not evaluated"),
        (None, None, {"steps": 30}, "Not finished: the last logged step is 20 of 30, and there is no result."),
        (None, None, {"steps": 30, "stopped_at": 20}, "Stopped early at step 20 of 30, and not evaluated"),
        (None, "", {"steps": 20}, "Nothing is logged yet"),
        (None, '{"step": 1', {"steps": 20}, "Nothing is logged yet"),
    ],
)
def test_how_far_a_run_came(tmp_path, results, metrics, schedule, sentence):
    folder = example.finished(tmp_path)
    example.write_json(folder / "run_config.json", {**example.record(), "schedule": schedule})
    (folder / "eval_results.json").write_text(json.dumps(results))
    if metrics is not None:
        (folder / "metrics.jsonl").write_text(metrics)
    assert outcome.state(run_files.read_runs([folder])[0]).startswith(sentence)

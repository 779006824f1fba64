"""The model card of a run: every family, any label, and what its files may lack."""

import json
import sys

import pytest
import yaml

import bert_tf
from bert_tf.batch.trained import digest
from bert_tf.errors import OutputError
from bert_tf.extensions.card.card import is_edited, plain
from tests.extensions.export import runs
from tests.extensions.report import example

HOSTILE = [
    "a|b",
    "http://f",
    "www.f.org",
    "me@f.org",
    "x\n---\n# y",
    "`c` *d*",
    "<script>alert(1)</script>",
    "[e](http://f)",
    "",
]
PRETRAINED = {"task_name": "pretraining", "kind": "pretraining", "labels": [], "nsp": True, "sampled_softmax": 0}
QUALITY = {"ece": 0.125, "nll": 0.75, "brier": 0.5}
PIPELINES = {
    **dict.fromkeys(("pairs", "number", "several labels"), "text-classification"),
    **dict.fromkeys(("similarity", "contrastive"), "sentence-similarity"),
    "answers": "question-answering",
    "tags": "token-classification",
    "options": "multiple-choice",
    "pretraining": "fill-mask",
}


def write_run(folder, record=runs.MRPC, *, split=None, name="dev", **more):
    """Writes a run that was evaluated at its only step."""
    runs.write_run(folder, record)
    split = {"accuracy": 0.75, "intervals_95": {"accuracy": [0.5, 0.9]}, "examples": 8, "file": "m.csv", **(split or {})}
    example.write_json(folder / "eval_results.json", {"global_step": 7, "splits": {name: split}})
    recorded = json.loads((folder / "run_config.json").read_text())
    example.write_json(folder / "run_config.json", {**recorded, **more})
    return folder


def card(run, **settings):
    return bert_tf.write_card(run, **settings).read_text(encoding="utf-8")


def metadata(text):
    assert text.startswith("---\n")
    return yaml.safe_load(text.partition("\n---\n")[0][4:])


def section(text, title):
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("name", PIPELINES)
def test_every_family_has_a_card_with_valid_metadata_and_code(tmp_path, name):
    record = PRETRAINED if name == "pretraining" else runs.CASES[name].record
    text = card(runs.write_run(tmp_path / "run", record))
    block = metadata(text)
    assert (block["library_name"], block["pipeline_tag"]) == ("bert_tf", PIPELINES[name])
    assert "Not measured at step 7." in section(text, "Metrics")
    code = section(text, "How to use").partition("```python\n")[2].partition("\n```")[0]
    compile(code, "card", "exec")
    assert ("model.fill_mask(" if name == "pretraining" else "model.predict(") in code
    assert str(tmp_path) not in text


def test_the_code_of_the_card_runs_in_its_folder(tmp_path, monkeypatch):
    text = card(write_run(tmp_path / "run"))
    monkeypatch.chdir(tmp_path / "run")
    code = section(text, "How to use").partition("```python\n")[2].partition("\n```")[0]
    names = {}
    *lines, last = code.splitlines()
    exec("\n".join(lines), names)  # noqa: S102  (what a reader would paste)
    assert eval(last, names) in ("0", "1")  # noqa: S307
    names["model"].close()


@pytest.mark.parametrize("text", ["A box came late today.", "```\n# not a title \u202e <b> \\"])
def test_the_code_has_a_row_of_the_data_as_text(tmp_path, text):
    dev = tmp_path / "dev.jsonl"
    dev.write_text(json.dumps({"text": text, "label": "a|b"}) + "\n")
    command = f"python run_classifier.py --task_name=custom --dev_file={dev}"
    run = write_run(tmp_path / "run", {**runs.CLASSES, "labels": HOSTILE[:2], "texts": 1}, command=command)
    code = section(card(run), "How to use").partition("```python\n")[2].partition("\n```")[0]
    assert eval(code.partition("model.predict(")[2].rpartition(")[0].label")[0]) == [text]  # noqa: S307
    dev.unlink()
    assert "The parcel arrived late" in card(run)


def test_metrics_data_costs_and_limits_are_those_of_the_run(tmp_path):
    schedule, versions = {"train_examples": 40, "steps": 7}, {"bert_tf": "0.0.9", "tensorflow": "2.20.0"}
    run = write_run(tmp_path / "run", schedule=schedule, versions=versions, data_note="bundled sample")
    example.write_json(run / "timing.json", {"wall": {"seconds": 216.0}})
    text = card(run, license="mit", author="Ada", language="en,de")
    block = metadata(text)
    (result,) = block["model-index"][0]["results"]
    assert (block["license"], block["language"]) == ("mit", ["en", "de"])
    assert (result["dataset"]["split"], result["metrics"][0]["value"]) == ("dev", 0.75)
    assert "| dev (m.csv) | accuracy | 0.7500 | 0.5000 to 0.9000 | 8 |" in section(text, "Metrics")
    limits = section(text, "Limits")
    assert "24 word pieces" in limits
    assert "dev has only 8 examples, 12 % each" in limits
    assert "Data: bundled sample." in limits
    assert "not calibrated" in limits
    assert "- training examples: 40\n" in section(text, "Data")
    assert "| the whole command | 3 min 36 s |" in text
    assert "fine-tuned with bert_tf 0.0.9; step 7" in text
    assert "| tensorflow | 2.20.0 |" in text
    assert text.count("**TODO**") == 2  # use, and source of the data


@pytest.mark.parametrize(
    ("step", "details"), [(8, {"accuracy": 0.75}), (7, None), (7, {"accuracy": None}), (7, {"accuracy": "high"})]
)
def test_results_of_another_step_and_what_is_no_number_are_left_out(tmp_path, step, details):
    run = runs.write_run(tmp_path / "run", runs.MRPC)
    example.write_json(run / "eval_results.json", {"global_step": step, "splits": {"dev": details}})
    assert "Not measured at step 7." in card(run)


def test_labels_do_not_break_the_page(tmp_path):
    markdown_it = pytest.importorskip("markdown_it")
    rows = [{"label": label, "precision": 0.5, "recall": 0.5, "f1": 0.5, "support": 1} for label in HOSTILE]
    record = {**runs.CLASSES, "labels": HOSTILE}
    text = card(write_run(tmp_path / "run", record, split={"per_class": rows}), author="<b>\n---\n# A", license="a: b\n---")
    assert metadata(text)["license"] == "a: b ---"
    page = markdown_it.MarkdownIt("commonmark").enable("table").render(text.partition("\n---\n")[2])
    for shown in ("a|b", "x --- # y", "`c` *d*", "&lt;script&gt;alert(1)&lt;/script&gt;"):
        assert f"<td>{shown}</td>" in page
    for address in ("[e](http://f)", "http://f", "www.f.org", "me@f.org"):
        assert f"<td><code>{address}</code></td>" in page
    assert "<a " not in page
    assert (
        "Labels: a|b, <code>http://f</code>, <code>www.f.org</code>, <code>me@f.org</code>, x --- # y, `c` *d*, &lt;script&gt;"
        in page
    )
    assert ("<script>" in page, "<b>" in page) == (False, False)
    assert plain("a\0b\u202ec\ud800\r\nd") == "a\ufffdb\ufffdc\ufffd d"


@pytest.mark.parametrize("changed", [{}, {"checkpoint_sha256": "other"}])
def test_calibration_is_shown_before_and_after_if_it_is_of_these_weights(tmp_path, changed):
    run = write_run(tmp_path / "run")
    qualities = {"before": QUALITY, "after": {**QUALITY, "ece": 0.0625}, "fitted_on": {"examples": 204}, "reported_on": 204}
    decision = {"checkpoint_sha256": digest(str(run / "model.ckpt-7")), "temperatures": [1.5], "thresholds": [0.35]}
    example.write_json(run / "decision.json", {**decision, **qualities, **changed})
    text = card(run)
    assert ("| ECE | 0.1250 | 0.0625 |" in text, "not calibrated" in text) == (not changed, bool(changed))
    assert ("- `thresholds`: 1 0.350\n" in text, "`decision`" in text) == (not changed, False)
    assert ("divided by 1.5, fitted on 204 examples and measured on 204 others." in text) == (not changed)


def test_a_folder_of_averages_has_their_results_and_the_best_checkpoint_says_how_it_was_chosen(tmp_path):
    run = write_run(tmp_path / "run", name="dev (ema)")
    for name in ("ema", "best"):
        runs.write_run(run / name, runs.MRPC)
    assert "accuracy | 0.7500 |" in card(run / "ema")
    results = json.loads((run / "eval_results.json").read_text())  # the best checkpoint may be of another step
    example.write_json(run / "eval_results.json", {**results, "global_step": 5, "global_step_ema": 7})
    assert "accuracy | 0.7500 |" in card(run / "ema")
    text = card(run)  # of the best checkpoint, whose results are missing
    assert "Not measured" in text
    assert "chosen by its results on dev" in text
    assert (run / "MODEL_CARD.md").is_file()


def test_an_edited_card_is_not_replaced(tmp_path):
    run = write_run(tmp_path / "run")
    text = card(run)
    assert not is_edited(text)
    assert card(run, license="mit") == card(run, license="mit") != text
    (run / "MODEL_CARD.md").write_text(text.replace("**TODO**: who", "Ada"))
    with pytest.raises(OutputError, match="MODEL_CARD.md: was edited"):
        card(run)
    assert card(run, overwrite=True) == text


def test_it_prints_and_writes_elsewhere_and_leaves_damaged_files_out(tmp_path, monkeypatch, capfd):
    run = write_run(tmp_path / "run")
    with monkeypatch.context() as patch, open(1, "w", encoding="latin-1", closefd=False) as of_locale:
        patch.setattr(sys, "stdout", of_locale)
        bert_tf.write_card(run, output="-", author="Zo\u00eb")
    printed = capfd.readouterr().out
    assert printed.startswith("---\n")
    assert "Zo\u00eb" in printed
    assert not (run / "MODEL_CARD.md").exists()
    text = card(run / "model.ckpt-7", output=tmp_path / "card.md")
    assert ("In the folder of the model:" in text, 'bert_tf.load("model.ckpt-7")' in text) == (True, True)
    assert "In the folder of this card:" in card(run / "model.ckpt-7")
    for name in ("eval_results.json", "timing.json", "metrics.jsonl"):
        (run / name).write_text("{")
    assert "Not measured at step 7." in card(run)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see http://f/a_b", "see `http://f/a_b`"),
        ("(HTTPS://f)|www.f.org", "`(HTTPS://f)`\\|`www.f.org`"),
        ("*me@f.org* `ftp://f`", "`*me@f.org*` \\``ftp://f`\\`"),
        ("mailto:me a_b", "`mailto:me` a\\_b"),
        ("http://f\\", "`http://f\\`"),
    ],
)
def test_an_address_in_a_text_is_no_link(text, shown):
    assert plain(text) == shown

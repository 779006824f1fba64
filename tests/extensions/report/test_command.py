"""The report command, and the page of a run that ends."""

import json
import shutil
import sys
import threading

import pytest

import bert_tf
from bert_tf import extension
from bert_tf.errors import OutputError
from bert_tf.extensions.report import charts, panels
from bert_tf.library.model import Model
from bert_tf.training import results
from tests.batch.runs import write_run
from tests.extensions.report import example
from tests.tiny import write_project

pytestmark = pytest.mark.usefixtures("_pictures_drawn_once")

_DRAW = charts.svg  # as it is where pictures are not remembered


def test_page_of_a_run_is_in_its_folder_without_absolute_paths(tmp_path, call):
    folder, record = tmp_path / "run", example.record()
    record["command"] += (
        f" --data_dir={folder}/glue/MRPC --train_file={folder}/a.tsv,{folder}/b.tsv --place=head:/GPU:0 --model_dir=/data"
        f" {folder}/t=1/model.ckpt-9"  # a teacher
    )
    record["command"] += f" --dev_file={folder}/a:b/c.tsv --threshold=cost:{folder}/costs.json --init_checkpoint=gs://a/b"
    example.write_json(example.finished(folder) / "run_config.json", record)
    (folder / "best").mkdir()
    example.write_json(folder / "best" / "run_config.json", record)
    assert call("report", folder) == (0, f"{folder}/report.html\n", "")
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert "0.7500" in text
    assert str(tmp_path) not in text
    assert all(f"<dd>{shown}</dd>" in text for shown in ("glue/MRPC", "run/a.tsv,run/b.tsv", "head:/GPU:0", "data"))
    made = bert_tf.write_report(folder, redact=True)
    assert made.path == folder / "report.html"
    assert "&lt;!DOCTYPE html&gt;" in made._repr_html_()
    assert [path for path in folder.rglob("*") if path.is_file() and str(tmp_path) in path.read_text()] == []
    record = json.loads((folder / "run_config.json").read_text())
    files = " --data_dir=.../MRPC --train_file=.../a.tsv,.../b.tsv"  # no command reads other files of these names
    others = " --dev_file=.../c.tsv --threshold=cost:.../costs.json --init_checkpoint=gs://a/b"
    assert record["command"].endswith(f"{files} --place=head:/GPU:0 --model_dir=.../data .../model.ckpt-9{others}")
    assert {**record, "command": ""} == {**example.record(), "command": ""}
    assert "<dd>.../MRPC</dd>" in (folder / "report.html").read_text(encoding="utf-8")


def test_a_page_goes_to_standard_output(tmp_path, capfd):
    bert_tf.write_report(example.finished(tmp_path), output="-")
    assert "0.7500" in capfd.readouterr().out


def test_pages_of_several_runs_of_seeds_and_elsewhere(tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    seeds = [example.finished(tmp_path / "out" / f"seed-{seed}", seed=seed) for seed in (1, 2)]
    example.write_json(tmp_path / "out/seeds.json", {})
    begun = example.begun(tmp_path / "run")
    for words, output, title in (
        (seeds, "report.html", "RTE, 2 runs"),
        (["out"], "out/report.html", "out: RTE, 2 seeds"),
        (["--output=there.html", begun], "there.html", "Not finished"),
    ):
        assert call("report", *words) == (0, f"{output}\n", "")
        assert title in (tmp_path / output).read_text(encoding="utf-8")
    assert not (begun / "report.html").exists()
    (tmp_path / "report.html").write_text("<!DOCTYPE html><title>Tests</title>")
    other = "error: report.html: is not a report; name another --output, or delete it\n"
    assert call("report", *seeds) == call("report", begun, "--output=report.html") == (2, "", other)


MISTAKES = {"": "report: FOLDER ... missing: python -m bert_tf report FOLDER ...", "missing": "missing: no such folder"}
MISTAKES |= {"--unknown=1": "Unknown command line flag 'unknown'"}


@pytest.mark.parametrize("words", MISTAKES)
def test_mistakes_are_one_line(words, call):
    status, _, err = call("report", *words.split())
    assert (status, err.count("\n")) == (2, 1)
    assert err.startswith(f"error: {MISTAKES[words]}")


@pytest.mark.parametrize("library", ["jinja2", "vl_convert"])
def test_without_its_libraries_it_says_what_to_install(tmp_path, monkeypatch, call, library):
    folder = example.begun(tmp_path)
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setattr(charts, "svg", _DRAW)
    panels.environment.cache_clear()
    status, _, err = call("report", folder)
    assert (status, err.count("\n")) == (2, 1)
    assert err.endswith("pip install jinja2 vl-convert-python\n")
    assert not (folder / "report.html").exists()
    results.write_page(folder)


def test_words_of_the_first_mistakes_are_scored_if_asked_for(tmp_path, call, monkeypatch):
    project = write_project(tmp_path / "project", layers=1)
    run, data = write_run(tmp_path / "run", project), project.data_dir
    example.write_json(run / "eval_results.json", example.results())
    wrong = [{**example.WRONG, "id": f"dev-{number}"} for number in (5, 1, 3, 2)]
    example.write_lines(run / "wrong_examples.jsonl", [*wrong, {**example.WRONG, "split": "dev (ema)"}])
    assert call("report", run)[0] == 0
    assert not (run / "explanations.jsonl").exists()
    assert call("report", run, "--explain=2", f"--data_dir={data}") == (0, f"{run}/report.html\n", "")
    explanations = [json.loads(line) for line in (run / "explanations.jsonl").read_text().splitlines()]
    assert [(one["split"], one["id"]) for one in explanations] == [("dev", "dev-5"), ("dev", "dev-1")]
    assert all(one["completeness_error"] <= 0.01 for one in explanations)
    text = (run / "report.html").read_text(encoding="utf-8")
    assert text.count("Words that raise") == 2
    assert all(f">{word}</mark>" in text for one in explanations for word in one["words"])
    results.write_mistakes(run, {"dev": [example.WRONG]})
    assert not (run / "explanations.jsonl").exists()  # of earlier mistakes
    example.write_lines(run / "wrong_examples.jsonl", [{**example.WRONG, "id": "dev-99"}])
    assert call("report", run, "--explain=1", f"--data_dir={data}") == (
        2,
        "",
        "error: wrong_examples.jsonl: dev has no example dev-99; name the data of the run with --data_dir\n",
    )
    fold = shutil.copytree(run, tmp_path / "fold-1")
    status, _, error = call("report", fold, "--explain=1", f"--data_dir={data}")
    assert (status, error.partition("dev-99; ")[2]) == (
        2,
        "the rows of a fold are rows of train; give their texts to python -m bert_tf explain\n",
    )
    example.write_lines(run / "wrong_examples.jsonl", [{**example.WRONG, "id": "dev-1"}])
    with monkeypatch.context() as patched:
        examples = Model.examples
        patched.setattr(Model, "examples", lambda model, split: examples(model, split) * 2)  # ids of a column may repeat
        expected = "error: wrong_examples.jsonl: 'dev-1' is the id of 2 rows of dev; which to explain is unknown\n"
        assert call("report", run, "--explain=1", f"--data_dir={data}") == (2, "", expected)
    begun = example.begun(tmp_path / "begun")
    expected = f"error: {begun}: no wrong_examples.jsonl to explain; evaluate the run first, with --do_eval\n"
    assert call("report", begun, "--explain=1") == (2, "", expected)
    monkeypatch.setattr(extension, "installed", dict)  # without the extension that scores them
    expected = "error: --explain needs the extension explain, which is missing (docs/extensions.md)\n"
    assert call("report", run, "--explain=1", f"--data_dir={data}") == (2, "", expected)


def test_a_run_that_ends_leaves_its_page_and_no_missing_library_fails_it(tmp_path, caplog, monkeypatch):
    results.write_page(tmp_path)  # holds no run, but may hold predictions
    assert not caplog.text
    example.finished(tmp_path / "series" / "seed-1", seed=1)
    results.write_page(tmp_path / "series")
    assert (tmp_path / "series/report.html").is_file()
    taken = example.begun(tmp_path / "taken")
    (taken / "report.html").mkdir()
    results.write_page(taken)
    assert "no report.html" in caplog.text
    results.write_page(example.begun(tmp_path))
    assert (tmp_path / "report.html").is_file()
    failed = []
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    monkeypatch.setattr(threading, "excepthook", failed.append)
    results.start_page_ahead()
    for thread in threading.enumerate():
        if thread.name == "start Vega":
            thread.join()
    assert failed == []


@pytest.mark.parametrize("write", [bert_tf.write_report, bert_tf.write_card])
@pytest.mark.parametrize("name", ["run_config.json", "model.ckpt-5.index", "eval_results.json"])
def test_a_page_or_card_does_not_replace_files_of_a_run(tmp_path, write, name):
    (tmp_path / "run_config.json").write_text("{}")
    with pytest.raises(OutputError, match="is a file of the run there; name another"):
        write(tmp_path, output=tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["run_config.json"]


def test_links_of_a_run_are_not_followed_and_those_that_the_user_names_are(tmp_path, call):
    folder, mine, page = example.finished(tmp_path / "run"), tmp_path / "mine.txt", tmp_path / "page.html"
    mine.write_text("mine")
    for name in ("report.html", ".writer.json"):
        (folder / name).symlink_to(mine)
    assert call("report", folder)[0] == 0
    assert mine.read_text() == "mine"
    assert "0.7500" in (folder / "report.html").read_text(encoding="utf-8")
    page.symlink_to("elsewhere.html")
    assert call("report", folder, f"--output={page}")[0] == 0
    assert page.is_symlink()
    assert "0.7500" in (tmp_path / "elsewhere.html").read_text(encoding="utf-8")

"""The report command, and the page of a run that ends."""

from __future__ import annotations

import json
import sys
import threading

import pytest

import bert_tf
from bert_tf.jobs import report
from bert_tf.report import drawing, page
from tests.report import example

pytestmark = pytest.mark.usefixtures("_pictures_drawn_once")

_DRAW = drawing.svg  # as it is where pictures are not remembered


@pytest.fixture
def run(call):
    return lambda *words: call("report", *words)


def test_page_of_a_run_is_in_its_folder(tmp_path, run):
    folder = example.finished(tmp_path / "run")
    assert run(folder) == (0, f"{folder}/report.html\n", "")
    assert "0.7500" in (folder / "report.html").read_text(encoding="utf-8")
    page = bert_tf.write_report(folder)
    assert page.path == folder / "report.html"
    assert "&lt;!DOCTYPE html&gt;" in page._repr_html_()


def with_paths(folder):
    record = example.record()
    record["command"] += f" --data_dir={folder}/glue/MRPC --train_file={folder}/a.tsv,{folder}/b.tsv --device=/GPU:0"
    example.write_json(example.finished(folder) / "run_config.json", record)
    return folder


def test_a_page_has_no_absolute_path(tmp_path, run):
    folder = with_paths(tmp_path / "run")
    assert run(folder)[0] == 0
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert str(tmp_path) not in text
    assert all(f"<dd>{shown}</dd>" in text for shown in ("glue/MRPC", "run/a.tsv,run/b.tsv", "/GPU:0"))


def test_a_redacted_folder_has_no_absolute_path(tmp_path, run):
    folder = with_paths(tmp_path / "run")
    assert run(folder, "--redact")[0] == 0
    assert [path.name for path in folder.iterdir() if path.is_file() and str(tmp_path) in path.read_text()] == []
    record = json.loads((folder / "run_config.json").read_text())
    assert record["command"].endswith(" --data_dir=MRPC --train_file=a.tsv,b.tsv --device=/GPU:0")
    assert {**record, "command": ""} == {**example.record(), "command": ""}
    assert "<dd>MRPC</dd>" in (folder / "report.html").read_text(encoding="utf-8")


def test_page_of_several_runs_is_in_the_current_folder(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    assert run(example.finished(tmp_path / "a"), example.finished(tmp_path / "b", seed=2))[0] == 0
    assert "RTE: 2 runs" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_output_wherever_it_stands(tmp_path, run):
    folder = example.begun(tmp_path / "run")
    assert run(f"--output={tmp_path}/there.html", folder)[0] == 0
    assert "Not finished" in (tmp_path / "there.html").read_text(encoding="utf-8")
    assert not (folder / "report.html").exists()


def test_series_of_seeds(tmp_path, run):
    for seed in (1, 2):
        example.finished(tmp_path / f"seed-{seed}", seed=seed)
    example.write_json(tmp_path / "seeds.json", {})
    assert run(tmp_path)[0] == 0
    assert "RTE: 2 seeds" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "report: 0 names given, FOLDER ... expected"),
        (["missing"], "missing: no such folder"),
        (["--unknown=1"], "Unknown command line flag 'unknown'"),
    ],
)
def test_mistakes_are_one_line(words, message, run):
    status, _, err = run(*words)
    assert (status, err.count("\n")) == (2, 1)
    assert err.startswith(f"error: {message}")


@pytest.mark.parametrize("library", ["jinja2", "vl_convert"])
def test_without_its_libraries_it_says_what_to_install(tmp_path, monkeypatch, run, library):
    folder = example.begun(tmp_path)
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setattr(drawing, "svg", _DRAW)
    page._template.cache_clear()
    status, _, err = run(folder)
    assert (status, err.count("\n")) == (2, 1)
    assert err.endswith("pip install jinja2 vl-convert-python\n")
    assert not (folder / "report.html").exists()
    report.at_end(folder)


def test_run_that_ends_leaves_its_page(tmp_path):
    report.at_end(example.begun(tmp_path))
    assert (tmp_path / "report.html").is_file()


def test_page_that_cannot_be_made_does_not_fail_the_run(tmp_path, caplog):
    report.at_end(tmp_path)  # holds no run
    assert "no report.html" in caplog.text


def test_a_library_that_cannot_be_started_ahead_is_not_missed_before_the_page(monkeypatch):
    failed = []
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    monkeypatch.setattr(threading, "excepthook", failed.append)
    report.start_ahead()
    for thread in threading.enumerate():
        if thread.name == "start Vega":
            thread.join()
    assert failed == []

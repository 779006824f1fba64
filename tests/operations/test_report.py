"""The report command."""

from __future__ import annotations

import json
import sys

import pytest

from bert_tf.__main__ import main
from bert_tf.jobs import report
from bert_tf.report import drawing, page
from tests.report import example

pytestmark = pytest.mark.usefixtures("_pictures_drawn_once")

_DRAW = drawing.svg  # as it is where pictures are not remembered


def run(*arguments):
    return main(["bert_tf", "report", *map(str, arguments)])


def test_page_of_a_run_is_in_its_folder(tmp_path, capsys):
    folder = example.finished(tmp_path / "run")
    assert run(folder) == 0
    assert capsys.readouterr().out == f"{folder}/report.html\n"
    assert "0.7500" in (folder / "report.html").read_text(encoding="utf-8")


def with_paths(folder):
    record = example.record()
    record["command"] += f" --data_dir={folder}/glue/MRPC --train_file={folder}/a.tsv,{folder}/b.tsv --device=/GPU:0"
    example.write_json(example.finished(folder) / "run_config.json", record)
    return folder


def test_a_page_has_no_absolute_path(tmp_path):
    folder = with_paths(tmp_path / "run")
    assert run(folder) == 0
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert str(tmp_path) not in text
    assert "<dd>glue/MRPC</dd>" in text
    assert "<dd>run/a.tsv,run/b.tsv</dd>" in text
    assert "<dd>/GPU:0</dd>" in text


def test_a_redacted_folder_has_no_absolute_path(tmp_path):
    folder = with_paths(tmp_path / "run")
    assert run(folder, "--redact") == 0
    assert [path.name for path in folder.iterdir() if path.is_file() and str(tmp_path) in path.read_text()] == []
    record = json.loads((folder / "run_config.json").read_text())
    assert record["command"].endswith(" --data_dir=MRPC --train_file=a.tsv,b.tsv --device=/GPU:0")
    assert {**record, "command": ""} == {**example.record(), "command": ""}
    assert "<dd>MRPC</dd>" in (folder / "report.html").read_text(encoding="utf-8")


def test_page_of_an_interrupted_run(tmp_path):
    assert run(example.begun(tmp_path / "run")) == 0
    assert "Not finished" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")


def test_page_of_several_runs_is_in_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(example.finished(tmp_path / "a"), example.finished(tmp_path / "b", seed=2)) == 0
    assert "RTE: 2 runs" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_output_wherever_it_stands(tmp_path):
    folder = example.finished(tmp_path / "run")
    assert run(f"--output={tmp_path}/there.html", folder) == 0
    assert (tmp_path / "there.html").is_file()
    assert not (folder / "report.html").exists()


def test_series_of_seeds(tmp_path):
    for seed in (1, 2):
        example.finished(tmp_path / f"seed-{seed}", seed=seed)
    example.write_json(tmp_path / "seeds.json", {})
    assert run(tmp_path) == 0
    assert "RTE: 2 seeds" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "report: name the output folder of a run"),
        (["missing"], "missing: no such folder"),
        (["--unknown=1"], "Unknown command line flag 'unknown'"),
    ],
)
def test_mistakes_are_one_line(arguments, message, capsys):
    assert run(*arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: {message}")


@pytest.mark.parametrize("library", ["jinja2", "vl_convert"])
def test_without_its_libraries_it_says_what_to_install(tmp_path, monkeypatch, capsys, library):
    folder = example.begun(tmp_path)
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setattr(drawing, "svg", _DRAW)
    page._template.cache_clear()
    assert run(folder) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("pip install jinja2 vl-convert-python")
    assert not (folder / "report.html").exists()
    report.at_end(folder)


def test_help(capsys):
    assert run("--help") == 0
    assert "--output" in capsys.readouterr().out


def test_run_that_ends_leaves_its_page(tmp_path):
    report.at_end(example.begun(tmp_path))
    assert (tmp_path / "report.html").is_file()


def test_page_that_cannot_be_made_does_not_fail_the_run(tmp_path, caplog):
    report.at_end(tmp_path)  # holds no run
    assert "no report.html" in caplog.text

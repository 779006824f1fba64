"""The examples of docs/batch_jobs.md, on what a run of the classifier leaves behind."""

from __future__ import annotations

import csv
import json
import shlex
import types
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.__main__ import main
from bert_tf.cli.command_line import BEAM, VERBOSITY, flags_of
from bert_tf.settings import settings_of
from bert_tf.training.settings import MachineSettings
from tests import classifier, lines
from tests.integration.commands import PROJECT

DOCS = PROJECT / "docs" / "batch_jobs.md"
ALL_STEPS = 5


@pytest.fixture
def _as_documented(finished, tmp_path, monkeypatch):
    """A folder with the run where the examples look for it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GLUE_DIR", raising=False)
    Path("out").mkdir()
    Path("out/mrpc").symlink_to(finished[0])
    for name in ("data", "docs"):
        Path(name).symlink_to(PROJECT / name)


def examples(command: str) -> list[str]:
    """Returns the lines of the page that call a command, those that go on in the next line joined."""
    text = DOCS.read_text(encoding="utf-8").replace("\\\n", "")
    return [line.strip() for line in text.splitlines() if line.startswith("    ") and f"python -m bert_tf {command} " in line]


def run(line: str) -> int:
    program, _, _, *arguments = shlex.split(line)
    assert program == "python"
    # Beam's own switch between its direct runners would look for a program on the network.
    ours = [a for a in arguments if not a.startswith("--direct_")]
    return main(["bert_tf", *(a.replace("=DirectRunner", "=BundleBasedDirectRunner") for a in ours)])


def probabilities(file: Path) -> np.ndarray:
    return np.array([line.split("\t")[2:] for line in file.read_text().splitlines()[1:]], float)


def table(folder: str) -> list[dict[str, str]]:
    with open(f"{folder}/results.tsv", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


@pytest.mark.usefixtures("_as_documented")
def test_evaluation():
    by_flags, steps, tasks = examples("evaluate")
    assert run(by_flags) == 0
    first = table("out/eval")
    assert [int(row["step"]) for row in first] == sorted(int(row["step"]) for row in first)
    assert len(first) == ALL_STEPS
    assert run(steps) == 0
    assert table("out/eval") == first  # nothing is measured twice
    assert run(tasks) == 0
    by_task, by_split, by_file = table("out/eval_tasks")
    assert [row["split"] for row in (by_task, by_split, by_file)] == ["dev", "train", "data/sample/MRPC/dev.tsv"]
    assert by_task["loss"] == by_file["loss"] != by_split["loss"]


@pytest.mark.usefixtures("_as_documented")
def test_prediction(monkeypatch, capsysbinary):
    from_file, from_pipe, files, on_beam = examples("predict")
    assert run(from_file) == 0
    written = Path("out/test_predictions.tsv").read_bytes()
    assert written.count(b"\n") == 1 + 220
    cat, rest = from_pipe.split(" | ")
    with Path(cat.removeprefix("cat ")).open("rb") as source:
        monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=source))
        assert run(rest.partition(" > ")[0]) == 0
    assert capsysbinary.readouterr().out == written
    assert run(files) == 0
    assert Path("out/predictions/test.tsv").read_bytes() == written
    assert Path("out/predictions/pairs.tsv").read_bytes().count(b"\n") == 3
    assert run(on_beam) == 0
    (shard,) = Path("out").glob("by_beam-*.tsv")
    assert shard.read_bytes() == written


def test_what_the_classifier_predicted_with_its_best_checkpoint_is_predicted_again(train_flags, project, tmp_path):
    folder = tmp_path / "out"
    evaluates = {"eval_every_n_steps": 3, "num_train_epochs": 2, "learning_rate": 0.1, "do_predict": True}
    assert classifier.main(["run_classifier.py", *train_flags(folder, **evaluates)]) == 0
    by_classifier = probabilities(folder / "predictions.tsv")

    def again(checkpoint) -> np.ndarray:
        output = tmp_path / "again.tsv"
        flags = [f"--checkpoint={checkpoint}", f"--input={project.data_dir / 'test.tsv'}", f"--output={output}"]
        assert main(["x", "predict", *flags]) == 0
        return probabilities(output)

    by_best, by_newest = again(folder), again(tf.train.latest_checkpoint(str(folder)))
    np.testing.assert_array_equal(by_best, by_classifier)
    assert np.abs(by_newest - by_classifier).max() > 0.01


@pytest.mark.usefixtures("_as_documented")
def test_what_the_classifier_measured_is_measured_again(finished, project):
    flags = ["--checkpoints=out/mrpc", "--task_name=MRPC", f"--data_dir={project.data_dir}", "--output_dir=e"]
    assert main(["x", "evaluate", *flags]) == 0
    found, measured = (json.loads(path.read_text()) for path in (Path("e/results.json"), finished[0] / "eval_results.json"))
    (row,) = found["rows"]
    assert {f"eval_{name}": value for name, value in row["metrics"].items()} == {
        name: measured[name] for name in ("eval_accuracy", "eval_f1")
    }
    assert row["loss"] == measured["loss"]
    assert row["step"] == measured["global_step"]


def test_every_key_is_on_the_page():
    text = DOCS.read_text(encoding="utf-8")
    others = {"job", *(row.name for row in (*settings_of(MachineSettings), VERBOSITY, BEAM))}  # flags alone
    rows = {row.name for name in ("evaluate", "predict") for row in flags_of(lines.command(name))} - others
    assert [name for name in sorted(rows) if f"`{name}`" not in text] == []

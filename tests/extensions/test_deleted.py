"""A copy of the package without an extension's folder does all that does not need it, with the same bytes."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from bert_tf import extension
from bert_tf.settings import settings_of
from tests import tiny
from tests.batch.runs import write_run
from tests.extensions import copies

PACKAGE = copies.ROOT / "bert_tf"
OURS = sorted(path.parent.name for path in (PACKAGE / "extensions").glob("*/__init__.py"))
FILES = ("model.ckpt-4.data-00000-of-00001", "eval_results.json", "submission/MRPC.tsv")


def train(folder: Path, package: Path) -> dict[str, object]:
    """What a run of MRPC leaves: weights, metrics, predictions, and the headings of its page."""
    project = tiny.write_project(folder / "project")
    flags = project.flags(folder / "out", do_train=True, do_eval=True, do_predict=True, num_train_steps=4)
    done = copies.run(package, "fine-tune", *flags)
    assert done.returncode == 0, done.stderr
    page = folder / "out" / "report.html"
    headings = re.findall("<h2>.*?</h2>", page.read_text(encoding="utf-8")) if page.exists() else []
    return {**{name: (folder / "out" / name).read_bytes() for name in FILES}, "headings": headings}


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return train(tmp_path_factory.mktemp("whole"), copies.ROOT)


@pytest.mark.several_machines
def test_a_run_needs_none_of_them(expected, tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "bert_tf", ignore=shutil.ignore_patterns("__pycache__"))
    for name in OURS:
        shutil.rmtree(tmp_path / "bert_tf" / "extensions" / name)
    assert train(tmp_path, tmp_path) == {**expected, "headings": []}


@pytest.mark.slow
@pytest.mark.parametrize("name", OURS)
def test_a_run_needs_it_not_beside_the_others(name, expected, tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "bert_tf", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.rmtree(tmp_path / "bert_tf" / "extensions" / name)
    assert train(tmp_path, tmp_path) == (expected if name != "report" else {**expected, "headings": []})


ASKS_WHERE_IT_IS = {PACKAGE / "home.py", PACKAGE / "native", PACKAGE / "extensions" / "track"}


def copied(folder: Path, without: str) -> Path:
    """The package without an extension, outside a clone: links where a part does not ask for its place."""
    extensions = PACKAGE / "extensions"
    (folder / "bert_tf" / "extensions").mkdir(parents=True)
    for source in {*PACKAGE.iterdir(), *extensions.iterdir()} - {extensions, extensions / without}:
        target = folder / source.relative_to(copies.ROOT)
        if source not in ASKS_WHERE_IT_IS:
            target.symlink_to(source)
        else:
            (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    return folder


@pytest.mark.several_machines
def test_without_sweep_seeds_are_trained_in_turn(tmp_path):
    package, project = copied(tmp_path / "package", "sweep"), tiny.write_project(tmp_path / "project")
    flags = project.flags(tmp_path / "out", do_train=True, do_eval=True, num_train_steps=2, seeds="1-2")
    done = copies.run(package, "fine-tune", *flags)
    assert (done.returncode, len((tmp_path / "out" / "seeds.tsv").read_text().splitlines())) == (0, 3)
    assert "Seed 2, 2 of 2" in done.stderr
    done = copies.run(package, "fine-tune", *flags, "--slots=2")
    assert (done.returncode, done.stderr.splitlines()[-1].partition(":")[0]) == (2, "error")
    assert "--slots=2 needs the extension sweep" in done.stderr


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("series", "reproduce gtx1060"),
        ("pretrain", "vocabulary show x"),
        ("pretrain", "vocabulary --help"),
        ("pretrain", "fill-mask tests --text=[MASK]"),
        ("checkpoint", "vocabulary extend --output=x --from=x"),
        ("evaluate", "calibrate tests"),
        ("engines", "export tests --format=onnx --output=x"),
        ("together", "serve tests bert_tf"),
        ("together", "export tests bert_tf --format=onnx --output=x"),
        ("report", "card tests"),
        ("report", "sweep README.md --output_dir=x"),
        ("report", "track tests --tracker=tensorboard"),
    ],
)
def test_what_another_one_needs_is_one_line(name, command, tmp_path):
    done = copies.run(copied(tmp_path, name), *command.split())
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    said = {"checkpoint": command, "engines": "--format=onnx", "together": f"{command.split()[0]} of several models"}.get(
        name, command.split()[0]
    )
    assert re.match(rf"error: {said.partition(' --')[0]} needs the extension {name}", done.stderr)


@pytest.mark.parametrize(
    ("name", "file", "command"),
    [
        ("torch_files", "pytorch_model.bin", "checkpoint inspect {file}"),
        ("sentencepiece", "spm.model", "predict --checkpoint={run} --vocab_file={file} --input={file} --output=x.tsv"),
    ],
)
def test_a_file_that_only_it_reads_is_one_line(name, file, command, project, tmp_path):
    path, run = tmp_path / file, write_run(tmp_path / "run", project)
    path.touch()
    done = copies.run(copied(tmp_path / "package", name), *command.format(file=path, run=run).split())
    assert (done.returncode, done.stderr) == (
        2,
        f"error: {path} needs the extension {name}, which is missing (docs/extensions.md)\n",
    )


@pytest.mark.parametrize("action", ["checkpoint average", "checkpoint inspect", "data audit"])
def test_an_action_of_a_missing_command_is_one_line(action, tmp_path):
    command = action.partition(" ")[0]
    done = copies.run(copied(tmp_path, command), *action.split(), "x", "--output=y")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert done.stderr.startswith(f"error: the command {command} is missing, to which an extension adds {command} a")


OF_FAMILIES = {  # a record, by extension
    "choice": {"task_name": "SWAG", "kind": "choice", "labels": []},
    "tags": {"task_name": "CoNLL2003", "kind": "tags", "labels": ["O", "B-X"]},
    "similarity": {"task_name": "STS-B-vectors", "kind": "similarity", "labels": [], "highest_score": 5.0},
    "span": {"task_name": "SQuAD", "kind": "span", "labels": []},
}


@pytest.mark.parametrize("name", OF_FAMILIES)
def test_a_model_of_a_family_that_is_missing_is_one_line(name, project, tmp_path):
    record = OF_FAMILIES[name]
    run, package = write_run(tmp_path / "run", project, record=record), copied(tmp_path / "package", name)
    done = copies.run(package, "predict", f"--checkpoint={run}", f"--input={run / 'run_config.json'}", "--output=x.tsv")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert f"run_config.json: no family of the kind '{record['kind']}' is known here" in done.stderr
    done = copies.run(package, "fine-tune", f"--task_name={record['task_name']}")
    assert (done.returncode, done.stderr.partition(" (")[0]) == (2, f"error: --task_name: unknown task '{record['task_name']}'")


@pytest.mark.parametrize("name", ["devices", "data"])
def test_no_message_advises_its_commands_without_it(name, tmp_path, monkeypatch):
    monkeypatch.setenv("BERT_TF_HOME", str(tmp_path / "home"))  # without data
    package = copied(tmp_path / "package", name)
    flags = {"devices": "--task_name=MRPC --visible_gpus=99", "data": "--task_name=QQP"}[name]
    told = copies.run(package, "fine-tune", *flags.split(), f"--output_dir={tmp_path / 'out'}").stderr
    assert told.splitlines()[-1].startswith("error: ")
    assert f"bert_tf {name}" not in told


def test_without_cluster_there_is_no_beam(tmp_path):
    told = copies.run(copied(tmp_path, "cluster"), "predict", "--help=all").stdout
    assert "--checkpoint" in told
    assert "--beam" not in told


def test_without_card_no_export_has_one(tmp_path):
    told = copies.run(copied(tmp_path, "card"), "export", "--help=all").stdout
    assert "--format" in told
    assert "--license" not in told


@pytest.mark.parametrize("name", OURS)
def test_its_flags_and_commands_are_unknown_without_it(name, tmp_path):
    copied(tmp_path, name)
    one = extension.installed()[name]
    commands = [command for command in ("fine-tune", "serve", "evaluate") if command != name]
    done = copies.run_all(tmp_path, *(f"{command} --help=all" for command in commands))
    told = done.stdout
    assert (done.returncode, "--task_name" in told) == (0, True)
    assert ("--workers" in told) == (name != "serve")
    for row in settings_of(one.settings, one.of_tasks, one.serving, one.evaluating):
        assert f"--{row.name}" not in told
        assert f"--[no]{row.name}" not in told
    for engine in one.engines:
        assert not re.search(rf"inference engine: [\w, ]*{engine}", told)
    if one.commands:
        done = copies.run_all(tmp_path, *(f"{command} x" for command in one.commands))
        assert (done.returncode, len(done.stderr.splitlines())) == (2, len(one.commands))
        assert all(line.startswith("error: ") for line in done.stderr.splitlines())

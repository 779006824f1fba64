"""Bad input through the command line: exit status 2, one line for each problem, nothing left in the output folder."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from bert_tf.checkpoints.reader import write_checkpoint
from bert_tf.config import BertConfig
from bert_tf.tasks.registry import get_task, known_names
from bert_tf.tasks.settings import of_values
from tests import classifier, classifier_flags
from tests.tiny import TOKENS, TinyProject, random_weights, write_project


@pytest.fixture
def project(tmp_path, monkeypatch) -> TinyProject:
    for name in ("GLUE_DIR", "BERT_BASE_DIR"):
        monkeypatch.delenv(name, raising=False)
    return write_project(tmp_path / "project")


@pytest.fixture
def refused(project, tmp_path, capsys):
    """Runs a command line that must be refused; returns its problems, without `error: `."""

    def run(**extra: object) -> list[str]:
        output_dir = tmp_path / "out"
        assert classifier.main(["run_classifier.py", *project.flags(output_dir, verbosity=-1, **extra)]) == 2
        assert not output_dir.exists()
        captured = capsys.readouterr()
        lines = captured.err.splitlines()
        assert captured.out == ""
        assert all(line.startswith("error: ") for line in lines)
        return [line.removeprefix("error: ") for line in lines]

    return run


def edit_cell(path: Path, line: int, cell: int, text: str) -> None:
    """Replaces a cell; lines count from 1, cells from 0."""
    rows = [row.split("\t") for row in path.read_text(encoding="utf-8").splitlines()]
    rows[line - 1][cell] = text
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")


def edit_bytes(path: Path, old: bytes, new: bytes) -> None:
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new, 1))


DAMAGES = {
    "missing": (Path.unlink, "{path}: cannot read the file: No such file or directory"),
    "empty": (lambda path: path.write_bytes(b""), "{path}: the file is empty"),
    "header only": (
        lambda path: path.write_bytes(path.read_bytes().split(b"\n")[0]),
        "{path}:2: no examples below the header line",
    ),
    "missing column": (
        lambda path: edit_cell(path, 1, 4, "text"),
        "{path}:1: no column '#2 String'; the header line reads Quality | #1 ID | #2 ID | #1 String | text",
    ),
    "short row": (
        lambda path: edit_bytes(path, b"\t2001\t", b"\t"),
        "{path}:3: 4 cells where 5 are expected; cells are divided by tabs",
    ),
    "unknown label": (lambda path: edit_cell(path, 4, 0, "yes"), "{path}:4: unknown label 'yes'; known are 0, 1"),
    "empty text": (lambda path: edit_cell(path, 5, 3, " "), "{path}:5: the text in column '#1 String' is empty"),
    "not UTF-8": (
        lambda path: edit_bytes(path, b"\t2000\t", b"\t\xff\t"),
        "{path}:2: not UTF-8: byte 8 of the line is 0xff; iconv -f LATIN1 -t UTF-8 converts Latin-1",
    ),
}


OF_A_ROW = ("short row", "unknown label", "empty text", "not UTF-8")
SKIP = "; correct the file, or add --skip_bad_rows"


@pytest.mark.parametrize("split", ["train", "dev"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_data_ends_in_one_line_before_training(damage, split, project, refused):
    change, message = DAMAGES[damage]
    path = project.data_dir / f"{split}.tsv"
    change(path)
    assert refused() == [message.format(path=path) + SKIP * (damage in OF_A_ROW)]


def test_all_damaged_rows_are_listed_with_the_flag_that_leaves_them_out(project, refused, caplog):
    path = project.data_dir / "train.tsv"
    for damage in OF_A_ROW:
        DAMAGES[damage][0](path)
    problems = refused()
    expected = sorted(DAMAGES[damage][1].format(path=path) for damage in OF_A_ROW)
    assert problems == [*expected, f"{path}: 4 rows cannot be used{SKIP}"]
    task = get_task("MRPC", of_values({"skip_bad_rows": True}))
    assert len(task.examples(project.data_dir, "train")) == 36
    assert f"{path}: rows left out, since they cannot be used: 4" in caplog.messages


def test_missing_test_data_is_noticed_before_training(project, refused):
    (project.data_dir / "test.tsv").unlink()
    [problem] = refused(do_train=True, do_predict=True)
    assert problem == f"{project.data_dir}/test.tsv: cannot read the file: No such file or directory"


def test_a_file_with_old_line_ends_is_still_one_line_of_error(project, refused):
    path = project.data_dir / "train.tsv"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r"))
    [problem] = refused()
    assert problem.startswith(f"{path}:1: no column '#2 String'; the header line reads")


def test_vocabulary_of_another_size(project, refused):
    project.vocab_file.write_text("\n".join([*TOKENS, "more"]))
    assert refused() == [
        f"the vocabulary has {len(TOKENS) + 1} pieces, the configuration says {len(TOKENS)};"
        " take vocab.txt and bert_config.json from one folder"
    ]


def test_damaged_vocabulary_names_the_line(project, refused):
    edit_bytes(project.vocab_file, b"\nstorm\n", b"\nrain\n")
    line = TOKENS.index("storm") + 1
    [problem] = refused()
    assert problem == f"{project.vocab_file}:{line}: 'rain' is already in line {line - 1}; every piece has one id"


def test_cased_vocabulary_with_lower_casing(project, refused):
    project.vocab_file.write_text("\n".join([*TOKENS[:5], *map(str.title, TOKENS[5:])]))
    [problem] = refused()
    assert problem.startswith("the vocabulary is cased (")
    assert problem.endswith("pieces with letters have a capital) but --do_lower_case is on; add --nodo_lower_case")


def test_uncased_vocabulary_without_lower_casing(refused):
    [problem] = refused(do_lower_case=False)
    assert problem.startswith("the vocabulary is uncased (0 of ")
    assert problem.endswith(" but --do_lower_case is off; drop --nodo_lower_case")


@pytest.mark.parametrize("length", [-1, 4, 65])
def test_sequence_length_that_the_model_does_not_know(length, refused):
    assert refused(max_seq_length=length) == [
        f"--max_seq_length={length} is outside 5 to 64, the positions that the model knows"
    ]


def test_configuration_that_is_no_json(project, refused):
    project.bert_config_file.write_text("{")
    [problem] = refused()
    assert problem.startswith(f"{project.bert_config_file}:1: not JSON: ")


@pytest.mark.parametrize("flag", ["bert_config_file", "vocab_file"])
def test_missing_model_file_is_named_with_its_flag(flag, refused):
    assert refused(**{flag: "/no/such/file"}) == [f"/no/such/file: no such file; name it with --{flag}"]


def test_checkpoint_of_another_size(project, refused):
    config = dataclasses.replace(BertConfig.tiny(len(TOKENS)), hidden_size=16)
    write_checkpoint(project.init_checkpoint, random_weights(config))
    [problem] = refused()
    assert "variables have another shape than the configuration says" in problem
    assert "is the configuration of another model size (Base with Large)?" in problem


def test_checkpoint_with_fewer_layers(project, refused):
    config = dataclasses.replace(BertConfig.tiny(len(TOKENS)), num_hidden_layers=1)
    write_checkpoint(project.init_checkpoint, random_weights(config))
    [problem] = refused()
    assert "16 encoder variables are missing" in problem
    assert problem.endswith("has the configuration more layers than the checkpoint?")


@pytest.mark.parametrize("part", ["data-00000-of-00001", "index"])
def test_truncated_checkpoint(part, project, refused):
    path = Path(f"{project.init_checkpoint}.{part}")
    path.write_bytes(path.read_bytes()[:-100])
    [problem] = refused()
    assert problem.startswith(f"{project.init_checkpoint}: damaged")


def test_missing_checkpoint_names_what_the_folder_holds(project, refused):
    wanted = Path(project.init_checkpoint).with_name("bert.ckpt")
    assert refused(init_checkpoint=wanted) == [f"{wanted}: no checkpoint of this name; the folder holds bert_model.ckpt"]


@pytest.mark.parametrize("checkpoint", ["of another size", "missing"])
def test_all_misfits_are_reported_at_once(checkpoint, project, refused):
    project.vocab_file.write_text("\n".join([*TOKENS[:5], *map(str.title, TOKENS[5:]), "More"]))
    weights = random_weights(dataclasses.replace(BertConfig.tiny(len(TOKENS)), hidden_size=16))
    write_checkpoint(project.init_checkpoint, weights)
    name = project.init_checkpoint if checkpoint == "of another size" else project.init_checkpoint + ".gone"
    problems = refused(init_checkpoint=name, max_seq_length=100, num_train_epochs=0.01)
    begins = ("the vocabulary has", "--max_seq_length=100", "the vocabulary is cased", "40 examples in 0.01 epochs", name)
    assert len(problems) == len(begins)
    assert all(problem.startswith(begin) for problem, begin in zip(problems, begins))


def test_training_examples_of_one_label(project, refused):
    for line in range(2, 42):
        edit_cell(project.data_dir / "train.tsv", line, 0, "1")
    assert refused() == ["all 40 training examples have the label '1'; nothing can be learned"]


@pytest.mark.parametrize(
    ("too_few", "said"),
    [
        ({"num_train_epochs": 0}, "0 epochs do not fill a batch of 8; raise --num_train_epochs"),
        ({"train_batch_size": 1000}, "3 epochs do not fill a batch of 1000; lower --train_batch_size"),
    ],
)
def test_no_step_to_train(too_few, said, refused):
    assert refused(**too_few) == [f"40 examples in {said}"]


@pytest.mark.parametrize("wanted", ["do_eval", "do_predict"])
def test_nothing_trained_to_evaluate_or_predict(wanted, refused, project):
    assert refused(**{wanted: True}) == [
        f"{project.init_checkpoint}: this is a pretrained model, it has no task head; train it first"
        " (--do_train), or name a trained checkpoint with --init_checkpoint, or its folder with --output_dir"
    ]


@pytest.mark.parametrize(
    ("name", "hint"), [("MRCP", "; did you mean MRPC?"), ("sst", "; did you mean SST-2?"), ("translation", "")]
)
def test_unknown_task_names_the_nearest(name, hint, refused):
    assert refused(task_name=name) == [f"--task_name: unknown task '{name}'{hint} (known: {', '.join(sorted(known_names()))})"]


@pytest.mark.parametrize(
    ("flag", "problem"),
    [
        ({"learning_rte": 1}, "Unknown command line flag 'learning_rte'; did you mean --learning_rate?"),
        ({"train_batch_size": -4}, "flag --train_batch_size=-4: -4 is not a positive integer"),
        ({"data_dir": "/no/such/folder"}, "/no/such/folder: no such folder; --data_dir must hold the files of MRPC"),
    ],
)
def test_unusable_flag(flag, problem, refused):
    [found] = refused(**flag)
    assert found.startswith(problem)


def test_an_output_folder_that_is_a_file_is_left_alone(project, tmp_path, capsys):
    path = tmp_path / "file"
    path.write_text("mine")
    assert classifier.main(["run_classifier.py", *project.flags(path, verbosity=-1)]) == 2
    assert capsys.readouterr().err == f"error: {path}: cannot write: File exists; nothing was changed\n"
    assert path.read_text() == "mine"


def test_ctrl_c_is_one_line_and_status_130(monkeypatch, capsys):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("bert_tf.jobs.fine_tune.fine_tune", interrupt)
    assert classifier.main(["run_classifier.py", "--task_name=MRPC"]) == 130
    assert capsys.readouterr().err == "error: stopped at once; the same command continues from the last checkpoint\n"


def test_help_ends_with_status_0(capsys):
    assert classifier.main(["run_classifier.py", "--help"]) == 0
    assert capsys.readouterr() == (classifier_flags.help_text(), "")

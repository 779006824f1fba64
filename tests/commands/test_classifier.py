"""Bad input through the command line: exit status 2, one line a problem, nothing left."""

import dataclasses

import pytest

from bert_tf.checkpoints.reader import write_checkpoint
from bert_tf.config import BertConfig
from bert_tf.tasks.registry import get_task
from bert_tf.tasks.settings import of_values
from tests import classifier
from tests.tiny import TOKENS, TinyProject, random_weights, write_project


@pytest.fixture
def project(tmp_path, monkeypatch) -> TinyProject:
    for name in ("GLUE_DIR", "BERT_BASE_DIR"):
        monkeypatch.delenv(name, raising=False)
    return write_project(tmp_path / "project")


@pytest.fixture
def refused(project, tmp_path, capsys):
    """Runs a command line that must be refused; returns its problems, without `error: `.

    What is refused elsewhere: estimator/test_preflight.py, training/test_sources.py, tasks/test_registry.py.
    """

    def run(**extra: object) -> list[str]:
        output_dir = tmp_path / "out"
        assert classifier.run(*project.flags(output_dir, verbosity=-1, **extra)) == 2
        assert not output_dir.exists()
        captured = capsys.readouterr()
        lines = captured.err.splitlines()
        assert captured.out == ""
        assert all(line.startswith("error: ") for line in lines)
        return [line.removeprefix("error: ") for line in lines]

    return run


DAMAGED = "; convert the file from its encoding, as with iconv -f ENCODING -t UTF-8"


def test_all_damaged_rows_are_listed_with_the_flag_that_leaves_them_out(project, refused, caplog):
    path = project.data_dir / "train.tsv"
    rows = [line.split(b"\t") for line in path.read_bytes().split(b"\n")]
    rows[1][2], rows[3][0], rows[4][3] = b"\xff", b"yes", b" "
    del rows[2][2]
    path.write_bytes(b"\n".join(map(b"\t".join, rows)))
    assert refused() == [
        f"{path}:2: not UTF-8: byte 8 of the line is 0xff{DAMAGED}",
        f"{path}:3: 4 cells, expected 5; cells are separated by tabs",
        f"{path}:4: unknown label 'yes'; known are 0, 1",
        f"{path}:5: the text in column '#1 String' is empty",
        f"{path}: 4 rows cannot be used; correct the file, or add --skip_bad_rows",
    ]
    task = get_task("MRPC", of_values({"skip_bad_rows": True}))
    assert len(task.examples(project.data_dir, "train")) == 36
    assert f"{path}: rows left out, since they cannot be used: 4" in caplog.messages


def test_a_missing_file_to_predict_is_refused_before_training(project, refused):
    (project.data_dir / "test.tsv").unlink()
    [line] = refused(do_train=True, do_predict=True)
    assert line.startswith(f"{project.data_dir}/test.tsv: cannot read the file: No such file or directory")


def test_all_misfits_are_reported_at_once(project, refused):
    project.vocab_file.write_text("\n".join([*TOKENS[:5], *map(str.title, TOKENS[5:]), "More"]))
    weights = random_weights(dataclasses.replace(BertConfig.tiny(len(TOKENS)), hidden_size=16))
    write_checkpoint(project.init_checkpoint, weights)
    problems = refused(max_seq_length=100, num_train_epochs=0.01)
    begins = ("the vocabulary has", "--max_seq_length=100", "the vocabulary is cased", "40 examples in 0.01 epochs")
    begins = (*begins, project.init_checkpoint)
    assert len(problems) == len(begins)
    assert all(problem.startswith(begin) for problem, begin in zip(problems, begins))

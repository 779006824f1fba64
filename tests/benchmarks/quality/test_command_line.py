import sys

import pytest

from benchmarks.quality import command_line, runs
from benchmarks.quality.report import MAY_BE_UNDER
from bert_tf.config import BertConfig
from bert_tf.errors import OutputError

PYTHON = f"--peer_python={sys.executable}"


def parse(*arguments):
    return command_line.parse(["quality", PYTHON, *arguments])


def test_each_task_has_a_bound_and_steps_take_the_place_of_epochs():
    assert MAY_BE_UNDER.keys() == command_line.TRAININGS.keys()
    assert parse("--task=SWAG").training["num_train_epochs"] == 3.0
    training = parse("--task=SWAG", "--steps=5").training
    assert (training["num_train_steps"], "num_train_epochs" in training) == (5, False)
    assert (parse("--task=SQuAD").seeds, parse("--task=SQuAD", "--seeds=2,5").seeds) == ((1, 2, 3), (2, 5))


def test_runs_of_other_settings_are_not_taken_for_ours(tmp_path):
    def prepared(*arguments):
        return runs.prepare(parse("--task=SWAG", f"--runs_dir={tmp_path}", *arguments))

    assert prepared("--steps=5").settings == prepared("--steps=5", "--seeds=4").settings
    with pytest.raises(OutputError, match="holds runs with other settings; name another --runs_dir"):
        prepared("--steps=6")


def test_without_dropout_the_model_has_none(project, tmp_path, monkeypatch):
    monkeypatch.setenv("BERT_BASE_DIR", str(project.vocab_file.parent))
    series = runs.prepare(parse("--task=SQuAD", "--curves", f"--runs_dir={tmp_path}"))
    config = BertConfig.from_json_file(series.settings["bert_config_file"])
    assert (config.hidden_dropout_prob, config.attention_probs_dropout_prob) == (0.0, 0.0)
    assert series.folder != runs.prepare(parse("--task=SQuAD", f"--runs_dir={tmp_path}")).folder


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((PYTHON, "--task=SWAGG"), "--task: unknown task 'SWAGG'; did you mean SWAG?"),
        ((PYTHON,), "--task: unknown task ''"),
        (("--task=SWAG", "--peer_python=/no/python"), "--peer_python: no /no/python; `make benchmark-env` makes it"),
        ((PYTHON, "--task=SWAG", "--seeds=one"), "'one' is not a seed"),
        ((PYTHON, "--task=SWAG", "--data_dir=/no/such"), "/no/such: no such folder"),
    ],
)
def test_an_unusable_flag_is_one_line(arguments, message, capsys):
    assert command_line.main(["quality", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line

from __future__ import annotations

import sys

import pytest

from benchmarks.quality import command_line
from benchmarks.quality.report import MAY_BE_UNDER

PYTHON = f"--peer_python={sys.executable}"


def parse(*arguments):
    return command_line.parse(["quality", PYTHON, *arguments])


def test_each_task_has_a_bound():
    assert MAY_BE_UNDER.keys() == command_line.TRAININGS.keys()


def test_steps_take_the_place_of_epochs():
    assert parse("--task=SWAG").training["num_train_epochs"] == 3.0
    training = parse("--task=SWAG", "--steps=5").training
    assert (training["num_train_steps"], "num_train_epochs" in training) == (5, False)


def test_seeds():
    assert parse("--task=SQuAD").seeds == (1, 2, 3)
    assert parse("--task=SQuAD", "--seeds=2,5").seeds == (2, 5)


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

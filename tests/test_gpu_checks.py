"""The list of checks on a GPU: 26, each with a command that is understood and what was seen."""

import re
import shlex
from pathlib import Path

import pytest

from bert_tf.__main__ import COMMANDS
from bert_tf.optimization import parts
from bert_tf.tasks.registry import get_task
from tests import classifier, declared

PAGE = (Path(__file__).resolve().parents[1] / "docs/gpu_checks.md").read_text(encoding="utf-8")
CHECKS = re.split(r"^### ", PAGE, flags=re.MULTILINE)[1:]
LINES = [line for check in CHECKS for line in re.findall(r"^    (.+)$", check, re.MULTILINE)]
PARSERS = {
    "run_classifier.py": classifier.parse,
    **{f"-m bert_tf {name}": declared.parser(name) for name in ("devices", "memory", "reproduce", "sweep")},
}


def test_there_are_26_with_a_command_and_an_outcome_each():
    assert [check.partition(".")[0] for check in CHECKS] == [str(number) for number in range(1, 27)]
    assert all(re.search(r"^    \S", check, re.MULTILINE) for check in CHECKS)
    if "**Outcome: not run**" in PAGE:
        assert all("Not run." in check for check in CHECKS)
        assert re.search(r"Outcome: not run\*\* \(\d{4}-\d\d-\d\d\)\. \w+", PAGE)


@pytest.mark.parametrize("line", LINES)
def test_its_command_is_understood(line):
    program = line.rpartition("python ")[2].rstrip(")")
    kind = next((kind for kind in PARSERS if program.startswith(kind)), None)
    if kind:
        PARSERS[kind](["program", *shlex.split(program.removeprefix(kind))])
    else:
        assert program == "make run GPU=1" or program.split()[2] in COMMANDS


def test_the_list_has_what_a_gpu_does_otherwise():
    needed = ("GPU=1", "--gpu_memory_limit_mb", "--gpu_memory_growth", "--precision", "--nopack_tokens", "--nodefer_embeddings")
    needed += ("--xla", "--deterministic", "--train_batch_size=auto", "--virtual_devices", "--place", "--profile_steps", "KILL")
    assert [word for word in needed if not any(word in line for line in LINES)] == []


def trained(line):
    """The settings of training, with those that come from the recipe of the bundled sample."""
    program = line.partition("run_classifier.py")
    settings = classifier.parse(["program", *shlex.split(program[2])])
    return classifier.with_recipe(settings, get_task("MRPC").family, default_checkpoint=True, sample_data=True)[0]


def test_what_is_said_of_word_vectors_is_tried_where_they_are_trained():
    """The recipe of the sample freezes them."""
    for line in (line for line in LINES if re.search("--nodefer_embeddings|--deterministic", line)):
        assert "embeddings" not in parts.parse_frozen(trained(line).train.freeze)


def test_the_forecast_is_that_of_the_run_it_is_compared_with():
    (run,) = (trained(line) for line in LINES if "out/gpu_all" in line and "run_classifier" in line)
    (plan,) = (line for line in LINES if "memory plan" in line)
    forecast = declared.parser("memory")(shlex.split(plan.partition("bert_tf ")[2]))[1].settings
    for part in (run.data, run.train, run.speed):
        for name in part.__dataclass_fields__.keys() & forecast.__dataclass_fields__.keys():
            assert getattr(forecast, name) == getattr(part, name), name

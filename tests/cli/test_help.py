"""What --help prints."""

import json
import re
import shlex

import pytest

from bert_tf import __main__ as front
from bert_tf import run_layout
from bert_tf.cli import help as helping
from bert_tf.cli.process import HelpAsked
from bert_tf.operations.command import Actions, flags_of
from bert_tf.tasks.glue import TASKS
from bert_tf.tasks.registry import get_task
from bert_tf.training.run_spec import FINE_TUNE
from tests import declared

OPERATIONS = declared.operations()
PAGES = {name: name.split() for name in {*OPERATIONS, *declared.NAMES}}


def text(name, *, everything=False):
    words = name.split()
    return helping.help_text(words, front.operation(words[0]), everything=everything)


def entries(page):
    """Returns its flags with what is said of them, each on one line."""
    joined = (" ".join(entry.split()) for entry in re.findall(r"^  (--.*(?:\n {4,}.*)*)", page, re.MULTILINE))
    return {entry.partition(" ")[0].replace("[no]", ""): entry for entry in joined}


@pytest.mark.parametrize(("columns", "most"), [("80", 80), ("100", 100), ("300", 100), ("0", 80), ("1", 60)])
def test_lines_fit_the_terminal_up_to_100_columns(columns, most, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    assert helping.width() == most
    if most < 80:  # an example is torn only between its flags
        return
    pages = [front.help_text(), *(text(name, everything=all_flags) for name in PAGES for all_flags in (False, True))]
    assert [line for page in pages for line in page.splitlines() if len(line) > most] == []


@pytest.mark.parametrize("name", OPERATIONS)
def test_help_is_a_sentence_an_example_and_five_flags_and_names_the_others(name):
    command = OPERATIONS[name]
    page = text(name)
    head, example, _ = page.split("\n\n", 2)
    assert re.fullmatch(r"[A-Z](.|\n)*\.", head)
    assert shlex.split(example.replace("\\\n", " ")) == shlex.split(command.example)
    listed = [flag.name for flag in flags_of(command) if flag.help]
    if not command.first:
        assert len(listed) <= 9
        assert set(entries(page)) == {f"--{flag}" for flag in listed}
        return
    assert [f"--{flag}" for flag in command.first] == list(entries(page))
    assert len(command.first) == 5
    assert f"{len(listed) - 5} more flags, all of them by python -m bert_tf {name} --help=all" in " ".join(page.split())
    titles = re.findall(r"^(\w.*):\n  --", text(name, everything=True), re.MULTILINE)
    titles = [title for title in titles if "without effect" not in title]
    assert [title for title in titles if title.partition(" (")[0] not in page] == []


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_example_is_understood(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out" / "mrpc").mkdir(parents=True)
    (tmp_path / "out" / "mrpc" / "run_config.json").write_text(json.dumps({run_layout.DETERMINING: {"task_name": "MRPC"}}))
    command, *_ = name.split()
    words = shlex.split(OPERATIONS[name].example)
    assert words[:3] == ["python", "-m", "bert_tf"]
    assert " ".join(words[3:]).startswith(f"{name} ")
    declared.parser(command)(words[3:])


def test_what_to_do_first_is_understood():
    for line in front._FIRST.values():
        words = shlex.split(line)
        declared.parser(words[0])(words)
        assert line.split(" --")[0] in front.help_text()


def test_an_action_has_help_of_its_own_and_a_group_of_commands_names_its_actions():
    for name, command in ((name, front.operation(name)) for name in declared.NAMES):
        if isinstance(command, Actions):
            assert all(f"\n{name} {action} " in text(name) for action in command.actions)
            assert all(text(f"{name} {action}", everything=True) in text(name, everything=True) for action in command.actions)
            assert "--" not in re.sub(r"(?m)^ {2,}.*", "", text(name)).replace("--help", "").replace("--memory_trace_step", "")


@pytest.mark.parametrize("word", ["-h", "-help", "--help", "--help=all"])
def test_help_is_asked_for_in_four_spellings(word):
    for name in OPERATIONS:
        with pytest.raises(HelpAsked):
            declared.parser(name.split()[0])([*name.split(), word])


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_flag_is_explained_and_every_choice_named(name):
    said = entries(text(name, everything=True))
    for flag in (flag for flag in flags_of(OPERATIONS[name]) if flag.help):
        assert " ".join(flag.help.split()) in said[f"--{flag.name}"]
    for flag in (flag for flag in flags_of(OPERATIONS[name]) if flag.choices):
        missing = [choice for choice in flag.choices if not re.search(rf"\b{choice}\b", said[f"--{flag.name}"])]
        assert missing == [], flag.name


def test_defaults_are_those_that_apply():
    said = entries(text("fine-tune", everything=True))
    assert said["--learning_rate"] == "--learning_rate peak learning rate (default: by recipe, else 5e-5)"
    assert said["--freeze"].endswith("(default: by recipe)")
    assert said["--max_seq_length"].endswith("(default: by recipe, else 128)")
    assert said["--seed"].endswith("(default: 1)")
    assert entries(text("distill", everything=True))["--max_seq_length"].endswith("(default: the teacher's, else 128)")
    assert "required" not in entries(text("distill", everything=True))["--task_name"]
    assert entries(text("memory plan"))["--max_seq_length"].endswith("(default: 128)")
    assert "--learning_rate=5e-05 --train_batch_size=12" in text("fine-tune")
    of_columns = [entries(text(name, everything=True)) for name in ("predict", "calibrate")]
    assert all(said["--text_a"].endswith("title,body or 1,3; default: as trained") for said in of_columns)
    assert entries(text("encode", everything=True))["--text_a"].endswith("(and sentence2)")


def test_every_task_is_named():
    said = entries(text("fine-tune", everything=True))["--task_name"]
    assert all(f" {name}," in said for name in TASKS)
    assert "Pretraining" not in said
    assert "Pretraining" not in text("data check", everything=True) + text("data audit", everything=True)


def test_what_recipes_set_is_by_recipe():
    families = [get_task(name).family for name in ("MRPC", "STS-B", "SQuAD", "CoNLL2003", "SWAG", "STS-B-vectors")]
    recipes_of = [recipe for family in families for recipe in (family.usual_settings, family.sample_settings)]
    assert frozenset().union(*recipes_of) == FINE_TUNE.of_families
    assert FINE_TUNE.of_recipes == FINE_TUNE.of_families | {"adam_bias_correction"}

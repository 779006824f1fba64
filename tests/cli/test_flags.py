"""How command lines are read: words, flags and actions."""

from __future__ import annotations

import sys

import pytest

from bert_tf.cli.flags import Flag, HelpAsked, action_of, read, read_with_words
from bert_tf.documents import LARGEST_SETTING
from bert_tf.errors import FlagError
from tests import declared

ROWS = (Flag("top", int, 3, "how many", 0),)


def test_words_and_flags_come_in_any_order():
    words, values = read_with_words(["memory", "a.txt", "--top=5", "b.txt"], ROWS)
    assert (words, values["top"].value) == (["a.txt", "b.txt"], 5)


@pytest.mark.parametrize("value", ["9999999999", "nan", "inf", "-1e400"])
def test_a_number_is_compared_with_its_bounds_in_every_command(value):
    rows = (Flag("share", float, 0.5, "how much", highest=1e9),)
    with pytest.raises(FlagError, match=r"^flag --share=\S+: not a number up to 1000000000\.0$"):
        read(["memory", f"--share={value}"], rows)


# Numbers of any size: seeds, thresholds, numbers of steps, and what is compared with model, data or devices before use.
OF_ANY_SIZE = set(
    """average_last best check_replicas_every_n_steps depth doc_stride early_stopping_patience eval_every_n_steps
    gpu_memory_limit_mb gpu_memory_mb gradient_accumulation_steps held_out_documents keep_checkpoint_max last
    log_every_n_steps max_answer_length max_eval_steps max_predictions_per_seq max_query_length max_seq_length
    memory_trace_step min_frequency n_best_size num_gpus num_train_steps num_warmup_steps phase2_max_seq_length
    phase2_num_train_steps random_seed sampled_softmax save_checkpoints_steps seed tag_column top
    verbosity word_column""".split()
)


def test_a_number_by_whose_size_something_is_made_has_a_bound():
    every = {name: rows for name, rows in declared.settings().items() if name != "serve"}  # these are limits
    rows = [row for rows in every.values() for row in rows if row.kind is int]
    assert {row.name for row in rows if row.highest == LARGEST_SETTING} == OF_ANY_SIZE


def test_a_name_that_is_not_utf8_is_refused():
    with pytest.raises(FlagError, match=r"^'--top=\\udcff': bytes that are not UTF-8; rename the file$"):
        read(["memory", "--top=\udcff"], ROWS)


def test_a_locale_without_the_letters_of_a_name_is_told(monkeypatch):
    monkeypatch.setattr(sys, "getfilesystemencoding", lambda: "ascii")
    with pytest.raises(FlagError, match=r"^--top=é: the locale takes ascii alone; set PYTHONUTF8=1, or rename the file$"):
        read(["memory", "--top=\udcc3\udca9"], ROWS)


def test_an_action_is_the_first_word():
    assert action_of(["data", "check", "fetch"], ("fetch", "check")) == "check"


@pytest.mark.parametrize("argv", [["data"], ["data", "--help"], ["data", "-h"]])
def test_without_an_action_there_is_help(argv):
    with pytest.raises(HelpAsked):
        action_of(argv, ("fetch",))


def test_an_unknown_action_is_compared_with_the_known_ones():
    with pytest.raises(FlagError, match=r"^data: unknown action 'fetsch'; did you mean fetch\?"):
        action_of(["data", "fetsch"], ("fetch", "check"))


TABLES = declared.flags()


@pytest.mark.parametrize("command", TABLES)
def test_an_empty_flag_is_a_mistake(command):
    for row in (row for row in TABLES[command] if not row.may_be_empty):
        with pytest.raises(FlagError, match=f"^--{row.name} is empty: is a variable of the shell not set"):
            read([command, f"--{row.name}="], [row])


def test_an_empty_flag_of_its_own_word_is_a_mistake():
    with pytest.raises(FlagError, match="^--name is empty"):
        read(["data", "--name", ""], (Flag("name", str, None, ""),))


@pytest.mark.parametrize("name", ["flagfile", "undefok"])
def test_an_empty_flag_of_absl_is_a_mistake(name):
    with pytest.raises(FlagError, match=f"^--{name} is empty"):
        read(["data", f"--{name}="], ROWS)


def test_an_empty_word_is_a_mistake():
    with pytest.raises(FlagError, match="^report: a name is empty"):
        read_with_words(["report", "a", ""], ROWS)


@pytest.mark.parametrize("words", [["--flagfile=/dev/zero"], ["--flagfile", "/dev/zero"], ["-flagfile=/dev/zero"]])
def test_a_file_of_flags_without_end_is_refused(words):
    with pytest.raises(FlagError, match="^--flagfile=/dev/zero: it is a device"):
        read(["p", *words], [])

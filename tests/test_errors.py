"""Errors carry the place and the hint in their message."""

from __future__ import annotations

import pickle

import pytest

from bert_tf import errors
from bert_tf.errors import BertError, DataError, PreflightError, VocabularyError, unknown_name


@pytest.mark.parametrize("name", [name for name in vars(errors) if name.endswith("Error") and name != "BertError"])
def test_every_error_is_caught_as_bert_error(name):
    assert issubclass(getattr(errors, name), BertError)


@pytest.mark.parametrize("name", [name for name in vars(errors) if name.endswith("Error")])
def test_every_error_is_drawn_in_the_tree(name):
    assert f"{name} " in errors.__doc__ or f"{name}\n" in errors.__doc__


def test_vocabulary_error_is_a_data_error():
    assert issubclass(VocabularyError, DataError)


def test_data_error_begins_with_file_and_line():
    assert str(DataError("text is empty", "data/train.tsv", 7)) == "data/train.tsv:7: text is empty"


def test_data_error_without_line_begins_with_file():
    assert str(DataError("the file is empty", "data/train.tsv")) == "data/train.tsv: the file is empty"


def test_preflight_error_has_one_line_for_each_problem():
    assert str(PreflightError(["first", "second"])) == "first\nsecond"


def test_preflight_error_keeps_its_problems_apart():
    assert PreflightError(["first", "second"]).problems == ("first", "second")


def test_unknown_name_lists_the_known_ones_in_order():
    assert unknown_name("task", "zzz", ["RTE", "CoLA"]) == "unknown task 'zzz' (known: CoLA, RTE)"


@pytest.mark.parametrize("written", ["MRCP", "mrcp", "MRP"])
def test_unknown_name_names_the_nearest_known_one_whatever_the_case(written):
    assert unknown_name("task", written, ["CoLA", "MRPC"]) == (
        f"unknown task '{written}'; did you mean MRPC? (known: CoLA, MRPC)"
    )


@pytest.mark.parametrize("error", [DataError("is empty", "x.txt", 7), PreflightError(["first", "second"]), BertError("all")])
def test_an_error_goes_to_another_process(error):
    found = pickle.loads(pickle.dumps(error))  # noqa: S301  (its own)
    assert (type(found), str(found), vars(found)) == (type(error), str(error), vars(error))

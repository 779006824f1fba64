"""Errors carry the place and the hint in their message."""

from __future__ import annotations

import pickle

import pytest

from bert_tf import errors
from bert_tf.errors import BertError, DataError, PreflightError, VocabularyError, unknown_name


def test_every_error_is_caught_as_bert_error_and_drawn_in_the_tree():
    for name in (name for name in vars(errors) if name.endswith("Error")):
        assert issubclass(getattr(errors, name), BertError)
        assert f"{name} " in errors.__doc__ or f"{name}\n" in errors.__doc__
    assert issubclass(VocabularyError, DataError)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (DataError("text is empty", "data/train.tsv", 7), "data/train.tsv:7: text is empty"),
        (DataError("the file is empty", "data/train.tsv"), "data/train.tsv: the file is empty"),
        (PreflightError(["first", "second"]), "first\nsecond"),
        (BertError("all"), "all"),
    ],
)
def test_an_error_begins_with_its_place_in_another_process_too(error, text):
    found = pickle.loads(pickle.dumps(error))  # noqa: S301  (its own)
    assert (type(found), str(found), vars(found)) == (type(error), text, vars(error))
    assert getattr(error, "problems", ("first", "second")) == ("first", "second")


@pytest.mark.parametrize("written", ["MRCP", "mrcp", "MRP"])
def test_unknown_name_names_the_nearest_known_one_whatever_the_case(written):
    assert unknown_name("task", written, ["MRPC", "CoLA"]) == (
        f"unknown task '{written}'; did you mean MRPC? (known: CoLA, MRPC)"
    )
    assert unknown_name("task", "zzz", ["RTE", "CoLA"]) == "unknown task 'zzz' (known: CoLA, RTE)"

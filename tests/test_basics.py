"""Errors, folders of users, progress bars, widths of fields, numbers of things."""

import io
import pickle
import sys
from pathlib import Path
from types import SimpleNamespace

import platformdirs
import pytest

from bert_tf import errors, home
from bert_tf.errors import BadRowsError, BertError, DataError, OutputError, PreflightError, VocabularyError, unknown_name
from bert_tf.fields import HIDDEN, Field
from bert_tf.io import progress
from bert_tf.io.documents import NotJsonError
from bert_tf.io.text_table import counted
from bert_tf.tasks.cells import UnknownLabelError


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
        (BadRowsError(["first", "second"]), "first\nsecond"),
        (UnknownLabelError("unknown label 'x'", "x"), "unknown label 'x'"),
        (NotJsonError("not JSON", 3, is_cut=True), "line 3: not JSON"),
    ],
)
def test_an_error_begins_with_its_place_in_another_process_too(error, text):
    unpickled = pickle.loads(pickle.dumps(error))  # noqa: S301  (its own)
    assert (type(unpickled), str(unpickled), vars(unpickled)) == (type(error), text, vars(error))
    assert getattr(error, "problems", ("first", "second")) == ("first", "second")


@pytest.mark.parametrize("written", ["MRCP", "mrcp", "MRP"])
def test_unknown_name_names_the_nearest_known_one_whatever_the_case(written):
    hint = f"unknown task '{written}'; did you mean MRPC? (known: CoLA, MRPC)"
    assert unknown_name("task", written, ["MRPC", "CoLA"]) == hint
    assert unknown_name("task", "zzz", ["RTE", "CoLA"]) == "unknown task 'zzz' (known: CoLA, RTE)"


@pytest.fixture
def installed(tmp_path):
    return tmp_path / "site-packages" / "bert_tf"


def test_files_are_beside_a_clone_or_in_the_users_cache_unless_a_variable_names_a_folder(installed, monkeypatch):
    assert home.folder({}) == Path(__file__).resolve().parents[1] == home.clone()
    assert home.clone(installed) is None
    assert home.folder({}, installed) == home.folder({"BERT_TF_HOME": ""}, installed) == platformdirs.user_cache_path("bert_tf")
    monkeypatch.setenv("HOME", "/home/me")
    variable = {"BERT_TF_HOME": "~/bert"}
    assert home.folder(variable, installed) == home.folder(variable) == Path("/home/me/bert")
    assert (home.SAMPLE / "MRPC" / "train.tsv").is_file()


@pytest.mark.parametrize("named", ["", "~/bert", "~nobody.of.this.name/bert"])
def test_a_user_without_a_home_folder_is_told_what_to_set(named, installed, monkeypatch):
    def unknown(_):
        raise KeyError("uid not found")

    monkeypatch.delenv("HOME")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    with pytest.raises(OutputError, match=r"has no home folder: set HOME, or BERT_TF_HOME, to a folder that can be written"):
        home.folder({"BERT_TF_HOME": named}, installed)


@pytest.mark.parametrize(("terminal", "notebook"), [(True, False), (False, True), (False, False)])
def test_bars_and_lines_of_progress_show_themselves_if_somebody_looks(monkeypatch, terminal, notebook):
    written = []
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: terminal, write=written.append, flush=lambda: None))
    if notebook:
        monkeypatch.setitem(sys.modules, "ipykernel.kernelapp", SimpleNamespace())
    progress.say("done")
    assert "".join(written) == ("done\n" if terminal or notebook else "")
    with progress.bar() as bar:  # of an unknown number
        assert (bar.disable, bar.total) == (not (terminal or notebook), None)


def _closed():
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("stream", [None, SimpleNamespace(write=len, flush=lambda: None), _closed()])
def test_a_program_may_have_a_standard_error_that_is_no_file(monkeypatch, stream):
    monkeypatch.setattr(sys, "stderr", stream)
    assert not progress.on_terminal()
    progress.say("done")
    with progress.bar() as bar:
        assert bar.disable


def test_the_encoder_says_how_wide_its_vectors_are():
    assert Field("vectors", width=HIDDEN).sized(8).shape(3, 5) == (3, 8)
    assert Field("logits", width=2).sized(8).shape(3, 5) == (3, 2)


def test_one_thing_has_no_plural():
    assert [counted(number, "word") for number in (0, 1, 2000)] == ["0 words", "1 word", "2,000 words"]

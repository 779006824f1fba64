"""Where fetched files are kept."""

from __future__ import annotations

from pathlib import Path

import platformdirs
import pytest

from bert_tf import home
from bert_tf.errors import OutputError


@pytest.fixture
def installed(tmp_path):
    return tmp_path / "site-packages" / "bert_tf"


def test_a_clone_keeps_them_beside_the_package():
    assert home.folder({}) == Path(__file__).resolve().parents[1] == home.clone()


def test_an_installed_package_keeps_them_in_the_user_s_cache(installed):
    assert home.clone(installed) is None
    assert home.folder({}, installed) == home.folder({"BERT_TF_HOME": ""}, installed) == platformdirs.user_cache_path("bert_tf")


def test_a_variable_goes_before_both(installed, monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    assert (
        home.folder({"BERT_TF_HOME": "~/bert"}, installed) == home.folder({"BERT_TF_HOME": "~/bert"}) == Path("/home/me/bert")
    )


def test_the_sample_is_in_the_package():
    assert (home.SAMPLE / "MRPC" / "train.tsv").is_file()


@pytest.mark.parametrize(
    "environment", [{}, {"BERT_TF_HOME": "~/bert"}, {"BERT_TF_HOME": "~nobody.of.this.name/bert"}], ids=str
)
def test_a_user_without_a_home_folder_is_told_what_to_set(environment, installed, monkeypatch):
    def unknown(_):
        raise KeyError("uid not found")

    monkeypatch.delenv("HOME")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    with pytest.raises(OutputError, match=r"has no home folder: set HOME, or BERT_TF_HOME, to a folder that can be written"):
        home.folder(environment, installed)

"""The scripts of a page, and what is kept of them."""

import base64
import hashlib
import os

import pytest

from bert_tf.extensions.report import scripts

PACKED = "window.vegaEmbed = 1; // </script>"


@pytest.fixture
def packed(monkeypatch, tmp_path):
    """How often a script was packed, with a cache of its own."""
    calls = []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("vl_convert.javascript_bundle", lambda export: calls.append(export) or PACKED)
    return calls


def fresh():
    """The script as a new process gets it."""
    return scripts.vega.__wrapped__()


def kept(folder):
    (path,) = (folder / "cache" / "bert_tf").iterdir()
    return path


def test_packed_once_on_a_machine_with_the_notices_of_its_licences(packed):
    """BSD-3-Clause, ISC and MIT: copyright, conditions and disclaimer go with every copy."""
    text = fresh()
    assert (fresh(), len(packed)) == (text, 1)
    assert "</script" not in text
    notices = text.partition("*/")[0]
    for holder in ("University of Washington Interactive Data Lab", "Mike Bostock", "Mapbox", "Joachim Wester", "Simon Lydell"):
        assert holder in notices
    assert notices.count("WARRANT") >= 3
    assert "this list of conditions and the following disclaimer" in notices


def test_packed_again_where_what_was_kept_is_damaged(packed, tmp_path):
    whole = fresh()
    for damage in (lambda text: text[:-1], lambda text: text.replace("= 1", "= 2"), lambda _: ""):
        kept(tmp_path).write_text(damage(kept(tmp_path).read_text()))
        assert fresh() == whole
    assert len(packed) == 4


def test_what_is_kept_is_used_whatever_the_umask(packed):
    before = os.umask(0)
    try:
        assert fresh() == fresh()
    finally:
        os.umask(before)
    assert len(packed) == 1


def test_page_is_made_where_nothing_can_be_kept(packed, tmp_path, monkeypatch):
    (tmp_path / "cache").write_text("no folder")
    assert fresh() == fresh()
    assert len(packed) == 2
    # A user without a home gets no folder in the current one.
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "~/.cache")
    fresh()
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


def test_own_script_is_in_the_package_and_its_source_is_its_digest():
    assert "vegaEmbed" in scripts.live()
    assert "</script" not in scripts.live()
    digest = base64.b64encode(hashlib.sha256("a\u00e9".encode()).digest()).decode()
    assert scripts.source("a\u00e9") == f"'sha256-{digest}'"

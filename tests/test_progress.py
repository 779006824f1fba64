"""Where progress bars show themselves."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from bert_tf import progress


@pytest.mark.parametrize(("terminal", "notebook", "shown"), [(True, False, True), (False, True, True), (False, False, False)])
def test_a_bar_shows_itself_where_somebody_looks(monkeypatch, terminal, notebook, shown):
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: terminal, write=len, flush=lambda: None))
    if notebook:
        monkeypatch.setitem(sys.modules, "ipykernel", SimpleNamespace())
    with progress.bar(total=3) as bar:
        assert bar.disable is not shown


def test_how_many_there_are_may_be_unknown():
    assert progress.bar().total is None


@pytest.mark.parametrize("terminal", [True, False])
def test_a_line_is_written_where_a_bar_would_be(monkeypatch, terminal):
    written = []
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: terminal, write=written.append, flush=lambda: None))
    progress.say("done")
    assert "".join(written) == ("done\n" if terminal else "")

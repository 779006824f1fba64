from __future__ import annotations

import pytest

from bert_tf import __main__ as front


@pytest.fixture
def call(capsys):
    """Runs a command line; returns its exit status, output and errors."""

    def call(*words):
        status = front.main(["bert_tf", *map(str, words)])
        return status, *capsys.readouterr()

    return call

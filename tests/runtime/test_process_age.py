from __future__ import annotations

import time

import pytest

from bert_tf.runtime import process_age


def test_a_process_is_older_than_what_it_imported():
    assert process_age.seconds() >= time.monotonic() - process_age._IMPORTED


@pytest.mark.parametrize(
    "text", ["", "1 (python) R", "1 (a b) c) " + " ".join(["x"] * 50), "1 (p) " + " ".join(["9" * 18] * 50)]
)
def test_a_system_that_does_not_tell_counts_from_the_import(tmp_path, monkeypatch, text):
    path = tmp_path / "stat"
    path.write_text(text)
    monkeypatch.setattr(process_age, "_STAT", path)
    monkeypatch.setattr(process_age, "_IMPORTED", time.monotonic() - 5.0)
    assert 5.0 <= process_age.seconds() < 60.0

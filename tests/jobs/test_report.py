"""The page of a run, at its end."""

from __future__ import annotations

import sys
import threading

from bert_tf.jobs import report


def test_a_library_that_cannot_be_started_ahead_is_not_missed_before_the_page(monkeypatch):
    failed = []
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    monkeypatch.setattr(threading, "excepthook", failed.append)
    report.start_ahead()
    for thread in threading.enumerate():
        if thread.name == "start Vega":
            thread.join()
    assert failed == []

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

from bert_tf import log_form
from bert_tf.estimator.progress_hook import RatesHook


@pytest.mark.parametrize(
    ("every", "expected"),
    [
        (1, ["global_step/sec: 0.5", "examples/sec: 4"] * 4),
        (3, ["global_step/sec: 1.5", "examples/sec: 12"]),
    ],
)
def test_rates_are_logged_as_the_published_script_does(monkeypatch, caplog, every, expected):
    ticks = itertools.count(0, 2)  # the start and each report look at the clock once
    monkeypatch.setattr("bert_tf.estimator.progress_hook.time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    log_form.choose(log_form.PUBLISHED)
    hook = RatesHook(8, every_n_steps=every)
    hook.after_create_session(None, None)
    with caplog.at_level("INFO"):
        for _ in range(4):
            hook.after_run(None, None)
    assert caplog.messages == expected

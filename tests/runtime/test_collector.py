from __future__ import annotations

import gc

import pytest

from bert_tf.runtime import collector


@pytest.fixture(autouse=True)
def _as_before():
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


def test_the_collector_stays_on_and_waits_longer():
    collector.collect_rarely()
    assert gc.isenabled()
    assert gc.get_threshold()[0] > 100 * 700

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from bert_tf.runtime import quick_import


@pytest.fixture(autouse=True)
def _as_before():
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


def test_the_collector_stays_on_and_waits_longer():
    quick_import.collect_rarely()
    assert gc.isenabled()
    assert gc.get_threshold()[0] > 100 * 700


def test_nothing_is_collected_once_more_at_the_end_of_the_process():
    code = (
        "import atexit, gc; from bert_tf.runtime import quick_import; gc.disable();"
        "atexit.register(lambda: print(gc.get_freeze_count() > 1000));"
        "quick_import.collect_rarely()"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "True\n"

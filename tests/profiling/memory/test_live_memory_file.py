"""Files of live memory."""

from __future__ import annotations

import re

import numpy as np
import pytest

from bert_tf.errors import DataError
from bert_tf.profiling.memory import live_memory_file
from bert_tf.profiling.memory.live_memory import Change, LiveMemory
from bert_tf.profiling.memory.live_memory_file import Step

POOL = LiveMemory(
    (Change(1000, 100, "a"), Change(1030, 200, "b/c"), Change(1030, -100, "a"), Change(1060, -200, "b/c")),
    np.array([100, 300, 200, 0]),
    before=1000,
    allocator_peak=1300,
)
HOST = LiveMemory((Change(1010, 7, "d"),), np.array([7]))
STEP = Step(12, {"pool": POOL, "host": HOST}, {"pool": {"weights": 400, "optimizer_state": 500}})
TEXT = """# live memory of step 12
# allocator\tpool\tbefore\t1000\tpeak\t1300
# allocator\thost
# held\tpool\tweights\t400\toptimizer_state\t500
microseconds\tbytes\tlive\tallocator\toperation
0\t100\t100\tpool\ta
10\t7\t7\thost\td
30\t200\t300\tpool\tb/c
30\t-100\t200\tpool\ta
60\t-200\t0\tpool\tb/c
"""


def written(tmp_path, text):
    path = tmp_path / "live.tsv"
    path.write_text(text)
    return path


def test_is_a_table_in_the_order_of_time(tmp_path):
    live_memory_file.write(tmp_path / "live.tsv", STEP)
    assert (tmp_path / "live.tsv").read_text() == TEXT
    assert [path.name for path in tmp_path.iterdir()] == ["live.tsv"]


def test_reads_what_was_written(tmp_path):
    step = live_memory_file.read(written(tmp_path, TEXT))
    assert (step.number, step.held) == (STEP.number, STEP.held)
    for name, memory in STEP.memories.items():
        found = step.memories[name]
        assert [change._replace(micros=change.micros + 1000) for change in found.changes] == list(memory.changes)
        assert found.live.tolist() == memory.live.tolist()
        assert (found.before, found.allocator_peak) == (memory.before, memory.allocator_peak)


def test_line_ends_of_windows(tmp_path):
    assert live_memory_file.read(written(tmp_path, TEXT.replace("\n", "\r\n"))).memories["pool"].peak == 300


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("10\t7\t7", "10\t7", 7),
        ("10\t7\t7", "10\tx\t7", 7),
        ("30\t200\t300", "30\t201\t300", 8),  # no longer adds up
        ("10\t7\t7", f"10\t{1 << 63}\t{1 << 63}", 7),  # more than any memory
        ("before\t1000", "before\tmany", 2),
        ("before\t1000", f"before\t{1 << 63}", 2),
        ("of step 12", "of step twelve", 1),
        ("# allocator\thost", "# allocator", 3),
    ],
)
def test_damage_is_named_with_its_line(tmp_path, old, new, line):
    path = written(tmp_path, TEXT.replace(old, new))
    with pytest.raises(DataError, match=f"{re.escape(str(path))}:{line}: want .*--memory_trace_step"):
        live_memory_file.read(path)


def test_another_file(tmp_path):
    with pytest.raises(DataError, match="not a file of live memory"):
        live_memory_file.read(written(tmp_path, "SrcNode a 0\n"))
    with pytest.raises(DataError, match="cannot read: No such file"):
        live_memory_file.read(tmp_path / "none")

"""The allocator of GPU memory: cases counted by hand, and what TensorFlow's own did."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.profiling import bfc_events
from tests.profiling.bfc import Allocator, OutOfMemoryError

KB, MB = 1 << 10, 1 << 20


@pytest.mark.parametrize(
    ("asked", "before", "given"),
    [(513, KB, 1024), (512, KB, 512), (300 * MB, 428 * MB, 300 * MB), (300 * MB, 427 * MB, 427 * MB)],
)
def test_a_chunk_is_split_where_it_has_twice_the_size_or_128_mib_are_left(asked, before, given):
    allocator = Allocator(before)
    assert allocator.size(allocator.allocate(asked)) == given


def test_regions_double_and_hold_what_is_asked_for():
    allocator = Allocator(64 * MB, growth=True)
    reserved = []
    for size in (MB, 2 * MB, 9 * MB, 9 * MB):  # 2 MiB; 4; 8 is too little: 16, which has 16 - 9 left; 16 again
        allocator.allocate(size)
        reserved.append(allocator.reserved)
    assert reserved == [2 * MB, 6 * MB, 22 * MB, 38 * MB]


@pytest.mark.parametrize("collects", [True, False])
def test_regions_that_are_free_go_back_before_memory_is_out(collects):
    allocator = Allocator(6 * MB, growth=True, collects=collects)
    for address in [allocator.allocate(2 * MB), allocator.allocate(4 * MB)]:
        allocator.free(address)
    if collects:
        assert allocator.size(allocator.allocate(6 * MB)) == 6 * MB == allocator.reserved
    else:
        with pytest.raises(OutOfMemoryError):
            allocator.allocate(6 * MB)


def test_every_chunk_is_where_tensorflow_put_it():
    """Recorded of TensorFlow 2.15.1: `python -m tests.profiling.bfc_events`; best fit, joined neighbours, regions."""
    events = bfc_events.read(Path(__file__).with_name("bfc_recorded.txt").read_text().splitlines())
    assert len(events) > 300
    assert bfc_events.differences(events) == []


@pytest.mark.slow
def test_every_chunk_is_where_the_installed_tensorflow_puts_it():
    done = subprocess.run([sys.executable, "-m", "tests.profiling.bfc_events"], capture_output=True, text=True, check=True)
    events = bfc_events.read(done.stdout.splitlines())
    assert len(events) > 300
    assert bfc_events.differences(events) == []

"""The allocator of GPU memory: cases counted by hand, and what TensorFlow's own did."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.profiling import bfc_events
from tests.profiling.bfc import Allocator, OutOfMemoryError

KB, MB = 1 << 10, 1 << 20


def whole(size):
    return Allocator(size, base=lambda: 0)


@pytest.mark.parametrize(("size", "taken"), [(1, 256), (256, 256), (257, 512)])
def test_sizes_are_multiples_of_256(size, taken):
    allocator = whole(MB)
    assert allocator.size(allocator.allocate(size)) == taken == allocator.in_use


def test_tensors_lie_one_after_the_other():
    allocator = whole(MB)
    assert [allocator.allocate(KB) for _ in range(3)] == [0, KB, 2 * KB]


def test_the_smallest_chunk_that_is_large_enough_is_taken():
    allocator = whole(MB)
    large, _, small, _ = (allocator.allocate(size) for size in (16 * KB, KB, 8 * KB, KB))
    allocator.free(large)
    allocator.free(small)
    assert allocator.allocate(4 * KB) == small


@pytest.mark.parametrize(("asked", "given"), [(513, 1024), (512, 512)])
def test_a_chunk_is_split_where_it_has_twice_the_size(asked, given):
    allocator = whole(MB)
    chunk, _ = allocator.allocate(KB), allocator.allocate(KB)
    allocator.free(chunk)
    assert allocator.allocate(asked) == chunk
    assert allocator.size(chunk) == given


@pytest.mark.parametrize(("more", "given"), [(128, 300), (127, 300 + 127)])
def test_a_chunk_is_split_where_128_mib_are_left(more, given):
    allocator = whole((300 + more) * MB)
    assert allocator.size(allocator.allocate(300 * MB)) == given * MB


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (0, 2, 1)])
def test_free_neighbours_are_joined(order):
    allocator = whole(3 * KB)
    chunks = [allocator.allocate(KB) for _ in range(3)]
    for number in order:
        allocator.free(chunks[number])
    assert allocator.size(allocator.allocate(3 * KB)) == 3 * KB


def test_gaps_between_tensors_are_of_no_use():
    allocator = whole(4 * KB)
    chunks = [allocator.allocate(KB) for _ in range(4)]
    allocator.free(chunks[0])
    allocator.free(chunks[2])
    with pytest.raises(OutOfMemoryError, match=f"2048 bytes; 2048 of {4 * KB} are in use"):
        allocator.allocate(2 * KB)


def test_regions_double_and_hold_what_is_asked_for():
    allocator = Allocator(64 * MB, growth=True)
    reserved = []
    for size in (MB, 2 * MB, 9 * MB, 9 * MB):  # 2 MiB; 4; 8 is too little: 16, which has 16 - 9 left; 16 again
        allocator.allocate(size)
        reserved.append(allocator.reserved)
    assert reserved == [2 * MB, 6 * MB, 22 * MB, 38 * MB]


def test_the_last_region_is_what_the_limit_leaves():
    allocator = Allocator(5 * MB, growth=True)
    allocator.allocate(2 * MB)
    allocator.allocate(3 * MB)
    assert allocator.reserved == 5 * MB


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


def test_the_peak_counts_whole_chunks():
    allocator = whole(KB)
    allocator.free(allocator.allocate(1))
    allocator.free(allocator.allocate(513))
    assert (allocator.peak, allocator.in_use) == (KB, 0)


def test_every_chunk_is_where_tensorflow_put_it():
    """Recorded of TensorFlow 2.15.1: `python -m tests.profiling.bfc_events`."""
    events = bfc_events.read(Path(__file__).with_name("bfc_recorded.txt").read_text().splitlines())
    assert len(events) > 300
    assert bfc_events.differences(events) == []


@pytest.mark.slow
def test_every_chunk_is_where_the_installed_tensorflow_puts_it():
    done = subprocess.run([sys.executable, "-m", "tests.profiling.bfc_events"], capture_output=True, text=True, check=True)
    events = bfc_events.read(done.stdout.splitlines())
    assert len(events) > 300
    assert bfc_events.differences(events) == []

import sys
import time
from types import SimpleNamespace

import pytest

from bert_tf.errors import FlagError
from bert_tf.profiling.timing import ranges
from bert_tf.profiling.timing.ranges import CudaProfiler, Ranges, StepRange


def test_ranges_reach_nsight_under_their_shown_names(monkeypatch):
    told = []
    fake = SimpleNamespace(
        start_range=lambda message: told.append(("start", message)) or message,
        end_range=lambda mark: told.append(("end", mark)),
        __spec__=SimpleNamespace(),
    )
    monkeypatch.setitem(sys.modules, "nvtx", fake)
    marks = Ranges()
    marks.start("batch", shown="batch 20")
    marks.start("data")
    marks.end("data")
    marks.end_all()
    assert told == [("start", "batch 20"), ("start", "data"), ("end", "data"), ("end", "batch 20")]
    assert marks.seen_by_nsight


def test_without_nvtx_ranges_are_measured_all_the_same(monkeypatch):
    monkeypatch.setitem(sys.modules, "nvtx", None)  # its import fails
    marks = Ranges()
    marks.end("data")  # it is not open
    assert dict(marks.seconds) == {}
    marks.start("data")
    time.sleep(0.01)
    marks.end("data")
    assert marks.seconds["data"][0] >= 0.01
    assert not marks.seen_by_nsight


def test_cuda_s_profiler_is_told_where_a_runtime_is_loaded(monkeypatch):
    told = []
    runtime = SimpleNamespace(cudaProfilerStart=lambda: told.append("start"), cudaProfilerStop=lambda: told.append("stop"))
    monkeypatch.setattr(ranges, "loaded_library", lambda name: f"/usr/lib/{name}")
    monkeypatch.setattr(ranges.ctypes, "CDLL", lambda path: told.append(path) or runtime)
    profiler = CudaProfiler()
    profiler.start()
    profiler.stop()
    monkeypatch.setattr(ranges, "loaded_library", lambda _: None)
    CudaProfiler().start()
    CudaProfiler().stop()
    assert told == ["/usr/lib/libcudart.so", "start", "stop"]


def test_a_loaded_library_is_found_by_the_memory_map(tmp_path, monkeypatch):
    maps = tmp_path / "maps"
    maps.write_text("7f0-7f1 r-xp 00000000 fe:00 12 /opt/cuda/libcudart.so.12\n7f2-7f3 rw-p 00000000 00:00 0\n")
    monkeypatch.setattr(ranges, "_MAPS", maps)
    assert ranges.loaded_library("libcudart.so") == "/opt/cuda/libcudart.so.12"
    assert ranges.loaded_library("libcuda.so") is None


@pytest.mark.parametrize(("text", "first", "last"), [("20-30", 20, 30), ("7", 7, 7), (" 1-1 ", 1, 1)])
def test_a_range_of_steps_has_both_ends(text, first, last):
    assert StepRange.parse("profile_steps", text) == StepRange(first, last)


@pytest.mark.parametrize("text", ["", "a-b", "20-", "-20", "20,30", "30-20", "0-3", "9999999999"])
def test_other_texts_are_rejected_with_the_flag(text):
    with pytest.raises(FlagError, match=f"^--profile_steps={text}: "):
        StepRange.parse("profile_steps", text)

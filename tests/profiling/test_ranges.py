import sys
import time
from types import SimpleNamespace

from bert_tf.profiling.wall_clock import Ranges


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

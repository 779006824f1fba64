"""The profiler of CUDA, in the library that TensorFlow has loaded."""

from types import SimpleNamespace

from bert_tf.extensions.profile import cuda_profiler
from bert_tf.extensions.profile.cuda_profiler import CudaProfiler


def test_cuda_s_profiler_is_told_where_a_runtime_is_loaded(monkeypatch):
    told = []
    runtime = SimpleNamespace(cudaProfilerStart=lambda: told.append("start"), cudaProfilerStop=lambda: told.append("stop"))
    monkeypatch.setattr(cuda_profiler, "loaded_library", lambda name: f"/usr/lib/{name}")
    monkeypatch.setattr(cuda_profiler.ctypes, "CDLL", lambda path: told.append(path) or runtime)
    profiler = CudaProfiler()
    profiler.start()
    profiler.stop()
    monkeypatch.setattr(cuda_profiler, "loaded_library", lambda _: None)
    CudaProfiler().start()
    CudaProfiler().stop()
    assert told == ["/usr/lib/libcudart.so", "start", "stop"]


def test_a_loaded_library_is_found_by_the_memory_map(tmp_path, monkeypatch):
    maps = tmp_path / "maps"
    maps.write_text("7f0-7f1 r-xp 00000000 fe:00 12 /opt/cuda/libcudart.so.12\n7f2-7f3 rw-p 00000000 00:00 0\n")
    monkeypatch.setattr(cuda_profiler, "_MAPS", maps)
    assert cuda_profiler.loaded_library("libcudart.so") == "/opt/cuda/libcudart.so.12"
    assert cuda_profiler.loaded_library("libcuda.so") is None

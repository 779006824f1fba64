"""Failures of GPUs, in TensorFlow's own words, as one line."""

import re

import pytest
import tensorflow as tf

from bert_tf.cli import process
from bert_tf.errors import DeviceError, LostPeerError, TrainingError
from bert_tf.estimator.failures import readable_errors
from bert_tf.runtime import gpu_failures, machine, nvidia
from bert_tf.runtime.cluster import Cluster
from bert_tf.runtime.nvidia import Process
from bert_tf.runtime.settings import DeviceSettings
from tests.runtime.fake_machine import FakeMachine

MEMORY, DRIVER, CRASH = ("no GPU memory is left", "refuse to work; python -m bert_tf devices", "it failed while it computed")
CODE, BUSY, PEERS = "TensorFlow has no code for this GPU", "another process has it to itself", "GPUs cannot reach each other"
BUS = "0000:01:00.0"

SAID = {
    "cudaSetDevice() on GPU:0 failed. Status: out of memory": MEMORY,
    "CUDA runtime implicit initialization on GPU:0 failed. Status: out of memory": MEMORY,
    "failed to create cublas handle: the library was not initialized": MEMORY,
    "Attempting to perform BLAS operation using StreamExecutor without BLAS support\n\t [[{{node MatMul}}]]": MEMORY,
    "Blas xGEMMBatched launch failed : a.shape=[12,64,64]": MEMORY,
    "CUBLAS_STATUS_NOT_INITIALIZED": MEMORY,
    "Could not create cudnn handle: CUDNN_STATUS_ALLOC_FAILED": MEMORY,
    "CUDNN_STATUS_INTERNAL_ERROR": MEMORY,
    "DNN library is not found.": MEMORY,
    "failed to allocate 23.10GiB from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory": MEMORY,
    "Failed to create cuSolverDN instance.": MEMORY,
    "Failed copying input tensor from CPU:0 to GPU:0 in order to run Identity: Dst tensor is not initialized.": MEMORY,
    "CUDNN_STATUS_EXECUTION_FAILED": CRASH,
    "CUDNN_STATUS_NOT_SUPPORTED": DRIVER,
    "cudaGetDevice() failed. Status: CUDA driver version is insufficient for CUDA runtime version": DRIVER,
    "cudaGetDevice() failed. Status: initialization error": DRIVER,
    "Failed to get the number of GPU devices: CUDA_ERROR_NO_DEVICE": DRIVER,
    "CUDA runtime implicit initialization on GPU:1 failed. Status: unknown error": DRIVER,
    "cudaSetDevice() on GPU:0 failed. Status: all CUDA-capable devices are busy or unavailable": BUSY,
    "CUDA_ERROR_DEVICE_UNAVAILABLE": BUSY,
    "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered": CRASH,
    "could not synchronize on CUDA context: CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure": CRASH,
    "GPU sync failed: uncorrectable ECC error encountered": CRASH,
    "Failed to load in-memory CUBIN: CUDA_ERROR_NO_BINARY_FOR_GPU: no kernel image is available for execution": CODE,
    "the provided PTX was compiled with an unsupported toolchain.": CODE,
    "Error invoking NCCL: invalid usage. Set NCCL_DEBUG=WARN for detail.": PEERS,
    "Error invoking NCCL: internal error. Set NCCL_DEBUG=WARN for detail.": PEERS,
    f"(0) INTERNAL: {'x' * 500} CUDNN_STATUS_ALLOC_FAILED {'y' * 500}": MEMORY,
    "NCCL: nccl.cc:12: NCCL operation ncclGroupEnd() failed: unhandled system error": PEERS,
}


@pytest.fixture(autouse=True)
def _no_others(monkeypatch):
    monkeypatch.setattr(nvidia, "other_processes", tuple)


@pytest.mark.parametrize("message", SAID)
def test_a_failure_has_a_cause_and_a_remedy(message):
    said = gpu_failures.explain(message)
    assert SAID[message] in said
    assert "\n" not in said
    if len(message) < 500:
        assert message.partition("\n")[0] in said
    else:
        assert "CUDNN_STATUS_ALLOC_FAILED" in said
        assert len(said) < 500


@pytest.mark.parametrize(
    "message",
    [
        "OOM when allocating tensor with shape[12,64] on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc",
        "model.ckpt-4; No space left on device",
        "Key bert/pooler not found in checkpoint",
        "Cannot assign a device for operation x: the requested device is GPU:1",
        "out of memory",
        "required broadcastable shapes",
    ],
)
def test_what_is_not_of_a_gpu_is_left_alone(message):
    assert gpu_failures.explain(message) is None


def test_the_processes_with_most_memory_are_named(monkeypatch):
    others = (Process(99, "gnome-shell", BUS), Process(4711, "python", BUS, 23000))
    monkeypatch.setattr(nvidia, "other_processes", lambda: others)
    said = gpu_failures.explain("failed to create cublas handle")
    assert f"; python (PID 4711) has 23000 MiB of the GPU at {BUS}, gnome-shell (PID 99) has ? MiB" in said
    assert said.endswith(": end it, wait, or take another GPU with --visible_gpus")
    with (
        pytest.raises(TrainingError, match=r"max_seq_length \(python \(PID 4711\) has 23000 MiB of .*\)$"),
        readable_errors("out"),
    ):
        raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating")
    monkeypatch.setattr(nvidia, "other_processes", lambda: tuple(Process(n, "python", BUS, n) for n in range(1, 9)))
    assert [f"PID {n})" in gpu_failures.others() for n in range(1, 9)] == [False] * 5 + [True] * 3


@pytest.mark.parametrize("kind", [tf.errors.InternalError, tf.errors.UnknownError, tf.errors.NotFoundError])
def test_in_training_it_is_no_damaged_checkpoint(kind):
    with pytest.raises(DeviceError, match="CUDNN_STATUS_ALLOC_FAILED: no GPU memory is left"), readable_errors("out"):
        raise kind(None, None, "CUDNN_STATUS_ALLOC_FAILED")


@pytest.mark.parametrize(("flag", "cluster"), [("cross_device_ops", None), ("all_reduce_alg", Cluster((), 0))])
def test_what_goes_without_nccl_does_so_with_any_number_of_gpus(flag, cluster):
    said = gpu_failures.explain("NCCL operation ncclGroupEnd() failed")
    flags = dict(re.findall(r"--(\w+)=(\w+)", said))
    devices = [f"/device:GPU:{number}" for number in range(3)]
    machine.choose_strategy(DeviceSettings(**{flag: flags[flag]}), devices, cluster)  # refuses what does not go
    assert flags[flag] != "nccl"


def test_a_machine_that_nccl_has_lost_is_no_mistake_of_the_user():
    """Its status has schedulers start the job again."""
    said = "Error invoking NCCL: remote process exited or there was a network error. Set NCCL_DEBUG=WARN for detail."
    with pytest.raises(LostPeerError, match="have lost each other"), readable_errors("out"):
        raise tf.errors.InternalError(None, None, said)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("cudaGetDevice() failed. Status: out of memory"),
        tf.errors.InternalError(None, None, "cudaSetDevice() on GPU:0 failed. Status: out of memory"),
    ],
)
def test_a_list_of_devices_that_fails_is_one_line(error):
    """It is asked for in many places, before there is a run that could explain it."""
    status, (line,) = process.failure(error)
    assert status == 2
    assert line.startswith("GPU: cuda")
    assert MEMORY in line


def test_memory_of_a_gpu_is_not_that_of_the_host():
    message = "OOM when allocating tensor with shape[9] on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc"
    _, (line,) = process.failure(tf.errors.ResourceExhaustedError(None, None, message))
    assert line.startswith(f"out of memory on the GPU: {message}; lower the batch size")


def test_processes_are_those_of_nvidia_smi_without_this_one(tmp_path, monkeypatch):
    machine = FakeMachine(tmp_path, monkeypatch)
    monkeypatch.undo()
    monkeypatch.setenv("PATH", f"{machine.folder}/bin")
    bus, own = f"0000{BUS}", nvidia.os.getpid()
    rows = ((4711, "/usr/bin/python3", 23000), (own, "python", 100), (99, "[Not Found]", "[N/A]"), (7, "a, b", 1))
    machine.smi(*(f"{pid}, {bus}, {name}, {memory}" for pid, name, memory in rows))
    expected = (Process(4711, "python3", BUS, 23000), Process(99, "[Not Found]", BUS), Process(7, "a, b", BUS, 1))
    assert nvidia.other_processes() == expected
    monkeypatch.setenv("PATH", "/nowhere")
    assert nvidia.other_processes() == ()

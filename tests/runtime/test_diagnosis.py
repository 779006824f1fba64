"""What the wheel was built for, and what is said of GPUs that are newer."""

import os

import pytest
import tensorflow as tf

from bert_tf.runtime import diagnosis, machine
from bert_tf.runtime.diagnosis import Build
from bert_tf.runtime.settings import DeviceSettings
from tests.runtime.fake_machine import FakeMachine

WHEEL = Build("2.15.1", True, "12.2", "8", ("sm_50", "sm_60", "sm_70", "sm_75", "compute_80"))
WHEEL_2_21 = Build("2.21.0", True, "12.5.1", "9", ("sm_60", "sm_70", "sm_80", "sm_89", "compute_90"))
ONCE, EACH = "compiles the kernels, once for each user and driver", "at each start, since CUDA_CACHE_DISABLE is set"


@pytest.mark.parametrize(
    ("wheel", "capabilities"),
    [
        (WHEEL, [(5, 0), (6, 1), (7, 5), (8, 0), (8, 6), (8, 9), None, (3, 7)]),  # the last is too old: it is not listed
        (WHEEL_2_21, [(6, 0), (6, 1), (7, 0), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (5, 2)]),
        (Build("2.15.1", True, "12.2", "8", ("sm_80", "compute_90")), [(9, 0)]),
    ],
)
def test_nothing_is_said_of_gpus_that_the_wheel_has_code_for(wheel, capabilities):
    assert [diagnosis.compile_warning(capability, wheel, {}) for capability in capabilities] == [None] * len(capabilities)


@pytest.mark.parametrize(
    ("wheel", "capability", "environment", "said", "doubtful"),
    [
        (WHEEL, (9, 0), {}, ONCE, False),
        (WHEEL, (9, 0), {"CUDA_CACHE_DISABLE": "0"}, ONCE, False),
        (WHEEL, (9, 0), {"CUDA_CACHE_DISABLE": "1"}, EACH, False),
        (WHEEL, (10, 0), {}, ONCE, True),
        (WHEEL, (12, 0), {}, ONCE, True),
        (WHEEL_2_21, (10, 0), {}, ONCE, True),
        (WHEEL_2_21, (12, 0), {}, ONCE, True),
        (Build("2.15.1", True, "12.8", "8", ("compute_80",)), (12, 0), {}, ONCE, False),  # its libraries know the GPU
        (Build("2.15.1", True, "11.2", "8", ("compute_80",)), (12, 0), {}, ONCE, True),
        (Build("2.15.1", True, None, "8", ("compute_80",)), (12, 0), {}, ONCE, True),
        (Build("2.15.1", True, "12.2", "8", ("sm_50", "sm_80")), (9, 0), {}, "no code for it: expect errors", False),
    ],
)
def test_a_newer_gpu_compiles_or_fails(wheel, capability, environment, said, doubtful):
    warning = diagnosis.compile_warning(capability, wheel, environment)
    newer = "its compute capability {}.{} is newer than this TensorFlow {}".format(*capability, wheel.version)
    assert warning.startswith(newer)
    assert said in warning
    doubt = f"may fail with CUDA_ERROR_INVALID_PTX, since this TensorFlow was built with CUDA {wheel.cuda_version}"
    assert (doubt in warning) == doubtful


def test_installed_wheel():
    installed = diagnosis.installed_build()
    wheel = WHEEL if installed.version.startswith("2.15.") else WHEEL_2_21
    assert installed.version == tf.__version__
    assert os.path.samefile(installed.folder, os.path.dirname(tf.__file__))
    assert installed.is_cuda_build == tf.test.is_built_with_cuda()
    assert all(installed.has_code_for(capability) for capability in [(6, 1), (7, 5), (8, 6)])
    assert installed.has_source_for((9, 0))
    assert installed.has_code_for((9, 0)) == wheel.has_code_for((9, 0))
    assert not installed.has_code_for((12, 0))


@pytest.mark.parametrize(("before", "after"), [(None, str(2 << 30)), ("123", "123")])
def test_there_is_room_for_what_is_compiled_before_tensorflow_starts(tmp_path, monkeypatch, caplog, before, after):
    fake, sizes = FakeMachine(tmp_path, monkeypatch), []
    fake.built(WHEEL)
    fake.tensorflow_sees({"device_name": "NVIDIA H100", "compute_capability": (9, 0)}, {"compute_capability": (8, 0)})
    fake.accepts_settings()
    monkeypatch.setenv(diagnosis.CACHE_SIZE, before or "")
    if before is None:
        monkeypatch.delenv(diagnosis.CACHE_SIZE)
    devices = ("/device:GPU:0", "/device:GPU:1")
    monkeypatch.setattr(machine.devices, "configure", lambda *_: sizes.append(os.environ[diagnosis.CACHE_SIZE]) or devices)
    machine.plan(DeviceSettings(), environment={})
    assert sizes == [after]
    (record,) = caplog.records
    assert record.getMessage().startswith("NVIDIA H100: its compute capability 9.0 is newer")

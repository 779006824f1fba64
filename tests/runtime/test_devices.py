"""What is asked of TensorFlow for each flag; a machine with GPUs is played by what tf.config says."""

import os
import re

import pytest
import tensorflow as tf

from bert_tf.errors import DeviceError
from bert_tf.runtime import devices
from bert_tf.runtime.devices import allow_xla_on_cpu, configure, session_config
from bert_tf.runtime.settings import DeviceSettings
from tests.runtime.fake_machine import FakeMachine

pytestmark = pytest.mark.versions

tf1 = tf.compat.v1

ON_CPU = "--tf_xla_cpu_global_jit"


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with so many GPUs, and three cores granted."""

    def arrange(gpus):
        fake = FakeMachine(tmp_path, monkeypatch)
        fake.tensorflow_sees(*[{}] * gpus)
        fake.accepts_settings()
        monkeypatch.setattr(devices.cgroup, "granted_cpus", lambda: 3)
        for name in ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "TF_FORCE_GPU_ALLOW_GROWTH", "CUDA_VISIBLE_DEVICES"):
            monkeypatch.delenv(name, raising=False)
        return fake

    return arrange


@pytest.mark.parametrize(
    ("gpus", "settings", "seen", "names"),
    [
        (0, {}, [], ["CPU:0"]),
        (3, {}, [0, 1, 2], ["GPU:0", "GPU:1", "GPU:2"]),
        (3, {"visible_gpus": "0,2"}, [0, 2], ["GPU:0", "GPU:1"]),
        (3, {"visible_gpus": " 2 , 0 "}, [0, 2], ["GPU:0", "GPU:1"]),
        (3, {"visible_gpus": "none"}, [], ["CPU:0"]),
        (3, {"num_gpus": 2}, [0, 1], ["GPU:0", "GPU:1"]),
        (3, {"num_gpus": 0}, [], ["CPU:0"]),
        (3, {"visible_gpus": "1,2", "num_gpus": 1}, [1], ["GPU:0"]),
        (0, {"virtual_devices": 3}, [], ["CPU:0", "CPU:1", "CPU:2"]),
        (2, {"visible_gpus": "none", "virtual_devices": 2}, [], ["CPU:0", "CPU:1"]),
        (2, {"virtual_devices": 2, "gpu_memory_limit_mb": 4001}, [0, 1], ["GPU:0", "GPU:1", "GPU:2", "GPU:3"]),
    ],
)
def test_which_devices_are_seen_and_computed_on(machine, gpus, settings, seen, names):
    fake = machine(gpus)
    names_of_devices = configure(DeviceSettings(**settings), {})
    assert names_of_devices == tuple(f"/device:{name}" for name in names)
    assert [gpu.name for gpu in tf.config.get_visible_devices("GPU")] == [f"/physical_device:GPU:{n}" for n in seen]
    assert not fake.deterministic
    config = session_config(DeviceSettings(**settings))
    assert config.gpu_options.visible_device_list == ",".join(map(str, seen))
    assert dict(config.device_count) == ({} if seen else {"GPU": 0, "CPU": len(names)})


@pytest.mark.parametrize(
    ("gpus", "settings", "message"),
    [
        (2, {"visible_gpus": "0,2"}, "--visible_gpus=0,2: TensorFlow sees GPU 0, 1"),
        (0, {"visible_gpus": "0"}, "--visible_gpus=0: TensorFlow sees no GPU (python -m bert_tf devices says why)"),
        *(
            (2, {"visible_gpus": text}, f"--visible_gpus={text}: write numbers with commas, as in 0,2, or none")
            for text in ("a", "-1", "")
        ),
        (2, {"visible_gpus": "1,1"}, "--visible_gpus=1,1: a GPU is named twice"),
        (2, {"num_gpus": 3}, "--num_gpus=3: TensorFlow sees GPU 0, 1"),
        (2, {"visible_gpus": "1", "num_gpus": 2}, "--num_gpus=2: 1 visible (--visible_gpus=1)"),
        (1, {"gpu_memory_growth": True, "gpu_memory_limit_mb": 5175}, "exclude each other: a limit is taken at once"),
        (1, {"virtual_devices": 2}, "--virtual_devices splits the memory of a GPU: add --gpu_memory_limit_mb"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(machine, gpus, settings, message):
    machine(gpus)
    with pytest.raises(DeviceError, match=f"{re.escape(message)}$"):
        configure(DeviceSettings(**settings), {})


@pytest.mark.parametrize(
    ("settings", "variable", "value", "message"),
    [
        ({"visible_gpus": "1"}, "CUDA_VISIBLE_DEVICES", "1", "GPU 0; {}=1 in the environment, and numbers count"),
        ({"gpu_memory_growth": True}, "TF_FORCE_GPU_ALLOW_GROWTH", "false", "growth contradicts {}=false"),
    ],
)
def test_what_the_environment_contradicts_is_refused(machine, settings, variable, value, message):
    machine(1)
    with pytest.raises(DeviceError, match=message.format(variable)):
        configure(DeviceSettings(**settings), {variable: value})


@pytest.mark.parametrize(
    ("asked", "environment", "grows"),
    [(False, {}, False), (True, {}, True), (False, {"TF_FORCE_GPU_ALLOW_GROWTH": "true"}, True)],
)
def test_memory_grows_on_all_visible_gpus(machine, monkeypatch, asked, environment, grows):
    fake = machine(3)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    settings = DeviceSettings(visible_gpus="0,2", gpu_memory_growth=asked)
    configure(settings, environment)
    assert fake.growing == (["/physical_device:GPU:0", "/physical_device:GPU:2"] if grows else [])
    assert session_config(settings).gpu_options.allow_growth == grows


def test_a_limit_holds_for_each_gpu_and_its_parts_share_it(machine):
    fake = machine(2)
    settings = DeviceSettings(gpu_memory_limit_mb=5175, virtual_devices=2, deterministic=True)
    configure(settings, {})
    assert fake.deterministic
    assert fake.parts == {"/physical_device:GPU:0": [2587, 2587], "/physical_device:GPU:1": [2587, 2587]}
    limits = session_config(settings).gpu_options.experimental.virtual_devices
    assert [list(gpu.memory_limit_mb) for gpu in limits] == [[2587, 2587]] * 2


@pytest.mark.parametrize(("name", "value"), [("gpu_memory_growth", True), ("gpu_memory_limit_mb", 100)])
def test_memory_settings_without_a_gpu_are_warned_of(machine, caplog, name, value):
    machine(0)
    configure(DeviceSettings(**{name: value}), {})
    (record,) = caplog.records
    assert record.getMessage() == f"--{name} has no effect: TensorFlow sees no GPU (python -m bert_tf devices says why)"


@pytest.mark.parametrize(
    ("settings", "environment", "intra", "inter"),
    [
        ({}, {}, 3, 3),
        ({"intra_op_threads": 7}, {}, 7, 3),
        ({"inter_op_threads": 1}, {}, 3, 1),
        ({}, {"TF_NUM_INTRAOP_THREADS": "5"}, 5, 3),
        ({}, {"TF_NUM_INTRAOP_THREADS": "many", "TF_NUM_INTEROP_THREADS": "0"}, 3, 3),
        ({"intra_op_threads": 7}, {"TF_NUM_INTRAOP_THREADS": "5", "TF_NUM_INTEROP_THREADS": "6"}, 7, 6),
    ],
)
def test_threads_are_those_that_the_machine_grants(machine, monkeypatch, settings, environment, intra, inter):
    fake = machine(0)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    configure(DeviceSettings(**settings), environment)
    fake.threading.set_intra_op_parallelism_threads.assert_called_once_with(intra)
    fake.threading.set_inter_op_parallelism_threads.assert_called_once_with(inter)
    config = session_config(DeviceSettings(**settings))
    assert (config.intra_op_parallelism_threads, config.inter_op_parallelism_threads) == (intra, inter)


def test_threads_that_come_too_late_are_refused_if_they_were_asked_for(machine):
    fake = machine(0)
    fake.threading.set_intra_op_parallelism_threads.side_effect = RuntimeError("Intra op parallelism cannot be modified")
    configure(DeviceSettings(), {})
    with pytest.raises(DeviceError, match="devices must be set up before TensorFlow first uses them: Intra op"):
        configure(DeviceSettings(intra_op_threads=2), {})


@pytest.mark.parametrize("soft", [True, False])
def test_what_a_device_cannot_run_is_placed_elsewhere_or_fails(soft):
    config = session_config(DeviceSettings(soft_placement=soft))
    with tf.Graph().as_default(), tf1.Session(config=config) as session:
        with tf.device("/GPU:7"):
            text = tf.strings.upper(tf.constant("no device runs this"))
        if soft:
            assert session.run(text) == b"NO DEVICE RUNS THIS"
        else:
            with pytest.raises(tf.errors.InvalidArgumentError, match="Cannot assign a device"):
                session.run(text)


@pytest.mark.parametrize(("xla", "level"), [(False, tf1.OptimizerOptions.DEFAULT), (True, tf1.OptimizerOptions.ON_2)])
def test_only_xla_compiles(xla, level):
    config = session_config(xla=xla)
    assert config.graph_options.optimizer_options.global_jit_level == level
    assert config.allow_soft_placement


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ON_CPU),
        ("--tf_xla_min_cluster_size=1", f"--tf_xla_min_cluster_size=1 {ON_CPU}"),
        (ON_CPU, ON_CPU),
        (f"{ON_CPU}=false --tf_xla_min_cluster_size=1", f"{ON_CPU}=false --tf_xla_min_cluster_size=1"),
    ],
)
def test_what_the_user_tells_xla_is_kept(monkeypatch, before, after):
    monkeypatch.setenv("TF_XLA_FLAGS", before)
    for _ in range(2):  # the second time changes nothing
        allow_xla_on_cpu()
        assert os.environ["TF_XLA_FLAGS"] == after


def test_a_limit_and_growth_that_is_forced_are_both_taken(machine, monkeypatch):
    """Of TF_FORCE_GPU_ALLOW_GROWTH TensorFlow lets memory grow up to the limit; the flags exclude each other."""
    fake = machine(2)
    monkeypatch.setenv("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    settings = DeviceSettings(gpu_memory_limit_mb=5175)
    assert configure(settings, os.environ) == ("/device:GPU:0", "/device:GPU:1")
    assert fake.growing == []  # TensorFlow refuses to be told of both, and reads its variable by itself
    assert fake.parts == {"/physical_device:GPU:0": [5175], "/physical_device:GPU:1": [5175]}
    with pytest.raises(DeviceError, match="exclude each other"):
        configure(DeviceSettings(gpu_memory_limit_mb=5175, gpu_memory_growth=True), os.environ)

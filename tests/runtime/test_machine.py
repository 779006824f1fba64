"""What the log says of the machine of a run, where it evaluates, and which strategy is chosen for which devices."""

import re

import pytest
import tensorflow as tf

from bert_tf.errors import DeviceError
from bert_tf.runtime import cluster, machine
from bert_tf.runtime.cluster import Cluster, Worker
from bert_tf.runtime.machine import Machine, Plan
from bert_tf.runtime.settings import ALL_REDUCE_ALGS, CROSS_DEVICE_OPS, STRATEGIES, DeviceSettings


@pytest.fixture
def warned(monkeypatch, caplog):
    """Describes a machine with a GPU that TensorFlow cannot use; returns whether that is warned of."""
    monkeypatch.setattr(machine.diagnosis, "unused_gpu_warning", lambda: "computing on the CPU, although there is a GPU")

    def describe(environment=(), **settings):
        machine.describe(Machine(tf.compat.v1.ConfigProto()), DeviceSettings(**settings), dict(environment))
        return "although there is a GPU" in caplog.text

    return describe


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        *((settings, True) for settings in ({}, {"num_gpus": 1}, {"strategy": "one_device"})),
        *((settings, False) for settings in ({"visible_gpus": "None "}, {"num_gpus": 0}, {"device": "/CPU:0"})),
    ],
)
def test_a_gpu_that_is_idle_by_mistake_is_named(warned, settings, named):
    assert warned(**settings) == named


@pytest.mark.parametrize(("value", "ignored"), [("1", True), ("yes", True), ("True", False), ("false", False)])
def test_growth_that_cannot_be_read_is_said_to_have_no_effect(warned, caplog, value, ignored):
    """TensorFlow says so itself, in a log that is not shown."""
    warned(environment={"TF_FORCE_GPU_ALLOW_GROWTH": value}, num_gpus=0)
    assert (f"TF_FORCE_GPU_ALLOW_GROWTH={value} in the environment has no effect" in caplog.text) == ignored


def placed(op):
    """Stands for what puts operations on devices."""
    return op.device


TWO = ("/device:GPU:0", "/device:GPU:1")


@pytest.mark.parametrize(
    ("plan", "towers"),
    [
        (Plan("one_device", TWO[:1]), (None,)),
        (Plan("one_device", TWO, device_function=placed), (placed,)),  # parts of one model
        (Plan("mirrored", TWO), TWO),
        (Plan("mirrored", TWO[:1]), (None,)),
        (Plan("central_storage", TWO), TWO),
        (Plan("multi_worker", TWO, Cluster((Worker("worker", 0, "a", 1, "a:1"),), 0)), TWO),  # its own alone
    ],
)
def test_each_device_that_has_a_whole_model_evaluates(plan, towers):
    assert plan.towers == towers


CPU, GPU = ("/device:CPU:0",), ("/device:GPU:0",)
CPUS, GPUS = tuple(f"/device:CPU:{n}" for n in range(2)), tuple(f"/device:GPU:{n}" for n in range(2))
MIRRORED, OVER_MACHINES = {"strategy": "mirrored"}, {"strategy": "multi_worker"}
NCCL, RING = {"cross_device_ops": "nccl"}, {"all_reduce_alg": "ring"}
TWO_MACHINES = cluster.read_cluster(
    {"TF_CONFIG": '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}}'}
)


@pytest.mark.parametrize(
    ("devices", "settings", "machines", "expected"),
    [
        (CPU, {}, None, "one_device"),
        (GPU, {}, None, "one_device"),
        (GPUS, {}, None, "mirrored"),
        (CPUS, {"virtual_devices": 2}, None, "mirrored"),
        (GPUS, {"device": "/GPU:1"}, None, "one_device"),
        (GPUS, {"place": "encoder:/GPU:1"}, None, "one_device"),
        (CPU, {}, TWO_MACHINES, "multi_worker"),
        (GPUS, {"all_reduce_alg": "nccl"}, TWO_MACHINES, "multi_worker"),
        (GPUS, {"strategy": "one_device"}, None, "one_device"),
        (GPUS, {"strategy": "central_storage"}, None, "central_storage"),
        (GPUS, {"strategy": "mirrored", "cross_device_ops": "nccl"}, None, "mirrored"),
        (GPUS, {"strategy": "multi_worker"}, TWO_MACHINES, "multi_worker"),
        (GPUS, {"check_replicas_every_n_steps": 5}, None, "mirrored"),
    ],
)
def test_the_strategy_is_the_one_asked_for_or_what_suits_the_devices(devices, settings, machines, expected):
    assert machine.choose_strategy(DeviceSettings(**settings), devices, machines) == expected
    assert expected in STRATEGIES
    assert set(machine._CROSS_DEVICE_OPS) == set(CROSS_DEVICE_OPS)


@pytest.mark.parametrize(
    ("devices", "machines", "settings", "message"),
    [
        (GPUS, None, {**MIRRORED, "device": "/GPU:1"}, "--device=/GPU:1 goes with --strategy=one_device (one"),
        (GPUS, None, {**MIRRORED, "place": "head:/GPU:1"}, "goes with --strategy=one_device (parts of"),
        (GPU, None, NCCL, "--cross_device_ops=nccl goes with --strategy=mirrored (it sets how replicas"),
        (GPUS, None, RING, "--all_reduce_alg=ring goes with --strategy=multi_worker (it sets how machines"),
        (GPUS, None, {"check_replicas_every_n_steps": 3, "strategy": "central_storage"}, "=mirrored and multi_worker (else"),
        (GPUS, None, {"device": "/GPU:0", "place": "head:/GPU:1"}, "--device puts the whole model on one device, --place its"),
        (GPUS, None, OVER_MACHINES, "--strategy=multi_worker: TF_CONFIG in the environment names no other machine"),
        (GPUS, TWO_MACHINES, MIRRORED, "--strategy=mirrored: TF_CONFIG names 2 machines, each of which would train"),
        (CPUS, None, {**NCCL, "virtual_devices": 2}, "between GPUs, but there is no GPU to compute on"),
        (CPU, TWO_MACHINES, {"all_reduce_alg": "nccl"}, "--all_reduce_alg=nccl: NCCL works between GPUs, but there is no GPU"),
        (GPUS, None, {**NCCL, "virtual_devices": 2}, "but it cannot serve two devices on one GPU"),
        ((*GPUS, "GPU:2"), None, {"cross_device_ops": "hierarchical"}, "sums two halves of the replicas, but there are 3; use"),
        (CPUS, TWO_MACHINES, {"virtual_devices": 2}, "--virtual_devices: the CPU of a machine is one replica of --strategy="),
    ],
)
def test_contradictions_are_refused_in_one_line(devices, machines, settings, message):
    with pytest.raises(DeviceError, match=re.escape(message)):
        machine.choose_strategy(DeviceSettings(**settings), devices, machines)


@pytest.mark.parametrize(
    ("name", "devices"), [("one_device", CPU), ("mirrored", CPU), ("central_storage", CPU), ("one_device", GPUS)]
)
def test_one_model_needs_no_strategy(name, devices):
    assert machine.make_strategy(name, DeviceSettings(), devices) is None


@pytest.mark.parametrize(
    ("devices", "settings", "kind"),
    [
        (GPUS, {}, tf.distribute.NcclAllReduce),
        (GPUS, {"virtual_devices": 2}, tf.distribute.ReductionToOneDevice),
        (CPUS, {"virtual_devices": 2}, tf.distribute.ReductionToOneDevice),
        (GPUS, {"cross_device_ops": "hierarchical"}, tf.distribute.HierarchicalCopyAllReduce),
        (GPUS, {"cross_device_ops": "reduce_to_one"}, tf.distribute.ReductionToOneDevice),
    ],
)
def test_how_replicas_add_up(monkeypatch, devices, settings, kind):
    monkeypatch.setattr(tf.distribute, "MirroredStrategy", lambda names, cross_device_ops: (tuple(names), cross_device_ops))
    names, operations = machine.make_strategy("mirrored", DeviceSettings(**settings), devices)
    assert (names, type(operations)) == (devices, kind)


@pytest.mark.parametrize("name", [None, *ALL_REDUCE_ALGS])
def test_how_machines_add_up(monkeypatch, name):
    made = []
    monkeypatch.setattr(tf.compat.v1, "disable_eager_execution", lambda: made.append("no heartbeats"))
    monkeypatch.setattr(
        tf.distribute, "MultiWorkerMirroredStrategy", lambda communication_options: made.append(communication_options)
    )
    machine.make_strategy("multi_worker", DeviceSettings(all_reduce_alg=name), GPUS)
    first, options = made
    assert first == "no heartbeats"  # before the strategy starts a server
    assert options.implementation.value == (name or "auto").upper()

"""The device flags of the command, on logical CPUs."""

import csv

import pytest

from tests import processes
from tests.estimator.toy import metrics_lines
from tests.integration import commands

pytestmark = pytest.mark.several_machines  # a dozen processes
STEPS = 10


@pytest.fixture(scope="module")
def run(tmp_path_factory, project):
    """Trains for ten steps; returns the folder and what the command said."""

    def run(**flags):
        folder = tmp_path_factory.mktemp("devices") / "out"
        settings = {"num_train_epochs": 2, "learning_rate": 0.003, "log_every_n_steps": 1, "keep_optimizer_slots": True}
        result = commands.run(project.flags(folder, do_train=True, **settings, **flags))
        assert result.returncode == 0, result.stderr
        return folder, result

    return run


@pytest.fixture(scope="module")
def plain(run):
    folder, result = run()
    assert "strategy one_device: 1 replica, /device:CPU:0" in result.stderr
    return commands.weights(folder, STEPS)


@pytest.mark.parametrize(
    "flags",
    [
        {"visible_gpus": "none", "num_gpus": 0, "intra_op_threads": 1, "inter_op_threads": 1},
        {"virtual_devices": 2, "strategy": "one_device"},
    ],
)
def test_one_cpu_computes_the_same_bits(run, plain, flags):
    folder, _ = run(**flags)
    assert commands.same_bits(commands.weights(folder, STEPS), plain)


def test_determinism_can_be_asked_for(run):
    """TensorFlow refuses what it cannot repeat: all operations of a run are among those that it can."""
    first, second = (commands.weights(run(deterministic=True)[0], STEPS) for _ in range(2))
    assert commands.same_bits(first, second)


def test_the_whole_model_goes_to_a_device(run, plain):
    folder, result = run(virtual_devices=2, device="/CPU:1", soft_placement=False, log_device_placement=True)
    assert commands.same_bits(commands.weights(folder, STEPS), plain)
    with (folder / "device_placement.tsv").open(newline="") as file:
        products = {row["device"] for row in csv.DictReader(file, delimiter="\t") if "MatMul" in row["type"]}
    assert products == {"/CPU:1"}
    assert "strategy one_device: 1 replica, /device:CPU:1" in result.stderr


def test_replicas_share_a_batch(run):
    folder, result = run(virtual_devices=3, check_replicas_every_n_steps=2)
    assert "strategy mirrored: 3 replicas, /device:CPU:0, /device:CPU:1, /device:CPU:2" in result.stderr
    assert "Batch size = 8 over 3 replicas, 2 or 3 each" in result.stderr
    assert len(metrics_lines(folder)) == STEPS


def test_batch_jobs_compute_on_all_devices(finished, project, tmp_path):
    written = []
    for devices in (1, 3):
        output = tmp_path / f"by_{devices}.tsv"
        flags = {"checkpoint": finished[0], "input": project.data_dir / "test.tsv", "output": output, "predict_batch_size": 5}
        given = [f"--{name}={value}" for name, value in flags.items()]
        result = processes.run(["-m", "bert_tf", "predict", *given, f"--virtual_devices={devices}"])
        assert result.returncode == 0, result.stderr
        written.append(output.read_bytes())
    assert "strategy mirrored: 3 replicas" in result.stderr
    assert written[0] == written[1]


def test_what_cannot_be_placed_is_one_line(tmp_path, train_flags):
    result = commands.run(train_flags(tmp_path / "out", virtual_devices=2, strategy="central_storage", soft_placement=False))
    assert result.returncode == 2
    (line,) = commands.errors(result)
    assert "Cannot colocate nodes" in line
    assert line.endswith("; leave out --nosoft_placement, or name another device")
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"place": "encoder/layer_7:/CPU:0"}, "error: --place: encoder/layer_7: the model has 1 layers, 0 to 0"),
        (
            {"virtual_devices": 4, "train_batch_size": 3},
            "error: --train_batch_size=3 is shared by 4 replicas, some of which get no example;"
            " raise it, or lower --num_gpus or --virtual_devices",
        ),
    ],
)
def test_what_the_machine_has_not_is_refused_in_one_line(tmp_path, train_flags, flags, message):
    result = commands.run(train_flags(tmp_path / "out", **flags))
    assert result.returncode == 2
    (line,) = commands.errors(result)
    assert line.startswith(message)
    assert not (tmp_path / "out").exists()

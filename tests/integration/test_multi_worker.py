"""Two processes as two machines: they learn what one with two devices learns, and one that dies stops the job."""

import json
import shutil
import signal
import socket
import time
from concurrent import futures

import numpy as np
import pytest

from bert_tf.errors import LostPeerError
from bert_tf.estimator import evaluations, run
from tests.estimator.toy import metrics_lines
from tests.integration import commands

pytestmark = pytest.mark.several_machines

STEPS = 160
WITHIN = 60.0  # seconds until a job knows that a worker is gone


def addresses(count):
    """Returns addresses that nobody listens at."""
    with_ports = [socket.create_server(("localhost", 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in with_ports]
    for listener in with_ports:
        listener.close()
    return [f"localhost:{port}" for port in ports]


def cluster_of(count):
    """Returns what the environment of each machine says."""
    cluster = {"worker": addresses(count)}
    tasks = [{"type": "worker", "index": index} for index in range(count)]
    return [{"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})} for task in tasks]


def start_workers(flags):
    """Starts the same command on two machines."""
    return [commands.start(flags, variables=variables) for variables in cluster_of(2)]


def finish(workers):
    """Waits for all at once: a process whose output nobody reads would not go on, nor would the others."""
    with futures.ThreadPoolExecutor(len(workers)) as pool:
        return list(pool.map(commands.finish, workers))


@pytest.fixture(scope="module")
def flags_of(project):
    """Flags of a run that is long enough to be interrupted."""

    def flags(folder, **extra):
        settings = {"num_train_steps": STEPS, "learning_rate": 0.003, "save_checkpoints_steps": 20, "log_every_n_steps": 1}
        return project.flags(folder, do_train=True, **{**settings, **extra})

    return flags


@pytest.fixture(scope="module")
def one_process(tmp_path_factory, flags_of):
    """The folder of a run with two devices in one process."""
    folder = tmp_path_factory.mktemp("one") / "out"
    result = commands.run(flags_of(folder, virtual_devices=2))
    assert result.returncode == 0, result.stderr
    return folder


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory, flags_of):
    """The folder of a run of two machines, and what they said."""
    folder = tmp_path_factory.mktemp("two") / "out"
    ways = {"check_replicas_every_n_steps": 20, "log_device_placement": True}
    flags = flags_of(folder, do_eval=True, do_predict=True, average_last=2, **ways)
    results = finish(start_workers(flags))
    assert [result.returncode for result in results] == [0, 0], results[0].stderr[-3000:] + results[1].stderr[-3000:]
    return folder, results


def test_two_machines_learn_what_two_devices_learn_and_the_chief_evaluates_and_predicts(one_process, two_processes):
    expected, actual = ([line["loss"] for line in metrics_lines(folder)] for folder in (one_process, two_processes[0]))
    assert len(actual) == STEPS
    np.testing.assert_allclose(actual, expected, rtol=1e-4)
    folder, (chief, worker) = two_processes
    assert f"global_step = {STEPS}" in (folder / "eval_results.txt").read_text()
    assert (folder / "predictions.tsv").exists()
    assert "***** Eval results *****" in chief.stderr
    assert "***** Eval results *****" not in worker.stderr
    assert f"the mean of model.ckpt-{STEPS - 20}, model.ckpt-{STEPS} is" in chief.stderr
    assert "the mean of" not in worker.stderr
    assert "eval_loss_average" in (folder / "eval_results.txt").read_text()
    assert "the chief evaluates and predicts; this worker is done" in worker.stderr
    for result in two_processes[1]:
        assert "strategy multi_worker: 2 replicas, /device:CPU:0 on each of 2 machines" in result.stderr
        assert "Batch size = 8 over 2 replicas, 4 each" in result.stderr


def kill(victim, folder, flags):
    """Starts two machines, kills one of them on the way, and returns what the other says."""
    workers = start_workers(flags)
    try:
        commands.wait_for_step(folder, 30, workers[victim])
        workers[victim].send_signal(signal.SIGKILL)
        killed = time.monotonic()
        _, survivor = finish([workers[victim], workers[1 - victim]])
    finally:
        for worker in workers:
            worker.kill()
    assert time.monotonic() - killed < WITHIN
    return survivor


def tell(told, folder, flags):
    """Starts two machines, and sends a signal to one of them on the way; returns what both say, and the last step."""
    before = len(metrics_lines(folder)) if folder.exists() else 0
    workers = start_workers(flags)
    commands.wait_for_step(folder, before + 10, workers[0])
    workers[told].send_signal(signal.SIGTERM)
    return finish(workers), metrics_lines(folder)[-1]["step"]


@pytest.mark.parametrize(
    ("victim", "told"),
    [
        pytest.param(1, 0, id="worker killed, chief told"),
        pytest.param(0, 1, id="chief killed, worker told", marks=pytest.mark.slow),
    ],
)
def test_what_happens_to_one_happens_to_all_and_the_run_goes_on(tmp_path, flags_of, one_process, victim, told):
    """A machine is killed, started again and told to stop; then one machine with two devices ends what they began."""
    folder = tmp_path / "out"
    survivor = kill(victim, folder, flags_of(folder))
    assert survivor.returncode == LostPeerError.status == 75
    (line,) = commands.errors(survivor)
    assert line.startswith(f"error: worker {victim} (localhost:")
    assert line.endswith("start all workers again with the same command: training continues from the last checkpoint")
    assert "Traceback" not in survivor.stderr

    results, step = tell(told, folder, flags_of(folder))
    assert "continuing from step " in results[0].stderr
    assert [result.returncode for result in results] == [130, 130], results[0].stderr[-2000:]
    assert step < STEPS
    for result in results:
        assert f"stopped by SIGTERM at step {step}; the same command continues there" in result.stderr

    ended = commands.run(flags_of(folder, virtual_devices=2))  # checkpoints are at home everywhere
    assert f"continuing from step {step} of {STEPS}" in ended.stderr
    losses = [line["loss"] for line in metrics_lines(folder)]
    np.testing.assert_allclose(losses, [line["loss"] for line in metrics_lines(one_process)], rtol=1e-4)


def test_a_worker_waits_until_the_chief_has_deleted_another_run(tmp_path, two_processes, flags_of):
    """The folder holds a finished run; were it taken for this one, the worker would have nothing left to train."""
    folder = shutil.copytree(two_processes[0], tmp_path / "copy")
    flags = flags_of(folder, seed=7, num_train_steps=4, overwrite_output_dir=True)
    configurations = cluster_of(2)
    worker = commands.start(flags, variables=configurations[1])
    worker.wait_for("waiting for the chief to start this run")
    results = finish([commands.start(flags, variables=configurations[0]), worker])
    assert [result.returncode for result in results] == [0, 0], results[1].stderr[-2000:]
    assert len(metrics_lines(folder)) == 4


def test_the_chief_makes_an_evaluation_that_a_kill_left_out_and_both_go_on(tmp_path, flags_of):
    folder, steps = tmp_path / "out", 60
    flags = flags_of(folder, num_train_steps=steps, eval_every_n_steps=1)
    results, step = tell(0, folder, flags)
    assert [result.returncode for result in results] == [130, 130], results[0].stderr[-2000:]
    path = folder / "evaluations.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    results = finish(start_workers(flags))
    assert [result.returncode for result in results] == [0, 0], results[0].stderr[-2000:]
    assert f"evaluation at step {step}: " in results[0].stderr
    made = [line["step"] for line in evaluations.read_evaluations(folder, up_to=steps)]
    assert made == list(range(1, steps + 1))


def test_what_one_machine_saves_no_other_deletes(tmp_path):
    """Torn saves are deleted by the machine that saves; to others they may be a save that is going on."""
    torn = tmp_path / "model.ckpt-7_temp"
    for cleans in (False, True):
        torn.mkdir(exist_ok=True)
        with run.readable_errors(str(tmp_path), None, cleans=cleans):
            pass
        assert torn.exists() != cleans

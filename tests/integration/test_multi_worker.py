"""Two processes as two machines: they learn what one with two devices learns, and one that dies stops the job."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import time

import numpy as np
import pytest

from tests.estimator.toy import metrics_lines
from tests.integration import commands

STEPS = 60
WITHIN = 60.0  # seconds until a job knows that a worker is gone


def addresses(count):
    """Returns addresses that nobody listens at."""
    with_ports = [socket.create_server(("localhost", 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in with_ports]
    for listener in with_ports:
        listener.close()
    return [f"localhost:{port}" for port in ports]


def start_workers(flags, count=2):
    """Starts the same command on each machine."""
    cluster = {"worker": addresses(count)}
    configurations = [{"cluster": cluster, "task": {"type": "worker", "index": index}} for index in range(count)]
    return [commands.start(flags, variables={"TF_CONFIG": json.dumps(configuration)}) for configuration in configurations]


@pytest.fixture(scope="module")
def one_process(tmp_path_factory, train_flags):
    """The folder of a run with two devices in one process."""
    folder = tmp_path_factory.mktemp("one") / "out"
    result = commands.run(train_flags(folder, virtual_devices=2))
    assert result.returncode == 0, result.stderr
    return folder


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory, train_flags):
    """The folder of a run of two machines, and what they said."""
    folder = tmp_path_factory.mktemp("two") / "out"
    flags = train_flags(folder, do_eval=True, do_predict=True, check_replicas_every_n_steps=20, log_device_placement=True)
    results = [commands.finish(worker) for worker in start_workers(flags)]
    assert [result.returncode for result in results] == [0, 0], results[0].stderr[-3000:] + results[1].stderr[-3000:]
    return folder, results


def test_two_machines_learn_what_two_devices_learn(one_process, two_processes):
    expected, found = ([line["loss"] for line in metrics_lines(folder)] for folder in (one_process, two_processes[0]))
    assert len(found) == STEPS
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_the_chief_evaluates_and_predicts_and_the_others_train(two_processes):
    folder, (chief, worker) = two_processes
    assert f"global_step = {STEPS}" in (folder / "eval_results.txt").read_text()
    assert (folder / "predictions.tsv").exists()
    assert "***** Eval results *****" in chief.stderr
    assert "***** Eval results *****" not in worker.stderr
    assert "the chief evaluates and predicts; this worker is done" in worker.stderr


def test_each_says_how_the_batch_is_shared(two_processes):
    for result in two_processes[1]:
        assert "strategy multi_worker: 2 replicas, /device:CPU:0 on each of 2 machines" in result.stderr
        assert "Batch size = 8 over 2 replicas, 4 each" in result.stderr


def test_one_device_goes_on_where_two_machines_ended(two_processes, train_flags, tmp_path):
    folder = shutil.copytree(two_processes[0], tmp_path / "copy")
    result = commands.run(train_flags(folder, do_eval=True))
    assert result.returncode == 0, result.stderr
    assert f"already trained to step {STEPS}" in result.stderr


@pytest.mark.parametrize("victim", [0, 1], ids=["chief", "worker"])
def test_a_job_whose_worker_is_killed_stops_and_goes_on_when_started_again(tmp_path, train_flags, one_process, victim):
    folder = tmp_path / "out"
    flags = train_flags(folder)
    workers = start_workers(flags)
    try:
        commands.wait_for_step(folder, 7, workers[victim])
        workers[victim].send_signal(signal.SIGKILL)
        killed = time.monotonic()
        workers[victim].communicate()
        survivor = commands.finish(workers[1 - victim])
    finally:
        for worker in workers:
            worker.kill()
    assert time.monotonic() - killed < WITHIN
    assert survivor.returncode == 2
    (line,) = commands.errors(survivor)
    assert line.startswith(f"error: worker {victim} (localhost:")
    assert line.endswith("start all workers again with the same command: training continues from the last checkpoint")
    assert "Traceback" not in survivor.stderr

    results = [commands.finish(worker) for worker in start_workers(flags)]
    assert [result.returncode for result in results] == [0, 0], results[0].stderr[-3000:]
    assert "continuing from step " in results[0].stderr
    losses = [line["loss"] for line in metrics_lines(folder)]
    np.testing.assert_allclose(losses, [line["loss"] for line in metrics_lines(one_process)], rtol=1e-4)


def test_a_worker_that_is_asked_to_stop_ends_the_job_with_a_checkpoint(tmp_path, train_flags):
    folder = tmp_path / "out"
    workers = start_workers(train_flags(folder, save_checkpoints_steps=1000))
    commands.wait_for_step(folder, 5, workers[0])
    for worker in workers:  # as a scheduler does
        worker.send_signal(signal.SIGTERM)
    results = [commands.finish(worker) for worker in workers]
    assert {result.returncode for result in results} <= {2, 130}
    assert results[0].returncode == 130 or "is gone" in results[0].stderr

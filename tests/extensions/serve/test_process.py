"""The command as processes: killed workers, reloads and the end, under load."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time

import psutil
import pytest

import bert_tf
from tests import processes
from tests.extensions.serve.runs import write

ROWS = [["rain came over", "the old wind"], ["soup", "and bread"], ["a red pear", "salt"], ["storm , cloud", "far ."]]


class Command:
    """`python -m bert_tf serve`, with its log."""

    def __init__(self, run, log, *flags):
        arguments = [sys.executable, "-m", "bert_tf", "serve", str(run), "--port=0", *flags]
        self._log = log
        with log.open("wb") as file:
            self.process = subprocess.Popen(arguments, cwd=processes.ROOT, stdout=file, stderr=subprocess.STDOUT)

    @property
    def log(self):
        return self._log.read_text()

    def wait_for(self, pattern, limit_s=90):
        end = time.monotonic() + limit_s
        while not (match := re.search(pattern, self.log)):
            assert self.process.poll() is None, self.log
            assert time.monotonic() < end, self.log
            time.sleep(0.05)
        return match

    @property
    def port(self):
        return int(self.wait_for(r"http://127\.0\.0\.1:(\d+)")[1])

    @property
    def workers(self):
        """Numbers of the processes that compute."""
        listener = psutil.Process(self.process.pid)
        servers = {one.pid for one in listener.children()}  # which fork the workers
        return [one.pid for one in listener.children(recursive=True) if one.pid not in servers]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait(30)


@pytest.mark.slow
def test_workers_end_with_the_process_that_listens(tmp_path, project):
    run = write(tmp_path / "run", project, "tags")
    with Command(run, tmp_path / "log") as command:
        command.wait_for("serving ")
        workers = [psutil.Process(number) for number in command.workers]
        command.process.kill()
        gone, alive = psutil.wait_procs(workers, 20)
    assert (len(gone), alive) == (1, [])


def answered(port, rows):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection):
        connection.request("POST", "/predict", json.dumps({"rows": rows}), {"Content-Type": "application/json"})
        return [one["probabilities"] for one in json.loads(connection.getresponse().read())["predictions"]]


def test_an_exported_model_is_served_without_tensorflow_from_shared_weights(tmp_path, project):
    run = write(tmp_path / "run", project, "classification")
    with bert_tf.load(run) as model:
        folder = model.export("onnx", tmp_path / "exported")
        expected = [one.probabilities for one in model.predict(ROWS)]
    with Command(folder, tmp_path / "log", "--workers=2", "--intra_op_threads=1") as command:
        assert "which workers of one thread share" in command.wait_for("serving ").string
        port = command.port
        for _ in range(2):
            for actual, wanted in zip(answered(port, ROWS), expected):
                assert actual == pytest.approx(wanted, abs=1e-5)
            command.wait_for("first worker ready")
            with contextlib.suppress(ProcessLookupError):  # of the one that was killed before
                os.kill(command.workers[0], signal.SIGKILL)  # another takes its place
        command.process.send_signal(signal.SIGHUP)
        command.wait_for("(?s)serving .*serving ")
        for process in psutil.Process(command.process.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                assert not any("tensorflow" in mapped.path for mapped in process.memory_maps())
        command.process.send_signal(signal.SIGTERM)
        assert command.process.wait(30) == 0
        assert "Traceback" not in command.log

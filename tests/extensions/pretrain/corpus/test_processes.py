"""Work on several processes."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bert_tf.errors import DataError
from bert_tf.extensions.pretrain.corpus import processes
from bert_tf.extensions.pretrain.corpus.processes import LostWorkerError, mapped


def _refuse(number):
    raise DataError("is odd", "x.txt", number)


def _process(_):
    return os.getpid()


@pytest.mark.parametrize("workers", [1, 3, 300])
def test_results_have_the_order_of_the_tasks_and_no_process_is_without_a_task(workers, monkeypatch):
    started, worker = [], processes._Worker
    monkeypatch.setattr(processes, "_Worker", lambda work: started.append(worker(work)) or started[-1])
    count = 3 if workers == 300 else 50
    assert list(mapped(abs, iter(range(0, -count, -1)), workers=workers)) == list(range(count))
    assert len(started) <= min(workers, count)
    assert bool(started) == (workers > 1)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_of_a_worker_is_that_of_the_work(workers):
    with pytest.raises(DataError, match="^x.txt:3: is odd$"):
        list(mapped(_refuse, [3, 5], workers=workers))


def test_few_tasks_are_read_ahead_and_one_needs_no_other_process():
    read = []
    with pytest.raises(TypeError):  # abs(None)
        next(mapped(abs, map(read.append, range(100)), workers=1))
    assert len(read) == 1
    assert list(mapped(_process, [1], workers=4)) == [os.getpid()]


def test_an_error_ends_tasks_that_take_long_and_a_worker_that_is_gone_is_one_line():
    begun = time.monotonic()
    with pytest.raises(TypeError):
        list(mapped(time.sleep, ["no number", 500], workers=2))
    assert time.monotonic() - begun < 100
    with pytest.raises(LostWorkerError, match="a worker process died, perhaps out of memory; free"):
        list(mapped(os._exit, [1, 2], workers=2))


def _run(folder, code):
    """Runs a script of code after the import of `mapped`."""
    script = folder / "script.py"
    script.write_text(f"from bert_tf.extensions.pretrain.corpus.processes import mapped\n{code}")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])}
    return subprocess.run([sys.executable, script], stdout=subprocess.PIPE, text=True, env=environment, timeout=100)


def test_a_script_is_not_run_again_by_each_worker(tmp_path):
    done = _run(tmp_path, "print(list(mapped(abs, [-1, -2, -3], workers=2)))\n")
    assert (done.returncode, done.stdout) == (0, "[1, 2, 3]\n")


def test_workers_end_with_a_consumer_that_fails(tmp_path):
    assert _run(tmp_path, "results = mapped(abs, range(100), workers=2)\nnext(results)\nraise SystemExit(3)\n").returncode == 3

"""What a process does with freed memory, measured by its page faults."""

import os
import subprocess
import sys

import pytest

from bert_tf.runtime import memory

# Matrices of 4 MB, which TensorFlow's plain allocator takes from glibc and gives back at each of 20 steps: 1024 pages each.
_STEPS = """
import os, resource, sys
import tensorflow as tf
from bert_tf.runtime import memory
if sys.argv[1] == "keep":
    memory.keep(os.environ)
with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    made = tf.random.uniform([1024, 1024])
    out = tf.reduce_sum(tf.linalg.matmul(made, made) + tf.sqrt(made))
    for _ in range(10):
        session.run(out)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        session.run(out)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(way, **environment):
    """Page faults of 20 steps in a process whose TensorFlow chooses its plain allocator, as on a CPU of 2020."""
    environment = {**os.environ, "TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPP_MIN_LOG_LEVEL": "3", **environment}
    environment.pop(memory.ALLOCATOR, None)
    command = [sys.executable, "-c", _STEPS, way]
    return int(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


@pytest.mark.several_machines  # two processes with TensorFlow of their own
@pytest.mark.skipif(memory.mallopt is None, reason="not glibc")
def test_steps_find_the_memory_of_earlier_ones():
    given_back = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}  # at each step, whatever the version
    assert faults("leave", **given_back) > 20_000
    assert faults("keep", **given_back) < 5_000


@pytest.mark.parametrize(
    ("environment", "left"),
    [
        ({}, set()),
        ({"MALLOC_TOP_PAD_": "0"}, {-2}),
        ({"MALLOC_MMAP_THRESHOLD_": "1", "MALLOC_TRIM_THRESHOLD_": "1"}, {-3, -1}),
        ({"GLIBC_TUNABLES": "glibc.malloc.check=0:glibc.malloc.mmap_threshold=4096"}, {-3}),
    ],
)
def test_what_the_user_set_stays(monkeypatch, environment, left):
    asked = {}
    monkeypatch.setattr(memory, "mallopt", lambda option, value: asked.setdefault(option, value))
    monkeypatch.setenv(memory.ALLOCATOR, "false")
    memory.keep(environment)
    assert set(asked) == {-1, -2, -3} - left
    assert os.environ[memory.ALLOCATOR] == "false"


def test_an_old_glibc_refuses_a_high_threshold_and_takes_its_highest(monkeypatch):
    taken = {}

    def old(option, value):
        if option == -3 and value > 32 << 20:
            return 0
        taken[option] = value
        return 1

    monkeypatch.setattr(memory, "mallopt", old)
    monkeypatch.setenv(memory.ALLOCATOR, "true")
    memory.keep({})
    assert taken[-3] == 32 << 20

"""Batches of evaluation: as ever on a CPU, by free memory on a GPU."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.inputs.pipeline import Batching, eval_batches
from bert_tf.jobs import batch_machine, speed
from bert_tf.jobs.machine_settings import MachineSettings
from bert_tf.runtime.machine import Machine, Plan
from bert_tf.runtime.settings import DeviceSettings
from tests import classifier_flags
from tests.labelled import labelled

CPU = Machine(tf.compat.v1.ConfigProto())
GPU = Machine(tf.compat.v1.ConfigProto(), Plan(devices=("/device:GPU:0",)), gpu_memory=20 * 2**30)
BASE = BertConfig(vocab_size=30522)
FEATURES = labelled(np.zeros(128_000, np.int32), np.full(1000, 128), np.ones(1000, np.int32), np.zeros(1000, np.int32))


def options():
    return classifier_flags.parse(["run_classifier.py", "--task_name=MRPC"]).speed


def sizes(batching):
    return [len(rows) for rows in eval_batches(FEATURES, None, batching)]


def test_a_cpu_computes_what_it_did():
    assert speed.eval_batching(options(), 128, BASE, CPU) == speed.batching(options(), 128)
    assert sizes(speed.eval_batching(options(), 128, BASE, CPU))[0] == 2048 // 128


def test_a_gpu_computes_more_at_a_time():
    found = speed.eval_batching(options(), 128, BASE, GPU)
    assert found == dataclasses.replace(speed.batching(options(), 128), eval_tokens=32768)
    assert sizes(found) == [256, 256, 256, 232]


def test_while_the_model_trains_there_is_less():
    small = dataclasses.replace(GPU, gpu_memory=3 * 2**30)
    alone, beside = (speed.eval_batching(options(), 128, BASE, small, trains=trains).eval_tokens for trains in (False, True))
    assert beside < alone


def test_a_size_that_is_given_decides():
    rows = eval_batches(FEATURES, 10, Batching(eval_tokens=32768))
    assert len(next(rows)) == 10


@pytest.mark.parametrize(("machine", "tokens"), [(CPU, None), (GPU, 32768)])
def test_batch_jobs_do_the_same(monkeypatch, machine, tokens):
    monkeypatch.setattr(batch_machine, "set_up", lambda *_, **__: machine)
    monkeypatch.setattr(batch_machine, "describe", lambda *_: None)
    settings = MachineSettings(DeviceSettings(strategy="one_device"), "float32")
    inference = batch_machine.inference(settings, None, environment={})
    assert inference.batching(BASE, 128).eval_tokens == tokens

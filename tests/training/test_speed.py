"""Speed flags as settings of model, input and machine; batches of evaluation."""

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.features.batching import Batching, eval_batches
from bert_tf.modeling.execution import Execution
from bert_tf.runtime.cluster import Cluster
from bert_tf.runtime.machine import Machine, Plan
from bert_tf.runtime.settings import DeviceSettings
from bert_tf.training import speed, tensorflow_machine
from bert_tf.training.settings import MachineSettings
from tests.classifier import mrpc
from tests.labelled import labelled

CPU = Machine(tf.compat.v1.ConfigProto())
GPU = Machine(tf.compat.v1.ConfigProto(gpu_options={"visible_device_list": "0"}), Plan(devices=("/device:GPU:0",)))
ONE_OF_TWO = dataclasses.replace(CPU, plan=Plan(cluster=Cluster(("a:1", "b:1"), 0)))
BASE = BertConfig(vocab_size=30522)


def settings(flags=""):
    return mrpc(*flags.split()).speed


@pytest.mark.parametrize(
    ("flags", "execution", "batching"),
    [
        ("", Execution(), Batching(None, 1, 128)),
        ("--nopack_tokens --nopad_to_longest", Execution(pack_tokens=False), Batching(128, 1, 128)),
        ("--nolast_layer_cls_only", Execution(last_layer_cls_only=False), Batching(None, 1, 128)),
        ("--nocustom_gradients", Execution(custom_gradients=False), Batching(None, 1, 128)),
        (
            "--published_layout",
            Execution(pack_tokens=False, last_layer_cls_only=False, custom_gradients=False),
            Batching(128, 1, 128),
        ),
        ("--precision=tf32 --group_by_length", Execution(), Batching(None, 1, 128, group_by_length=True)),
        ("--precision=bfloat16", Execution(dtype=tf.bfloat16), Batching(None, 8, 128)),
        ("--precision=float16", Execution(dtype=tf.float16), Batching(None, 8, 128)),
        ("--precision=float16 --xla", Execution(pack_tokens=False, dtype=tf.float16), Batching(None, 32, 128)),
    ],
)
def test_the_encoder_is_computed_and_examples_are_batched_as_the_flags_say(flags, execution, batching):
    assert speed.execution(settings(flags), CPU) == execution
    assert speed.batching(settings(flags), 128) == batching


XLA = ("INFO", "--xla compiles once for each shape: --nopack_tokens, --nodefer_embeddings")


@pytest.mark.parametrize(
    ("flags", "reason", "done", "said"),
    [
        ("", None, ["default"], []),
        ("--xla", None, ["xla", "default"], [XLA]),
        ("--precision=tf32", None, ["tf32"], []),
        ("--precision=float16", "it is slow", ["float16"], [("WARNING", "--precision=float16: it is slow")]),
    ],
)
def test_the_machine_is_set_up_with_warnings(flags, reason, done, said, monkeypatch, caplog):
    called = []
    monkeypatch.setattr(speed.devices, "allow_xla_on_cpu", lambda: called.append("xla"))
    monkeypatch.setattr(speed.precision, "use", called.append)
    monkeypatch.setattr(speed.precision, "slow_reason", lambda _: reason)
    speed.set_up(settings(flags))
    speed.warn(settings(flags))
    assert (called, [(record.levelname, record.message) for record in caplog.records]) == (done, said)


@pytest.mark.parametrize(
    ("recorded", "flags", "precision"),
    [
        ({"precision": "float32"}, "", "float32"),  # by an earlier version
        ({"precision": "default"}, "", "default"),
        ({"precision": "bfloat16"}, "", "default"),  # another run, which is refused
        ({"precision": "float32"}, "--precision=bfloat16", "bfloat16"),
        ({}, "", "default"),
        ({"precision": "float32"}, "--do_train --overwrite_output_dir", "default"),  # that run may be deleted
        ({"precision": "float32"}, "--do_eval --overwrite_output_dir", "float32"),
    ],
)
def test_a_run_goes_on_in_the_precision_it_had(tmp_path, recorded, flags, precision):
    (tmp_path / "run_config.json").write_text(json.dumps({"training": recorded}))
    spec = mrpc(f"--output_dir={tmp_path}", *flags.split())
    assert speed.continued(spec).precision == precision


@pytest.mark.parametrize(
    ("flags", "machine", "wanted"),
    [
        ("", CPU, True),
        ("--precision=bfloat16", CPU, True),
        ("--published_layout --native_kernels --pack_tokens --custom_gradients", CPU, True),
        ("--nonative_kernels", CPU, False),
        ("--precision=float16", CPU, False),
        ("--xla", CPU, False),
        ("--nopack_tokens", CPU, False),
        ("--nocustom_gradients", CPU, False),
        ("", GPU, False),
        ("", ONE_OF_TWO, False),  # the other may be of another kind, and their weights would drift apart
    ],
)
@pytest.mark.parametrize("there", [True, False])
def test_native_kernels_compute_where_they_can(monkeypatch, flags, machine, wanted, there):
    tried = []
    monkeypatch.setattr(speed.loading, "use", lambda environment: tried.append(environment) or there)
    with_kernels = speed.with_kernels(settings(flags), machine, {"PATH": "x"})
    assert tried == ([{"PATH": "x"}] if wanted else [])
    assert speed.execution(settings(flags), with_kernels).native == with_kernels.native_kernels == (wanted and there)


def test_batches_of_evaluation_are_as_large_as_the_memory_of_a_gpu_allows(monkeypatch):
    features = labelled(np.zeros(128_000, np.int32), np.full(1000, 128), np.ones(1000, np.int32), np.zeros(1000, np.int32))
    whole, small = (dataclasses.replace(GPU, gpu_memory=size * 2**30) for size in (20, 3))
    usual = speed.batching(settings(), 128)
    assert speed.eval_batching(settings(), 128, BASE, CPU) == usual
    assert len(next(eval_batches(features, None, usual))) == 2048 // 128
    batching = speed.eval_batching(settings(), 128, BASE, whole)
    assert batching == dataclasses.replace(usual, eval_tokens=32768)
    assert [len(rows) for rows in eval_batches(features, None, batching)] == [256, 256, 256, 232]
    assert len(next(eval_batches(features, 10, batching))) == 10  # a size that is given decides
    alone, beside = (speed.eval_batching(settings(), 128, BASE, small, trains=trains).eval_tokens for trains in (False, True))
    assert beside < alone
    monkeypatch.setattr(tensorflow_machine, "describe", lambda *_: None)
    for machine, tokens in ((CPU, None), (whole, 32768)):  # batch jobs do the same
        monkeypatch.setattr(tensorflow_machine, "set_up", lambda *_, machine=machine, **__: machine)
        chosen = MachineSettings("float32", devices=DeviceSettings(strategy="one_device"))
        assert tensorflow_machine.inference(chosen, None, environment={}).batching(BASE, 128).eval_tokens == tokens

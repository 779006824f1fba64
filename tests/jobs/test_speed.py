"""What the speed flags become."""

from __future__ import annotations

import dataclasses
import json
import logging

import pytest
import tensorflow as tf

from bert_tf.inputs.pipeline import Batching
from bert_tf.jobs import speed
from bert_tf.jobs.settings import SpeedSettings
from bert_tf.modeling.execution import Execution
from bert_tf.runtime.cluster import Cluster
from bert_tf.runtime.machine import Machine, Plan
from tests import classifier_flags

CPU = Machine(tf.compat.v1.ConfigProto())
GPU = Machine(tf.compat.v1.ConfigProto(gpu_options={"visible_device_list": "0"}))
ONE_OF_TWO = dataclasses.replace(CPU, plan=Plan(cluster=Cluster(("a:1", "b:1"), 0)))


def settings(*arguments: str) -> SpeedSettings:
    return classifier_flags.parse(["run_classifier.py", "--task_name=MRPC", *arguments]).speed


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), Execution()),
        (("--nopack_tokens",), Execution(pack_tokens=False)),
        (("--nolast_layer_cls_only",), Execution(last_layer_cls_only=False)),
        (("--nocustom_gradients",), Execution(custom_gradients=False)),
        (("--published_layout",), Execution(pack_tokens=False, last_layer_cls_only=False, custom_gradients=False)),
        (("--precision=tf32",), Execution()),
        (("--precision=bfloat16",), Execution(dtype=tf.bfloat16)),
        (("--precision=float16", "--xla"), Execution(pack_tokens=False, dtype=tf.float16)),
    ],
)
def test_the_encoder_is_computed_as_the_flags_say(arguments, expected):
    assert speed.execution(settings(*arguments), CPU) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), Batching(None, 1, 128)),
        (("--nopad_to_longest",), Batching(128, 1, 128)),
        (("--published_layout",), Batching(128, 1, 128)),
        (("--group_by_length",), Batching(None, 1, 128, group_by_length=True)),
        (("--precision=float16",), Batching(None, 8, 128)),
        (("--precision=bfloat16",), Batching(None, 8, 128)),
        (("--precision=tf32",), Batching(None, 1, 128)),
        (("--xla",), Batching(None, 32, 128)),
        (("--xla", "--precision=float16"), Batching(None, 32, 128)),
    ],
)
def test_examples_become_batches_as_the_flags_say(arguments, expected):
    assert speed.batching(settings(*arguments), 128) == expected


@pytest.fixture
def machine(monkeypatch):
    """Notes what is done to the machine; `said` is its slow_reason."""
    done = []

    def arrange(said):
        monkeypatch.setattr(speed.devices, "allow_xla_on_cpu", lambda: done.append("xla"))
        monkeypatch.setattr(speed.precision, "use", done.append)
        monkeypatch.setattr(speed.precision, "slow_reason", lambda _: said)
        return done

    return arrange


@pytest.mark.parametrize(
    ("arguments", "done"), [((), ["default"]), (("--xla",), ["xla", "default"]), (("--precision=tf32",), ["tf32"])]
)
def test_the_machine_is_set_up(machine, arguments, done):
    found = machine(None)
    speed.set_up(settings(*arguments))
    assert found == done


@pytest.mark.parametrize(("said", "lines"), [(None, []), ("it is slow", ["--precision=float16: it is slow"])])
def test_a_misgiving_is_a_warning(machine, caplog, said, lines):
    machine(said)
    with caplog.at_level(logging.INFO, logger="absl"):
        speed.warn(settings("--precision=float16"))
    assert [(record.levelname, record.message) for record in caplog.records] == [("WARNING", line) for line in lines]


def test_xla_says_what_it_switches_off(machine, caplog):
    machine(None)
    with caplog.at_level(logging.INFO, logger="absl"):
        speed.warn(settings("--xla"))
    assert caplog.messages == ["--xla compiles once for each shape: --nopack_tokens, --nodefer_embeddings"]


@pytest.mark.parametrize(
    ("deterministic", "on_gpu", "defers"), [(True, True, False), (True, False, True), (False, True, True), (False, False, True)]
)
def test_word_vectors_are_put_off_but_on_a_gpu_that_is_deterministic(caplog, deterministic, on_gpu, defers):
    with caplog.at_level(logging.INFO, logger="absl"):
        found = speed.deferring(settings(), deterministic=deterministic, on_gpu=on_gpu)
    assert (found.defer_embeddings, len(caplog.messages)) == (defers, 0 if defers else 1)


@pytest.mark.parametrize(
    ("recorded", "arguments", "precision"),
    [
        ({"precision": "float32"}, (), "float32"),  # by an earlier version
        ({"precision": "default"}, (), "default"),
        ({"precision": "bfloat16"}, (), "default"),  # another run, which is refused
        ({"precision": "float32"}, ("--precision=bfloat16",), "bfloat16"),
        ({}, (), "default"),
    ],
)
def test_a_run_goes_on_in_the_precision_it_had(tmp_path, recorded, arguments, precision):
    (tmp_path / "run_config.json").write_text(json.dumps({"training": recorded}))
    assert speed.continued(settings(*arguments), tmp_path).precision == precision


@pytest.mark.parametrize(
    ("arguments", "machine", "wanted"),
    [
        ((), CPU, True),
        (("--precision=bfloat16",), CPU, True),
        (("--precision=float32",), CPU, True),
        (("--published_layout", "--native_kernels", "--pack_tokens", "--custom_gradients"), CPU, True),
        (("--nonative_kernels",), CPU, False),
        (("--published_layout",), CPU, False),
        (("--precision=float16",), CPU, False),
        (("--xla",), CPU, False),
        (("--nopack_tokens",), CPU, False),
        (("--nocustom_gradients",), CPU, False),
        ((), GPU, False),
        ((), ONE_OF_TWO, False),  # the other may be of another kind, and their weights would drift apart
    ],
)
@pytest.mark.parametrize("there", [True, False])
def test_native_kernels_compute_where_they_can(monkeypatch, arguments, machine, wanted, there):
    tried = []
    monkeypatch.setattr(speed.loading, "use", lambda environment: tried.append(environment) or there)
    found = speed.with_kernels(settings(*arguments), machine, {"PATH": "x"})
    assert tried == ([{"PATH": "x"}] if wanted else [])
    assert speed.execution(settings(*arguments), found).native == found.native_kernels == (wanted and there)

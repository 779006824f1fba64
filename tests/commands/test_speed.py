"""What the speed flags become."""

from __future__ import annotations

import logging

import pytest
import tensorflow as tf

from bert_tf.commands import classifier_flags, speed
from bert_tf.inputs.pipeline import Batching
from bert_tf.modeling.execution import Execution


def settings(*arguments: str) -> classifier_flags.SpeedSettings:
    return classifier_flags.parse(["run_classifier.py", "--task_name=MRPC", *arguments]).speed


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), Execution()),
        (("--nopack_tokens",), Execution(pack_tokens=False)),
        (("--noskip_unread",), Execution(skip_unread=False)),
        (("--nolean_gradients",), Execution(lean_gradients=False)),
        (("--published_layout",), Execution(pack_tokens=False, skip_unread=False, lean_gradients=False)),
        (("--precision=tf32",), Execution()),
        (("--precision=bfloat16",), Execution(dtype=tf.bfloat16)),
        (("--precision=float16", "--xla"), Execution(pack_tokens=False, dtype=tf.float16)),
    ],
)
def test_the_encoder_is_computed_as_the_flags_say(arguments, expected):
    assert speed.execution(settings(*arguments)) == expected


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
    """Notes what is done to the machine; `said` is its misgiving."""
    done = []

    def arrange(said):
        monkeypatch.setattr(speed.devices, "allow_xla_on_cpu", lambda: done.append("xla"))
        monkeypatch.setattr(speed.precision, "use", done.append)
        monkeypatch.setattr(speed.precision, "misgiving", lambda _: said)
        return done

    return arrange


@pytest.mark.parametrize(
    ("arguments", "done"), [((), ["float32"]), (("--xla",), ["xla", "float32"]), (("--precision=tf32",), ["tf32"])]
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

"""Ways of computing low-rank updates that learn the same."""

import json

import pytest

from bert_tf.extensions.lora.names import DOWN, UP
from tests import processes
from tests.extensions.lora.replicas_check import ADAPTATION, WAYS


@pytest.fixture(scope="module")
def found():
    """What replicas_check.py reports."""
    done = processes.run(["-m", "tests.extensions.lora.replicas_check"])
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("way", WAYS)
def test_learns_what_one_device_learns_without_a_stop(found, way):
    of_updates = [f"{scope}/{part}" for scope in ADAPTATION.matrices for part in (DOWN, UP)]
    assert found[way]["names"] == sorted([*of_updates, "output_weights", "output_bias", "global_step"])
    assert found[way]["distance"] < 1e-4


def test_a_stop_changes_no_bit(found):
    assert found["one, stopped"]["same"]

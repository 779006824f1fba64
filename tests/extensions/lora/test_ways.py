"""Ways of computing low-rank updates that learn the same."""

import json

from bert_tf.extensions.lora.names import DOWN, UP
from tests import processes
from tests.extensions.lora.replicas_check import ADAPTATION, WAYS


def test_learns_what_one_device_learns_without_a_stop_which_changes_no_bit():
    """One test, since all that replicas_check.py trains is trained by one process."""
    done = processes.run(["-m", "tests.extensions.lora.replicas_check"])
    assert done.returncode == 0, done.stderr[-3000:]
    by_way = json.loads(done.stdout)
    of_updates = [f"{scope}/{part}" for scope in ADAPTATION.matrices for part in (DOWN, UP)]
    names = sorted([*of_updates, "output_weights", "output_bias", "global_step"])
    assert {way: one["names"] for way, one in by_way.items()} == dict.fromkeys(WAYS, names)
    assert {way: one["distance"] for way, one in by_way.items() if not one["distance"] < 1e-4} == {}
    assert by_way["one, stopped"]["same"]

"""One model under several strategies: the same weights, losses and metrics, whatever computes them."""

import json

import numpy as np
import pytest

from tests import processes
from tests.estimator import replicas_check

pytestmark = pytest.mark.several_machines
EXACT = [name for name, (*_, ways) in replicas_check.RUNS.items() if not {"dropout", "dtype"} & ways.keys()] + ["moved"]
MIRRORED = [name for name, (strategy, *_) in replicas_check.RUNS.items() if strategy == "mirrored"]
MEASURED = pytest.mark.parametrize("name", replicas_check.MEASURED)


@pytest.fixture(scope="module")
def found():
    """What tests/estimator/replicas_check.py reports; in a process of its own, since devices are set up only once."""
    result = processes.run(["-m", "tests.estimator.replicas_check"])
    assert result.returncode == 0, result.stderr[-2000:]
    return json.loads(result.stdout)


@pytest.mark.parametrize("name", EXACT)
def test_replicas_learn_what_one_device_learns_from_the_same_batches(found, name):
    assert found[name]["to_one_device"] < 1e-5 < 1e-2 < found[name]["to_the_start"]
    assert found[name]["averages_to_one_device"] < 1e-5
    for key in ("losses", "gradient_norms"):  # are those of the global batch
        assert len(found[name][key]) == replicas_check.SCHEDULE.steps
        np.testing.assert_allclose(found[name][key], found[replicas_check.alone(name)][key], rtol=1e-5)
    assert found[name]["names"] == found[replicas_check.alone(name) if "masked" in name else "one"]["names"]
    assert min(found["one"]["gradient_norms"]) > replicas_check.CLIP_NORM  # clipping was active


@pytest.mark.parametrize("name", MIRRORED)
def test_replicas_stay_equal_to_the_last_bit(found, name):
    assert found[name]["copied"] >= len(found[name]["names"])
    assert found[name]["between_replicas"] == 0


def test_a_bit_that_differs_between_replicas_stops_the_run(found):
    # Compared after steps 4 and 8, and spoilt between step 8 and that comparison.
    assert found["spoilt"].startswith("step 8: the replicas have different weights (1 variables, the first is output_bias)")


def test_no_strategy_starts_a_thread_that_its_end_waits_for(found):
    assert found["readers"] == [["make_iterator", False], ["multi_device_iterator_init", False]]


@MEASURED
def test_an_evaluation_while_replicas_train_is_that_of_the_checkpoint_which_does_not_depend_on_them(found, name):
    """13 examples in batches of 4: four for three devices."""
    lines, afterwards = found[name]["on_the_way"], found[name]["evaluation"]
    assert [line["step"] for line in lines] == [5, 10, 13]
    assert lines[-1]["eval_loss"] == pytest.approx(afterwards["loss"], rel=1e-5)
    assert (lines[-1]["eval_accuracy"], lines[-1]["step"]) == (afterwards["accuracy"], afterwards["global_step"])
    assert afterwards == pytest.approx(found["one"]["evaluation"], rel=1e-5)


def test_half_precision_stays_close_on_replicas(found):
    np.testing.assert_allclose(found["two, float16"]["losses"], found["one, float16"]["losses"], rtol=2e-3)


def test_the_seed_repeats_what_replicas_drop(found):
    losses = [found[name]["losses"] for name in ("two, dropout", "two, dropout, again", "one")]
    assert losses[0] == losses[1] != losses[2][: len(losses[0])]

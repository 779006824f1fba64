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
def measured():
    """What tests/estimator/replicas_check.py reports; in a process of its own, since devices are set up only once."""
    result = processes.run(["-m", "tests.estimator.replicas_check"])
    assert result.returncode == 0, result.stderr[-2000:]
    return json.loads(result.stdout)


@pytest.mark.parametrize("name", EXACT)
def test_replicas_learn_what_one_device_learns_from_the_same_batches(measured, name):
    assert measured[name]["to_one_device"] < 1e-5 < 1e-2 < measured[name]["to_the_start"]
    assert measured[name]["averages_to_one_device"] < 1e-5
    for key in ("losses", "gradient_norms"):  # are those of the global batch
        assert len(measured[name][key]) == replicas_check.SCHEDULE.steps
        np.testing.assert_allclose(measured[name][key], measured[replicas_check.alone(name)][key], rtol=1e-5)
    assert measured[name]["names"] == measured[replicas_check.alone(name) if "masked" in name else "one"]["names"]
    assert min(measured["one"]["gradient_norms"]) > replicas_check.CLIP_NORM  # clipping was active


@pytest.mark.parametrize("name", MIRRORED)
def test_replicas_stay_equal_to_the_last_bit(measured, name):
    assert measured[name]["copied"] >= len(measured[name]["names"])
    assert measured[name]["between_replicas"] == 0


def test_a_bit_that_differs_between_replicas_stops_the_run(measured):
    # Compared after steps 4 and 8, and spoilt between step 8 and that comparison.
    assert measured["spoilt"].startswith("step 8: the replicas have different weights (1 variables, the first is output_bias)")


def test_no_strategy_starts_a_thread_that_its_end_waits_for(measured):
    assert measured["readers"] == [["make_iterator", False], ["multi_device_iterator_init", False]]


@MEASURED
def test_an_evaluation_while_replicas_train_is_that_of_the_checkpoint_which_does_not_depend_on_them(measured, name):
    """13 examples in batches of 4: four for three devices."""
    lines, afterwards = measured[name]["on_the_way"], measured[name]["evaluation"]
    assert [line["step"] for line in lines] == [5, 10, 13]
    assert lines[-1]["eval_loss"] == pytest.approx(afterwards["loss"], rel=1e-5)
    assert (lines[-1]["eval_accuracy"], lines[-1]["step"]) == (afterwards["accuracy"], afterwards["global_step"])
    assert afterwards == pytest.approx(measured["one"]["evaluation"], rel=1e-5)


def test_half_precision_stays_close_on_replicas(measured):
    np.testing.assert_allclose(measured["two, float16"]["losses"], measured["one, float16"]["losses"], rtol=2e-3)


def test_the_seed_repeats_what_replicas_drop(measured):
    losses = [measured[name]["losses"] for name in ("two, dropout", "two, dropout, again", "one")]
    assert losses[0] == losses[1] != losses[2][: len(losses[0])]

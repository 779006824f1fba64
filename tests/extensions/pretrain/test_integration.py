"""The command that pre-trains, in processes of its own: replicas, and kills at any moment."""

import functools
import json
import math
import os
import signal

import numpy as np
import pytest

from tests import processes, texts
from tests.integration import commands, families
from tests.integration.test_kills import Moment, die_at, die_in_a_file

STEPS, THEN, EVERY = 6, 4, 4


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return texts.write(tmp_path_factory.mktemp("text") / "text.txt", texts.documents(30))


@pytest.fixture(scope="module")
def flags(project, text):
    """Flags of a run of two phases that is evaluated."""

    def flags(folder, **extra):
        phases = {"num_train_steps": STEPS, "phase2_num_train_steps": THEN, "phase2_max_seq_length": 32}
        own = {"input_file": text, "held_out_documents": 5, "save_checkpoints_steps": EVERY, **phases}
        return texts.flags(project, folder, **{**own, **extra})

    return flags


def pretrain(arguments, before=None):
    """Runs the command in a process of its own."""
    begin = functools.partial(commands.without_charts, before)
    environment = {name: value for name, value in os.environ.items() if name != "BERT_BASE_DIR"}
    return processes.run(["-m", "bert_tf", "pretrain", *arguments], environment=environment, before=begin)


@pytest.mark.several_machines
def test_micro_batches_on_two_replicas_learn_what_one_batch_does(flags, project, text, tmp_path):
    config = families.without_dropout(text.parent, project)
    one, two = (tmp_path / name for name in ("one", "two"))
    for folder, devices in ((one, {}), (two, {"virtual_devices": 2, "gradient_accumulation_steps": 2})):
        done = pretrain(flags(folder, bert_config_file=config, do_train=True, **devices))
        assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(families.losses(two), families.losses(one), rtol=1e-4)


STEP_ENDS = ("bert_tf.estimator.progress_hook", "ProgressHook.after_run")
KILLS = {
    "while rows are made": functools.partial(die_at, Moment("bert_tf.extensions.pretrain.corpus.rows", "rows_of", 1)),
    "in the first phase": functools.partial(die_at, Moment(*STEP_ENDS, STEPS - 1)),
    "in the second phase": functools.partial(die_at, Moment(*STEP_ENDS, STEPS + 3)),
    "in a checkpoint": die_in_a_file,
    "in the evaluation": functools.partial(die_at, Moment("bert_tf.estimator.forward", "Forward.outputs")),
}


@pytest.fixture(scope="module")
def trained(flags, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "out"
    done = pretrain(flags(folder))
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow  # a minute; `tests/extensions/pretrain/test_pretrain.py` goes on from the border of the phases
@pytest.mark.parametrize("kill", KILLS)
def test_a_run_that_is_killed_goes_on_to_the_same_bits(kill, flags, trained, tmp_path):
    killed = pretrain(flags(tmp_path / "out"), before=KILLS[kill])
    assert -killed.returncode in (signal.SIGKILL, signal.SIGXFSZ), killed.stderr
    done = pretrain(flags(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    last = STEPS + THEN
    assert commands.same_bits(commands.weights(tmp_path / "out", last), commands.weights(trained, last))
    assert (tmp_path / "out" / "eval_results.json").read_bytes() == (trained / "eval_results.json").read_bytes()
    assert len(families.losses(tmp_path / "out")) == last


@pytest.mark.slow  # a minute, and it needs the default checkpoint
def test_the_command_alone_goes_on_from_the_default_checkpoint_and_learns(tmp_path):
    done = pretrain([f"--output_dir={tmp_path}"])
    assert done.returncode == 0, done.stderr
    assert "7 newly initialized (cls/predictions/output_bias" in done.stderr
    lines = [json.loads(line) for line in (tmp_path / "evaluations.jsonl").read_text().splitlines()]
    assert lines[-1]["eval_masked_lm_loss"] < lines[0]["eval_masked_lm_loss"] - 0.1
    assert lines[0]["eval_masked_lm_loss"] < math.log(30522)  # that of a head that knows nothing

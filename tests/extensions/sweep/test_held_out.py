"""Dev examples that a search does not see."""

import json

import numpy as np
import pytest

from bert_tf.errors import FlagError
from bert_tf.extensions.calibrate import fit
from bert_tf.extensions.sweep import held_out
from bert_tf.training.run_spec import configured
from tests.tiny import SIZES
from tests.training import reading


def test_each_example_is_seen_or_not_and_the_same_ones_are_for_all_runs():
    seen, unseen = held_out.divided(13, 0.4)
    assert len(unseen) == 5
    assert sorted([*seen, *unseen]) == list(range(13))
    np.testing.assert_array_equal(held_out.divided(13, 0.4)[1], unseen)
    with pytest.raises(FlagError, match="--hold_out=0.01: that is none of 13 dev examples"):
        held_out.divided(13, 0.01)
    with pytest.raises(FlagError, match="--hold_out=0.9: that is all of 4 dev examples; hold out at most 0.75"):
        held_out.divided(4, 0.9)


@pytest.fixture(scope="module")
def trained(project, tmp_path_factory):
    folder = tmp_path_factory.mktemp("held_out")
    model = {name: str(getattr(project, name)) for name in ("data_dir", "vocab_file", "bert_config_file", "init_checkpoint")}
    actions = dict.fromkeys(("do_train", "do_eval", "do_predict"), True)
    sizes = {"max_seq_length": 24, "train_batch_size": 8, "num_train_steps": 4, "max_train_examples": 16}
    config = configured(
        task_name="MRPC",
        output_dir=str(folder),
        eval_every_n_steps=2,
        save_checkpoints_steps=2,
        average_last=2,
        calibrate=True,
        submission_zip=True,
        **actions,
        **sizes,
        **model,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit, "FEWEST", 8)
        return folder, *held_out.train(config, 0.4, {})


def test_a_run_is_evaluated_on_what_is_seen_and_once_at_its_end_on_the_others(trained):
    folder, done, _ = trained
    assert len(done.run.examples["train"]) == 16
    assert len((folder / "submission" / "MRPC.tsv").read_text().splitlines()) == 1 + SIZES["test"]
    assert done.evaluations["dev"].examples == SIZES["dev"] - 5
    results = reading.results(folder)
    assert results["eval_accuracy"] == done.metrics["accuracy"]
    lines = (folder / "evaluations.jsonl").read_text().splitlines()
    accuracies = [json.loads(line)["eval_accuracy"] * 8 for line in lines]  # of 8 examples
    assert accuracies == pytest.approx(np.round(accuracies))
    decision = json.loads((folder / "best" / "decision.json").read_text())
    assert (decision["fitted_on"]["examples"], decision["reported_on"]) == (4, 4)  # of the 8 that are seen
    folder, done, metrics = trained
    results = reading.results(folder / held_out.FOLDER)
    assert results["eval_accuracy"] == metrics["held_out_accuracy"]
    assert metrics["held_out_accuracy"] * 5 == pytest.approx(round(metrics["held_out_accuracy"] * 5))
    assert results["global_step"] == done.step

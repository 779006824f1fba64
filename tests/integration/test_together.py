"""Questions and pairs, whose rows stay together: they learn, go on after a kill, and add up over parts and replicas."""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np
import pytest

import bert_tf
from bert_tf.modeling.heads import choice
from tests.integration import families

STEPS = 120


class Case(NamedTuple):
    """A family, its data and its metric."""

    problem: str
    rows: object  # of how many, from which random numbers
    metric: str


CASES = {
    "choice": Case("choice", families.choices, "accuracy"),
    "similarity": Case("similarity", families.pairs, "spearman"),
}


def without_dropout():
    """The rate of the head is not a setting."""
    choice._DROPOUT_RATE = 0.0


@pytest.fixture(scope="module", params=CASES)
def case(request):
    return CASES[request.param]


@pytest.fixture(scope="module")
def data(case, tmp_path_factory):
    folder, random = tmp_path_factory.mktemp(case.problem), np.random.default_rng(4)
    for split, count in (("train", 60), ("dev", 24), ("test", 7)):
        rows = case.rows(random, count)
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture(scope="module")
def flags(one_layer, case, data):
    """Flags of a run whose encoder has no dropout."""
    config = families.without_dropout(data, one_layer)

    def flags(output_dir, **extra):
        files = {f"{split}_file": data / f"{split}.jsonl" for split in ("train", "dev", "test")}
        own = {"task_name": "custom", "problem": case.problem, "id_column": "id", **files, "bert_config_file": config}
        constant = {"learning_rate_schedule": "constant", "warmup_proportion": 0.0}  # however many steps there are
        how = {**constant, "num_train_steps": STEPS, "learning_rate": 0.003, "save_checkpoints_steps": 40}
        given = one_layer.flags(output_dir, do_train=True, log_every_n_steps=1, **{**own, **how, **extra})
        return [flag for flag in given if not flag.startswith("--data_dir=")]

    return flags


@pytest.fixture(scope="module")
def trained(flags, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "out"
    families.run(flags(folder, do_eval=True, do_predict=True), without_dropout)
    return folder


def test_it_learns(trained):
    found = families.losses(trained)
    assert np.mean(found[-10:]) < 0.7 * np.mean(found[:10])


def test_it_is_measured(trained, case):
    results = json.loads((trained / "eval_results.json").read_text())
    assert -1.0 <= results[f"eval_{case.metric}"] <= 1.0
    assert results["splits"]["dev"]["examples"] == 24
    title = results["splits"]["dev"]["panels"][0]["title"]
    assert title in (trained / "report.html").read_text(encoding="utf-8")


def test_a_run_that_was_killed_ends_in_the_same_bits(tmp_path, flags, trained):
    families.check_killed_run(tmp_path, flags, trained, killed_at=61, steps=STEPS, before=without_dropout)


def test_parts_on_replicas_have_the_loss_of_the_whole(tmp_path, flags, trained):
    families.check_loss_of_parts(tmp_path / "out", flags, trained, steps=4, before=without_dropout)


def test_a_batch_job_predicts_the_same(tmp_path, data, trained, case):
    output = tmp_path / "predictions.tsv"
    bert_tf.predict_files(checkpoint=trained, input=data / "test.jsonl", output=output, id_column="id")
    found, expected = ([line.split("\t") for line in path.open()] for path in (output, trained / "predictions.tsv"))
    assert [row[0] for row in found] == [row[0] for row in expected] == ["id", *(f"{case.problem[0]}{n}" for n in range(7))]
    numbers = [[float(number) for row in rows[1:] for number in row[-1].split()] for rows in (found, expected)]
    np.testing.assert_allclose(*numbers, atol=1e-5)

"""Several seeds in one command: a run for each, a table of all."""

import dataclasses
import functools
import json
import signal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import bert_tf
from bert_tf.errors import FlagError, OutputError, TrainingError
from bert_tf.estimator import run_folder
from bert_tf.estimator.run import Outcome
from bert_tf.extensions.series import driver
from bert_tf.extensions.series import seeds as job
from bert_tf.extensions.series.table import summary
from bert_tf.extensions.sweep import leader
from bert_tf.tasks import registry
from bert_tf.tasks.evaluation import Evaluation
from bert_tf.training import run_spec, training
from bert_tf.training.fine_tune import FineTuned
from tests import classifier
from tests.integration.commands import same_bits, weights

ALONE = {"num_train_epochs": 1, "do_train": True, "do_eval": True, "verbosity": -1}
WAYS = {**ALONE, "slots": 1}
ACCURACIES = {1: 0.5, 2: 0.75, 3: 0.875}


def done(config) -> FineTuned:
    """What a job of a configuration comes to, without any."""
    folder, accuracy = Path(config.output.output_dir), ACCURACIES[config.train.seed]
    collapsed = "all predictions are yes" if accuracy == 0.5 else None
    job = SimpleNamespace(output_dir=folder, results_dir=folder)
    return FineTuned(job, 5, None, {"dev": Evaluation({"accuracy": accuracy}, 1.0 - accuracy, 8, collapsed)})


@pytest.fixture
def jobs(monkeypatch):
    """Takes the place of training: every job comes to an evaluation by its seed."""
    configs = []
    monkeypatch.setattr(driver, "fine_tune", lambda config, **_: configs.append(config) or done(config))
    return configs


def run(folder: Path, *arguments: str, environment=()):
    config = classifier.mrpc(f"--output_dir={folder}", "--slots=1", *arguments)
    return job.fine_tune_seeds(config, environment=dict(environment))


def written(folder: Path):
    return json.loads((folder / "seeds.json").read_text())


@pytest.mark.parametrize(
    ("text", "numbers"), [("4", (4,)), ("1-5", (1, 2, 3, 4, 5)), ("1,3,7-9", (1, 3, 7, 8, 9)), ("9, 0", (9, 0)), ("2-2", (2,))]
)
def test_seeds_are_numbers_and_ranges(text, numbers):
    assert classifier.mrpc(f"--seeds={text}").extensions.series.seed_numbers == numbers


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seeds=a"], "--seeds=a: 'a' is not a seed; write numbers up to 2147483647 with commas, or 1-5"),
        (["--seeds="], "--seeds is empty"),
        (["--seeds=5-1"], "--seeds=5-1: '5-1' is not a seed"),
        (["--seeds=-1"], "--seeds=-1: '-1' is not a seed"),
        (["--seeds=2147483648"], "--seeds=2147483648: '2147483648' is not a seed"),
        (["--seeds=1-3,2"], "--seeds=1-3,2: a seed is named twice"),
        (["--seeds=1,3-1002"], "--seeds=1,3-1002: more than 1000 seeds"),
        (["--seeds=1-5", "--seed=1"], "--seed and --seeds exclude each other"),
    ],
)
def test_refuses_other_seeds(arguments, message):
    with pytest.raises(FlagError) as caught:
        classifier.mrpc(*arguments)
    assert str(caught.value).startswith(message)


def test_each_seed_is_a_job_of_its_own_but_training_alone_and_several_machines_have_nothing_to_compare(jobs, tmp_path, caplog):
    with pytest.raises(FlagError, match="--seeds compares evaluations: add --do_eval"):
        run(tmp_path, "--seeds=1-2", "--do_train")
    machines = {"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 0}}
    with pytest.raises(FlagError, match="--seeds is for one machine"):
        run(tmp_path, "--seeds=1-2", environment={"TF_CONFIG": json.dumps(machines)})
    (tmp_path / "run" / "run_config.json").parent.mkdir()
    (tmp_path / "run" / "run_config.json").write_text("{}")
    with pytest.raises(OutputError, match="holds a run; name another folder for the seeds"):
        run(tmp_path / "run", "--seeds=1-2")
    assert jobs == []
    assert run(tmp_path, "--seeds=3,1", "--learning_rate=0.1").stopped_by is None
    assert [(job.train.seed, job.output.output_dir) for job in jobs] == [(3, f"{tmp_path}/seed-3"), (1, f"{tmp_path}/seed-1")]
    assert {(job.train.learning_rate, job.extensions.series.seeds) for job in jobs} == {(0.1, None)}
    for seed in (1, 9):  # of this command, and of an earlier one
        (tmp_path / f"seed-{seed}").mkdir()
        (tmp_path / f"seed-{seed}" / "run_config.json").write_text('{"training": {}}')
    (tmp_path / "run_config.json").write_text("{}")  # of a run trained here since then
    run(tmp_path, "--seeds=3,1")
    assert f"{tmp_path}: also holds another run, whose page takes the place of that of the seeds" in caplog.messages
    assert f"{tmp_path}: has runs of other seeds, which its page counts too, and seeds.tsv does not: seed-9" in caplog.messages


@pytest.mark.usefixtures("jobs")
def test_seeds_of_different_rows_are_not_compared(tmp_path):
    for seed in (1, 2):
        run_folder.claim(tmp_path / f"seed-{seed}", {"training": {"train_examples_sha256": str(seed)}}, overwrite=False)
    with pytest.raises(OutputError, match="its seeds were trained on different rows, as the data changed; name another"):
        run(tmp_path, "--do_train", "--do_eval", "--seeds=1,2")


def test_runs_in_the_default_folder_of_earlier_versions_are_named(tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    config = classifier.mrpc("--seeds=1-2")
    driver.warn_of_earlier_default(config, "seed-*")
    (tmp_path / "out" / "mrpc" / "seed-1").mkdir(parents=True)
    (tmp_path / "out" / "mrpc" / "seed-1" / "run_config.json").write_text("{}")
    driver.warn_of_earlier_default(config, "seed-*")
    assert caplog.messages == ["out/mrpc: holds the runs seed-* of an earlier version; --output_dir=out/mrpc continues them"]


@pytest.mark.usefixtures("jobs")
def test_the_files_have_a_row_for_each_seed_and_the_spread_as_has_the_table_for_people(tmp_path):
    run(tmp_path, "--seeds=1-3")
    assert (tmp_path / "seeds.tsv").read_text().splitlines() == [
        "seed\teval_accuracy\teval_loss\tsteps\tcollapsed",
        "1\t0.5\t0.5\t5\tdev: all predictions are yes",
        "2\t0.75\t0.25\t5\t",
        "3\t0.875\t0.125\t5\t",
    ]
    assert [row["folder"] for row in written(tmp_path)["seeds"]] == ["seed-1", "seed-2", "seed-3"]
    # 0.5, 0.75, 0.875: mean 17/24; squares of the distances (25 + 1 + 16) / 576, over 2
    expected = {"mean": 17 / 24, "sd": (42 / 576 / 2) ** 0.5, "lowest": 0.5, "highest": 0.875}
    assert written(tmp_path)["spread"]["eval_accuracy"] == pytest.approx(expected)
    assert summary(run(tmp_path, "--seeds=1-2").results) == [
        "   seed  eval_accuracy  eval_loss  steps",
        "      1         0.5000     0.5000      5  collapsed: dev: all predictions are yes",
        "      2         0.7500     0.2500      5",
        "   mean         0.6250     0.3750",
        "     sd         0.1768     0.1768",
        " lowest         0.5000     0.2500",
        "highest         0.7500     0.5000",
        "1 of 2 collapsed",
    ]
    assert "     sd              -          -" in summary(run(tmp_path, "--seeds=2").results)
    assert written(tmp_path)["spread"]["eval_accuracy"]["sd"] is None


@pytest.mark.parametrize("fails", [False, True])
def test_what_is_finished_is_kept_where_a_later_seed_is_not(fails, tmp_path, monkeypatch):
    def fine_tune(config, **_):
        if config.train.seed == 2 and fails:
            raise TrainingError("the loss is no longer a number")
        return dataclasses.replace(done(config), stopped_by=signal.SIGTERM if config.train.seed == 2 else None)

    monkeypatch.setattr(driver, "fine_tune", fine_tune)
    if fails:
        with pytest.raises(TrainingError):
            run(tmp_path, "--seeds=1-3")
    else:
        series = run(tmp_path, "--seeds=1-3")
        assert ([result.seed for result in series.results], series.stopped_by) == ([1], signal.SIGTERM)
    assert [row["seed"] for row in written(tmp_path)["seeds"]] == [1]


@pytest.mark.parametrize(
    ("arguments", "task", "count"),
    [
        ([], None, 3),
        ([], object(), 0),  # in memory
        (["--slots=1"], None, 0),
        (["--num_gpus=2"], None, 0),  # which one slot has not
        (["--num_gpus=1", "--slots=4"], None, 4),
        (["--do_eval", "--do_train=false"], None, 0),
    ],
)
def test_runs_are_trained_side_by_side_if_they_can(monkeypatch, arguments, task, count):
    monkeypatch.setattr(leader, "slots", lambda asked, _: [leader.Slot({})] * (asked or 3))
    config = classifier.mrpc(
        "--seeds=1-5", *(arguments if "--do_eval" in arguments else ["--do_train", "--do_eval", *arguments])
    )
    assert len(driver.slots(config, task, {})) == count


def test_runs_of_a_task_that_the_program_has_registered_are_trained_in_turn(monkeypatch):
    monkeypatch.setattr(leader, "slots", lambda asked, _: [leader.Slot({})] * (asked or 3))
    monkeypatch.setitem(registry._registered, "mine", SimpleNamespace(name="mine"))
    configured = functools.partial(run_spec.configured, task_name="Mine", seeds="1-5", do_train=True, do_eval=True)
    assert driver.slots(configured(), None, {}) == driver.slots(configured(slots=1), None, {}) == ()
    with pytest.raises(FlagError, match="^--slots=2: this program has registered Mine, which other processes do not know"):
        driver.slots(configured(slots=2), None, {})


@pytest.fixture(scope="module")
def series(project, tmp_path_factory):
    """The folder of two seeds that were trained in one process."""
    folder = tmp_path_factory.mktemp("series")
    assert classifier.run(*project.flags(folder, seeds="3,1", **WAYS)) == 0
    return folder


def test_a_seed_of_a_series_is_the_seed_alone(project, series, tmp_path):
    assert classifier.run(*project.flags(tmp_path, **{**ALONE, "seed": 1, "do_eval": False})) == 0
    assert same_bits(weights(series / "seed-1", 5), weights(tmp_path, 5))
    assert not same_bits(weights(series / "seed-3", 5), weights(tmp_path, 5))


def test_a_series_is_evaluated_on_another_task_in_a_table_of_its_own(project, series, tmp_path, capsys):
    before = (series / "seeds.tsv").read_bytes()
    for split in ("train", "dev"):
        (tmp_path / f"{split}.tsv").write_text("question1\tquestion2\tis_duplicate\nthe red\tthe blue\t1\n")
    assert classifier.run(*project.flags(series, task_name="QQP", data_dir=tmp_path, do_eval=True, seeds="3,1")) == 0
    assert (series / "seeds.tsv").read_bytes() == before
    assert [row["metrics"]["eval_accuracy"] in (0.0, 1.0) for row in written(series / "QQP")["seeds"]] == [True, True]
    assert "eval_f1" in capsys.readouterr().out


def test_the_same_series_again_trains_what_is_not_finished(project, series, monkeypatch):
    before, trained, train = weights(series / "seed-1", 5), [], training.train_with

    def stopping(estimator, *arguments, **options):
        if "seed-2" not in estimator.model_dir:
            return train(estimator, *arguments, **options)
        trained.append(Path(estimator.model_dir).name)
        return Outcome(3, signal.SIGTERM)

    monkeypatch.setattr(training, "train_with", stopping)
    assert classifier.run(*project.flags(series, seeds="1,2,3", **WAYS)) == 130
    assert trained == ["seed-2"]
    assert same_bits(weights(series / "seed-1", 5), before)


RESULTS = (
    job.SeedResult(1, "seed-1", 4, {"eval_accuracy": 0.5, "eval_loss": 0.7}, None),
    job.SeedResult(2, "seed-2", 4, {"eval_accuracy": 1.0, "eval_loss": 0.3}, None),
)


def test_several_seeds_are_a_table_and_stopped_ones_a_keyboard_interrupt(monkeypatch, tmp_path):
    monkeypatch.setattr(job, "fine_tune_seeds", lambda *_, **__: driver.Trained(RESULTS))
    runs = bert_tf.fine_tune("MRPC", seeds="1-2", output_dir=tmp_path)
    assert runs.spread["eval_accuracy"].mean == 0.75
    assert (runs.folder, runs.results) == (tmp_path, RESULTS)
    assert "0 of 2 collapsed" in runs._repr_html_()
    stopped = driver.Trained(RESULTS[:1], signal.SIGINT)
    monkeypatch.setattr(job, "fine_tune_seeds", lambda *_, **__: stopped)
    with pytest.raises(KeyboardInterrupt, match="after 1 seeds"):
        bert_tf.fine_tune("MRPC", seeds="1-2")


@pytest.mark.parametrize("seeds", [[1, 2], range(1, 3), (np.int64(1), 2), "1,2"])
def test_seeds_may_be_a_list(monkeypatch, seeds):
    given = []
    monkeypatch.setattr(job, "fine_tune_seeds", lambda config, **_: given.append(config) or driver.Trained(RESULTS))
    bert_tf.fine_tune("MRPC", seeds=seeds)
    assert given[0].extensions.series.seed_numbers == (1, 2)


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        (3, "seeds=3: give a list of integers, or a string such as '1-5'"),
        ([1, "2"], "give a list of integers"),
        ([], "give at least one"),
        ([-1], "'-1' is not a seed"),
    ],
)
def test_seeds_are_whole_numbers(seeds, message):
    for call in (functools.partial(bert_tf.fine_tune, "MRPC"), functools.partial(bert_tf.reproduce, "gtx1060")):
        with pytest.raises(FlagError, match=message):
            call(seeds=seeds)

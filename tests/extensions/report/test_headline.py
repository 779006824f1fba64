"""The figures on top of a page, how far a run came, and its configuration."""

import json

import pytest

from bert_tf.extensions.report import outcome, page, run_files
from tests.extensions.report import example


def figures(*folders):
    (group,) = run_files.groups(run_files.read_runs(folders))
    return {name: (value, *notes) for name, value, notes in outcome.headline(group)}


def test_run_has_its_own_figures_and_not_those_of_other_tasks(tmp_path):
    folder = example.finished(tmp_path)
    example.write_json(folder / "AX" / "eval_results.json", example.results(0.1))
    found = figures(folder)
    assert found == {
        "accuracy, dev": ("0.7500", "95 %: 0.650 to 0.850", "always no: 0.500"),
        "loss, dev": ("0.5500",),
        "time in training steps": ("6 s",),
    }


def test_a_run_is_compared_with_the_one_that_it_replaced(tmp_path):
    folder = example.finished(tmp_path)
    earlier = {"task_name": "RTE", "splits": {"dev": {"accuracy": 0.7, "examples": 8}}}
    example.write_json(folder / "run_config.json", {**example.record(), "replaced": earlier})
    assert figures(folder)["accuracy, dev"][-1] == "last run: 0.7000 (+0.0500)"
    for change in ({"task_name": "MRPC"}, {"splits": {"dev": {"accuracy": 0.7, "examples": 9}}}, {"splits": 3}):
        example.write_json(folder / "run_config.json", {**example.record(), "replaced": {**earlier, **change}})
        assert len(figures(folder)["accuracy, dev"]) == 3


def test_series_has_means_and_their_ends_over_the_seeds_that_are_finished(tmp_path):
    for seed, accuracy in ((1, 0.5), (2, 0.7), (3, 0.9)):
        example.finished(tmp_path / f"seed-{seed}", seed=seed, accuracy=accuracy)
    found = figures(tmp_path)
    assert found["accuracy, dev"] == ("0.7000", "mean of 3: 0.5000 to 0.9000")
    assert found["loss, dev"] == ("0.5500", "mean of 3: 0.5500 to 0.5500")
    assert found["time in training steps"] == ("6 s", "a seed")
    (tmp_path / "seed-3" / "eval_results.json").unlink()
    assert figures(tmp_path)["accuracy, dev"] == ("0.6000", "mean of 2: 0.5000 to 0.7000")


@pytest.mark.parametrize(
    ("results", "metrics", "schedule", "sentence"),
    [
        (example.results(), None, {"steps": 20}, "Trained and evaluated at step 20 of 20."),
        (
            *({**example.results(), "global_step": 10}, None, {"steps": 20}),
            "Evaluated at step 10, the best checkpoint; trained to step 20 of 20.",
        ),
        (example.results(), None, {"steps": 15, "phase2_steps": 5}, "Trained and evaluated at step 20 of 20."),
        (None, None, {"steps": 20}, "Trained to the last step, 20, and not evaluated"),
        (None, None, {"steps": 30}, "Not finished: the last logged step is 20 of 30, and there is no result."),
        (None, None, {"steps": 30, "stopped_at": 20}, "Stopped early at step 20 of 30, and not evaluated"),
        (None, "", {"steps": 20}, "Nothing is logged yet"),
        (None, '{"step": 1', {"steps": 20}, "Nothing is logged yet"),
    ],
)
def test_how_far_a_run_came(tmp_path, results, metrics, schedule, sentence):
    folder = example.finished(tmp_path)
    example.write_json(folder / "run_config.json", {**example.record(), "schedule": schedule})
    (folder / "eval_results.json").write_text(json.dumps(results))
    if metrics is not None:
        (folder / "metrics.jsonl").write_text(metrics)
    assert outcome.state(run_files.read_runs([folder])[0]).startswith(sentence)


def test_tables_of_the_configuration(tmp_path):
    (run,) = run_files.read_runs([example.begun(tmp_path, seed=7, vocabulary_sha256="ab")])
    tables = page.tables(run)
    assert tables["Flags"] == {"task_name": "RTE", "seed": "7"}
    assert tables["Training"] == {"train_batch_size": "8"}  # what flags say stands there only
    assert tables["Model"] == {"hidden_size": "8"}
    assert tables["Fingerprints (sha256)"] == {"vocabulary": "ab"}
    machine = {"strategy": "one_device", "devices": "/device:CPU:0", "replicas": "1"}
    assert page.environment(run) == {**machine, "tensorflow": "2.15.1"}
    (tmp_path / "run_config.json").unlink()
    (run,) = run_files.read_runs([tmp_path])
    assert (page.tables(run), page.environment(run)) == ({}, {})


def test_only_differences_between_runs(tmp_path):
    runs = run_files.read_runs([example.begun(tmp_path / "a", seed=1, layer_decay=0.9), example.begun(tmp_path / "b", seed=2)])
    assert page.differences(runs) == {"seed": ["1", "2"], "layer_decay": ["0.9", "-"]}


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), ([], "-"), (1e-12, "1e-12"), ([1, None], "1, -"), (True, "true"), ({"a": 1}, '{"a": 1}')]
)
def test_values_as_a_person_writes_them(value, text):
    assert page.value_text(value) == text

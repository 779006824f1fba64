"""Sweep files, and the runs they stand for."""

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest

from bert_tf import home
from bert_tf.errors import BertError, DataError
from bert_tf.extensions.sweep import plan
from bert_tf.tasks import registry
from tests.batch.runs import write_run
from tests.tiny import write_project

FILE = """
tasks: [MRPC, RTE]
seeds: 1-2
settings: {num_train_steps: 20, learning_rate: [2e-5, 5e-5]}
"""


@pytest.fixture
def read(tmp_path):
    def of(text):
        path = tmp_path / "sweep.yaml"
        path.write_text(text, encoding="utf-8")
        return plan.read_sweep_file(path)

    return of


def test_a_list_is_a_grid_and_a_number_is_the_same_for_all(read, tmp_path, glue):
    runs = plan.runs(read(FILE), tmp_path, glue)
    assert [run.name for run in runs[:4]] == [
        *("MRPC-learning_rate=2e-05-seed1", "MRPC-learning_rate=2e-05-seed2"),
        *("MRPC-learning_rate=5e-05-seed1", "MRPC-learning_rate=5e-05-seed2"),
    ]
    assert [(run.task, run.seed) for run in runs] == [("MRPC", 1), ("MRPC", 2)] * 2 + [("RTE", 1), ("RTE", 2)] * 2
    assert {run.config.train.num_train_steps for run in runs} == {20}
    assert [run.config.train.learning_rate for run in runs] == [2e-5, 2e-5, 5e-5, 5e-5] * 2
    assert runs[1].config.output.folder == tmp_path / runs[1].name
    assert runs[1].config.actions.do_train
    assert runs[1].config.actions.do_eval


def test_a_run_of_ones_own_files_names_the_metric_that_compares_it(read, tmp_path):
    (tmp_path / "train.csv").write_text("text,label\na,x\nb,y\nc,z\n")
    files = {name: str(tmp_path / "train.csv") for name in ("train_file", "dev_file")}
    for chosen, metric in ((None, "accuracy"), ("macro_f1", "macro_f1"), ("loss", "accuracy")):
        settings = {**files, **({"best_metric": chosen, "eval_every_n_steps": 5} if chosen else {})}
        (run,) = plan.runs(read(json.dumps({"tasks": "custom", "settings": settings})), tmp_path, {})
        assert run.metric == f"eval_{metric}"


def test_the_runs_of_a_grid_are_counted_before_they_are_planned(read, tmp_path, glue):
    numbers = list(range(1, 1001))
    file = read(json.dumps({"tasks": "MRPC", "settings": {"num_train_steps": numbers, "train_batch_size": numbers}}))
    with pytest.raises(BertError, match=r"^settings: 1,000,000 runs, at most 10,000 are possible; shorten the lists"):
        plan.runs(file, tmp_path, glue)


def test_what_runs_read_is_known_by_its_content(read, tmp_path, glue):
    project = write_project(tmp_path / "tiny", layers=1)
    (tmp_path / "train.csv").write_text("text,label\na,x\n")
    of_glue = read(json.dumps({"tasks": ["RTE"], "settings": {"init_checkpoint": [project.init_checkpoint]}}))
    run = write_run(tmp_path / "run", project)
    settings = {"train_file": str(tmp_path / "train.csv"), "start_head": str(run)}
    own = read(json.dumps({"tasks": ["custom"], "settings": settings}))
    before = {**plan.inputs(of_glue, glue), **plan.inputs(own, glue)}
    assert before == {**plan.inputs(of_glue, glue), **plan.inputs(own, glue)}
    checkpoints = [Path(f"{prefix}.index") for prefix in (project.init_checkpoint, run / "model.ckpt-40")]
    for path in (tmp_path / "train.csv", tmp_path / "glue" / "RTE" / "dev.tsv", *checkpoints):
        path.write_bytes(path.read_bytes() + b" ")
    changed = {**plan.inputs(of_glue, glue), **plan.inputs(own, glue)}
    assert {name for name in before if changed[name] != before[name]} == {
        *(str(tmp_path / "train.csv"), project.init_checkpoint, str(run), "RTE/dev.tsv")
    }


def test_a_task_that_the_program_has_registered_is_refused(read, monkeypatch):
    monkeypatch.setitem(registry._registered, "mine", SimpleNamespace(name="mine"))
    with pytest.raises(DataError, match="tasks: mine: this program has registered it, and other processes do not know it"):
        read("tasks: [MRPC, Mine]")


@pytest.mark.parametrize("text", ["tasks: glue", "tasks: [GLUE, RTE]"])
def test_glue_is_its_nine_tasks(read, tmp_path, glue, text):
    assert [run.task for run in plan.runs(read(text), tmp_path, glue)] == list(plan.GLUE)


def test_tasks_of_few_rows_start_from_the_model_of_mnli_with_the_same_settings(read, tmp_path, glue):
    file = read("tasks: [RTE, CoLA, MNLI]\nsettings: {learning_rate: [2e-5, 5e-5]}")
    runs = {run.name: run for run in plan.runs(dataclasses.replace(file, from_mnli=True), tmp_path, glue)}
    assert {name: run.after for name, run in runs.items() if run.after} == {
        "RTE-learning_rate=2e-05-seed1": "MNLI-learning_rate=2e-05-seed1",
        "RTE-learning_rate=5e-05-seed1": "MNLI-learning_rate=5e-05-seed1",
    }
    of_rte = runs["RTE-learning_rate=5e-05-seed1"]
    assert of_rte.config.model.init_checkpoint == str(tmp_path / "MNLI-learning_rate=5e-05-seed1")
    with pytest.raises(BertError, match="^--from_mnli: MNLI is not among the tasks"):
        plan.runs(dataclasses.replace(read("tasks: RTE"), from_mnli=True), tmp_path, glue)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[MRPC]", "write the keys tasks, seeds and settings"),
        ("tasks: MRCP", "unknown task 'MRCP'; did you mean MRPC"),
        ("tasks: MRPC\nsedes: 1", "unknown key 'sedes'; did you mean seeds"),
        ("tasks: MRPC\nseeds: 1,1", "a seed is named twice"),
        ("tasks: MRPC\nsettings: {lr: 1}", "unknown setting 'lr'; did you mean learning_rate"),
        ("tasks: MRPC\nsettings: {text_a: a,b}", "settings: 'b' has no value; in { } one with a comma needs quotes"),
        ("tasks: MRPC\nsettings: {seed: 1}", "settings: seed: write it under seeds"),
        ("tasks: MRPC\nsettings: {output_dir: x}", "settings: output_dir: the sweep names the folders"),
        ("tasks: MRPC\nsettings: {learning_rate: []}", "learning_rate: an empty list"),
        (
            "tasks: MRPC\nsettings: {best_metric: [f1, accuracy]}",
            "best_metric: a list: it compares the runs, so all have the same",
        ),
        (
            "tasks: MRPC\nsettings: {best_metric: f1}",
            "settings: best_metric needs evaluations during training: add eval_every_n",
        ),
        ("tasks: MRPC\nsettings: {learning_rate: many}", "learning_rate: 'many' is not a number"),
        ("tasks: MRPC\nsettings: {num_train_steps: 1e-3}", "num_train_steps: '1e-3' is not a whole number"),
        ("tasks: MRPC\nsettings: {train_batch_size: auto}", "train_batch_size: auto: write fit_memory: true instead"),
        ("tasks: MRPC\nsettings: {learning_rate: {low: 1, high: 0}}", "learning_rate: low must be below high"),
        ("tasks: MRPC\nsettings: {learning_rate: {low: 1e-5}}", "learning_rate: only a number has a range"),
        ("tasks: MRPC\nsettings: {do_lower_case: {low: 0, high: 1}}", "do_lower_case: only a number has a range"),
        ("tasks: [MRPC\n", "neither YAML nor JSON"),
        ("tasks: []", "tasks: an empty list; name one, as tasks: [MRPC]"),
        ("tasks: MRPC\nseeds: []", "--seeds=: '' is not a seed"),
    ],
)
def test_mistakes_in_a_file_are_one_line_with_its_name(read, text, problem):
    with pytest.raises(DataError) as caught:
        read(text)
    said = str(caught.value)
    assert problem in said
    assert "sweep.yaml" in said
    assert "\n" not in said


def test_what_cannot_be_planned_is_said_before_the_first_run(read, tmp_path, glue):
    with pytest.raises(BertError, match="two runs would be named MRPC-learning_rate=2e-05-seed1; values must differ"):
        plan.runs(read("tasks: MRPC\nsettings: {learning_rate: [2e-5, 2.00001e-5]}"), tmp_path, glue)
    file = read("tasks: MRPC\nsettings: {learning_rate: {low: 1e-5, high: 1e-4, log: true}}")
    assert file.ranges == {"learning_rate": plan.Range(1e-5, 1e-4, log=True)}
    with pytest.raises(BertError, match="learning_rate has a range; add --search"):
        plan.runs(file, tmp_path, {})
    with pytest.raises(DataError, match="no data for QNLI"):
        plan.runs(read("tasks: QNLI"), tmp_path, {home.VARIABLE: str(tmp_path)})


def test_averages_that_vary_do_not_rank_the_runs(read, caplog):
    read("tasks: MRPC\nsettings: {ema: 0.9}")
    assert caplog.text == ""
    read("tasks: MRPC\nsettings: {ema: [0.9, 0.99]}")
    assert "ema: runs are compared by their plain weights, which it does not change" in caplog.text


def test_fixed_settings_may_need_a_value_of_a_list(read, tmp_path, glue):
    """With the default batch of 32 the first would be refused, without saved checkpoints the second."""
    for fixed, varying in (
        ({"gradient_accumulation_steps": 64}, {"train_batch_size": [64, "128"]}),
        ({"average_last": 3}, {"save_checkpoints_steps": [50, "1e2"]}),
    ):
        file = read(json.dumps({"tasks": "MRPC", "settings": {**fixed, **varying}}))
        assert len(plan.runs(file, tmp_path, glue)) == 2
        assert plan.inputs(file, glue)


@pytest.mark.parametrize("row", [b'{"question": "Who?", "answers": [{"text": "a"}]}', b'{"text": "it rains"}'])
def test_rows_of_json_in_one_line_are_counted(tmp_path, row):
    """As of SQuAD, in which a row is a question; of other JSON each object is one."""
    (tmp_path / "a.json").write_bytes(b"[" + b", ".join([row] * 20_000) + b"]")
    task = mock.Mock(splits=lambda *_: ["train"], file=lambda folder, _: folder / "a.json")
    rows, tokens = plan._extent(task, tmp_path, "train")
    assert rows == pytest.approx(20_000, rel=0.01)
    assert tokens == pytest.approx((len(row) + 2) / 5, rel=0.01)


def test_the_longer_run_costs_more(read, tmp_path):
    project = write_project(tmp_path / "project")
    file = read(
        f"tasks: MRPC\nsettings: {{data_dir: {project.data_dir}, num_train_epochs: [1, 4], max_train_examples: [10, 1000]}}"
    )
    costs = [run.cost for run in plan.runs(file, tmp_path, {})]
    assert costs[0] < costs[1] < costs[3]
    assert costs[0] < costs[2] < costs[3]
    # 40 rows: in three more epochs 120 are trained, without the limit 30 more.
    assert (costs[3] - costs[1]) / (costs[1] - costs[0]) == pytest.approx(120 / 30, rel=0.1)

"""GLUE's score of the best runs, and their predictions."""

import zipfile

import pytest

from bert_tf import home
from bert_tf.extensions.sweep import plan, score
from bert_tf.extensions.sweep.table import Result


def result(task, seed, error=None, *, pruned=False, **metrics):
    values = {f"eval_{name}": value for name, value in metrics.items()}
    metric = next(iter(values), "")
    return Result(f"{task}-seed{seed}", task, seed, {}, 5, values, metric=metric, error=error, pruned=pruned)


RESULTS = [
    result("CoLA", 1, matthews_correlation=0.5, accuracy=0.9),
    result("MRPC", 1, accuracy=0.8, f1=0.9),
    result("MRPC", 2, accuracy=0.7, f1=1.0),
    result("MRPC", 3, error="no memory"),
    result("MRPC", 4, pruned=True, accuracy=0.9, f1=0.9),  # stopped: it has no predictions
    result("WNLI", 1, accuracy=0.5),
    result("MNLI", 1, accuracy=0.6),
    result("MNLI", 2, accuracy=0.7),
    result("AX", 1),
    result("AX", 2),
]


def test_a_task_but_wnli_counts_by_its_best_run_with_the_mean_of_its_metrics_and_cola_with_its_correlation():
    assert score.score(RESULTS[0]) == 0.5
    assert score.score(RESULTS[1]) == pytest.approx(0.85)
    seeds = {task: one.seed for task, one in score.best(RESULTS).items()}
    assert seeds == {"CoLA": 1, "MRPC": 1, "WNLI": 1, "MNLI": 2, "AX": 2}
    mean = 100 * (0.5 + 0.85 + 0.7) / 3
    assert score.line(RESULTS) == f"GLUE on dev, 3 of 8 tasks: {mean:.1f} (CoLA 50.0, MRPC 85.0, MNLI 70.0)"
    assert score.line(RESULTS[1:5]) is None


def test_the_zip_has_the_predictions_of_the_best_runs(tmp_path):
    assert score.submit(tmp_path, RESULTS) is None
    for one in RESULTS:
        folder = tmp_path / one.name / "submission"
        folder.mkdir(parents=True)
        (folder / f"{one.task}.tsv").write_text(str(one.seed))
    with zipfile.ZipFile(score.submit(tmp_path, RESULTS)) as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
    assert texts == {"AX.tsv": "2", "CoLA.tsv": "1", "MNLI.tsv": "2", "MRPC.tsv": "1", "WNLI.tsv": "1"}


def test_the_diagnostic_examples_are_predicted_by_each_model_of_mnli_if_they_are_there(tmp_path, glue, caplog):
    file = plan.SweepFile(("MNLI",), (1, 2), {"do_predict": True}, {}, {}, hold_out=0.5)
    without = {**glue, home.VARIABLE: str(tmp_path)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(home, "SAMPLE", tmp_path)
        assert [run.name for run in plan.runs(file, tmp_path, without)] == ["MNLI-seed1", "MNLI-seed2"]
    assert "no data for AX, GLUE's diagnostic examples: they are not predicted" in caplog.text
    (tmp_path / "glue" / "AX").mkdir()
    runs = plan.runs(file, tmp_path, glue)
    assert [(run.name, run.after) for run in runs[2:]] == [("AX-seed1", "MNLI-seed1"), ("AX-seed2", "MNLI-seed2")]
    assert [run.hold_out for run in runs] == [0.5, 0.5, 0.0, 0.0]  # there are no dev examples
    actions = runs[2].config.actions
    assert (actions.do_train, actions.do_eval, actions.do_predict) == (False, False, True)
    assert runs[2].config.model.init_checkpoint == str(tmp_path / "MNLI-seed1")

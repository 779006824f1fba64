"""The table: files, order, and the form for the screen."""

import csv
import dataclasses
import json
import os

import pytest

from bert_tf.errors import OutputError
from bert_tf.extensions.evaluate.results_table import ResultsTable, Row, for_screen, glue_of, glue_score

SETTINGS = {"data_sha256": "5", "max_seq_length": 24}
INTERVALS = {"accuracy": [0.5, 0.90625], "f1": [0.6, 0.9]}
FIRST = Row("run/a-1", 1, "MRPC", "dev", {"accuracy": 0.75, "f1": 0.8}, 0.5, 13, 90.04, INTERVALS, settings=SETTINGS)
BETTER = Row("run/a-2", 2, "MRPC", "dev", {"accuracy": 0.875, "f1": 0.25}, 0.25, 13, 100.0, settings=SETTINGS)
OTHER = Row(
    *("run/a-2", 2, "STS-B", "dev", {"pearson": -0.5, "spearman": 0.0}, 4.0, 9, 7.0),
    collapsed="no positive correlation",
    settings=SETTINGS,
)
BROKEN = Row("run/a-3", None, "MRPC", "dev", error="run/a-3: damaged\tcheckpoint")
ROWS = (FIRST, BETTER, OTHER, BROKEN)
ORDER = [row.key for row in ROWS]
KEY = '"checkpoint": "a", "task": "MRPC", "split": "dev"'
MRPC = Row("out/mrpc", 1, "MRPC", "dev", {"accuracy": 0.75, "f1": 0.85})  # 80
COLA = Row("out/cola", 1, "CoLA", "dev", {"matthews_correlation": 0.5, "accuracy": 0.9})  # 50
MATCHED = Row("out/mnli", 1, "MNLI", "dev_matched", {"accuracy": 0.7})
MISMATCHED = Row("out/mnli", 1, "MNLI", "dev_mismatched", {"accuracy": 0.6})  # 65


def table(folder, order=ORDER, rows=ROWS):
    made = ResultsTable(folder, order)
    for row in rows:
        made.put(row)
    return made


def test_tsv_has_every_metric_and_a_cell_for_each(tmp_path):
    table(tmp_path / "new" / "folder")
    assert (tmp_path / "new" / "folder" / "results.tsv").read_text() == (
        "checkpoint\tstep\ttask\tsplit\taccuracy\tf1\tpearson\tspearman\tloss\texamples\texamples_per_second"
        "\taccuracy_95_low\taccuracy_95_high\tf1_95_low\tf1_95_high\tpearson_95_low\tpearson_95_high"
        "\tspearman_95_low\tspearman_95_high\tcollapsed\tbest\terror\n"
        "run/a-1\t1\tMRPC\tdev\t0.75\t0.8\t\t\t0.5\t13\t90.04\t0.5\t0.90625\t0.6\t0.9\t\t\t\t\t\t\t\n"
        "run/a-2\t2\tMRPC\tdev\t0.875\t0.25\t\t\t0.25\t13\t100.0\t\t\t\t\t\t\t\t\t\t*\t\n"
        "run/a-2\t2\tSTS-B\tdev\t\t\t-0.5\t0.0\t4.0\t9\t7.0\t\t\t\t\t\t\t\t\tno positive correlation\t*\t\n"
        "run/a-3\t\tMRPC\tdev\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\trun/a-3: damaged checkpoint\n"
    )


def test_a_label_or_name_of_several_lines_stays_in_its_row(tmp_path):
    named = dataclasses.replace(BETTER, split="dev\nfile", collapsed="all predictions are a\r\nb")
    table(tmp_path, rows=[named])
    lines = (tmp_path / "results.tsv").read_bytes().decode().split("\n")
    assert [line.count("\t") for line in lines] == [lines[0].count("\t")] * 2 + [0]
    assert for_screen([named]).count("\n") == 4


def test_rows_stand_in_the_order_of_the_job_below_those_of_earlier_jobs(tmp_path):
    earlier = Row("run/old", 9, "MRPC", "dev", {"accuracy": 0.1}, 1.0, 13, 1.0)
    table(tmp_path, [earlier.key], [earlier])
    assert table(tmp_path, rows=reversed(ROWS)).rows == [earlier, *ROWS]


def test_only_a_relative_checkpoint_is_one_of_a_directory(tmp_path):
    rows = [dataclasses.replace(FIRST, checkpoint=name) for name in ("run/a", "/run/a", "gs://bucket/run/a")]
    assert [row.directory for row in table(tmp_path, rows=rows).rows] == [os.path.relpath(os.getcwd(), tmp_path), None, None]


def test_an_error_replaces_numbers_only_of_other_data_or_another_checkpoint(tmp_path):
    made = table(tmp_path)
    failed = dataclasses.replace(BROKEN, checkpoint=FIRST.checkpoint, error="out of memory")
    assert not made.put(dataclasses.replace(failed, settings={"data_sha256": "5"}))
    assert made.rows[0] == FIRST
    other = dataclasses.replace(failed, settings={"data_sha256": "6"})
    assert made.put(other)
    assert made.rows[0] == other
    assert (FIRST.is_of(FIRST.settings), other.is_of(other.settings)) == (True, False)  # errors are measured again


@pytest.mark.parametrize(("loss", "marked"), [(0.4, ["run/b"]), (0.5, ["run/a-1", "run/b"]), (0.6, ["run/a-1"])])
def test_of_equals_the_one_with_less_loss_is_the_best(tmp_path, loss, marked):
    equal = dataclasses.replace(FIRST, checkpoint="run/b", loss=loss)
    table(tmp_path, rows=[FIRST, equal])
    said = json.loads((tmp_path / "results.json").read_text())["rows"]
    assert sorted(row["checkpoint"] for row in said if row.get("best")) == marked
    with (tmp_path / "results.tsv").open(newline="") as file:
        assert sorted(row["checkpoint"] for row in csv.DictReader(file, delimiter="\t") if row["best"] == "*") == marked
    assert for_screen([FIRST, equal]).splitlines()[1].split()[:2] == ["*", "run/b" if loss < 0.5 else "run/a-1"]


def test_the_screen_has_the_best_first_and_errors_last():
    assert for_screen(ROWS) == (
        "   checkpoint  step  task  split  accuracy            95 %      f1            95 %    loss  examples  examples/s\n"
        "*  run/a-2        2  MRPC  dev      0.8750                  0.2500                  0.2500        13       100.0\n"
        "   run/a-1        1  MRPC  dev      0.7500  0.500 to 0.906  0.8000  0.600 to 0.900  0.5000        13        90.0\n"
        "\n"
        "   checkpoint  step  task   split  pearson  95 %  spearman  95 %    loss  examples  examples/s\n"
        "*  run/a-2        2  STS-B  dev    -0.5000          0.0000        4.0000         9         7.0\n"
        "\n"
        "warning: run/a-2: nothing was learned: no positive correlation (STS-B dev)\n"
        "\n"
        "error: run/a-3: damaged checkpoint (MRPC dev)\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        *("{", "[]", '{"rows": [{"no": 1}]}', '{"rows": 3}'),
        f'{{"rows": [{{{KEY}}}]}}',
        f'{{"rows": [{{{KEY}, "metrics": {{"accuracy": "1"}}, "loss": 1, "examples": 2, "examples_per_second": 3}}]}}',
        f'{{"rows": [{{{KEY}, "metrics": [1]}}]}}',
        f'{{"rows": [{{{KEY}, "error": 3}}]}}',
    ],
)
def test_an_unreadable_table_is_not_overwritten(tmp_path, text):
    (tmp_path / "results.json").write_text(text)
    with pytest.raises(OutputError, match=r"results\.json: unreadable table; move it away"):
        ResultsTable(tmp_path, [])
    assert (tmp_path / "results.json").read_text() == text


# The row of BERT-Large on GLUE's leaderboard, in percent; its score is given as 80.5.
BERT_LARGE = {
    "CoLA": {"matthews_correlation": 60.5},
    "SST-2": {"accuracy": 94.9},
    "MRPC": {"f1": 89.3, "accuracy": 85.4},
    "STS-B": {"pearson": 87.6, "spearman": 86.5},
    "QQP": {"f1": 72.1, "accuracy": 89.3},
    "MNLI": {"accuracy": (86.7 + 85.9) / 2},
    **{task: {"accuracy": value} for task, value in (("QNLI", 92.7), ("RTE", 70.1), ("WNLI", 65.1))},
}


def test_the_score_of_bert_large_is_the_published_one():
    results = {task: {name: value / 100 for name, value in values.items()} for task, values in BERT_LARGE.items()}
    assert glue_score(results) == pytest.approx(80.5, abs=0.05)
    results["CoLA"]["accuracy"] = 0.8  # does not count
    assert glue_score(results) == pytest.approx(80.5, abs=0.05)
    with pytest.raises(KeyError, match="f1"):
        glue_score({"MRPC": {"accuracy": 0.8}})


def test_mean_over_tasks_of_the_mean_over_metrics_and_all_splits():
    glue = glue_of([MRPC, MATCHED, MISMATCHED, COLA])
    assert glue.score == pytest.approx((50 + 80 + 65) / 3)
    assert str(glue) == "GLUE score 65.0 over 3 of 8 tasks: CoLA (out/cola), MRPC (out/mrpc), MNLI (out/mnli)"
    assert glue_of([MRPC, COLA, MATCHED]).checkpoints.keys() == {"CoLA", "MRPC"}
    torn = Row("out/mnli", None, "MNLI", "dev_mismatched", error="damaged")
    assert glue_of([MRPC, MATCHED, torn]) is None


def test_the_best_checkpoint_stands_for_a_task_by_its_first_metric_of_equals_that_with_less_loss():
    worse = Row("out/old", 1, "MRPC", "dev", {"accuracy": 0.74, "f1": 0.9})
    glue = glue_of([worse, MRPC, COLA])
    assert glue.score == pytest.approx(65)
    assert glue.checkpoints == {"CoLA": "out/cola", "MRPC": "out/mrpc"}
    equals = [dataclasses.replace(MRPC, checkpoint=f"out/{loss}", loss=loss) for loss in (0.6, 0.4, 0.5)]
    assert glue_of([*equals, COLA]).checkpoints["MRPC"] == "out/0.4"


@pytest.mark.parametrize(
    "other",
    [
        Row("out/mrpc", 1, "MRPC", "train", {"accuracy": 1.0, "f1": 1.0}),
        Row("out/torn", None, "MRPC", "dev", error="damaged"),
        Row("out/xnli", 1, "XNLI", "dev-en", {"accuracy": 1.0}),
        Row("out/wnli", 1, "WNLI", "dev", {"accuracy": 1.0}),
        Row("out/ax", 1, "AX", "test", {"matthews_correlation": 0.396}),
        Row("out/mrpc", 1, "MRPC", "more.tsv", {"accuracy": 1.0, "f1": 1.0}),
    ],
    ids=["other split", "error", "no task of GLUE", "unscored", "task without labels", "other file"],
)
def test_what_does_not_count(other):
    assert glue_of([MRPC, other]) is None
    assert glue_of([MRPC, other, COLA]).score == pytest.approx(65)

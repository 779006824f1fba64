"""The files of results."""

import json
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest

from bert_tf.errors import FlagError, OutputError
from bert_tf.head_spec import HeadSpec
from bert_tf.io import log_form
from bert_tf.tasks.base import Submission
from bert_tf.tasks.glue import TASKS
from bert_tf.tasks.sentence.evaluation import evaluate_logits
from bert_tf.tasks.sentence.rows import SentenceExample
from bert_tf.training import results
from tests.toy_tags import TagExample, TagTask
from tests.training import reading

EXAMPLES = [SentenceExample(f"test-{number}", "a") for number in (1, 2, 3)]
LOG_3 = np.float32(np.log(3))
LOGITS = np.array([[LOG_3, 0], [0, LOG_3], [0, 0]], np.float32)
RIGHT, WRONG = ([0, 1, 0], [1, 1, 0])  # labels: all, and two of three
LOSS = -np.log([0.75, 0.75, 0.5]).mean()


def evaluated(labels, names=("no", "yes")):
    return evaluate_logits(HeadSpec(2), names, ("accuracy", "f1"), LOGITS, np.array(labels, np.int32))


def write(folder, *, note="", **evaluations):
    return results.write_evaluation(folder, evaluations or {"dev": evaluated(RIGHT)}, step=15, note=note)


def predictions(folder, *, task="RTE", split="test", logits=LOGITS):
    results.write_predictions(folder, TASKS[task], split, EXAMPLES, logits)


def cells(path):
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]


def test_evaluation_is_key_value_sorted_by_key_and_as_json_with_intervals_and_tables(tmp_path):
    said = write(tmp_path, note="a note")
    assert (tmp_path / "eval_results.txt").read_text() == (
        f"eval_accuracy = 1.0\neval_f1 = 1.0\neval_loss = {said['loss']}\nglobal_step = 15\nloss = {said['loss']}\n"
    )
    assert said["loss"] == pytest.approx(LOSS)
    assert {name: value for name, value in reading.results(tmp_path).items() if name != "splits"} == {**said, "note": "a note"}
    evaluation = evaluated(WRONG)
    write(tmp_path, dev=evaluation)
    assert reading.results(tmp_path)["splits"] == {
        "dev": {
            "accuracy": pytest.approx(2 / 3),
            "f1": pytest.approx(2 / 3),
            "loss": evaluation.loss,
            "examples": 3,
            "collapsed": "2 of 3 right, the majority class alone gives 2",
            "intervals_95": {name: list(ends) for name, ends in evaluation.intervals.items()},
            "labels": ["no", "yes"],
            "confusion": [[1, 0], [1, 1]],
            "per_class": [
                {"label": "no", "precision": 0.5, "recall": 1.0, "f1": pytest.approx(2 / 3), "support": 1},
                {"label": "yes", "precision": 1.0, "recall": 0.5, "f1": pytest.approx(2 / 3), "support": 2},
            ],
        }
    }


def test_several_splits_have_their_mean_under_the_plain_keys(tmp_path, caplog):
    said = write(tmp_path, dev_a=evaluated(RIGHT), dev_b=evaluated(WRONG))
    expected = {"eval_accuracy": 5 / 6, "eval_accuracy_a": 1.0, "eval_accuracy_b": 2 / 3, "global_step": 15}
    assert {key: said[key] for key in expected} == pytest.approx(expected)
    assert said["eval_loss"] == said["loss"] == pytest.approx((said["eval_loss_a"] + said["eval_loss_b"]) / 2)
    assert reading.results(tmp_path)["splits"].keys() == {"dev_a", "dev_b"}
    intervals = [line.split()[0] for line in caplog.messages if "95 %" in line]
    assert intervals == ["eval_accuracy_a", "eval_accuracy_b", "eval_f1_a", "eval_f1_b"]


def test_evaluation_is_logged_with_intervals_and_a_table_and_a_model_that_learned_nothing_is_warned_of(tmp_path, caplog):
    evaluation = evaluated(WRONG, ("no", "certainly"))
    write(tmp_path, dev=evaluation)
    low, high = evaluation.intervals["accuracy"]
    first, accuracy, f1, loss, *_, count, head, no, certainly, _ = caplog.messages
    assert first == "***** Eval results *****"
    assert accuracy == f"  eval_accuracy = 0.666667 (95 %: {low:.4f} to {high:.4f})"
    assert f1.startswith("  eval_f1 = 0.666667 (of certainly) (95 %: ")
    assert loss == f"  eval_loss = {evaluation.loss:.6g}"
    assert count == "dev: 3 examples"
    assert head == "  label      precision  recall     f1  support"
    assert no == "  no             0.500   1.000  0.667        1"
    assert certainly == "  certainly      1.000   0.500  0.667        2"
    warnings = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert [line.startswith("dev: nothing was learned: 2 of 3 right") for line in warnings] == [True]


def test_the_published_form_has_the_values_as_the_published_script_has(tmp_path, caplog):
    log_form.choose(log_form.PUBLISHED)
    loss = np.float32(write(tmp_path)["loss"])
    assert caplog.messages == [
        "Saving dict for global step 15: eval_accuracy = 1.0, eval_f1 = 1.0,"
        f" eval_loss = {loss!s}, global_step = 15, loss = {loss!s}",
        "evaluation_loop marked as finished",
        "***** Eval results *****",
        *("  eval_accuracy = 1.0", "  eval_f1 = 1.0", f"  eval_loss = {loss!s}", "  global_step = 15", f"  loss = {loss!s}"),
    ]
    assert 8 <= len(str(loss)) <= 11  # digits of float32


def test_of_many_classes_the_first_are_logged(tmp_path, caplog):
    names = [f"class {number}" for number in range(23)]
    labels = np.arange(23, dtype=np.int32)
    write(tmp_path, dev=evaluate_logits(HeadSpec(23), names, ("accuracy",), np.eye(23, dtype=np.float32), labels))
    assert caplog.messages[-2].startswith("  class 19 ")
    assert caplog.messages[-1] == "  and 3 more, see eval_results.json"
    assert len(reading.results(tmp_path)["splits"]["dev"]["per_class"]) == 23


def test_predictions_are_rows_below_a_header_and_test_results_their_probabilities_alone(tmp_path):
    predictions(tmp_path)
    header, *rows = cells(tmp_path / "predictions.tsv")
    assert header == ["id", "label", "probability_entailment", "probability_not_entailment"]
    assert [row[:2] for row in rows] == [["test-1", "entailment"], ["test-2", "not_entailment"], ["test-3", "entailment"]]
    assert np.array([row[2:] for row in rows], float) == pytest.approx(np.array([[0.75, 0.25], [0.25, 0.75], [0.5, 0.5]]))
    assert cells(tmp_path / "test_results.tsv") == [row[2:] for row in rows]
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.tsv")}
    assert files == {"predictions.tsv", "test_results.tsv", "submission/RTE.tsv"}


def test_files_of_several_splits_carry_their_names(tmp_path):
    for split, logits in (("test_matched", np.eye(3)), ("test_mismatched", np.eye(3)[::-1])):
        predictions(tmp_path, task="MNLI", split=split, logits=logits.astype(np.float32))
    assert {path.name for path in tmp_path.glob("*.tsv")} == {
        *("predictions_matched.tsv", "test_results_matched.tsv", "predictions_mismatched.tsv", "test_results_mismatched.tsv"),
        "test_results.tsv",
    }
    assert (tmp_path / "test_results.tsv").read_bytes() == (tmp_path / "test_results_matched.tsv").read_bytes()


class SentTags(TagTask):
    def submission(self, split):
        return Submission(f"tags-{split}", lambda _, predictions: [" ".join(tags) for tags in predictions])


def test_a_task_says_itself_what_a_server_takes(tmp_path):
    predictions(tmp_path, split="test_held_out")
    assert not (tmp_path / "submission").exists()
    results.write_predictions(tmp_path, SentTags(), "test", [TagExample("test-1", ("a", "b"))], [("name", "other")])
    assert (tmp_path / "submission" / "tags-test.tsv").read_text() == "name other\n"


@pytest.mark.parametrize("write", [write, predictions])
def test_a_folder_that_is_a_file_is_refused(write, tmp_path):
    path = tmp_path / "file"
    path.write_text("mine")
    with pytest.raises(OutputError, match="cannot write: (Not a directory|File exists)"):
        write(path)
    assert path.read_text() == "mine"


def test_mistakes_are_lines_of_json(tmp_path):
    mistake = {"id": "dev-1", "text_a": "\ud800", "label": "yes"}
    for mistakes in ([mistake], []):  # the second replaces the first
        results.write_mistakes(tmp_path, {"dev": mistakes, "dev_other": []})
        lines = (tmp_path / "wrong_examples.jsonl").read_text().splitlines()
        assert [json.loads(line) for line in lines] == [{"split": "dev", **one} for one in mistakes]


def test_the_zip_file_holds_the_submissions_without_folders_and_is_reproducible(tmp_path, monkeypatch):
    with pytest.raises(FlagError, match="--submission_zip: .* holds no predictions of a GLUE task"):
        results.zip_submissions(tmp_path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "submission").mkdir()
    for name in ("MNLI-mm.tsv", "MNLI-m.tsv"):
        (tmp_path / "submission" / name).write_text(name)
    path = results.zip_submissions(tmp_path)
    assert path == tmp_path / "submission.zip"
    with zipfile.ZipFile(path) as archive:
        assert {name: archive.read(name).decode() for name in archive.namelist()} == {
            name: name for name in ("MNLI-m.tsv", "MNLI-mm.tsv")
        }
    first = path.read_bytes()
    (tmp_path / "submission" / "MNLI-m.tsv").touch()
    assert results.zip_submissions(tmp_path).read_bytes() == first
    monkeypatch.setattr("zipfile.ZipFile.writestr", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OutputError, match="No space left on device"):
        results.zip_submissions(tmp_path)
    assert path.read_bytes() == first


def test_the_documented_command_finds_the_files_of_all_tasks(tmp_path):
    page = (Path(__file__).resolve().parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")
    [patterns] = re.findall(r"`zip -j glue\.zip (out/.*?)`", page)
    files = {"mnli/submission/MNLI-m.tsv", "mnli/AX/submission/AX.tsv", "cola/submission/CoLA.tsv"}
    others = ("mnli/predictions_matched.tsv", "mnli/AX/test_results.tsv", "rte/seed-1/submission/RTE.tsv")
    for path in (tmp_path / "out" / name for name in (*files, *others)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    paths = [path for pattern in patterns.split() for path in tmp_path.glob(pattern)]
    assert {str(path.relative_to(tmp_path / "out")) for path in paths} == files

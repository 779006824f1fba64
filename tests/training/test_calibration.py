from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

import bert_tf
from bert_tf import __main__ as front
from bert_tf.errors import DataError, FlagError, OutputError
from bert_tf.metrics import probabilities
from bert_tf.tasks import families
from bert_tf.training import calibration
from tests import classifier
from tests.export.runs import CASES, write_run
from tests.tiny import write_project

TEXTS = ["rain and the storm", "soup", "the wind came near", "B\u00e9d's wind"]
CLASSES = CASES["texts"]


def rows(count=40):
    """Labels at random: the random weights are far too sure."""
    rng = np.random.default_rng(5)
    return [(" ".join(rng.choice(TEXTS, 3)), rng.choice(CLASSES.record["labels"])) for _ in range(count)]


def write_file(path, count=40):
    path.write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows(count)), encoding="utf-8")
    return path


def predicted(folder, texts):
    with bert_tf.load(folder) as model:
        return [(one.label, list(one.probabilities.values())) for one in model.predict(texts)]


def test_predictions_have_the_probabilities_of_scaled_logits_and_the_same_labels(tmp_path):
    folder = write_run(tmp_path / "run", CLASSES.record)
    texts = [text for text, _ in rows()]
    before = predicted(folder, texts)
    found = bert_tf.calibrate(folder, data=write_file(tmp_path / "dev.tsv"))
    assert (found.fitted, found.reported) == (20, 20)
    (temperature,) = found.temperatures
    assert temperature > 1.5
    assert found.after.nll < found.before.nll
    after = predicted(folder, texts)
    assert [label for label, _ in after] == [label for label, _ in before]
    wanted = probabilities.softmax(np.log([shares for _, shares in before]) / temperature)
    np.testing.assert_allclose([shares for _, shares in after], wanted, atol=1e-5)
    # Once more: what is there already does not count.
    assert bert_tf.calibrate(folder, data=write_file(tmp_path / "dev.tsv")) == found


def test_temperatures_are_those_of_one_checkpoint_alone(tmp_path):
    texts = [text for text, _ in rows(5)]
    plain, calibrated = (write_run(tmp_path / str(len(rule)), CLASSES.record, rule) for rule in ({}, {"temperatures": [2.5]}))
    assert predicted(plain, texts) != predicted(calibrated, texts)
    path = calibrated / "decision.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "checkpoint_sha256": "0"}))
    assert predicted(plain, texts) == predicted(calibrated, texts)


DAMAGED = ["{", "[]", '{"temperatures": [0.0]}', '{"temperatures": 2}', '{"temperatures": [2.0], "thresholds": "x"}']


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_file_is_one_line(tmp_path, text):
    folder = write_run(tmp_path / "run", CLASSES.record)
    (folder / "decision.json").write_text(text)
    with pytest.raises(OutputError, match="delete it, and calibrate again"):
        bert_tf.load(folder)


def family_of(kind, labels):
    return families.of_record({"task_name": "custom", "kind": kind, "labels": labels})


@dataclasses.dataclass(frozen=True)
class Labelled:
    guid: str
    label: object


def test_each_of_several_labels_has_a_temperature_of_its_own():
    """The first label is always twice as sure as it should be, the second half as sure."""
    family, logits = family_of("multi_label", ["a", "b"]), np.array([2 * np.log(4), 0.5 * np.log(4)], np.float32)
    labels = [(("a",) if number % 5 else ()) + (("b",) if number % 5 != 1 else ()) for number in range(1000)]
    examples = [Labelled(str(number), label) for number, label in enumerate(labels)]
    found = calibration.calibrate(family, lambda half: np.tile(logits, (len(half), 1)), examples, data="dev", seed=1)
    assert found.temperatures == pytest.approx([2.0, 0.5], rel=0.1)
    assert found.after.ece < found.before.ece / 2


def test_where_all_is_right_nothing_is_scaled(caplog):
    examples = [Labelled(str(number), "x") for number in range(20)]
    family = family_of("classification", ["x", "y"])
    found = calibration.calibrate(family, lambda half: np.tile([[2.0, 0.0]], (len(half), 1)), examples, data="dev", seed=1)
    assert found.temperatures == (1.0,)
    assert "every decision is right: the temperature stays 1" in caplog.text


def test_a_rule_is_followed_by_predictions_files_and_evaluation(tmp_path):
    folder, path = write_run(tmp_path / "run", CLASSES.record), write_file(tmp_path / "dev.tsv")
    found = bert_tf.calibrate(folder, data=path, abstain="coverage:0.5", sets=0.8)
    below, start = found.decision.abstain_below, found.decision.set_from
    with bert_tf.load(folder) as model:
        predictions = model.predict([text for text, _ in rows()])
        result = model.evaluate(rows())
    for one in predictions:
        ordered = sorted(one.probabilities, key=lambda name: -one.probabilities[name])
        assert one.label == (ordered[0] if one.probabilities[ordered[0]] >= below else None)
        assert one.label_set == tuple(name for name in ordered if one.probabilities[name] >= start)
    assert 0 < sum(one.label is None for one in predictions) < len(predictions)
    assert found.rule.keys() == {"coverage", "selective_risk", "set_coverage", "set_size"}
    given = [one for one in predictions if one.label is not None]
    assert result.evaluation.more["coverage"] == pytest.approx(len(given) / len(predictions))
    bert_tf.predict_files(checkpoint=folder, input=path, output=tmp_path / "predictions.tsv")
    lines = [line.split("\t") for line in (tmp_path / "predictions.tsv").read_text().splitlines()]
    assert lines[0] == ["id", "label", "probability_x", "probability_y", "probability_z", "label_set"]
    assert [(line[1], line[5]) for line in lines[1:]] == [(one.label or "", ",".join(one.label_set)) for one in predictions]


def test_a_run_calibrates_its_model_and_predicts_by_it(tmp_path):
    project, data, out = write_project(tmp_path / "tiny", layers=1), write_file(tmp_path / "data.tsv"), tmp_path / "out"
    files = (f"--{name}={getattr(project, name)}" for name in ("bert_config_file", "vocab_file", "init_checkpoint"))
    task = ["--task_name=custom", f"--test_file={data}", f"--output_dir={out}"]
    flags = [f"--train_file={data}", f"--dev_file={data}", *files, "--num_train_steps=2", "--calibrate", "--sets=0.8"]
    assert classifier.run(*task, *flags, "--do_train", "--do_eval", "--do_predict") == 0
    written = (out / "predictions.tsv").read_text()
    assert written.splitlines()[0].endswith("\tlabel_set")
    (temperature,) = json.loads((out / "decision.json").read_text())["temperatures"]
    assert temperature != 1.0
    (out / "predictions.tsv").unlink()
    assert classifier.run(*task, "--do_predict") == 0
    assert (out / "predictions.tsv").read_text() == written


def test_the_command_prints_the_calibration_error_before_and_after(tmp_path, capsys):
    folder = write_run(tmp_path / "run", CLASSES.record)
    assert front.main(["", "calibrate", str(folder), f"--data={write_file(tmp_path / 'dev.tsv')}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:6]] == ["ECE", "NLL", "Brier", "temperature:"]
    before, after = map(float, lines[3].split()[1:])
    assert after < before


def test_what_cannot_be_calibrated_is_one_line(tmp_path):
    few = [Labelled(str(number), 1.0) for number in range(19)]
    with pytest.raises(DataError, match="19 labelled examples are too few to calibrate on; give 20 or more"):
        calibration.calibrate(family_of("regression", []), lambda half: np.zeros((len(half), 1)), few, data="dev", seed=1)
    with pytest.raises(FlagError, match="a model of regression has no probabilities"):
        calibration.calibrate(family_of("regression", []), lambda half: np.zeros((len(half), 1)), few * 2, data="dev", seed=1)
    with pytest.raises(FlagError, match="--threshold: is for models of two classes or several labels"):
        bert_tf.calibrate(write_run(tmp_path / "three", CLASSES.record), data=write_file(tmp_path / "a.tsv"), threshold="f1")
    with pytest.raises(FlagError, match="--data is required"):
        bert_tf.calibrate(write_run(tmp_path / "run", CLASSES.record))

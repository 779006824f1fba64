import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pytest

import bert_tf
from bert_tf import __main__ as front
from bert_tf.errors import DataError, FlagError, OutputError
from bert_tf.extensions.calibrate import CalibrationSettings, RuleSettings, fit
from bert_tf.extensions.calibrate.part import Calibration
from bert_tf.metrics import probabilities
from bert_tf.metrics.probabilities import LabelledLogits
from bert_tf.tasks import families
from bert_tf.tasks.decision import PUBLISHED, Decision
from tests import classifier
from tests.extensions.export.runs import CASES, write_run
from tests.training import reading

TEXTS = ["rain and the storm", "soup", "the wind came near", "B\u00e9d's wind"]
CLASSES = CASES["texts"]


def rows(count=40):
    """Labels at random: the random weights are far too sure."""
    rng = np.random.default_rng(5)
    return [(" ".join(rng.choice(TEXTS, 3)), rng.choice(CLASSES.record["labels"])) for _ in range(count)]


def texts(count=40):
    return [text for text, _ in rows(count)]


@pytest.fixture
def run(tmp_path):
    return write_run(tmp_path / "run", CLASSES.record)


@pytest.fixture
def dev(tmp_path):
    path = tmp_path / "dev.tsv"
    path.write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows()), encoding="utf-8")
    return path


def predicted(folder, texts):
    with bert_tf.load(folder) as model:
        return [(one.label, list(one.probabilities.values())) for one in model.predict(texts)]


def test_predictions_have_the_probabilities_of_scaled_logits_and_the_same_labels(run, dev):
    before = predicted(run, texts())
    calibration = bert_tf.calibrate(run, data=dev)
    assert (calibration.fitted, calibration.reported) == (20, 20)
    (temperature,) = calibration.temperatures
    assert temperature > 1.5
    assert calibration.after.nll < calibration.before.nll
    after = predicted(run, texts())
    assert [label for label, _ in after] == [label for label, _ in before]
    wanted = probabilities.softmax(np.log([shares for _, shares in before]) / temperature)
    np.testing.assert_allclose([shares for _, shares in after], wanted, atol=1e-5)
    assert bert_tf.calibrate(run, data=dev) == calibration  # what is there already does not count


def test_temperatures_are_those_of_one_checkpoint_alone(run, tmp_path):
    calibrated, plain = write_run(tmp_path / "calibrated", CLASSES.record, {"temperatures": [2.5]}), predicted(run, texts(5))
    assert predicted(calibrated, texts(5)) != plain
    path = calibrated / "decision.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "checkpoint_sha256": "0"}))
    assert predicted(calibrated, texts(5)) == plain


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"temperatures": [0.0]}', '{"temperatures": 2}', '{"temperatures": [2.0], "thresholds": "x"}']
)
def test_a_damaged_file_is_one_line(run, text):
    (run / "decision.json").write_text(text)
    with pytest.raises(OutputError, match="delete it, and calibrate again"):
        bert_tf.load(run)


@pytest.mark.parametrize(
    "rule",
    [{"temperatures": [1.0, 1.0, 1.0]}, {"temperatures": [1.0], "thresholds": [0.4]}, {"temperatures": [1.0], "set_from": -1}],
)
def test_a_rule_of_another_kind_of_model_is_one_line(tmp_path, rule):
    run = tmp_path / "other"
    write_run(run, CLASSES.record, rule)
    with pytest.raises(OutputError, match="delete it, and calibrate again"):
        bert_tf.load(run)


@dataclasses.dataclass(frozen=True)
class Labelled:
    guid: str
    label: object


def calibrated(kind, names, logits, labels, **rules):
    """Calibrates a model that says the same of every example."""
    family = families.of_record({"task_name": "custom", "kind": kind, "labels": names})
    examples = [Labelled(str(number), label) for number, label in enumerate(labels)]
    same = np.array(logits, np.float32)
    return fit.calibrate(
        family, lambda half: np.tile(same, (len(half), 1)), examples, data="dev", seed=1, rules=RuleSettings(**rules)
    )


def test_several_labels_have_temperatures_of_their_own():
    """The first label is always twice as sure as it should be, the second half as sure."""
    labels = [(("a",) if number % 5 else ()) + (("b",) if number % 5 != 1 else ()) for number in range(1000)]
    calibration = calibrated("multi_label", ["a", "b"], [2 * np.log(4), 0.5 * np.log(4)], labels)
    assert calibration.temperatures == pytest.approx([2.0, 0.5], rel=0.1)
    assert calibration.after.ece < calibration.before.ece / 2


def test_labels_without_examples_keep_their_threshold_and_one_that_reaches_none_is_named(caplog):
    calibration = calibrated("multi_label", ["a", "b"], [2.0, -2.0], [("a",)] * 40, threshold="recall:0.9")
    assert calibration.decision.thresholds[1] == 0.5
    assert "no example to fit on has the label b: its threshold stays 0.5" in caplog.text
    with pytest.raises(FlagError, match=r"--threshold=precision:0.95: the best precision on .*, of the label a$"):
        calibrated("multi_label", ["a", "b"], [2.0, -2.0], [("a",), ("b",)] * 20, threshold="precision:0.95")


@pytest.mark.parametrize(
    ("kind", "labels", "thresholds"),
    [
        ("classification", ["ok", "ok", "ok", "fraud"], "ok 0.250"),
        ("multi_label", [("ok",), ("fraud",)], "fraud 0.250, ok 0.250"),
    ],
)
def test_thresholds_are_printed_with_their_labels_and_the_curve_of_risk_follows_them(kind, labels, thresholds):
    """All probabilities are 0.5: the first of two classes is predicted, by a threshold the second."""
    calibration = calibrated(kind, ["fraud", "ok"], [0.0, 0.0], labels * 20, threshold="recall:0.9")
    assert f"thresholds: {thresholds}\n" in f"{calibration}\n"
    if kind == "classification":
        assert calibration.risk_coverage[-1] == (1.0, pytest.approx(1.0 - calibration.metrics["accuracy"][1]))
        assert calibration.metrics["accuracy"][1] > 0.5 > calibration.metrics["accuracy"][0]


def test_each_split_that_chose_the_rule_is_known(run, caplog):
    calibration = calibrated("classification", CLASSES.record["labels"], [1.0, 0.0, 0.0], CLASSES.record["labels"] * 10)
    with bert_tf.load(run) as model:
        fit.write(model.trained.prefix, calibration, ["matched", "mismatched"])
    with bert_tf.load(run) as model:
        for split in ("matched", "mismatched", "other"):
            model.trained.warn_if_fitted_on(lambda split=split: split, split)
    warned = [message.partition(":")[0] for message in caplog.messages if "half of these examples chose" in message]
    assert warned == ["matched", "mismatched"]


@pytest.mark.parametrize("stays", [True, False])
def test_a_trained_run_whose_rule_cannot_be_fitted_follows_that_of_its_checkpoint_or_none(tmp_path, caplog, stays):
    labels = ["x", "y"]
    folder = write_run(tmp_path / "run", {**CLASSES.record, "labels": labels}, {"temperatures": [2.0], "thresholds": [0.3]})
    path = folder / "decision.json"
    if not stays:
        path.write_text(json.dumps({**json.loads(path.read_text()), "checkpoint_sha256": "0"}))
    before = path.read_text()
    run = SimpleNamespace(
        splits={"dev": ["dev"]},
        examples={"dev": [Labelled(str(number), labels[number % 2]) for number in range(40)]},
        task=SimpleNamespace(name="custom"),
        family=families.of_record({"task_name": "custom", "kind": "classification", "labels": labels}),
        spec=SimpleNamespace(train=SimpleNamespace(seed=1)),
        output_dir=folder,
    )
    part = Calibration(CalibrationSettings(rules=RuleSettings(threshold="precision:0.95")))
    decision = part.decision(run, lambda half: np.zeros((len(half), 2), np.float32), str(folder / "model.ckpt-7"))
    assert decision == (Decision((2.0,), (0.3,)) if stays else PUBLISHED)
    followed = f"the rule in {path}, which stays" if stays else "no rule"
    assert f"of the label y; predictions follow {followed}; choose another: python -m bert_tf calibrate" in caplog.text
    assert path.read_text() == before


@pytest.mark.parametrize(
    ("logits", "label", "temperature", "said"),
    [
        ([5.0, 0.0], "x", 1.0, "every decision is right"),
        ([0.4, 0.0], "x", 0.4 / np.log(11), "every decision is right"),  # 11 of 12 right, of the 10 to fit on
        ([4.0, 0.0], "y", 20.0, "hardly better than chance, or worse"),
    ],
)
def test_a_temperature_without_an_optimum_is_said(caplog, logits, label, temperature, said):
    calibration = calibrated("classification", ["x", "y"], logits, [label] * 20)
    assert calibration.temperatures == pytest.approx((temperature,), rel=1e-3)
    assert said in caplog.text


@pytest.mark.parametrize(("count", "said"), [(40, True), (60, False)])
def test_sets_of_a_share_that_few_examples_do_not_allow_are_said(caplog, count, said):
    """Half of the examples are fitted on: 20 of 21 are 0.952."""
    calibrated("classification", ["x", "y"], [1.0, 0.0], ["x", "y"] * (count // 2), sets=0.96)
    assert ("--sets=0.96: every set has all classes, since 20 examples to fit on allow at most 0.952" in caplog.text) is said


def test_a_temperature_at_its_lower_limit_is_said(caplog):
    """One mistake, of hardly any margin: the sharper, the better."""
    logits = np.array([[0.2, 0.0]] * 19 + [[0.0, 1e-6]], np.float32)
    part = LabelledLogits(logits, np.zeros(20, np.int64))
    family = SimpleNamespace(kind="classification", labels=("x", "y"))
    assert fit._temperature(part, family, 0) == pytest.approx(0.05, rel=1e-3)
    assert "20 decisions do not determine the temperature: it is at its limit of 0.05; give more examples" in caplog.text


def test_a_rule_is_followed_by_predictions_files_and_evaluation(run, dev, tmp_path, caplog):
    calibration = bert_tf.calibrate(run, data=dev, abstain="coverage:0.5", sets=0.8)
    below, start = calibration.decision.abstain_below, calibration.decision.set_from
    with bert_tf.load(run) as model:
        predictions = model.predict(texts())
        result = model.evaluate(rows())
    for one in predictions:
        ordered = sorted(one.probabilities, key=lambda name: -one.probabilities[name])
        assert one.label == (ordered[0] if one.probabilities[ordered[0]] >= below else None)
        assert one.label_set == tuple(name for name in ordered if one.probabilities[name] >= start)
    decided = sum(one.label is not None for one in predictions)
    assert 0 < decided < len(predictions)
    assert "half of these examples chose the decision rule" in caplog.text
    assert calibration.rule.keys() == {"coverage", "selective_risk", "set_coverage", "set_size"}
    assert result.evaluation.more["coverage"] == pytest.approx(decided / len(predictions))
    bert_tf.predict_files(checkpoint=run, input=dev, output=tmp_path / "predictions.tsv")
    lines = [line.split("\t") for line in (tmp_path / "predictions.tsv").read_text().splitlines()]
    assert lines[0] == ["id", "label", "probability_x", "probability_y", "probability_z", "label_set"]
    assert [(line[1], line[5]) for line in lines[1:]] == [(one.label or "", ",".join(one.label_set)) for one in predictions]


def test_examples_that_the_model_or_its_rule_was_fitted_on_are_warned_of(run, dev, caplog):
    bert_tf.calibrate(run, data=dev)
    assert "these examples" not in caplog.text
    bert_tf.calibrate(run, data=dev, check=True)
    assert f"custom {dev}: half of these examples chose the decision rule" in caplog.text
    caplog.clear()
    digest = json.loads((run / "decision.json").read_text())["fitted_on"]["data_sha256"]
    trained = {**reading.record(run)["training"], "train_examples_sha256": digest}
    (run / "run_config.json").write_text(json.dumps({"training": trained}))
    bert_tf.calibrate(run, data=dev)
    assert f"custom {dev}: the model was trained on these examples, so their scores say little" in caplog.text
    assert "half of these examples" not in caplog.text


def test_a_run_calibrates_its_model_and_predicts_by_it(project, dev, tmp_path, caplog):
    out, names = tmp_path / "out", ("bert_config_file", "vocab_file", "init_checkpoint")
    task = ["--task_name=custom", f"--test_file={dev}", f"--output_dir={out}"]
    flags = [f"--train_file={dev}", f"--dev_file={dev}", *(f"--{name}={getattr(project, name)}" for name in names)]
    ways = ["--num_train_steps=2", "--calibrate", "--sets=0.8", "--do_train", "--do_eval", "--do_predict"]
    assert classifier.run(*task, *flags, *ways) == 0
    written, measured = ((out / name).read_text() for name in ("predictions.tsv", "eval_results.txt"))
    assert written.splitlines()[0].endswith("\tlabel_set")
    assert " --calibrate=True --sets=0.8" in reading.record(out)["command"]
    (temperature,) = json.loads((out / "decision.json").read_text())["temperatures"]
    assert temperature != 1.0
    for again in (["--do_predict"], [*flags, "--num_train_steps=2", "--do_train", "--do_eval", "--do_predict"]):
        (out / "predictions.tsv").unlink()
        assert classifier.run(*task, *again) == 0
        assert (out / "predictions.tsv").read_text() == written
    assert (out / "eval_results.txt").read_text() == measured
    assert "decision.json: predictions follow it, the metrics of a training do not" in caplog.text


def test_the_command_that_repeats_a_run_names_the_costs_from_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "costs.json").write_text('{"false_positive": 1, "false_negative": 5}')
    part = Calibration(CalibrationSettings(calibrate=True, rules=RuleSettings(threshold="cost:costs.json")))
    assert part.repeated(None) == {"calibrate": True, "threshold": f"cost:{tmp_path}/costs.json"}


def test_the_command_prints_the_calibration_error_before_and_after(run, dev, capsys):
    assert front.main(["", "calibrate", str(run), f"--data={dev}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:6]] == ["ECE", "NLL", "Brier", "temperature:"]
    before, after = map(float, lines[3].split()[1:])
    assert after < before


def test_what_cannot_be_calibrated_is_one_line(run, dev):
    with pytest.raises(DataError, match="19 labelled examples are too few to calibrate on; give 20 or more"):
        calibrated("classification", ["x", "y"], [0.0, 0.0], ["x"] * 19)
    with pytest.raises(FlagError, match="a model of regression has no probabilities"):
        calibrated("regression", [], [0.0], [1.0] * 38)
    with pytest.raises(FlagError, match="--threshold: is for models of two classes or several labels"):
        bert_tf.calibrate(run, data=dev, threshold="f1")
    with pytest.raises(FlagError, match="--abstain=xx: write coverage:0.9"):
        bert_tf.calibrate(run, data=dev, abstain="xx")
    with pytest.raises(FlagError, match="no run names a --dev_file; name a file of labelled examples with --data=FILE"):
        bert_tf.calibrate(run)

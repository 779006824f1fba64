"""Folds in one command: a run for each, a prediction of each row, and the final model."""

import collections
import csv
import dataclasses
import functools
import json
import shutil
import signal
import time
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

import bert_tf
from bert_tf.batch import average, loading
from bert_tf.batch.job import ModelOverrides
from bert_tf.errors import CheckpointError, DataError, FlagError
from bert_tf.extensions.choice.family import ChoiceTask
from bert_tf.extensions.choice.features import OPTION_IDS
from bert_tf.extensions.series import driver, folds, table
from bert_tf.extensions.series.folds import FoldResult, groups_of
from bert_tf.extensions.similarity.family import ContrastiveTask, SimilarityTask
from bert_tf.extensions.span.family import SpanTask
from bert_tf.extensions.sweep.leader import Slot
from bert_tf.extensions.tags.family import TagTask
from bert_tf.head_spec import CONTRASTIVE, SIMILARITY, HeadSpec
from bert_tf.profiling.wall_clock import WALL
from bert_tf.tasks.base import Limits
from bert_tf.tasks.in_memory import SentenceTask
from bert_tf.tasks.registry import get_task
from bert_tf.tasks.settings import of_values
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer
from tests import classifier
from tests.integration.commands import same_bits, weights
from tests.tiny import TOKENS
from tests.training import reading

ALONE = {"num_train_epochs": 1, "verbosity": -1}
WAYS = {**ALONE, "slots": 1}


@pytest.fixture(scope="module")
def series(project, tmp_path_factory):
    """The folder of two folds and the final model, trained in one process."""
    folder = tmp_path_factory.mktemp("series")
    assert classifier.run(*project.flags(folder, folds=2, **WAYS)) == 0
    return folder


def out_of_fold(folder):
    return list(csv.DictReader((folder / "out_of_fold.tsv").open(encoding="utf-8"), delimiter="\t", quoting=csv.QUOTE_NONE))


def test_each_row_is_predicted_once_in_the_order_of_the_file_and_all_are_measured(project, series):
    rows, summary = out_of_fold(series), json.loads((series / "folds.json").read_text())
    _, *lines = (project.data_dir / "train.tsv").read_text().splitlines()
    assert list(rows[0]) == ["id", "label", "probability_0", "probability_1", "fold", "true_label"]
    assert [row["id"] for row in rows] == [f"train-{number}" for number in range(1, 41)]
    assert [row["true_label"] for row in rows] == [line.partition("\t")[0] for line in lines]
    counts = collections.Counter((row["fold"], row["true_label"]) for row in rows)
    assert counts == dict.fromkeys([("1", "0"), ("1", "1"), ("2", "0"), ("2", "1")], 10)
    assert summary["all_rows"]["accuracy"] == np.mean([row["label"] == row["true_label"] for row in rows])
    losses = [one["metrics"]["eval_loss"] for one in summary["folds"]]
    assert summary["spread"]["eval_loss"]["mean"] == pytest.approx(np.mean(losses))
    assert len((series / "folds.tsv").read_text().splitlines()) == 3
    # The final model
    record = reading.record(series)
    assert (record["schedule"], "folds" in record["training"]) == ({"train_examples": 40, "steps": 5}, False)
    assert reading.results(series)["splits"]["dev"]["examples"] == 13
    assert len(list((series / "features").glob("MRPC-train-*"))) == 1
    assert not list(series.glob("fold-*/features"))


def test_the_time_of_the_folds_is_a_part_of_its_own(project, series, tmp_path, monkeypatch):
    parts = json.loads((series / "timing.json").read_text())["wall"]["parts"]
    assert parts["folds"] > 0  # the predictions of all rows, between the last fold and the final model

    def on_slots(*_):
        time.sleep(0.1)
        return driver.Trained((), signal.SIGINT)

    WALL.restart()
    monkeypatch.setattr(driver, "slots", lambda *_: [Slot({})] * 2)
    monkeypatch.setattr(driver, "on_slots", on_slots)
    assert classifier.run(*project.flags(tmp_path / "out", folds=2, **WAYS)) == 130
    parts = WALL.account().parts
    assert parts["folds"] >= 0.1 > parts["start"]


def test_folds_of_rows_that_change_meanwhile_are_refused(project, tmp_path, monkeypatch):
    data = shutil.copytree(project.data_dir, tmp_path / "data") / "train.tsv"

    def on_slots(runs, *_):
        data.write_text(data.read_text().replace("\n0\t", "\n1\t", 1))
        with pytest.raises(DataError, match="train: its rows have changed since the folds began; restore them, or name"):
            runs[0].alone(runs[0].config, environment={})
        return driver.Trained((), signal.SIGINT)

    monkeypatch.setattr(driver, "slots", lambda *_: [Slot({})] * 2)
    monkeypatch.setattr(driver, "on_slots", on_slots)
    assert classifier.run(*project.flags(tmp_path / "out", data_dir=data.parent, folds=2, **WAYS)) == 130


def test_a_fold_is_the_run_by_hand(project, series, tmp_path):
    rows = out_of_fold(series)
    header, *lines = (project.data_dir / "train.tsv").read_text().splitlines()
    for split, is_part in (("train", lambda fold: fold != "2"), ("dev", lambda fold: fold == "2")):
        part = [line for line, row in zip(lines, rows) if is_part(row["fold"])]
        (tmp_path / f"{split}.tsv").write_text("".join(f"{line}\n" for line in [header, *part]))
    assert classifier.run(*project.flags(tmp_path / "out", data_dir=tmp_path, **ALONE)) == 0
    assert same_bits(weights(tmp_path / "out", 2), weights(series / "fold-2", 2))
    by_hand = reading.results(tmp_path / "out")
    _, of_fold = json.loads((series / "folds.json").read_text())["folds"]
    assert of_fold["metrics"] == {name: by_hand[name] for name in ("eval_accuracy", "eval_f1", "eval_loss")}
    with bert_tf.load(series / "fold-2") as model:
        texts = [line.split("\t")[3:] for line, row in zip(lines, rows) if row["fold"] == "2"]
        expected = [one.probabilities["1"] for one in model.predict(texts)]
    actual = [float(row["probability_1"]) for row in rows if row["fold"] == "2"]
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


def test_goes_on_where_it_was_killed_to_the_same_result(project, series, tmp_path):
    shutil.copytree(series / "fold-1", tmp_path / "fold-1")  # killed in the second fold, before its first checkpoint
    (tmp_path / "fold-2").mkdir()
    assert classifier.run(*project.flags(tmp_path, folds=2, folds_only=True, **WAYS)) == 0
    for name in ("out_of_fold.tsv", "folds.json", "folds.tsv"):
        assert (tmp_path / name).read_bytes() == (series / name).read_bytes()
    assert same_bits(weights(tmp_path / "fold-2", 2), weights(series / "fold-2", 2))
    assert not (tmp_path / "run_config.json").exists()


@pytest.mark.parametrize("flag", ["folds_only", "folds_average"])
def test_without_a_final_model_the_folder_holds_none(project, series, monkeypatch, capsys, flag):
    monkeypatch.setattr(driver, "in_turn", None)
    assert classifier.run(*project.flags(series, folds=2, **{flag: True}, **WAYS)) == 2
    assert "holds a run; name another folder for the folds" in capsys.readouterr().err


@pytest.fixture(scope="module")
def averaged(project, series, tmp_path_factory):
    """The same folds, evaluated and predicting by the mean of their outputs; their test examples are those of dev."""
    out, data = (tmp_path_factory.mktemp(name) for name in ("averaged", "data"))
    for fold in ("fold-1", "fold-2"):
        shutil.copytree(series / fold, out / fold)
    for name, source in (("train", "train"), ("dev", "dev"), ("test", "dev")):
        shutil.copy(project.data_dir / f"{source}.tsv", data / f"{name}.tsv")
    actions = {"do_train": True, "do_eval": True, "do_predict": True}
    assert classifier.run(*project.flags(out, data_dir=data, folds=2, folds_average=True, **actions, **WAYS)) == 0
    return out


def test_the_average_of_the_folds_is_the_mean_of_their_logits(project, averaged, tmp_path):
    examples = [line.split("\t") for line in (project.data_dir / "dev.tsv").read_text().splitlines()[1:]]
    logits = []
    for fold in ("fold-1", "fold-2"):
        with bert_tf.load(averaged / fold) as model:
            shares = np.array([one.probabilities["1"] for one in model.predict([cells[3:] for cells in examples])])
        logits.append(np.log(shares / (1 - shares)))
    expected = 1 / (1 + np.exp(-np.mean(logits, axis=0)))
    header, *rows = (line.split("\t") for line in (averaged / "predictions.tsv").read_text().splitlines())
    actual = [float(row[header.index("probability_1")]) for row in rows]
    np.testing.assert_allclose(actual, expected, rtol=1e-4)
    accuracy = np.mean((expected > 0.5) == np.array([cells[0] == "1" for cells in examples]))
    assert reading.results(averaged)["eval_accuracy"] == pytest.approx(accuracy)
    assert not list(averaged.glob("model.ckpt*"))
    # Files are predicted with the average later.
    files = {"input": str(project.data_dir / "dev.tsv"), "output": str(tmp_path / "out.tsv")}
    bert_tf.predict_files(checkpoint=f"{averaged}/fold-*", average_outputs=True, **files)
    assert (tmp_path / "out.tsv").read_text().splitlines()[1:] == (averaged / "predictions.tsv").read_text().splitlines()[1:]
    with pytest.raises(FlagError, match="is one checkpoint; name several, such as 'RUN/fold-"):
        bert_tf.predict_files(checkpoint=f"{averaged}/fold-1", average_outputs=True, input="-", output="-")


def test_only_models_whose_outputs_mean_the_same_are_averaged(series, caplog):
    prefix = str(series / "fold-1" / "model.ckpt-2")
    first, longer = (loading.load(prefix, ModelOverrides(max_seq_length=length)) for length in (None, 7))
    decided = dataclasses.replace(first, record={**first.record, "decision": {"temperatures": [2.0]}})
    assert average.comparable([decided, first]) == [first, first]
    assert f"{prefix}: its decision.json is not followed: predictions are those of the mean" in caplog.messages
    with pytest.raises(CheckpointError, match="its max_seq_length differs from that of"):
        average.comparable([first, longer])
    for kind in (SIMILARITY, CONTRASTIVE):
        vectors = dataclasses.replace(first, given_head=HeadSpec(8, kind))
        with pytest.raises(CheckpointError, match="vectors of different models cannot be averaged"):
            average.comparable([vectors, vectors])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--folds=1"], "--folds=1"),
        (["--group_column=a"], "--group_column belongs to --folds, such as --folds=5"),
        (["--folds_only"], "--folds_only belongs to --folds"),
        (["--folds_average"], "--folds_average belongs to --folds"),
        (["--folds=2", "--folds_average", "--folds_only"], "--folds_average and --folds_only exclude each other"),
        (["--folds=2", "--folds_average", "--calibrate"], "--folds_average has no decision rule"),
        (["--folds=2", "--folds_only", "--do_predict"], "--folds_only has no final model: leave out --do_predict, "),
        (["--folds=2", "--folds_only", "--abstain=below:0.5"], "--folds_only has no final model: "),
        (["--folds=2", "--seeds=1-2"], "--folds and --seeds exclude each other"),
        (["--slots=2"], "--slots belongs to --seeds and --folds"),
        (["--folds=2", "--eval_every_n_steps=5"], "the reported rows would choose the checkpoint"),
    ],
)
def test_refuses_settings_that_do_not_go_together(arguments, message):
    with pytest.raises(FlagError, match=message):
        classifier.mrpc(*arguments)


def test_refuses_before_anything_is_trained(tmp_path):
    two = json.dumps({"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 0}})
    with pytest.raises(FlagError, match="--folds trains and evaluates"):
        folds.drive(classifier.mrpc("--folds=2", "--do_train"), environment={})
    with pytest.raises(FlagError, match="--folds is for one machine"):
        folds.drive(classifier.mrpc("--folds=2"), environment={"TF_CONFIG": two})
    with pytest.raises(FlagError, match="have no labels"):
        bert_tf.fine_tune(ContrastiveTask(train=[("a", "b")] * 4), folds=2, output_dir=tmp_path)
    with pytest.raises(FlagError, match="^--folds_average: vectors of different models cannot be averaged; leave it out$"):
        bert_tf.fine_tune(TASKS["similarity"], folds=2, folds_average=True, output_dir=tmp_path)
    with pytest.raises(FlagError, match="for rows in memory, give groups to scikit-learn"):
        bert_tf.fine_tune(SENTENCES, folds=2, group_column="a", output_dir=tmp_path)
    for count, groups, message in ((41, None, "--folds=41: "), (3, [1, 2] * 20, "--folds=3: there are only 2 groups")):
        with pytest.raises(FlagError, match=message):
            divided(SENTENCES, count, groups=groups)


@pytest.mark.parametrize(
    ("changed", "flags", "message"),
    [
        ("data/dev.tsv", {"calibrate": True}, "no dev rows choose the decision rule of the final model"),
        (None, {"calibrate": True}, "dev: 13 labelled examples are too few to calibrate on"),
        (None, {"submission_zip": True}, "--submission_zip: GLUE's server takes no predictions of MRPC, or --do_predict is"),
        (None, {"submission_zip": True, "folds_average": True}, "--submission_zip: GLUE's server takes no predictions"),
        ("run_config.json", {}, "holds a run; name another folder for the folds"),
        ("model.safetensors", {}, "commands would read this model instead of the trained one"),
    ],
)
def test_what_the_final_model_would_refuse_is_refused_before_the_folds(
    project, tmp_path, monkeypatch, capsys, changed, flags, message
):
    monkeypatch.setattr(driver, "in_turn", None)
    data = shutil.copytree(project.data_dir, tmp_path / "data")
    if changed == "data/dev.tsv":
        (tmp_path / changed).unlink()
    elif changed:
        (tmp_path / changed).write_text("{}")
    assert classifier.run(*project.flags(tmp_path, data_dir=data, folds=2, **flags, **WAYS)) == 2
    assert message in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("fault", ["dev.tsv", "test.tsv", "fold-3"])
def test_what_the_end_would_meet_is_met_before_the_folds(project, tmp_path, monkeypatch, capsys, fault):
    monkeypatch.setattr(driver, "in_turn", None)
    data = shutil.copytree(project.data_dir, tmp_path / "data")
    (data / "test.tsv").write_text("index\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t1\t2\ta\tb\n")
    if fault == "fold-3":
        (tmp_path / "out" / fault).mkdir(parents=True)
        (tmp_path / "out" / fault / "run_config.json").write_text("{}")
    else:
        (data / fault).write_text("no columns\n")
    flags = project.flags(tmp_path / "out", data_dir=data, folds=2, do_train=True, do_eval=True, do_predict=True, **WAYS)
    assert classifier.run(*flags) == 2
    assert f"/{fault}" in capsys.readouterr().err.splitlines()[-1]


SENTENCES = SentenceTask(train=[("a", "x")] * 30 + [("b", "y")] * 10)


def divided(task, count, **options):
    examples = task.examples("", "train")
    parts = list(folds.divided(task.family, examples, count, **{"seed": 1, **options}))
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(examples)))
    return [sorted(own.tolist()) for own in parts]


def test_classes_are_distributed_evenly_and_shuffled_by_the_seed_and_groups_stay_together(caplog):
    parts = divided(SENTENCES, 5)
    assert [sum(number >= 30 for number in own) for own in parts] == [2] * 5
    assert parts == divided(SENTENCES, 5)
    assert parts != divided(SENTENCES, 5, seed=2)
    divided(SentenceTask(train=[("a", "x")] * 30 + [("b", "y")] * 3), 5)
    assert "The least populated class in y has only 3 members" in caplog.text
    groups = [number % 8 for number in range(40)]
    numbers = SentenceTask(train=[("a", number) for number in range(40)], problem="regression")
    for task in (SENTENCES, numbers):
        parts = divided(task, 4, groups=groups)
        assert sorted({groups[number] for own in parts for number in own}) == list(range(8))
        assert sum(len({groups[number] for number in own}) for own in parts) == 8
    assert sorted(map(len, divided(numbers, 4))) == [10] * 4


def test_groups_are_a_column_of_the_table(project, tmp_path):
    path = project.data_dir / "train.tsv"
    assert list(groups_of(get_task("MRPC"), path, "train", "#1 ID").values()) == [str(1000 + row) for row in range(40)]
    with pytest.raises(DataError, match="--group_column=author: no such column; there are Quality, #1 ID"):
        groups_of(get_task("MRPC"), path, "train", "author")
    table = tmp_path / "rows.jsonl"
    table.write_text('{"text": "a", "label": "x", "author": 7}\n{"text": "b", "label": "y", "author": "Ann"}\n')
    settings = of_values({"train_file": str(table)})
    assert groups_of(get_task("custom", settings), table, "train", "author") == {"train-1": 7, "train-2": "Ann"}


@pytest.mark.parametrize(
    ("third", "expected"),
    [
        ('" a17"', ["17", "17", "a17"]),
        ("null", "is not a name: None"),
        ('""', "is empty"),
        ('["x"]', r"is not a name: \['x'\]"),
    ],
)
def test_each_row_has_the_name_of_its_group(tmp_path, third, expected):
    path = tmp_path / "rows.jsonl"
    lines = [f'{{"text": "a", "label": "x", "author": {author}}}' for author in ("17", '"17"', third)]
    path.write_text("\n".join([*lines, '{"text": "b", "label": "y", "author": null}']))  # which is not trained on
    task = get_task("custom", of_values({"train_file": str(path)}))
    config = mock.Mock(**{"extensions.series.group_column": "author"})
    groups_of = functools.partial(folds._groups, config, task, mock.Mock(folder=""), "train", task.examples("", "train")[:3])
    if isinstance(expected, list):
        assert groups_of() == expected
    else:
        with pytest.raises(DataError, match=f"group_column=author: row train-3: the value in column 'author' {expected}; fill"):
            groups_of()


def test_groups_are_those_of_the_rows_that_are_trained_on(project, tmp_path, monkeypatch):
    runs = []
    monkeypatch.setattr(driver, "slots", lambda *_: None)
    monkeypatch.setattr(driver, "in_turn", lambda given, *_: (runs.extend(given), driver.Trained((), signal.SIGINT))[1])
    predicts = {"do_train": True, "do_eval": True, "do_predict": True, "submission_zip": True, "predict_batch_size": 4}
    flags = project.flags(tmp_path / "out", folds=2, group_column="#1 ID", max_train_examples=20, **predicts, **WAYS)
    assert classifier.run(*flags) == 130
    assert [run.title.partition(": ")[2] for run in runs] == ["10 of 20 rows"] * 2
    assert not any(run.config.actions.do_predict or run.config.inference.submission_zip for run in runs)  # the final model does
    assert not any("predict_batch_size" in run.config.given for run in runs)  # of which a run without predictions warns


QUESTION = {"question": "Who ?", "context": "the rain and " * 9 + "a storm came .", "answer": "storm"}
TASKS = {
    "pairs": SentenceTask(train=[("rain", "the old wind", "x"), ("wind " * 9, "a", "y"), ("a", "b", "x")]),
    "multi_label": SentenceTask(train=[("a", ["x", "y"]), ("rain wind", []), ("b", ["x"])], problem="multi_label"),
    "span": SpanTask(train=[QUESTION, {**QUESTION, "context": "a storm"}, QUESTION], doc_stride=4),
    "tags": TagTask(train=[(["rain", "wind"], ["O", "B-X"]), (["wind"] * 30, ["O"] * 30), (["a"], ["O"])]),
    "choice": ChoiceTask(
        train=[
            {"context": "rain " * count, "question": "", "options": ["a", "old wind", "new"][:count], "answer": 0}
            for count in (2, 3, 2)
        ]
    ),
    "similarity": SimilarityTask(train=[("a", "rain", 0.5), ("wind", "the old", 1), ("rain wind", "b", 0)]),
}


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
@pytest.mark.parametrize("numbers", [[0, 2], [1, 2], [1]])
def test_features_of_a_part_are_those_of_its_examples(task, numbers):
    examples, tokenizer = task.examples("", "train"), WordPieceTokenizer(Vocabulary(TOKENS))
    whole = task.family.features(examples, tokenizer, Limits(16))
    alone = task.family.features([examples[number] for number in numbers], tokenizer, Limits(16)).columns()
    part = whole.taken(np.array(numbers)).columns()
    if OPTION_IDS.name in part:  # which counts the options of all examples
        part[OPTION_IDS.name] = np.cumsum(np.diff(part[OPTION_IDS.name], prepend=-1) != 0) - 1
    assert part.keys() == alone.keys()
    for name, column in alone.items():
        np.testing.assert_array_equal(part[name], column, err_msg=name)
        assert part[name].dtype == column.dtype or name == OPTION_IDS.name


@pytest.mark.parametrize(
    ("task", "columns", "labels"),
    [
        ("multi_label", ["id", "label", "probability_x", "probability_y"], ["x,y", "", "x"]),
        ("tags", ["id", "tokens", "tags", "scores", "entities"], ["O B-X", " ".join(["O"] * 30), "O"]),
        ("similarity", None, ["0.5", "1.0", "0.0"]),
    ],
)
def test_rows_of_each_family(task, columns, labels):
    family, examples = TASKS[task].family, TASKS[task].examples("", "train")
    features = family.features(examples, WordPieceTokenizer(Vocabulary(TOKENS)), Limits(64))
    shape = {"multi_label": [len(features), 2], "tags": [features.size("token"), 3], "similarity": [len(features), 4]}[task]
    outputs = {"logits": np.ones(shape, np.float32), "vectors": np.ones(shape, np.float32)}
    header, *rows = folds._rows(family, examples, family.predictions(outputs, features, examples), [1, 2, 1])
    assert columns is None or header == [*columns, "fold", "true_label"]
    assert [row[-2:] for row in rows] == [["1", labels[0]], ["2", labels[1]], ["1", labels[2]]]


def test_the_call_returns_the_runs(monkeypatch, tmp_path):
    results = tuple(folds.FoldResult(fold, f"fold-{fold}", 3, {"eval_accuracy": fold / 4}, None) for fold in (1, 2, 3))
    data, configs = SimpleNamespace(data_dir=tmp_path), []
    series = folds.Outcome(driver.Trained(results), SENTENCES, data, None)
    monkeypatch.setattr(folds, "fine_tune_folds", lambda config, **_: configs.append(config) or series)
    runs = bert_tf.fine_tune(SENTENCES, folds=3, output_dir=tmp_path)
    assert (configs[0].extensions.series.folds, configs[0].actions.do_train, configs[0].actions.do_eval) == (3, True, True)
    assert (runs.spread["eval_accuracy"].mean, runs.out_of_fold) == (0.5, tmp_path / "out_of_fold.tsv")
    assert str(runs).splitlines()[:2] == ["   fold  eval_accuracy  steps", "      1         0.2500      3"]


def test_a_metric_that_a_fold_lacks_is_that_of_the_others(tmp_path):
    shared = {"eval_f1": 0.5, "eval_loss": 1.0}
    metrics = (shared, {**shared, "eval_no_answer_f1": 0.25}, {**shared, "eval_no_answer_f1": 0.75})
    results = [FoldResult(number, f"fold-{number}", 3, values, None) for number, values in enumerate(metrics, 1)]
    table.write(tmp_path, results)
    assert (tmp_path / "folds.tsv").read_text().splitlines()[:3] == [
        "fold\teval_f1\teval_loss\teval_no_answer_f1\tsteps\tcollapsed",
        "1\t0.5\t1.0\t-\t3\t",
        "2\t0.5\t1.0\t0.25\t3\t",
    ]
    assert table.spreads(results)["eval_no_answer_f1"].mean == 0.5
    assert table.summary(results)[1].split() == ["1", "0.5000", "1.0000", "-", "3"]

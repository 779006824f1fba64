"""Distillation as a command: an ordinary run whose student learned from the outputs of a teacher, computed once."""

import errno
import json
import os
import re
import shutil
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

import bert_tf
from bert_tf.batch import trained
from bert_tf.config import BertConfig
from bert_tf.errors import BertError, FlagError
from bert_tf.estimator import run
from bert_tf.extensions.distill import DistillSettings, command, part
from bert_tf.extensions.distill.part import Distillation, recombined
from bert_tf.head_spec import CLASSIFICATION
from bert_tf.tasks.sentence.rows import SentenceExample
from tests import classifier, lines, pretrained
from tests.tiny import HALVES, held, write_project
from tests.training import reading

WAYS = {"num_train_epochs": 2, "verbosity": -1}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A teacher of four layers, and its student of two; folders, and the project."""
    folder = tmp_path_factory.mktemp("made")
    project = write_project(folder / "project", layers=4)
    assert classifier.run(*project.flags(folder / "teacher", do_train=True, do_eval=True, **WAYS)) == 0
    made = SimpleNamespace(project=project, teacher=folder / "teacher", student=folder / "student")
    assert distilled(made, made.student, **WAYS) == 0
    return made


def weights(folder):
    return held(folder / f"model.ckpt-{run.last_step(folder)}")


def distilled(made, folder, *arguments, teacher=None, **ways):
    """Runs the command with this teacher, by default for a student of two layers."""
    layers = {} if {"init_checkpoint", "teacher_layers"} & ways.keys() else {"student_layers": 2}
    return lines.run(
        "distill", teacher or made.teacher, *arguments, output_dir=folder, **{"verbosity": -1, "recombine": 0, **layers, **ways}
    )


def losses(folder):
    return [json.loads(line)["loss"] for line in (folder / "metrics.jsonl").read_text().splitlines()]


def outputs(folder):
    """Bytes of the teacher's outputs that a run of a student keeps, by name."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.glob("features/teacher-*/*")}


def test_leaves_an_ordinary_run_whose_page_has_teacher_and_student_side_by_side(made, tmp_path):
    assert BertConfig.from_json_file(made.student / "bert_config.json").num_hidden_layers == 2
    record = reading.record(made.student)
    assert (record["training"]["teacher_layers"], record["training"]["task_name"]) == ([1, 3], "MRPC")
    with bert_tf.load(made.student) as model:
        assert {one.label for one in model.predict([("a b", "c d"), ("e", "f")])} <= {"0", "1"}
    kept = json.loads((made.student / "teacher.json").read_text())["teacher"]["metrics"]
    teacher, student = (reading.results(run) for run in (made.teacher, made.student))
    assert kept["accuracy"] == teacher["eval_accuracy"]
    assert kept["loss"] == pytest.approx(teacher["eval_loss"], rel=1e-5)
    folder = shutil.copytree(made.student, tmp_path / "out")
    assert lines.run("report", folder) == 0
    page = (folder / "report.html").read_text(encoding="utf-8")
    rows = dict(re.findall(r'<th scope="row">([^<]+)</th>(<td class="n" data-name="teacher">.*?)</tr>', page))
    shown = {name: [float(number) for number in re.findall(r">([\d.]+)</td>", row)] for name, row in rows.items()}
    assert shown["layers"] == [4, 2, 0.5]
    accuracies = teacher["eval_accuracy"], student["eval_accuracy"]
    assert shown["accuracy"] == pytest.approx([*accuracies, accuracies[1] / accuracies[0]], abs=1e-3)


def test_begins_with_layers_and_head_of_the_teacher(made, tmp_path):
    assert distilled(made, tmp_path / "out", "--do_train", learning_rate=0.0, num_train_steps=1) == 0
    student, teacher = weights(tmp_path / "out"), weights(made.teacher)
    for own, theirs in (("layer_0", "layer_1"), ("layer_1", "layer_3"), ("embeddings", "embeddings"), ("pooler", "pooler")):
        names = [name for name in student if f"/{own}/" in name]
        assert names
        for name in names:
            np.testing.assert_array_equal(student[name], teacher[name.replace(f"/{own}/", f"/{theirs}/")])
    np.testing.assert_array_equal(student["output_weights"], teacher["output_weights"])


def prepare(made, folder, **ways):
    """Prepares a student up to its training, which ends at once (see `untrained`) or where the teacher does."""
    with pytest.raises(KeyboardInterrupt):
        bert_tf.distill(os.path.relpath(made.teacher), output_dir=folder, **{"student_layers": 2, "recombine": 0, **ways})


@pytest.fixture
def counted(monkeypatch):
    """How many examples each call computes the teacher's outputs of."""
    calls, compute = [], part._Outputs._computed

    def counting(self, columns):
        calls.append(columns.examples)
        return compute(self, columns)

    monkeypatch.setattr(part._Outputs, "_computed", counting)
    return calls


def test_what_was_computed_before_a_kill_is_not_computed_again(made, tmp_path, monkeypatch, counted, untrained):
    monkeypatch.setattr(part, "_CHUNK", 16)
    compute = part._Outputs._computed

    def killed(self, columns):
        if len(counted) == 2:
            raise KeyboardInterrupt
        return compute(self, columns)

    with monkeypatch.context() as patch:
        patch.setattr(part._Outputs, "_computed", killed)
        prepare(made, tmp_path / "out")
    assert (counted, len(untrained)) == ([16, 16], 0)
    counted.clear()
    prepare(made, tmp_path / "out")
    assert len(untrained) == 1
    assert counted == [8, 13]  # the rest of 40, and the dev split
    assert outputs(tmp_path / "out") == outputs(made.student)


@pytest.mark.parametrize("damage", [b"", b"no array", None])
def test_damaged_outputs_are_computed_again(made, tmp_path, counted, damage, untrained):
    folder = shutil.copytree(made.student / "features", tmp_path / "out" / "features")
    (states,) = folder.glob("teacher-*/states.npy")
    states.unlink() if damage is None else states.write_bytes(damage)
    prepare(made, tmp_path / "out")
    assert (counted, len(untrained)) == ([40, 13], 1)
    assert outputs(tmp_path / "out") == outputs(made.student)


def test_a_kill_before_the_first_outputs_leaves_none_counted(tmp_path, monkeypatch):
    """Of three examples that were computed, the arrays are gone."""
    (tmp_path / "examples.json").write_text('{"examples": 3}')
    columns = SimpleNamespace(examples=3, shape=lambda _: (3,))
    outputs = part._Outputs(None, None, tmp_path, [SimpleNamespace(name="logits")])
    compute = mock.Mock(side_effect=[KeyboardInterrupt, None])
    monkeypatch.setattr(outputs, "_compute", compute)
    with pytest.raises(KeyboardInterrupt):
        outputs.arrays_of(columns)
    outputs.arrays_of(columns)
    assert [done for _, _, done in (call.args for call in compute.call_args_list)] == [0, 0]


def test_a_full_disk_is_said_in_a_line(made, tmp_path, monkeypatch, capsys):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    assert distilled(made, tmp_path / "out", num_train_epochs=2) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert not list((tmp_path / "out" / "features").glob("teacher-*"))


def test_a_run_goes_on_and_is_evaluated_by_the_same_command_and_another_lesson_is_another_run(made, tmp_path, counted, capsys):
    folder = shutil.copytree(made.student, tmp_path / "out")
    checkpoints = sorted(path.name for path in folder.glob("model.ckpt-*.index"))
    loss = reading.results(folder)["eval_loss"]
    assert distilled(made, folder, num_train_epochs=2) == 0
    assert sorted(path.name for path in folder.glob("model.ckpt-*.index")) == checkpoints
    assert distilled(made, folder, "--do_eval") == 0
    assert reading.results(folder)["eval_loss"] == pytest.approx(loss, rel=1e-6)
    assert counted == []
    data = shutil.copytree(made.project.data_dir, tmp_path / "data")
    (data / "dev.tsv").write_text("".join((data / "dev.tsv").read_text().splitlines(keepends=True)[:-1]))
    assert distilled(made, folder, num_train_epochs=2, data_dir=data) == 0
    assert counted == [12]  # the teacher is measured on the rows of the student
    assert distilled(made, folder, num_train_epochs=2, state_weight=3) == 2
    assert "state_weight" in capsys.readouterr().err


def test_learns_from_texts_without_labels_which_do_not_count_as_a_class(made, tmp_path, counted, untrained):
    """The balanced weights are those of the 40 labelled rows, half of which are of each class."""
    texts = tmp_path / "more.jsonl"
    texts.write_text("".join(json.dumps({"text_a": "rain a", "text_b": f"the {word}"}) + "\n" for word in HALVES[0] * 3))
    texts.write_text(texts.read_text() + '{"text_a": "rain"}\n')
    prepare(made, tmp_path / "out", skip_bad_rows=True, unlabelled=texts, class_weights="balanced", label_weight=1)
    assert (sum(counted), len(untrained)) == (40 + 12 + 13, 1)
    labels = [line.split("\t")[0] for line in (made.project.data_dir / "train.tsv").read_text().splitlines()[1:]]
    expected = [len(labels) / (2 * labels.count(name)) for name in ("0", "1")]
    assert untrained[0].loss.class_weights == pytest.approx(expected)


@pytest.mark.parametrize(("state_weight", "layers", "dropout"), [(30.0, 2, False), (30.0, 1, True), (0.0, 2, True)])
def test_there_is_no_dropout_where_token_vectors_are_compared(made, tmp_path, untrained, state_weight, layers, dropout):
    """The command of a run has the default of 30, also for a student of one layer."""
    prepare(made, tmp_path / "out", student_layers=layers, state_weight=state_weight)
    assert [model.dropout for model in untrained] == [dropout]


def test_pairs_are_recombined_from_the_texts_of_few_rows(made, tmp_path, counted, untrained, caplog):
    caplog.set_level("INFO")
    prepare(made, tmp_path / "out", recombine=None)
    assert (sum(counted), len(untrained)) == (40 + 5 * 40 + 13, 1)
    said = "the student also learns from 200 pairs of the training texts"
    assert [message for message in caplog.messages if "also learns" in message] == [said]
    record = json.loads((tmp_path / "out" / "run_config.json").read_text())
    assert record["training"]["recombine"] == 5
    assert "unlabelled_sha256" not in record["training"]  # runs that differ in the seed alone have equal records but for it
    assert "--recombine=5" in record["command"]
    assert f" distill {made.teacher}/model.ckpt-" in record["command"]  # from any working directory


def test_recombined_pairs_are_the_swapped_ones_and_any_texts():
    examples = [SentenceExample(f"train-{number}", f"a{number}", f"b{number}", 1) for number in range(30)]
    pairs = list(recombined(examples, 3, seed=1))
    assert [pair.texts for pair in pairs[:30]] == [(f"b{number}", f"a{number}") for number in range(30)]
    assert len({pair.texts for pair in pairs}) > 85
    assert {text for pair in pairs for text in pair.texts} <= {text for example in examples for text in example.texts}
    assert {pair.label for pair in pairs} == {None}
    assert list(recombined(examples, 3, seed=1)) == pairs != list(recombined(examples, 3, seed=2))


FAMILY = SimpleNamespace(kind=CLASSIFICATION, usual_settings={"label_smoothing": 0.1})


def rows_of(texts, rows):
    return [SentenceExample("1", *["text"] * texts)] * rows


@pytest.mark.parametrize(
    ("texts", "rows", "asked", "count"),
    [
        (2, 4999, {}, 5),
        (2, 5000, {}, 0),
        (2, 10, {"unlabelled": "more.txt"}, 0),
        (2, 10, {"recombine": 0}, 0),
        (2, 5000, {"recombine": 2, "unlabelled": "more.txt"}, 2),
        (1, 10, {}, 0),
    ],
)
def test_how_many_pairs_are_recombined_depends_on_the_rows_and_on_other_texts(texts, rows, asked, count):
    recipe = Distillation(DistillSettings("teacher", **asked)).recipe(FAMILY, rows_of(texts, rows))
    assert recipe.get("recombine", 0) == count
    assert (recipe.get("train_batch_size"), recipe["num_train_epochs"]) == ((8, 4.0) if count else (None, 8.0))
    assert recipe["label_smoothing"] == 0.1


@pytest.mark.parametrize(
    ("texts", "rows", "recombine", "said"),
    [(2, 4999, 5, "also learns from 24995 pairs"), (2, 5000, None, ""), (1, 10, None, "10 texts are few")],
)
def test_few_texts_are_said(texts, rows, recombine, said, caplog):
    caplog.set_level("INFO")
    Distillation(DistillSettings("teacher", recombine=recombine)).further_examples(rows_of(texts, rows), seed=1)
    assert said in caplog.text
    assert bool(said) == bool(caplog.text)


def test_only_pairs_are_recombined():
    with pytest.raises(FlagError, match="--recombine=2: is for tasks on pairs of texts; add other texts by --unlabelled"):
        Distillation(DistillSettings("teacher", recombine=2)).recipe(FAMILY, rows_of(1, 1))


def test_a_calibrated_teacher_teaches_the_logits_that_the_student_starts_with(made, tmp_path):
    teacher = shutil.copytree(made.teacher, tmp_path / "teacher")
    prefix = teacher / f"model.ckpt-{run.last_step(teacher)}"
    rule = {"temperatures": [3.0], "checkpoint_sha256": trained.digest(str(prefix))}
    (teacher / "decision.json").write_text(json.dumps(rule))
    ways = {"learning_rate": 0.0, "num_train_steps": 2, "label_weight": 0.0, "relation_weight": 1.0, "log_every_n_steps": 1}
    assert distilled(made, tmp_path / "out", "--do_train", teacher=teacher, teacher_layers="0,1,2,3", **ways) == 0
    assert max(losses(tmp_path / "out")) < 1e-4  # float16 of what is kept
    kept = [np.load(next(folder.glob("features/teacher-*/logits.npy"))) for folder in (tmp_path / "out", made.student)]
    np.testing.assert_array_equal(*kept)  # as those of a teacher without a rule


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"student_layers": 5}, "the teacher has 4 layers"),
        ({"teacher_layers": "1,4"}, "numbers from 0 to 3"),
        ({"teacher_layers": "2,1"}, "rising order"),
        ({"teacher_layers": "1", "student_layers": 1}, "exclude each other"),
        ({"init_checkpoint": "x", "student_layers": 1}, "exclude each other"),
        ({"distill_temperature": 0}, "distill_temperature"),
        ({"unlabelled": "nothing.tsv"}, "nothing.tsv"),
        ({"output_weight": 0, "state_weight": 0}, "every weight is 0, so there is nothing to learn"),
        ({"class_weights": "balanced"}, "--class_weights: a student that learns no labels has no use for it; leave it out, or"),
        ({"lora_rank": 2}, "differ: give --learning_rate (0.0004 or 0.001), --train_batch_size (8 or 16)"),
        ({"output_weight": 0, "student_layers": 1}, "every weight is 0, so there is nothing to learn"),
        *(
            ({name: 3, "student_layers": 1}, f"--{name}: a student of one layer has no token vectors before its last one")
            for name in ("state_weight", "relation_weight")
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
def test_what_is_wrong_is_said_in_a_line(made, tmp_path, capsys, flags, message):
    assert lines.run("distill", made.teacher, output_dir=tmp_path / "out", **WAYS, **flags) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out" / "run_config.json").exists()


def test_a_teacher_must_be_a_trained_model_with_two_layers_or_more(run, tmp_path, capsys):
    assert lines.run("distill", tmp_path / "nothing", output_dir=tmp_path / "out") == 2
    assert "nothing" in capsys.readouterr().err
    assert lines.run("distill", run, output_dir=tmp_path / "out", **WAYS) == 2
    assert "at least 2 layers" in capsys.readouterr().err


def test_relations_need_heads_that_divide_the_teachers_vectors(made, tmp_path, capsys):
    narrow = pretrained.write(tmp_path / "narrow", sizes={"hidden_size": 6, "num_attention_heads": 3, "intermediate_size": 8})
    assert distilled(made, tmp_path / "out", "--do_train", init_checkpoint=narrow, relation_weight=1.0, num_train_steps=1) == 2
    assert "cannot be divided among the 3 heads of the student; leave it out" in capsys.readouterr().err


def test_a_narrower_model_learns_by_a_map(made, tmp_path):
    narrow = pretrained.write(tmp_path / "narrow", sizes={"hidden_size": 4, "num_attention_heads": 2, "intermediate_size": 8})
    ways = {"relation_weight": 1.0, "log_every_n_steps": 1, "save_checkpoints_steps": 100, "num_train_epochs": 6}
    assert distilled(made, tmp_path / "out", "--do_train", init_checkpoint=narrow, **ways) == 0
    assert weights(tmp_path / "out")["head/teacher_states/kernel"].shape == (4, 8)
    steps = losses(tmp_path / "out")
    assert np.mean(steps[-5:]) < np.mean(steps[:5])
    with bert_tf.load(tmp_path / "out") as model:
        (expected,) = model.predict([("rain a", "the storm")])
        model.export("huggingface", tmp_path / "hf", pairs=True)
    with bert_tf.load(tmp_path / "hf") as exported:
        (prediction,) = exported.predict([("rain a", "the storm")])
    assert list(prediction.probabilities.values()) == pytest.approx(list(expected.probabilities.values()), abs=1e-6)


def test_rows_in_memory(made, tmp_path):
    rows = [(f"rain {word}", f"the {word}", label) for word, label in zip(HALVES[0] * 4, "01" * 8)]
    task = bert_tf.SentenceTask(train=rows, dev=rows)
    model = {"init_checkpoint": made.project.init_checkpoint, "max_seq_length": 12, "train_batch_size": 4}
    bert_tf.fine_tune(task, output_dir=tmp_path / "teacher", **model, **WAYS).close()
    small = {"student_layers": 2, "output_dir": tmp_path / "out", "train_batch_size": 4}
    with pytest.raises(BertError, match="give|task"):
        bert_tf.distill(tmp_path / "teacher", **small, **WAYS)
    with bert_tf.distill(tmp_path / "teacher", task, **small, **WAYS) as student:
        assert student.evaluate("dev").metrics.keys() >= {"accuracy"}
    assert reading.record(tmp_path / "out")["training"]["max_seq_length"] == 12
    others = [(*texts, f"x{label}") for *texts, label in rows]
    other = bert_tf.SentenceTask(train=others, dev=others)
    with pytest.raises(BertError, match="labels"):
        bert_tf.distill(tmp_path / "teacher", other, student_layers=2, output_dir=tmp_path / "other", **WAYS)


TEACHERS = {"task_name": "custom", "train_file": "a.csv", "dev_file": "d.csv", "text_a": "subject", "max_seq_length": 64}


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({"label_separator": ";"}, [*TEACHERS, "exclude_rows"]),
        ({"task_name": "custom", "problem": "classification"}, [*TEACHERS, "exclude_rows"]),
        ({"train_file": "more.csv"}, TEACHERS),
        ({"dev_file": "other.csv"}, [*TEACHERS, "exclude_rows"]),
        ({"data_dir": "folder"}, ["task_name", "text_a", "max_seq_length"]),
        ({"task_name": "MRPC"}, ["task_name", "max_seq_length"]),
        ({"problem": "regression"}, ["task_name", "max_seq_length"]),
    ],
)
def test_only_other_data_or_another_task_take_the_place_of_the_teachers(settings, kept):
    of_teacher = {**TEACHERS, "exclude_rows": "audit.csv"}
    assert list(command._without_other_data(of_teacher, settings)) == list(kept)


@pytest.mark.parametrize(("asked", "given"), [({}, False), ({"do_predict": True}, True), ({"test_file": "b.csv"}, True)])
def test_files_that_the_teacher_predicted_are_not_given_where_nothing_is_predicted(asked, given):
    of_teacher = {"task_name": "custom", "train_file": "a.csv", "test_file": "t.csv"}
    assert ("test_file" in command.made(of_teacher, {"teacher": "out", **asked}, None).given) is given


def test_corrections_of_the_teachers_rows_are_those_of_the_student():
    record = {
        "command": "python -m bert_tf fine-tune --task_name=RTE --exclude_rows=/audit.csv",
        "training": {"task_name": "RTE"},
    }
    assert command._settings_of(record) == {"task_name": "RTE", "exclude_rows": "/audit.csv"}


def test_a_teacher_whose_record_names_no_data_needs_a_flag_for_it(tmp_path):
    (tmp_path / "run_config.json").write_text(json.dumps({"command": "", "training": {"task_name": "RTE"}}))
    with pytest.raises(FlagError, match=r"its record names no data \(a fold, "):
        command.configured(teacher=str(tmp_path))
    for flag in ("task_name", "data_dir"):
        assert command.configured(teacher=str(tmp_path), **{flag: "RTE"}).data.task_name == "RTE"


@pytest.mark.parametrize("settings", [{}, {"task_name": "MRPC"}])
def test_a_pretrained_teacher_is_refused_before_anything_is_read(tmp_path, settings):
    (tmp_path / "run_config.json").write_text(json.dumps({"training": {"task_name": "Pretraining", "kind": "pretraining"}}))
    with pytest.raises(FlagError, match=rf"^{tmp_path}: masked words were learned, no labels; .*fill-mask"):
        command.configured(teacher=str(tmp_path), **settings)
    with pytest.raises(FlagError, match="^--task_name=Pretraining has a command of its own"):
        command.configured(teacher="no_run", task_name="pretraining")


def test_layers_are_spaced_evenly_and_end_with_the_last():
    assert DistillSettings(student_layers=3).layers(6) == (1, 3, 5)
    assert DistillSettings(student_layers=2).layers(6) == (2, 5)
    assert DistillSettings().layers(12) == (1, 3, 5, 7, 9, 11)
    assert DistillSettings(student_layers=4).layers(6) == (0, 2, 3, 5)
    assert DistillSettings(teacher_layers="0, 5").layers(6) == (0, 5)
    with pytest.raises(FlagError):
        DistillSettings(teacher_layers="first").layers(6)


def test_layers_keep_their_window_and_the_first_its_lack_of_a_norm():
    """Of ModernBERT-base: the first and each third layer see all."""
    teacher = BertConfig(9, num_hidden_layers=22, attention_window=128, whole_attention_every=3, norm_first=True)
    kind = teacher.kind_of_layer
    distillation = Distillation(DistillSettings("teacher"))
    distillation.teacher = SimpleNamespace(config=teacher)
    layers = distillation.layers(22)
    assert layers == (0, 2, 5, 6, 8, 11, 12, 14, 17, 18, 20)
    assert [kind(layer) for layer in layers] == [kind(number) for number in range(11)]
    assert DistillSettings(teacher_layers="0,4,5,9").layers(22, kind) == (0, 4, 5, 9)
    with pytest.raises(FlagError, match="^--teacher_layers=1,3,5: layers of the student would have another .*; give 0,2,5$"):
        DistillSettings(teacher_layers="1,3,5").layers(22, kind)

"""Fine-tuning and loading as calls."""

import concurrent.futures
import gc
import json
import logging
import shutil
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import tensorflow as tf

import bert_tf
from bert_tf.errors import CheckpointError, DataError, FlagError
from bert_tf.estimator import run_folder
from bert_tf.io import log_form
from bert_tf.library import loading
from bert_tf.runtime import devices
from bert_tf.runtime.settings import DeviceSettings
from bert_tf.training import fine_tune as job
from bert_tf.training.run_spec import configured
from tests.runtime.fake_machine import FakeMachine
from tests.tiny import HALVES

WEATHER, FOOD = ([(f"{word} came over", name) for word in half] for half, name in zip(HALVES, ("weather", "food")))


@pytest.fixture(autouse=True, scope="module")
def _plain():
    """No checkpoint or data of this machine."""
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("GLUE_DIR", "BERT_BASE_DIR"):
            patch.delenv(variable, raising=False)
        yield


@pytest.fixture(scope="module")
def settings(project):
    """Those of a run of seconds."""
    model = {name: getattr(project, name) for name in ("init_checkpoint", "vocab_file", "bert_config_file")}
    return {**model, "max_seq_length": 24, "train_batch_size": 8, "learning_rate": 0.003}


@pytest.fixture(scope="module")
def own(tmp_path_factory, settings):
    """A model of rows in memory, and its folder."""
    folder = tmp_path_factory.mktemp("own") / "out"
    task = bert_tf.SentenceTask(train=6 * [*WEATHER, *FOOD], dev=[WEATHER[0], FOOD[1]])
    with bert_tf.fine_tune(task, output_dir=folder, num_train_epochs=10, **settings) as model:
        yield model, folder


def graphs():
    gc.collect()
    return [held for held in gc.get_objects() if isinstance(held, tf.Graph)]


def test_a_task_of_a_name_does_what_the_command_does_and_leaves_no_graph_in_the_process(tmp_path, project, settings):
    folder, before = tmp_path / "out", graphs()  # these are kept
    model = bert_tf.fine_tune("mrpc", output_dir=folder, data_dir=project.data_dir, num_train_steps=3, **settings)
    results = json.loads((folder / "eval_results.json").read_text())
    with model:
        assert model.evaluate("dev").metrics["accuracy"] == pytest.approx(results["eval_accuracy"])
        assert model.checkpoint == str(folder / "model.ckpt-3")
    assert (folder / "report.html").is_file()
    del model
    assert len(graphs()) == len(before)


def test_a_model_of_named_files_is_evaluated_on_its_dev_file(tmp_path, settings, monkeypatch):
    """Also from another directory; it has no folder of data, which `evaluate` must not ask for."""
    files = {}
    monkeypatch.chdir(tmp_path)
    for name, rows in {"train_file": [*WEATHER, *FOOD], "dev_file": [WEATHER[0], FOOD[1]]}.items():
        path = Path(f"{name}.csv")
        path.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))
        files[name] = str(path)
    with bert_tf.fine_tune(
        "custom", output_dir=tmp_path / "out", num_train_steps=1, precision="bfloat16", **files, **settings
    ) as model:
        monkeypatch.chdir("/")
        assert len(model.evaluate("dev").predictions) == 2
        assert model.inference.precision == "bfloat16"  # of its training


def test_rows_in_memory_are_learned(own):
    model, folder = own
    assert [one.label for one in model.predict(["rain came over", "pear came over"])] == ["weather", "food"]
    assert model.evaluate().metrics["accuracy"] == 1.0
    assert json.loads((folder / "eval_results.json").read_text())["eval_accuracy"] == 1.0
    assert json.loads((folder / "run_config.json").read_text())["command"] == ""  # no command has these rows


def test_a_model_of_single_texts_refuses_pairs(own):
    for model in (own[0], bert_tf.load(own[1])):
        with pytest.raises(DataError, match="^rows: row 1: two texts, but the model was trained on single ones; give one"):
            model.predict(["rain", ("rain", "soup")])
        with pytest.raises(DataError, match="^rows: row 0: two texts, but"):
            model.evaluate([("rain", "soup", "food")])


def test_a_folder_is_loaded_with_what_it_has_learned(own):
    model, folder = own
    with bert_tf.load(folder, task="Custom", max_seq_length=None) as again:  # as the record says
        rows = ["rain came over", "pear came over"]
        assert again.labels == ("food", "weather")
        assert again.predict(rows) == model.predict(rows)
        with pytest.raises(DataError, match="dev: the task has no such rows"):
            again.evaluate("dev")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"num_gpus": 1, "precision": "bfloat16"}, {"num_gpus": 1}),
        ({"visible_gpus": "1", "native_kernels": False}, {"visible_gpus": "1"}),
        ({"device": "/GPU:1", "intra_op_threads": 2}, {"device": "/GPU:1", "intra_op_threads": 2}),
        ({"strategy": "one_device"}, {"strategy": "one_device"}),
        ({"strategy": "mirrored", "cross_device_ops": "nccl", "check_replicas_every_n_steps": 5}, {}),
    ],
)
def test_a_trained_model_is_loaded_on_the_devices_and_in_the_precision_of_its_training(own, tmp_path, monkeypatch, given, kept):
    used = []
    monkeypatch.setattr(loading.batch_machine, "inference", lambda settings, *_, **__: used.append(settings))
    spec = configured(task_name="MRPC", **given)
    loading.load_trained(own[1], spec, None, None)
    (machine,) = used
    assert machine.devices == DeviceSettings(**kept)
    assert (machine.precision, machine.native_kernels) == (spec.speed.precision, spec.speed.native_kernels)
    fake = FakeMachine(tmp_path, monkeypatch)
    fake.tensorflow_sees({}, {})
    fake.accepts_settings()
    seen = []
    for asked in (spec.devices, machine.devices):  # TensorFlow refuses other ones the second time
        devices.configure(devices.narrowed(asked, {}), {})
        seen.append(tf.config.get_visible_devices("GPU"))
    assert seen[0] == seen[1]


def test_a_program_without_handlers_stays_so(own, monkeypatch, tmp_path):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    with bert_tf.load(own[1], data_dir=tmp_path) as model:
        model.predict(["rain came over"])
        with pytest.raises(DataError):
            model.evaluate("dev")
    bert_tf.evaluate(own[1], task_name="MRPC", output_dir=tmp_path / "table")  # logs what it does
    assert logging.getLogger().handlers == []


def test_the_same_call_again_has_nothing_left_to_train_and_other_rows_are_another_run(own, settings, caplog):
    _, folder = own
    task = bert_tf.SentenceTask(train=6 * [*WEATHER, *FOOD], dev=[WEATHER[0], FOOD[1]])
    caplog.set_level("INFO")
    bert_tf.fine_tune(task, output_dir=folder, num_train_epochs=10, **settings).close()
    assert "nothing left to train" in caplog.text
    with pytest.raises(bert_tf.BertError, match="holds another run .*other training rows"):
        bert_tf.fine_tune(bert_tf.SentenceTask(train=[*WEATHER, *FOOD]), output_dir=folder, num_train_epochs=10, **settings)


def test_how_rows_in_memory_are_decoded_is_in_the_record_and_without_dev_rows_nothing_is_evaluated(tmp_path, settings):
    task = bert_tf.TagTask(train=[(["rain", "storm"], ["B-X", "O"])], constrained_decoding=True)
    bert_tf.fine_tune(task, output_dir=tmp_path, num_train_steps=1, **settings).close()
    record = run_folder.trained(tmp_path)
    assert (record["problem"], record["constrained_decoding"]) == ("tags", True)
    assert not (tmp_path / "eval_results.json").exists()


def test_ctrl_c_is_a_keyboard_interrupt(monkeypatch):
    monkeypatch.setattr(job, "fine_tune", lambda *_, **__: SimpleNamespace(stopped_by=signal.SIGINT, step=7))
    with pytest.raises(KeyboardInterrupt, match="stopped at step 7; the same call continues there"):
        bert_tf.fine_tune("MRPC")


def test_weights_without_a_record_or_of_an_unknown_task_need_one(own, tmp_path):
    folder = shutil.copytree(own[1], tmp_path / "copy")
    record = json.loads((folder / "run_config.json").read_text())
    record["training"]["task_name"] = "mine"
    (folder / "run_config.json").write_text(json.dumps(record))
    with pytest.raises(CheckpointError, match="trained on mine, which is not a known task; give task="):
        bert_tf.load(folder)
    (folder / "run_config.json").unlink()
    with pytest.raises(CheckpointError, match="names its task; give task="):
        bert_tf.load(folder, max_seq_length=24)
    with bert_tf.load(folder, task="MRPC", max_seq_length=24) as model:
        assert model.labels == ("0", "1")


NO_FAMILY = SimpleNamespace(name="mine", family=SimpleNamespace(kind="vectors"))


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (5, r"task is a int: give a name, as MRPC, .* SentenceTask\(train=rows\)"),
        ([("rain", "weather")], r"task is a list: give a name, as MRPC, .* SentenceTask\(train=rows\)"),
        (NO_FAMILY, "mine: no family of the kind 'vectors' is known; register it"),
    ],
)
def test_what_is_no_task_is_one_line(task, message):
    with pytest.raises(FlagError, match=message):
        bert_tf.fine_tune(task)


@pytest.mark.parametrize("given", [{"labels": "food,weather"}, {"train_file": "rows.tsv"}, {"task_name": "MRPC"}])
def test_what_a_task_says_itself_is_not_said_again(given):
    task = bert_tf.SentenceTask(train=[*WEATHER, *FOOD])
    with pytest.raises(FlagError, match=f"--{next(iter(given))} is for tasks given by name; .*: leave it out"):
        bert_tf.fine_tune(task, **given)


@pytest.mark.parametrize(
    ("given", "seen"), [({}, ["a"]), ({"log_form": "published"}, ["b"]), ({"verbosity": 0}, ["a"]), ({"verbosity": -1}, [])]
)
def test_the_log_is_as_absl_says_or_as_a_call_asks(monkeypatch, caplog, tmp_path, given, seen):
    def fine_tune(*_, **__):
        log_form.short.info("a")
        log_form.published.info("b")
        raise DataError("enough", "rows")

    monkeypatch.setattr(job, "fine_tune", fine_tune)
    before = log_form.log.level
    log_form.log.setLevel(logging.INFO)  # as absl.logging.set_verbosity does
    try:
        with pytest.raises(DataError):
            bert_tf.fine_tune("MRPC", output_dir=tmp_path, **given)
        assert log_form.log.level == logging.INFO
    finally:
        log_form.log.setLevel(before)
    assert caplog.messages == seen


def test_messages_of_tensorflow_are_not_for_a_call(tmp_path):
    with pytest.raises(FlagError, match="^--verbosity=1: only commands show TensorFlow's messages; in a program, give 0 or -1"):
        bert_tf.fine_tune("MRPC", output_dir=tmp_path, verbosity=1)


def test_threads_train_in_turns(monkeypatch, tmp_path):
    running, together = threading.Lock(), []

    def fine_tune(*_, **__):
        together.append(not running.acquire(blocking=False))
        time.sleep(0.05)
        running.release()
        raise DataError("enough", "rows")

    monkeypatch.setattr(job, "fine_tune", fine_tune)
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        calls = [threads.submit(bert_tf.fine_tune, "MRPC", output_dir=tmp_path) for _ in range(2)]
    assert [type(call.exception()) for call in calls] == [DataError] * 2
    assert together == [False, False]

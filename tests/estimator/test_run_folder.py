from __future__ import annotations

import json
import threading

import pytest

from bert_tf.errors import OutputError
from bert_tf.estimator.run_folder import await_claim, claim, load_record

RECORD = {"training": {"seed": 1, "learning_rate": 2e-5, "labels": ("0", "1")}, "command": "python run_classifier.py"}


def other(**training):
    return {**RECORD, "training": {**RECORD["training"], **training}}


@pytest.fixture
def claimed(tmp_path):
    claim(tmp_path / "out", RECORD, overwrite=False)
    return tmp_path / "out"


def test_a_new_folder_is_made_with_its_parents(tmp_path):
    claim(tmp_path / "a" / "b", RECORD, overwrite=False)
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["run_config.json"]


def test_the_record_is_read_back(claimed):
    assert load_record(claimed) == json.loads(json.dumps(RECORD))


def test_the_record_is_for_people_too(claimed):
    assert '  "command": "python run_classifier.py",\n' in (claimed / "run_config.json").read_text()


def test_a_folder_without_a_run_has_no_record(tmp_path):
    assert load_record(tmp_path) is None
    assert load_record(tmp_path / "missing") is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"training": 3}', b"\xff\xfe", b"null"])
def test_a_damaged_record_is_named(claimed, content):
    (claimed / "run_config.json").write_bytes(content)
    with pytest.raises(OutputError, match=r"run_config.json: unreadable record of a run; restore it, or train with --over"):
        load_record(claimed)


def test_the_same_run_may_come_again(claimed):
    (claimed / "model.ckpt-5.index").touch()
    claim(claimed, RECORD, overwrite=False)
    assert (claimed / "model.ckpt-5.index").exists()


def test_what_does_not_determine_the_run_may_change(claimed):
    claim(claimed, {**RECORD, "command": "another"}, overwrite=False)
    assert load_record(claimed)["command"] == "another"


def by(machine):
    return {**RECORD, "machine": machine}


@pytest.mark.parametrize("trained", [True, False])
@pytest.mark.parametrize(
    ("before", "now", "kinds"),
    [
        ({"native_kernels": True}, False, ("native kernels", "TensorFlow's own")),
        ({"native_kernels": False}, True, ("TensorFlow's own", "native kernels")),
        ({}, True, ("TensorFlow's own", "native kernels")),  # of an earlier version
        ({"native_kernels": True}, True, None),
        ({}, False, None),
        ("damaged", False, None),
    ],
)
def test_a_run_that_goes_on_with_other_kernels_says_so(claimed, caplog, trained, before, now, kinds):
    caplog.set_level("INFO", logger="absl")
    claim(claimed, by(before), overwrite=False)
    if trained:
        (claimed / "model.ckpt-5.index").touch()
    caplog.clear()
    claim(claimed, by({"native_kernels": now}), overwrite=False)
    line = kinds and f"{claimed}: begun with {kinds[0]}, goes on with {kinds[1]}: the last bits of its numbers differ"
    assert caplog.messages == ([line] if trained and line else [])


def computed_by(tensorflow):
    return {**RECORD, "versions": {"tensorflow": tensorflow}}


def test_a_run_that_goes_on_with_another_tensorflow_says_so_and_keeps_the_versions_before(claimed, caplog):
    caplog.set_level("INFO", logger="absl")
    for version in ("2.14.0", "2.15.1", "2.15.1", "2.21.0", "2.21.0"):
        claim(claimed, computed_by(version), overwrite=False)
        (claimed / "model.ckpt-5.index").touch()
    line = f"{claimed}: last opened with TensorFlow {{}}, now with {{}}: later steps may round differently"
    assert caplog.messages == [line.format("2.14.0", "2.15.1"), line.format("2.15.1", "2.21.0")]
    versions = load_record(claimed)["versions"]
    assert versions == {"tensorflow": "2.21.0", "earlier_tensorflow": ["2.14.0", "2.15.1"]}


def test_before_the_first_checkpoint_another_tensorflow_begins_the_run(claimed, caplog):
    caplog.set_level("INFO", logger="absl")
    for version in ("2.15.1", "2.21.0"):
        claim(claimed, computed_by(version), overwrite=False)
    assert (caplog.messages, load_record(claimed)["versions"]) == ([], {"tensorflow": "2.21.0"})


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"task_name": "SQuAD", "kind": "span"}, "holds a run of another task (None, not SQuAD);"),
        ({"kind": "tags"}, "holds a run of another kind (None, not tags);"),
    ],
)
def test_of_another_task_nothing_else_is_named(claimed, more, said):
    with pytest.raises(OutputError) as caught:
        claim(claimed, other(seed=2, **more), overwrite=False)
    assert said in str(caught.value)
    assert "seed" not in str(caught.value)


def test_every_difference_is_named(claimed):
    with pytest.raises(OutputError) as caught:
        claim(claimed, other(seed=2, learning_rate=3e-5), overwrite=False)
    assert "holds another run (learning_rate was 2e-05, now 3e-05; seed was 1, now 2);" in str(caught.value)
    assert str(caught.value).endswith("name another --output_dir, or add --overwrite_output_dir to delete it")


def test_a_run_that_is_to_be_longer_says_what_to_do(tmp_path):
    claim(tmp_path, other(num_train_steps=40), overwrite=False)
    with pytest.raises(OutputError) as caught:
        claim(tmp_path, other(num_train_steps=120), overwrite=False)
    assert "holds another run (num_train_steps was 40, now 120); a run cannot be made longer" in str(caught.value)
    assert f"Start a new run from its encoder (--init_checkpoint={tmp_path} --output_dir=NEW), name" in str(caught.value)
    with pytest.raises(OutputError) as caught:
        claim(tmp_path, other(num_train_steps=120, seed=2), overwrite=False)
    assert "longer" not in str(caught.value)


@pytest.mark.parametrize("earlier", [True, False])
def test_a_setting_that_one_of_two_runs_lacks_is_a_difference(tmp_path, earlier):
    runs = [RECORD, other(new="x")]
    claim(tmp_path, runs[earlier], overwrite=False)
    with pytest.raises(OutputError, match="new was x, now None" if earlier else "new was None, now x"):
        claim(tmp_path, runs[not earlier], overwrite=False)


def test_a_refused_run_leaves_the_folder_as_it_was(claimed):
    before = (claimed / "run_config.json").read_bytes()
    with pytest.raises(OutputError):
        claim(claimed, other(seed=2), overwrite=False)
    assert [(path.name, path.read_bytes()) for path in claimed.iterdir()] == [("run_config.json", before)]


def test_checkpoints_of_an_unknown_run_are_not_touched(tmp_path):
    (tmp_path / "model.ckpt-5.index").touch()
    with pytest.raises(OutputError, match="holds checkpoints of an unknown run; name another folder or add --overwrite"):
        claim(tmp_path, RECORD, overwrite=False)
    assert (tmp_path / "model.ckpt-5.index").exists()


@pytest.mark.parametrize(
    "name",
    [
        *("checkpoint", "model.ckpt-5.index", "model.ckpt-5.data-00000-of-00001", "graph.pbtxt", "metrics.jsonl"),
        *("events.out.tfevents.1.host", "eval_results.txt", "eval_results.json", "predictions.tsv", "test_results.tsv"),
        *("vocab.txt", "bert_config.json", "eval/events.out.tfevents.1.host", "features/MRPC-train-1.safetensors"),
        *(
            "evaluations.jsonl",
            "best/model.ckpt-5.index",
            "predictions_mismatched.tsv",
            "submission/MNLI-m.tsv",
            "submission.zip",
        ),
        *("AX/predictions_diagnostic.tsv", "XNLI-sw/eval_results.json", "AX/submission/AX.tsv"),
        *("memory_trace_step5.txt", "live_memory_step5.tsv", "profile/phases.json", "timing.json", "report.html"),
    ],
)
def test_overwriting_deletes_what_a_run_writes(claimed, name):
    (claimed / name).parent.mkdir(exist_ok=True, parents=True)
    (claimed / name).touch()
    claim(claimed, other(seed=2), overwrite=True)
    assert [path.name for path in claimed.iterdir()] == ["run_config.json"]
    assert load_record(claimed)["training"]["seed"] == 2


@pytest.mark.parametrize(
    "name", ["notes.txt", "model.txt", "data/train.tsv", "bert_model.ckpt.index", "seed-1/eval_results.json"]
)
def test_overwriting_keeps_what_people_put_there(claimed, name):
    (claimed / name).parent.mkdir(exist_ok=True)
    (claimed / name).write_text("mine")
    claim(claimed, other(seed=2), overwrite=True)
    assert (claimed / name).read_text() == "mine"


def test_overwriting_mends_a_damaged_record(claimed):
    (claimed / "run_config.json").write_text("{")
    claim(claimed, RECORD, overwrite=True)
    assert load_record(claimed)["training"]["seed"] == 1


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path):
    (tmp_path / "out").touch()
    with pytest.raises(OutputError, match="out: cannot write: File exists"):
        claim(tmp_path / "out", RECORD, overwrite=False)


def test_overwriting_continues_the_same_run(tmp_path):
    record = {"training": {"seed": 1}}
    claim(tmp_path, record, overwrite=False)
    (tmp_path / "model.ckpt-3.index").touch()
    claim(tmp_path, record, overwrite=True)
    assert (tmp_path / "model.ckpt-3.index").exists()


def test_overwriting_leaves_alone_what_no_run_wrote(tmp_path):
    (tmp_path / "vocab.txt").write_text("published")
    claim(tmp_path, {"training": {"seed": 1}}, overwrite=True)
    assert (tmp_path / "vocab.txt").read_text() == "published"


def test_another_machine_goes_on_once_the_chief_has_claimed_the_folder(tmp_path):
    folder = tmp_path / "out"
    claim(folder, RECORD, overwrite=False)  # an earlier run
    chief = threading.Timer(0.5, claim, (folder, other(seed=2)), {"overwrite": True})
    chief.start()
    await_claim(folder, other(seed=2), patience_s=20)
    assert load_record(folder)["training"]["seed"] == 2
    chief.join()


@pytest.mark.parametrize(
    ("held", "said"),
    [(None, "holds no run"), (RECORD, "holds another run (seed was 1, now 2)")],
    ids=["nothing", "another run"],
)
def test_a_chief_with_other_flags_or_another_folder_is_not_waited_for_forever(tmp_path, held, said):
    if held:
        claim(tmp_path / "out", held, overwrite=False)
    with pytest.raises(OutputError) as caught:
        await_claim(tmp_path / "out", other(seed=2), patience_s=0.3)
    assert str(caught.value).startswith(
        f"{tmp_path / 'out'}: {said}, and the chief has not begun this one within 0 s; give all"
    )

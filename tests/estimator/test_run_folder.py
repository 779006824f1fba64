import contextlib
import json
import threading
from unittest import mock

import pytest

from bert_tf import run_layout
from bert_tf.errors import OutputError
from bert_tf.estimator import run_folder
from bert_tf.estimator.run_folder import LEARNED, await_claim, claim, learned_digest, load_record
from bert_tf.tasks.sentence.family import SentenceFamily

RECORD = {"training": {"seed": 1, "learning_rate": 2e-5, "labels": ("0", "1")}, "command": "python run_classifier.py"}


def other(**training):
    return {**RECORD, "training": {**RECORD["training"], **training}}


@pytest.fixture
def claimed(tmp_path):
    claim(tmp_path / "out", RECORD, overwrite=False)
    return tmp_path / "out"


def test_a_new_folder_is_made_with_a_record_which_is_for_people_too(tmp_path):
    folder = tmp_path / "a" / "b"
    assert load_record(folder) is None
    claim(folder, RECORD, overwrite=False)
    assert [path.name for path in folder.iterdir()] == ["run_config.json"]
    assert load_record(folder) == json.loads(json.dumps(RECORD))
    assert '  "command": "python run_classifier.py",\n' in (folder / "run_config.json").read_text()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"training": 3}', b"\xff\xfe", b"null"])
def test_a_damaged_record_is_named(claimed, content):
    (claimed / "run_config.json").write_bytes(content)
    with pytest.raises(OutputError, match=r"run_config.json: unreadable record of a run; restore it, or train with --over"):
        load_record(claimed)
    claim(claimed, RECORD, overwrite=True)
    assert load_record(claimed)["training"]["seed"] == 1


def learned(**changed):
    values = {"kind": "classification", "labels": ["0", "1"], "do_lower_case": True, "task_name": "MRPC"}
    return {"training": {**values, **changed}, LEARNED: learned_digest(values)}


@pytest.mark.parametrize("changed", [{"labels": ["1", "0"]}, {"labels": ["0", "x"]}, {"do_lower_case": False}])
def test_labels_are_those_that_the_head_has_learned(tmp_path, changed):
    (tmp_path / "run_config.json").write_text(json.dumps(learned()))
    assert load_record(tmp_path)["training"]["labels"] == ["0", "1"]
    (tmp_path / "run_config.json").write_text(json.dumps(learned(**changed)))
    with pytest.raises(OutputError, match="run_config.json: kind, labels or do_lower_case differ from the training; restore"):
        load_record(tmp_path)


SIMILAR = {"task_name": "STS-B", "labels": [], "kind": "similarity"}


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({"training": SIMILAR}, "'highest_score' missing"),
        ({"training": {**SIMILAR, "kind": "contrastive"}}, "'temperature' missing"),
        ({"training": {**SIMILAR, "kind": "pretraining"}}, "'nsp' missing"),
        ({"training": {"ema": "0.999"}}, "ema is '0.999'"),
        ({"training": {}, "schedule": {"steps": "100"}}, "schedule is \"{'steps': '100'}\""),
        ({"training": {}, "schedule": [100]}, r"schedule is '\[100\]'"),
    ],
)
def test_a_record_that_lacks_what_is_read_is_named(tmp_path, record, problem):
    (tmp_path / "run_config.json").write_text(json.dumps(record))
    with pytest.raises(OutputError, match=f"^{tmp_path}/run_config.json: damaged record of a run: {problem}; restore it, or"):
        load_record(tmp_path)


@pytest.mark.parametrize("error", [ValueError("margin below 0"), TypeError("margin"), AttributeError("margin")])
def test_a_record_that_a_family_cannot_read_is_named(tmp_path, monkeypatch, error):
    monkeypatch.setattr(SentenceFamily, "from_record", mock.Mock(side_effect=error))
    (tmp_path / "run_config.json").write_text(json.dumps(learned()))
    with pytest.raises(OutputError, match="run_config.json: damaged record of a run: .*margin.*; restore it, or"):
        load_record(tmp_path)


def test_a_label_stands_once_also_in_older_records(tmp_path):
    (tmp_path / "run_config.json").write_text(json.dumps({"training": {**learned()["training"], "labels": ["0", "0"]}}))
    with pytest.raises(OutputError, match="damaged record of a run: labels is "):
        load_record(tmp_path)


def test_the_results_of_a_run_that_is_overwritten_stay_in_the_record(tmp_path):
    def claimed_with(**training):
        claim(tmp_path, other(task_name="MRPC", kind="classification", **training), overwrite=True)
        return load_record(tmp_path).get("replaced")

    assert claimed_with() is None
    kept = {"accuracy": 0.5, "examples": 8, "examples_sha256": "1f"}
    (tmp_path / run_layout.RESULTS).write_text(json.dumps({"splits": {"dev": {**kept, "labels": ["0"]}}}))
    assert claimed_with() is None
    replaced = {"task_name": "MRPC", "splits": {"dev": kept}}
    assert claimed_with(seed=2) == claimed_with(seed=2) == replaced
    for damaged in ("{", "[]", "{}", '{"splits": 3}'):
        (tmp_path / run_layout.RESULTS).write_text(damaged)
        assert claimed_with(seed=len(damaged) + 2) is None


@pytest.mark.parametrize("overwrite", [False, True])
def test_the_same_run_may_come_again_with_what_does_not_determine_it(claimed, overwrite):
    (claimed / "model.ckpt-5.index").touch()
    run_folder.add_to_record(claimed, {"schedule": {"steps": 5}})
    claim(claimed, {**RECORD, "command": "another"}, overwrite=overwrite)
    assert load_record(claimed) == {**load_record(claimed), "command": "another", "schedule": {"steps": 5}}
    assert (claimed / "model.ckpt-5.index").exists()


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
    claim(claimed, {**RECORD, "machine": before}, overwrite=False)
    if trained:
        (claimed / "model.ckpt-5.index").touch()
    caplog.clear()
    claim(claimed, {**RECORD, "machine": {"native_kernels": now}}, overwrite=False)
    line = kinds and f"{claimed}: started with {kinds[0]}, continues with {kinds[1]}: results differ in the last bits"
    assert caplog.messages == ([line] if trained and line else [])


def test_a_run_that_goes_on_with_another_tensorflow_says_so_and_keeps_the_versions_before(claimed, caplog):
    caplog.set_level("INFO", logger="absl")
    for version in ("2.13.0", "2.14.0", "2.15.1", "2.15.1", "2.21.0", "2.21.0"):
        claim(claimed, {**RECORD, "versions": {"tensorflow": version}}, overwrite=False)
        if version != "2.13.0":  # before the first checkpoint another one begins the run
            (claimed / "model.ckpt-5.index").touch()
    line = f"{claimed}: last opened with TensorFlow {{}}, now with {{}}: later steps may round differently"
    assert caplog.messages == [line.format("2.14.0", "2.15.1"), line.format("2.15.1", "2.21.0")]
    versions = load_record(claimed)["versions"]
    assert versions == {"tensorflow": "2.21.0", "earlier_tensorflow": ["2.14.0", "2.15.1"]}
    run_folder.add_to_record(claimed, {"versions": {"tensorflow": "2.22.0", "earlier_tensorflow": 2}})
    claim(claimed, {**RECORD, "versions": {"tensorflow": "2.23.0"}}, overwrite=False)
    assert load_record(claimed)["versions"]["earlier_tensorflow"] == ["2.22.0"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seed": 2, "learning_rate": 3e-5}, "another run (learning_rate was 2e-05, now 3e-05; seed was 1, now 2)"),
        ({"new": "x"}, "another run (new was None, now x)"),
        (
            {"train_examples_sha256": "3f", "bert_config": {"a": 1}, "vocabulary_sha256": "4e"},
            "another run (another configuration of the model; other training rows; another vocabulary)",
        ),
        # Of another task nothing else is named.
        ({"task_name": "SQuAD", "kind": "span", "seed": 2}, "a run of another task (None, not SQuAD)"),
        ({"kind": "tags", "seed": 2}, "a run of another kind (None, not tags)"),
    ],
)
def test_another_run_is_refused_with_every_difference_and_nothing_is_changed(claimed, changes, said):
    before = (claimed / "run_config.json").read_bytes()
    with pytest.raises(OutputError) as caught:
        claim(claimed, other(**changes), overwrite=False)
    remedy = "name another --output_dir, or add --overwrite_output_dir to delete it"
    assert str(caught.value) == f"{claimed}: holds {said}; {remedy}"
    assert [(path.name, path.read_bytes()) for path in claimed.iterdir()] == [("run_config.json", before)]


def test_a_run_that_is_extended_is_the_same_run(tmp_path):
    claim(tmp_path, other(num_train_steps=40), overwrite=False)
    claim(tmp_path, other(num_train_steps=120, extended_at=[40]), overwrite=False)
    claim(tmp_path, other(num_train_steps=130, extended_at=[40, 120]), overwrite=False)
    for changes in ({"extended_at": [40]}, {}, {"extended_at": [40, 120, 130], "seed": 2}):
        with pytest.raises(OutputError, match="holds another run"):
            claim(tmp_path, other(**{"num_train_steps": 140, **changes}), overwrite=False)


def test_a_run_that_is_to_be_shorter_says_what_can_be_done(tmp_path):
    claim(tmp_path, other(num_train_steps=120), overwrite=False)
    with pytest.raises(OutputError) as caught:
        claim(tmp_path, other(num_train_steps=40), overwrite=False)
    assert "(num_train_steps was 120, now 40); a run can be trained longer, not shorter; name another" in str(caught.value)
    with pytest.raises(OutputError) as caught:
        claim(tmp_path, other(num_train_steps=40, seed=2), overwrite=False)
    assert "longer" not in str(caught.value)


def test_neither_checkpoints_of_an_unknown_run_nor_a_file_are_touched(tmp_path):
    (tmp_path / "out").touch()
    with pytest.raises(OutputError, match="out: cannot write: File exists"):
        claim(tmp_path / "out", RECORD, overwrite=False)
    (tmp_path / "model.ckpt-5.index").touch()
    with pytest.raises(OutputError, match="holds checkpoints of an unknown run; name another folder or add --overwrite"):
        claim(tmp_path, RECORD, overwrite=False)
    assert (tmp_path / "model.ckpt-5.index").exists()


WRITTEN = """checkpoint model.ckpt-5.index model.ckpt-5.data-00000-of-00001 graph.pbtxt metrics.jsonl
    events.out.tfevents.1.host eval_results.txt eval_results.json predictions.tsv test_results.tsv vocab.txt bert_config.json
    eval/events.out.tfevents.1.host features/RTE-dev-0123456789abcdef.safetensors features/teacher-0123456789abcdef/states.npy
    evaluations.jsonl best/run_config.json best/model.ckpt-5.index best/vocab.txt ema/model.ckpt-5.index
    optimizer/moments-5.index predictions_mismatched.tsv submission/MNLI-m.tsv submission.zip AX/predictions_diagnostic.tsv
    XNLI-sw/eval_results.json AX/submission/AX.tsv memory_trace_step5.txt live_memory_step5.tsv profile/phases.json
    profile/plugins/a.xplane.pb tracking/mlflow.json tracking/tensorboard/events.out.tfevents.1.host timing.json
    report.html""".split()
MINE = """notes.txt model.txt data/train.tsv bert_model.ckpt.index seed-1/eval_results.json profile/me.json eval/mine.txt
    features/train.safetensors features/teacher-notes/1.txt optimizer/adam.py tracking/notes.md tracking/wandb
    ema/vocab.txt""".split()


def test_overwriting_deletes_what_a_run_writes_and_keeps_what_people_put_there(claimed):
    for name in (*WRITTEN, *MINE):
        (claimed / name).parent.mkdir(exist_ok=True, parents=True)
        (claimed / name).write_text(name)
    claim(claimed, other(seed=2), overwrite=True)
    left = {str(path.relative_to(claimed)) for path in claimed.rglob("*") if path.is_file()}
    assert left == {"run_config.json", *MINE}
    folders = {parent for name in MINE for parent in (claimed / name).parents if claimed in parent.parents}
    assert {path for path in claimed.rglob("*") if path.is_dir()} == folders
    assert load_record(claimed)["training"]["seed"] == 2


def test_another_machine_goes_on_once_the_chief_has_claimed_the_folder(tmp_path):
    folder = tmp_path / "out"
    claim(folder, RECORD, overwrite=False)  # an earlier run
    chief = threading.Timer(0.5, claim, (folder, other(seed=2)), {"overwrite": True})
    chief.start()
    await_claim(folder, other(seed=2), patience_s=20)
    assert load_record(folder)["training"]["seed"] == 2
    chief.join()


def on(replicas, record):
    return {**record, "machine": {"replicas": replicas}}


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (None, "holds no run"),
        (on(4, RECORD), "holds another run (seed was 1, now 2)"),
        (on(2, other(seed=2)), "holds another run (replicas was 2, now 4)"),
    ],
    ids=["nothing", "another run", "other GPUs"],
)
def test_a_chief_with_other_flags_or_another_folder_is_not_waited_for_forever(tmp_path, held, said):
    if held:
        claim(tmp_path / "out", held, overwrite=False)
    with pytest.raises(OutputError) as caught:
        await_claim(tmp_path / "out", on(4, other(seed=2)), patience_s=0.3)
    assert str(caught.value).startswith(
        f"{tmp_path / 'out'}: {said}, and the chief has not started this one within 0 s; give all"
    )


@pytest.mark.parametrize(
    ("name", "is_own"),
    [
        ("run_config.json", True),
        ("metrics.jsonl", True),
        ("model.ckpt-9.index", True),
        ("eval_results.txt", True),
        ("words.jsonl", False),
    ],
)
def test_an_output_does_not_replace_what_training_left(tmp_path, name, is_own):
    run_layout.refuse_own_file(str(tmp_path / name))  # of no run
    (tmp_path / "run_config.json").write_text("{}")
    with pytest.raises(OutputError, match="is a file of the run there") if is_own else contextlib.nullcontext():
        run_layout.refuse_own_file(str(tmp_path / name))


@pytest.mark.parametrize("name", ["best", "features", "tracking", "corpus", "metrics.jsonl"])
def test_a_run_does_not_write_through_links_of_its_folder(claimed, tmp_path, name):
    (tmp_path / "mine").mkdir()
    (claimed / name).symlink_to(tmp_path / "mine")
    with pytest.raises(OutputError, match=f"{name}: is a link to .*/mine, where nothing is written; delete the link"):
        claim(claimed, RECORD, overwrite=True)
    (claimed / name).unlink()
    (tmp_path / "link").symlink_to(claimed)
    claim(tmp_path / "link", RECORD, overwrite=False)


@pytest.mark.parametrize("name", ["best", "ema", "average"])
def test_a_model_of_a_run_that_another_process_writes_is_not_written(claimed, name):
    folder = claimed / name
    folder.mkdir()
    (folder / "run_config.json").write_bytes((claimed / "run_config.json").read_bytes())
    half = folder / "model.ckpt-8_temp"
    with run_folder.writing(claimed):
        half.mkdir()
        with pytest.raises(OutputError, match="has been writing to it"), run_folder.writing_where_a_run_is([str(folder)]):
            pass
        assert half.is_dir()
    with run_folder.writing_where_a_run_is([str(folder)]):
        assert not half.exists()

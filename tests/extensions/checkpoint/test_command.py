"""The checkpoint command as people type it, on runs that were never trained."""

import functools
import json
import os
import resource
import shutil

import numpy as np
import pytest
import safetensors.numpy

import bert_tf
from bert_tf.checkpoints.huggingface import read_weights
from bert_tf.checkpoints.reader import CheckpointReader, write_checkpoint
from bert_tf.config import BertConfig
from bert_tf.errors import CheckpointError, OutputError
from bert_tf.estimator import run_folder
from tests import huggingface
from tests.batch.runs import ALBERT, changed, decide, write_run
from tests.extensions import evaluated_run
from tests.extensions.evaluated_run import assert_refused, files
from tests.tiny import held


@pytest.fixture(scope="module")
def run(tmp_path_factory, project):
    """Not to be changed."""
    return evaluated_run.write(tmp_path_factory.mktemp("runs") / "run", project)


@pytest.fixture
def call(called):
    return functools.partial(called, "checkpoint")


def test_inspect_sums_up_by_part_and_names_what_is_not_finite(run, tmp_path, call):
    status, out, _ = call("inspect", run / "model.ckpt-60", "--format=json")
    printed = json.loads(out)
    assert status == 0
    assert (printed["layout"], printed["step"], printed["finite"]) == ("TensorFlow", 60, True)
    parts = {part["name"]: part for part in printed["parts"]}
    assert list(parts) == ["embeddings", "layer 0", "pooler", "head", "optimizer", "other"]
    assert (parts["optimizer"]["variables"], parts["optimizer"]["norm"]) == (3, pytest.approx(6**0.5))
    weights = held(run / "model.ckpt-60")
    for variable in printed["variables"]:
        array = weights[variable["name"]].astype(np.float64)
        assert variable["norm"] == pytest.approx(np.linalg.norm(array))
        assert (variable["lowest"], variable["highest"]) == (array.min(), array.max())
    write_checkpoint(tmp_path / "spoilt", {**weights, "output_bias": np.array([np.nan, -np.inf], np.float32)})
    assert call("inspect", tmp_path / "spoilt")[1].splitlines()[-1] == "not finite: output_bias"
    names = [*(f"bert/encoder/layer_{number}/x" for number in range(11)), "beta1_power"]
    write_checkpoint(tmp_path / "deep", dict.fromkeys(names, np.ones(1, np.float32)))
    groups = [group.name for group in bert_tf.inspect_checkpoint(tmp_path / "deep").groups]
    assert groups == [*(f"layer {number}" for number in range(11)), "optimizer"]


def test_every_name_of_a_checkpoint_and_hugging_faces_layout_are_read(run, tmp_path):
    assert [bert_tf.inspect_checkpoint(run / name).step for name in ("", "model.ckpt-60", "model.ckpt-60.index")] == [60] * 3
    copy = shutil.copytree(run, tmp_path / "run")
    shutil.copytree(run, copy / "model.ckpt-40")  # a folder does not hide a checkpoint of its name
    assert bert_tf.inspect_checkpoint(copy / "model.ckpt-40").step == 40
    with bert_tf.load(copy / "model.ckpt-40") as model:
        assert model.checkpoint == str(copy / "model.ckpt-40")
    inspected = bert_tf.inspect_checkpoint(huggingface.write_folder(tmp_path / "hf"))
    assert (inspected.layout, inspected.step) == ("Hugging Face", None)
    assert [group.name for group in inspected.groups] == ["embeddings", "layer 0", "layer 1", "pooler"]


def test_diff_says_how_far_each_layer_moved_and_what_one_side_alone_has(run, tmp_path, call):
    weights = held(run / "model.ckpt-20")
    weights["bert/pooler/dense/bias"] *= 3
    write_checkpoint(tmp_path / "moved", weights)
    status, out, _ = call("diff", run / "model.ckpt-20", tmp_path / "moved", "--format=json")
    printed = json.loads(out)
    assert (status, [part["name"] for part in printed["parts"] if not part["same"]]) == (1, ["pooler"])
    moved = printed["variables"][0]
    assert (moved["name"], moved["relative"], moved["cosine"]) == ("bert/pooler/dense/bias", *map(pytest.approx, (2.0, 1.0)))
    assert call("diff", run, run / "model.ckpt-60")[0] == 0
    weights = held(run / "model.ckpt-60")
    weights["output_weights"], weights["new"] = np.ones([3, 8], np.float32), np.ones(1)
    write_checkpoint(tmp_path / "other", {name: value for name, value in weights.items() if "/adam" not in name})
    printed = bert_tf.diff_checkpoints(run / "model.ckpt-60", tmp_path / "other")
    assert (printed.only_a, printed.only_b) == (("output_bias/adam_m", "output_bias/adam_v"), ("new",))
    assert printed.misshaped == {"output_weights": ((2, 8), (3, 8))}
    assert "another shape: output_weights [2, 8] in A, [3, 8] in B" in str(printed)


@pytest.mark.parametrize("layout", ["hf", "tf2-names", "tf1"])
def test_a_model_is_the_same_in_every_layout_and_back(run, tmp_path, layout, call):
    written = bert_tf.convert_checkpoint(run, to=layout, output=tmp_path / "there")
    assert written.left_out == (("output_bias", "output_weights") if layout == "tf2-names" else ())
    assert call("convert", tmp_path / "there", "--to=tf1", f"--output={tmp_path / 'back'}")[0] == 0
    wanted, weights = held(run / "model.ckpt-60"), held(bert_tf.inspect_checkpoint(tmp_path / "back").checkpoint)
    for name in [name for name in wanted if name.startswith("bert/")]:
        assert weights[name].tobytes() == wanted[name].tobytes()
    assert all(variable.same for variable in bert_tf.diff_checkpoints(run, tmp_path / "there").variables)
    if layout == "hf":
        head = safetensors.numpy.load_file(tmp_path / "there" / "model.safetensors")["classifier.weight"]
        assert head.tobytes() == wanted["output_weights"].tobytes()
    else:
        assert CheckpointReader(tmp_path / "there" / "model.ckpt-60").shapes["global_step"] == ()


@pytest.mark.parametrize("layout", ["hf", "tf1"])
def test_layers_that_share_weights_are_converted(project, tmp_path, layout):
    run = write_run(tmp_path / "run", project, [3], layers=3, sizes=ALBERT)
    written = bert_tf.convert_checkpoint(run, to=layout, output=tmp_path / "there")
    assert written.left_out == ()
    wanted = held(run / "model.ckpt-3")
    if layout == "hf":
        config = BertConfig.from_json_file(tmp_path / "there" / "config.json")
        weights = read_weights(tmp_path / "there" / "model.safetensors", config)
    else:
        weights = held(tmp_path / "there" / "model.ckpt-3")
    for name in [name for name in wanted if name.startswith("bert/")]:
        assert weights[name].tobytes() == wanted[name].tobytes()


def test_a_calibrated_head_is_written_for_transformers_as_by_export(run, tmp_path):
    decide(shutil.copytree(run, tmp_path / "run"), 60)
    bert_tf.convert_checkpoint(tmp_path / "run", to="hf", output=tmp_path / "hf")
    head = safetensors.numpy.load_file(tmp_path / "hf" / "model.safetensors")["classifier.weight"]
    np.testing.assert_allclose(head, held(run / "model.ckpt-60")["output_weights"] / 2.5, rtol=1e-6)
    assert json.loads((tmp_path / "hf" / "config.json").read_text())["decision"] == {"thresholds": [0.9]}


def test_strip_leaves_out_what_only_training_needs(run, tmp_path):
    run = decide(changed(tmp_path / "noted", run, 60, note=np.array(b"of whom")), 60)  # texts are kept
    (tmp_path / ".light.123.tmp").mkdir()  # left by a kill
    written = bert_tf.strip_checkpoint(run, output=tmp_path / "light")
    assert sorted(os.listdir(tmp_path)) == ["light", "noted"]
    assert written.left_out == ("output_bias/adam_m", "output_bias/adam_v", "output_bias/ema")
    wanted = held(run / "model.ckpt-60")
    kept = held(tmp_path / "light" / "model.ckpt-60")
    assert kept.keys() == wanted.keys() - set(written.left_out)
    assert kept.pop("note") == b"of whom"
    assert all(kept[name].tobytes() == wanted[name].tobytes() for name in kept)
    with bert_tf.load(tmp_path / "light") as model:
        with bert_tf.load(run) as whole:
            assert model.predict([("rain came", "soup")]) == whole.predict([("rain came", "soup")])
        assert model.trained.record["decision"]["thresholds"] == (0.9,)


def test_rename_shows_its_table_and_writes_nothing_in_a_dry_run(run, tmp_path, call, caplog):
    words = ("rename", run / "model.ckpt-20", "--map=^bert/=>model/ ^output_(.*)$=>head/\\1")
    status, out, _ = call(*words, "--dry_run")
    assert status == 0
    assert "output_bias  " in out
    assert os.listdir(tmp_path) == []
    assert call(*words, f"--output={tmp_path / 'renamed'}")[0] == 0
    names = held(tmp_path / "renamed" / "model.ckpt-20").keys()
    assert {"head/bias", "head/weights", "global_step", "model/pooler/dense/bias"} <= names
    assert not [name for name in names if name.startswith("bert/")]
    (tmp_path / "rules").write_text("^bert/ => model/\n\n")
    written = bert_tf.rename_checkpoint(run / "model.ckpt-20", map=str(tmp_path / "rules"), dry_run=True)
    assert written.names["bert/pooler/dense/bias"] == "model/pooler/dense/bias"
    bert_tf.rename_checkpoint(run / "model.ckpt-20", map="^brt/=>model/", output=tmp_path / "copy")
    assert "--map=^brt/=>model/: changes no name; writing a copy" in caplog.text


ACTIONS = {
    "strip": bert_tf.strip_checkpoint,
    "rename": functools.partial(bert_tf.rename_checkpoint, map="^bert/=>b/"),
    "hf": functools.partial(bert_tf.convert_checkpoint, to="hf"),
    "tf2-names": functools.partial(bert_tf.convert_checkpoint, to="tf2-names"),
}


@pytest.mark.parametrize("action", ACTIONS)
def test_outputs_are_the_same_bytes_twice_and_an_interruption_leaves_nothing(run, tmp_path, action, monkeypatch):
    for output in ("one", "two"):
        ACTIONS[action](run, output=tmp_path / output)
    assert files(tmp_path / "one") == files(tmp_path / "two")

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("bert_tf.extensions.checkpoint.models.note", interrupted)  # all else is written by then
    with pytest.raises(KeyboardInterrupt):
        ACTIONS[action](run, output=tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == ["one", "two"]


NOT_FINITE = "model.ckpt-60: weights that are NaN or infinite: output_bias"
NO_STEP = "global_step is .*, expected one whole number"


@pytest.mark.parametrize(
    ("action", "entries", "message"),
    [
        *((action, {"output_bias": np.array([0, np.nan], np.float32)}, NOT_FINITE) for action in ACTIONS),
        ("strip", {"output_bias": np.array([0, np.inf], np.float32)}, NOT_FINITE),
        *(("strip", {"global_step": step}, NO_STEP) for step in (np.arange(3), np.int64(-5), np.float32(2.5))),
    ],
)
def test_no_tool_writes_weights_that_are_not_finite_or_another_step(run, tmp_path, action, entries, message):
    broken = changed(tmp_path / "broken", run, 60, **entries)
    with pytest.raises(CheckpointError, match=message):
        ACTIONS[action](broken, output=tmp_path / "out")
    assert os.listdir(tmp_path) == ["broken"]


def test_the_pooling_of_a_model_of_vectors_is_kept_or_its_loss_is_said(tmp_path, caplog):
    source = huggingface.write_folder(tmp_path / "bge")
    huggingface.write_modules(source, {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False})
    bert_tf.convert_checkpoint(source, to="tf1", output=tmp_path / "tf1")
    (tmp_path / "words").write_text("clouds\n")
    bert_tf.extend_vocabulary(source, add=tmp_path / "words", output=tmp_path / "more")
    assert [run_folder.trained(tmp_path / name) for name in ("tf1", "more")] == [{"pooling": "cls", "max_seq_length": 64}] * 2
    assert not caplog.messages
    bert_tf.convert_checkpoint(tmp_path / "tf1", to="hf", output=tmp_path / "hf")
    assert "the model's pooling is cls, but sentence-transformers uses mean pooling without" in caplog.text


@pytest.mark.parametrize(
    ("architecture", "more"),
    [
        ("BertForTokenClassification", {"id2label": {"0": "O", "1": "B-X"}}),
        ("BertForSequenceClassification", {"problem_type": "multi_label_classification", "id2label": {"0": "a", "1": "b"}}),
        ("BertForMultipleChoice", {"id2label": {"0": "LABEL_0", "1": "LABEL_1"}}),
        ("BertForSequenceClassification", {"problem_type": "regression", "id2label": {"0": "a", "1": "b"}}),
        ("BertForOthers", {}),
    ],
)
def test_the_class_and_the_labels_of_a_hugging_face_folder_are_kept(tmp_path, architecture, more):
    source = huggingface.write_folder(tmp_path / "source")
    values = {**json.loads((source / "config.json").read_text()), "architectures": [architecture], **more}
    (source / "config.json").write_text(json.dumps(values))
    (source / "tokenizer_config.json").write_text('{"model_max_length": 16}')
    weights = safetensors.numpy.load_file(source / "model.safetensors")
    head = {"classifier.weight": np.ones([2, values["hidden_size"]], np.float32), "classifier.bias": np.ones(2, np.float32)}
    safetensors.numpy.save_file({**weights, **head}, source / "model.safetensors")
    if architecture == "BertForOthers":
        with pytest.raises(CheckpointError, match="architectures is .*, which does not say what the head computes"):
            bert_tf.convert_checkpoint(source, to="hf", output=tmp_path / "hf")
        return
    bert_tf.convert_checkpoint(source, to="hf", output=tmp_path / "hf")
    config = json.loads((tmp_path / "hf" / "config.json").read_text())
    assert {name: config[name] for name in ("architectures", *more)} == {"architectures": [architecture], **more}
    (tmp_path / "words").write_text("clouds\n")
    bert_tf.convert_checkpoint(source, to="tf1", output=tmp_path / "tf1")
    bert_tf.extend_vocabulary(source, add=tmp_path / "words", output=tmp_path / "more")
    kinds = {"BertForTokenClassification": "tags", "BertForSequenceClassification": "multi_label"}
    kind = None if more.get("problem_type") == "regression" else kinds.get(architecture)  # two numbers: of no task
    of_head = {"task_name": "custom", "kind": kind, "labels": list(more["id2label"].values())} if kind else {}
    assert [run_folder.trained(tmp_path / name) for name in ("tf1", "more")] == [{**of_head, "max_seq_length": 16}] * 2


def test_the_tokenizer_of_a_cased_run_is_told_to_keep_capitals(run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "cased")
    record = json.loads((copy / "run_config.json").read_text())
    record["training"]["do_lower_case"] = False
    (copy / "run_config.json").write_text(json.dumps(record))
    for source, lower_case in ((copy, False), (run, True)):
        bert_tf.convert_checkpoint(source, to="hf", output=tmp_path / f"hf-{lower_case}")
        written = (tmp_path / f"hf-{lower_case}" / "tokenizer_config.json").read_text()
        assert json.loads(written) == {"do_lower_case": lower_case, "model_max_length": record["training"]["max_seq_length"]}


@pytest.mark.parametrize("layout", ["tf1", "hf"])
def test_a_full_disk_is_one_line_and_leaves_nothing(run, tmp_path, layout, call):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
    try:
        status, _, errors = call("convert", run, f"--to={layout}", f"--output={tmp_path / 'out'}")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (status, len(errors)) == (2, 1)
    assert "out: cannot write: " in errors[0]
    assert "File too large" in errors[0]
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["model.ckpt-40", "model.ckpt-99", "best", "ema", "optimizer", "corpus", "eval"])
def test_no_output_is_taken_for_a_part_of_a_run(run, tmp_path, name, call):
    copy = shutil.copytree(run, tmp_path / "run")
    status, _, errors = call("strip", copy, f"--output={copy / name}")
    assert (status, len(errors)) == (2, 1)
    assert f"{name}: would be taken for a checkpoint or a part of the run in {copy}" in errors[0]
    assert files(copy) == files(run)
    with run_folder.writing(copy), pytest.raises(OutputError, match="has been writing to it .* name an output in another"):
        bert_tf.strip_checkpoint(run, output=copy / "last")
    write_checkpoint(tmp_path / "mine", held(run / "model.ckpt-20"))  # nor for one beside it
    with pytest.raises(OutputError, match="mine: would be taken for a checkpoint"):
        bert_tf.strip_checkpoint(run, output=tmp_path / "mine")


def test_an_output_is_replaced_when_that_is_said_and_nothing_else_ever_is(run, tmp_path, call):
    strip = ("strip", run, f"--output={tmp_path / 'out'}")
    assert call(*strip)[0] == 0
    status, _, errors = call(*strip)
    assert (status, errors) == (2, [f"error: {tmp_path}/out: already exists; name another --output, or add --overwrite"])
    assert call(*strip, "--overwrite")[0] == 0
    copy = shutil.copytree(run, tmp_path / "run")
    status, _, errors = call("strip", run, f"--output={copy}", "--overwrite")
    assert status == 2
    assert "was not written by this command" in errors[0]
    assert files(copy) == files(run)


NO_FILE = "--bert_config_file={tmp}/none"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("inspect {tmp}/none", "{tmp}/none: no checkpoint of this name"),
        ("inspect {tmp}", "{tmp}: no checkpoint in the folder"),
        ("diff {run}", "checkpoint diff: B missing: python -m bert_tf checkpoint diff A B"),
        ("diff {run} {tmp}/none", "{tmp}/none: no checkpoint of this name"),
        ("inspect {run}/ema", "{run}/ema: no checkpoint of this name: this run kept none; train with --ema=0.999"),
        ("strip {run}", "--output is required"),
        ("strip {hf} --output={out}", "{hf}: Hugging Face; give it names first"),
        ("convert {run} --output={out}", "--to is required: tf1, tf2-names, hf"),
        ("convert {run} --to=tf3 --output={out}", "--to: unknown value 'tf3'"),
        (f"convert {{run}}/model.ckpt-20 --to=hf --output={{out}} {NO_FILE}", f"{NO_FILE}: no"),
        ("convert {bare} --to=hf --output={out}", "no configuration beside the weights; name it with --bert_config_file"),
        ("convert {odd} --to=tf1 --output={out}", "no BERT variable under a known name; see checkpoint inspect"),
        ("convert {of_electra} --to=tf1 --output={out}", "name its conversion, which predict and encode leave in "),
        ("convert {electra} --to=tf2-names --output={out}", "tf2-names is a layout of BERT alone, and this is electra; take"),
        ("rename {run} --output={out}", "--map is required"),
        ("rename {run} --map=kernel$=>bias --output={out}", "would both be bert/encoder/layer_0/attention/output/dense/bias"),
        ("rename {run} --map=(=>x --output={out}", "--map=(=>x: '(=>x': "),
        ("rename {run} --map=a=>\\2 --output={out}", "--map=a=>\\2: 'a=>\\2': "),
        ("rename {run} --map={tmp}/none --output={out}", "neither a rule, as '^bert/=>encoder/', nor a file: No such file"),
        ("rename {run} --map=^.*$=> --dry_run", "would have no name"),
        ("merge {run}", "checkpoint: unknown action 'merge'"),
    ],
)
def test_a_mistake_is_one_line(run, others, tmp_path, words, said, call):
    assert_refused(call, words, said, tmp_path, run=run, **others)


@pytest.fixture(scope="module")
def others(tmp_path_factory, project):
    """Models that cannot be converted."""
    folder = tmp_path_factory.mktemp("others")
    write_run(folder / "whole", project, steps=(20,))
    (folder / "bare").mkdir()
    for path in (folder / "whole").glob("model.ckpt-20*"):
        shutil.copy(path, folder / "bare")
    shutil.copytree(folder / "whole", folder / "electra")
    config = json.loads((folder / "whole" / "bert_config.json").read_text())
    (folder / "electra" / "bert_config.json").write_text(json.dumps({**config, "model_type": "electra"}))
    write_checkpoint(folder / "odd", {"dense/kernel": np.ones(2)})
    of_electra = huggingface.write_folder(folder / "of_electra")
    (of_electra / "config.json").write_text(json.dumps({**config, "model_type": "electra"}))
    safetensors.numpy.save_file({"electra.embeddings.x": np.ones(2, np.float32)}, of_electra / "model.safetensors")
    places = {
        "of_electra": of_electra,
        "hf": huggingface.write_folder(folder / "hf"),
        "bare": folder / "bare" / "model.ckpt-20",
    }
    return {**places, "odd": folder / "odd", "electra": folder / "electra"}

"""Runs with low-rank updates: what they leave, what is read of it, and what they are combined with."""

import dataclasses
import json
import shutil
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import safetensors.numpy

import bert_tf
from bert_tf.batch import graph, loading
from bert_tf.batch.job import ModelOverrides
from bert_tf.checkpoints.names import encoder_shapes
from bert_tf.checkpoints.reader import model_reader, write_checkpoint
from bert_tf.config import BertConfig
from bert_tf.errors import CheckpointError
from bert_tf.estimator.progress_hook import ProgressHook
from bert_tf.extensions.lora import LoraSettings, adapter
from bert_tf.extensions.lora.names import DOWN, UP
from bert_tf.extensions.lora.part import LowRankUpdates
from bert_tf.optimization.optimizers import moment_names
from tests import classifier
from tests.tiny import held, write_project

SETTINGS = {"lora_rank": 2, "lora_alpha": 3, "lora_train": "head", "learning_rate": 0.01, "num_train_steps": 6}
SETTINGS |= {"save_checkpoints_steps": 2, "eval_every_n_steps": 3, "ema": 0.9, "average_last": 2}
LAYERS, TEXT = 2, {"text_a": "rain came", "text_b": "the storm went"}
SCOPES = [f"bert/encoder/layer_{number}/attention/self/{name}" for number in range(LAYERS) for name in ("query", "value")]
HELD = {*(f"{scope}/{part}" for scope in SCOPES for part in (DOWN, UP)), "output_weights", "output_bias", "global_step"}


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A project whose files are this module's."""
    return write_project(tmp_path_factory.mktemp("project") / "project", layers=LAYERS)


def train(own, folder):
    assert classifier.run(*own.flags(folder, do_train=True, do_eval=True, do_predict=True, **SETTINGS)) == 0


@pytest.fixture(scope="module")
def trained(own, tmp_path_factory):
    """The folder of a run; not to be changed. Beside it is `killed`, what a kill in the fifth step would have left."""
    folder = tmp_path_factory.mktemp("run") / "out"
    after_run, calls = ProgressHook.after_run, []

    def copying(*arguments):
        calls.append(1)
        if len(calls) == 5:
            shutil.copytree(folder, folder.with_name("killed"), ignore=shutil.ignore_patterns(".writer.json"))
        return after_run(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ProgressHook, "after_run", copying)
        train(own, folder)
    return folder


@pytest.mark.parametrize("name", ["model.ckpt-6", "best/model.ckpt-3", "ema/model.ckpt-6"])
def test_a_checkpoint_holds_updates_and_head_alone(trained, name):
    (path,) = trained.glob(name.replace("best/model.ckpt-3", "best/*.index").replace("model.ckpt-6", "model.ckpt-6.index"))
    assert held(str(path).removesuffix(".index")).keys() == HELD


def merged(prefix: str, parent: str) -> dict[str, np.ndarray]:
    """The whole model by an independent product in float64."""
    updates, weights = held(prefix), held(parent)
    for scope in SCOPES:
        change = updates[f"{scope}/{DOWN}"].astype(np.float64) @ updates[f"{scope}/{UP}"].astype(np.float64)
        weights[f"{scope}/kernel"] = weights[f"{scope}/kernel"] + 1.5 * change
    return {**weights, **{name: updates[name] for name in ("output_weights", "output_bias", "global_step")}}


def test_it_is_read_as_the_whole_model(own, trained):
    prefix = str(trained / "model.ckpt-6")
    reader, expected = model_reader(prefix), merged(prefix, own.init_checkpoint)
    assert reader.shapes.keys() == expected.keys() == reader.dtypes.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(reader[name], value, rtol=1e-6, atol=1e-7, err_msg=name)
        assert reader.shapes[name] == np.shape(value)
    assert any(
        np.abs(reader[f"{scope}/kernel"] - held(own.init_checkpoint)[f"{scope}/kernel"]).max() > 1e-4 for scope in SCOPES
    )


@pytest.fixture(scope="module")
def plain(own, trained, tmp_path_factory):
    """A model with the merged weights as a checkpoint of its own."""
    folder = tmp_path_factory.mktemp("plain")
    for name in ("vocab.txt", "bert_config.json", "run_config.json"):
        shutil.copy(trained / name, folder)
    best = next(str(path).removesuffix(".index") for path in (trained / "best").glob("*.index"))
    write_checkpoint(folder / "bert_model.ckpt", merged(best, own.init_checkpoint))
    return folder


def test_it_predicts_what_the_merged_model_predicts(trained, plain):
    with bert_tf.load(trained) as model, bert_tf.load(plain) as other:
        (actual,), (expected,) = model.predict([TEXT]), other.predict([TEXT])
    assert actual.probabilities == pytest.approx(expected.probabilities, abs=1e-6)


def test_the_results_of_the_run_are_its_own(own, trained):
    with bert_tf.load(trained, data_dir=own.data_dir) as model:
        evaluation = model.evaluate("dev")
    said = json.loads((trained / "eval_results.json").read_text())
    assert evaluation.metrics["loss"] == pytest.approx(said["eval_loss"], rel=1e-5)


def test_an_average_is_that_of_merged_weights(own, trained):
    """The mean of products is not the product of means: it has a whole model of its own."""
    average = held(trained / "average" / "model.ckpt-6")
    parts = [merged(str(trained / f"model.ckpt-{step}"), own.init_checkpoint) for step in (4, 6)]
    for name in average.keys() - {"global_step"}:
        np.testing.assert_allclose(average[name], np.mean([part[name] for part in parts], axis=0), rtol=1e-5, atol=1e-6)


def test_a_run_that_was_killed_ends_as_one_that_was_not(own, trained, tmp_path, caplog):
    caplog.set_level("INFO")
    folder = shutil.copytree(trained.with_name("killed"), tmp_path / "out")
    train(own, folder)
    assert "continuing from step 4 of 6" in caplog.text
    for name in ("model.ckpt-6", "ema/model.ckpt-6", "average/model.ckpt-6"):
        actual, expected = ({entry: value.tobytes() for entry, value in held(run / name).items()} for run in (folder, trained))
        assert actual == expected, name
    for name in ("adapter_model.safetensors", "adapter_config.json", "predictions.tsv", "eval_results.txt"):
        assert (folder / name).read_bytes() == (trained / name).read_bytes()


def test_an_export_is_whole(trained, plain, tmp_path):
    for name, folder in (("whole", trained), ("expected", plain)):
        with bert_tf.load(folder) as model:
            model.export("huggingface", tmp_path / name)
    exported, expected = (safetensors.numpy.load_file(tmp_path / name / "model.safetensors") for name in ("whole", "expected"))
    assert exported.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(exported[name], value, rtol=1e-6, atol=1e-7, err_msg=name)


def test_the_graph_of_other_exports_has_the_merged_weights(trained, plain):
    kernels = []
    for path in ("best/*.index", "bert_model.ckpt.index"):
        (prefix,) = (str(path).removesuffix(".index") for path in (*trained.glob(path), *plain.glob(path)))
        model = loading.load(prefix, ModelOverrides())
        with graph.loaded(model, lambda model=model: graph.compute(model, graph.inputs(model))) as (session, _):
            kernels.append(session.run(f"{SCOPES[0]}/kernel/Read/ReadVariableOp:0"))
    np.testing.assert_allclose(*kernels, rtol=1e-6, atol=1e-7)


def test_files_for_peft_alone_are_a_model(trained, tmp_path, monkeypatch):
    monkeypatch.setenv("BERT_TF_HOME", str(tmp_path / "home"))
    for name in ("adapter_config.json", "adapter_model.safetensors", "run_config.json"):
        shutil.copy(trained / name, tmp_path)
    with bert_tf.load(trained) as model, bert_tf.load(tmp_path) as other:
        assert other.predict([TEXT]) == model.predict([TEXT])
    values = json.loads((tmp_path / "adapter_config.json").read_text())
    assert (values["r"], values["lora_alpha"], values["target_modules"], values["modules_to_save"]) == (
        *(2, 3),
        *(["query", "value"], ["classifier"]),
    )


def copied(trained: Path, folder: Path, parent: str) -> Path:
    """A copy of a run whose parent is the checkpoint of this name."""
    copy = shutil.copytree(trained, folder)
    for path in copy.rglob("adapter.json"):
        path.write_text(path.read_text().replace(adapter.read_adapter(trained).parent, parent))
    return copy


def other_weights(own, folder: Path) -> str:
    """A copy of the initial checkpoint with one other number."""
    folder.mkdir()
    for path in Path(own.init_checkpoint).parent.glob("*"):
        shutil.copy(path, folder)
    weights = held(own.init_checkpoint)
    weights["bert/encoder/layer_0/output/dense/kernel"][0, 0] += 1e-3
    write_checkpoint(folder / "bert_model.ckpt", weights)
    return str(folder / "bert_model.ckpt")


def test_a_parent_that_moved_is_named_anew(own, trained, tmp_path):
    moved = shutil.copytree(Path(own.init_checkpoint).parent, tmp_path / "moved")
    copy = copied(trained, tmp_path / "out", str(moved / "bert_model.ckpt"))
    with bert_tf.load(copy) as model, bert_tf.load(trained) as other:
        assert model.predict([TEXT]) == other.predict([TEXT])


def test_a_parent_that_changed_is_refused(own, trained, tmp_path, capsys):
    changed = other_weights(own, tmp_path / "changed")
    copy = copied(trained, tmp_path / "out", changed)
    with pytest.raises(CheckpointError, match=r"holds low-rank updates of .*, which has changed since \(sha256 ") as error:
        bert_tf.load(copy)
    assert "\n" not in str(error.value)
    flags = own.flags(copy, do_train=True, do_eval=True, do_predict=True, **{**SETTINGS, "init_checkpoint": changed})
    assert classifier.run(*flags) == 2
    assert "holds another run (another --init_checkpoint" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda values: values.pop("scaling"), "scaling is missing"),
        (lambda values: values.update(scaling="1"), "scaling is '1'"),
        (lambda values: values.update(layers=[-1]), r"layers is \[-1\]"),
        (lambda values: values.update(more=1), "unknown key 'more'"),
        (lambda values: values.update(scalings={"x": True}), "scalings is"),
    ],
)
def test_a_damaged_file_is_refused(trained, change, message, tmp_path):
    values = json.loads((trained / "adapter.json").read_text())
    change(values)
    (tmp_path / "adapter.json").write_text(json.dumps(values))
    with pytest.raises(CheckpointError, match=f"adapter.json: damaged: {message}.*; restore it"):
        adapter.read_adapter(tmp_path)


def without_notes(copy):
    for path in copy.rglob("adapter.json"):
        path.unlink()


def with_another_shape(copy):
    shutil.rmtree(copy / "best")
    entries = {**held(copy / "model.ckpt-6"), f"{SCOPES[0]}/{DOWN}": np.zeros((8, 3), np.float32)}
    write_checkpoint(copy / "model.ckpt-6", entries)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parent": "/nowhere"}, "nowhere, which is missing; restore it, or name its new place in .*adapter.json"),
        ({"layers": (0,)}, "adapter.json: damaged: 1 layers of the 2 of the model; restore it"),
        (without_notes, "adapter.json: cannot be read: .*; it says whose low-rank updates these are"),
        (with_another_shape, r"layer_0/attention/self/query is \[8, 8\], its update \[8, 3\] times \[2, 8\]"),
    ],
)
def test_updates_that_do_not_fit_a_parent_are_refused(trained, tmp_path, change, message):
    copy = shutil.copytree(trained, tmp_path / "out")
    if callable(change):
        change(copy)
    else:
        dataclasses.replace(adapter.read_adapter(copy / "best"), **change).write(copy / "best")
    with pytest.raises(CheckpointError, match=message):
        bert_tf.load(copy)


def run(own, folder, **changes):
    """Trains three steps; returns the last checkpoint."""
    settings = {"lora_rank": 2, "lora_train": "head", "learning_rate": 0.01, "num_train_steps": 3, **changes}
    assert classifier.run(*own.flags(folder, do_train=True, **settings)) == 0
    return held(next(str(path).removesuffix(".index") for path in folder.glob("model.ckpt-3.index")))


def test_norms_are_trained_if_asked_for_and_the_pooler_by_default(own, tmp_path):
    trained, start = run(own, tmp_path / "out", lora_train="norms,pooler"), held(own.init_checkpoint)
    more = trained.keys() - HELD
    assert more == {name for name in start if "LayerNorm" in name or name.startswith("bert/pooler/")}
    assert all(np.any(trained[name] != start[name]) for name in more)
    assert classifier.mrpc("--lora_rank=2").extensions.lora.lora_train == "pooler"
    modules = json.loads((tmp_path / "out" / "adapter_config.json").read_text())["modules_to_save"]
    assert {"classifier", "bert.pooler.dense", "bert.embeddings.LayerNorm"} <= {*modules}


def test_frozen_layers_have_none(own, tmp_path, untrained):
    flags = own.flags(tmp_path / "out", do_train=True, lora_rank=2, freeze="embeddings,0", lora_targets="all")
    assert classifier.run(*flags) != 0
    (model,) = untrained
    assert {name.split("/")[2] for name in model.execution.adaptation.matrices} == {"layer_1"}
    assert len(model.execution.adaptation.matrices) == 6


def test_layers_that_start_anew_are_trained_in_full(own, tmp_path):
    trained = run(own, tmp_path / "out", reinit_layers=1)
    config = BertConfig.from_json_file(own.bert_config_file)
    anew = {name for name in encoder_shapes(config) if name.startswith(("bert/pooler/", "bert/encoder/layer_1/"))}
    assert anew <= trained.keys()
    assert all("layer_0" in name for name in trained if name.endswith(DOWN))
    with bert_tf.load(tmp_path / "out") as model:
        assert model.predict([TEXT])


def test_moments_inside_a_checkpoint_are_no_weights(trained, tmp_path):
    """As --keep_optimizer_slots leaves them there."""
    copy = shutil.copytree(trained, tmp_path / "out")
    entries = held(copy / "model.ckpt-6")
    moments = {moment: entries[name] for name in HELD - {"global_step"} for moment in moment_names(name)}
    write_checkpoint(copy / "model.ckpt-6", {**entries, **moments})
    shapes = model_reader(copy / "model.ckpt-6").shapes
    assert not [name for name in shapes if DOWN in name]


def test_another_run_starts_from_one_with_updates(own, trained, tmp_path):
    """Its parent is the merged model, and so on."""
    trained_again = run(own, tmp_path / "out", init_checkpoint=str(trained), lora_targets="output")
    scope = "bert/encoder/layer_0/output/dense"
    change = trained_again[f"{scope}/{DOWN}"] @ trained_again[f"{scope}/{UP}"]
    reader, parent = (
        model_reader(tmp_path / "out" / "model.ckpt-3"),
        model_reader(adapter.read_adapter(tmp_path / "out").parent),
    )
    np.testing.assert_allclose(reader[f"{scope}/kernel"], parent[f"{scope}/kernel"] + change, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(reader[f"{SCOPES[0]}/kernel"], parent[f"{SCOPES[0]}/kernel"])


def test_a_student_has_updates_of_its_teachers_layers(own, trained, tmp_path):
    out = tmp_path / "out"
    decided = {"num_train_steps": 2, "learning_rate": 0.01, "train_batch_size": 8}
    bert_tf.distill(trained, data_dir=own.data_dir, output_dir=out, lora_rank=2, student_layers=1, **decided)
    teacher, student = model_reader(adapter.read_adapter(out).parent), model_reader(out / "model.ckpt-2")
    ours = "bert/encoder/layer_0/output/dense/kernel"
    np.testing.assert_array_equal(student[ours], teacher[ours.replace("layer_0", "layer_1")])


def test_files_for_peft_of_earlier_checkpoints_go_when_the_training_goes_on(tmp_path):
    for name in ("parent.ckpt.index", "adapter_config.json", "adapter_model.safetensors"):
        (tmp_path / name).write_text("of an earlier step")
    run = mock.Mock(output_dir=tmp_path, layers=(), **{"source.checkpoint": str(tmp_path / "parent.ckpt")})
    run.spec.model.init_checkpoint = None
    LowRankUpdates(LoraSettings(lora_rank=2)).claimed(run)
    assert {path.name for path in tmp_path.iterdir()} == {"parent.ckpt.index", "adapter.json"}


def test_a_rank_beyond_the_matrices_is_refused(own, tmp_path, capsys):
    assert classifier.run(*own.flags(tmp_path / "out", do_train=True, lora_rank=9)) == 2
    assert "--lora_rank=9: above 8, the width of the model's matrices" in capsys.readouterr().err
    assert classifier.run(*own.flags(tmp_path / "out", do_train=True, lora_rank=2, freeze="0,1")) == 2
    assert "--freeze: no layer is left for the updates of --lora_rank" in capsys.readouterr().err
    assert classifier.run(*own.flags(tmp_path / "out", do_train=True, lora_rank=2, freeze="0", reinit_layers=1)) == 2
    assert "--freeze and --reinit_layers: no layer is left for the updates of --lora_rank" in capsys.readouterr().err
    assert not (tmp_path / "out").exists() or not any((tmp_path / "out").iterdir())


def test_another_rank_is_another_run(own, trained, capsys):
    flags = own.flags(trained, do_train=True, do_eval=True, do_predict=True, **{**SETTINGS, "lora_rank": 3})
    assert classifier.run(*flags) == 2
    assert "holds another run (lora_rank was 2, now 3)" in capsys.readouterr().err

"""Several models in one graph: bits of each, and what is computed once; and in `predict`, with a file for each."""

from __future__ import annotations

import contextlib
import shutil

import numpy as np
import pytest

from bert_tf.batch import loading
from bert_tf.batch.job import ModelOverrides
from bert_tf.checkpoints import saved
from bert_tf.checkpoints.reader import model_reader
from bert_tf.errors import CheckpointError
from bert_tf.estimator.forward import Forward, Tower
from bert_tf.estimator.model_fn import Model
from bert_tf.extensions.together.joint import JointForward
from bert_tf.extensions.together.stages import Branch, branches, digests
from bert_tf.modeling.execution import Execution
from bert_tf.runtime.devices import session_config
from bert_tf.runtime.machine import Machine
from bert_tf.tasks.base import DEV
from tests import classifier, lines
from tests.batch.runs import ALBERT, MRPC, changed, write_run
from tests.tiny import held

PLAIN = Execution()
ROWS = "#1 String\t#2 String\nrain came\tstorm went\nbread blue\tsoup red\n"


@pytest.fixture(scope="module")
def runs(project, tmp_path_factory):
    """Models by what differs from the first one: the upper layer; updates of it; all. Not to be changed."""
    folder = tmp_path_factory.mktemp("runs")
    head = write_run(folder / "head", project, [3], layers=3)
    name = "bert/encoder/layer_2/output/dense/kernel"
    changed(folder / "upper", head, 3, **{name: held(head / "model.ckpt-3")[name] * 2})
    parent = {"init_checkpoint": head / "model.ckpt-3", "bert_config_file": head / "bert_config.json"}
    updates = {"lora_rank": 2, "freeze": "0-1", "lora_targets": "all", "num_train_steps": 3, "learning_rate": 0.01}
    assert classifier.run(*project.flags(folder / "lora", do_train=True, **parent, **updates)) == 0
    write_run(folder / "whole", project, [4], layers=3)
    names = ("head", "upper", "lora", "whole")
    return {name: loading.load(saved.best_or_newest(folder / name), ModelOverrides()) for name in names}


@pytest.fixture(scope="module")
def columns(project, runs):
    model = runs["head"]
    return model.task.family.features(model.task.examples(project.data_dir, DEV), model.tokenizer, model.limits)


def joined(runs, execution=PLAIN):
    return contextlib.closing(JointForward(list(runs.values()), Machine(session_config()), execution))


def alone(model, columns, execution, batch_size=4):
    machine = Machine(session_config())
    with contextlib.closing(Forward(Model(model.config, model.head, execution=execution), machine)) as forward:
        forward.load(model.prefix)
        return forward.outputs(columns, batch_size=batch_size)


@pytest.mark.parametrize("native", [False, True])
def test_each_has_the_bits_of_its_own_model(runs, columns, native, kernels):
    assert kernels
    execution = Execution(native=native)
    with joined(runs, execution) as joint:
        together = joint.outputs(columns, batch_size=4)
    for model, outputs in zip(runs.values(), together):
        expected = alone(model, columns, execution)
        assert outputs.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_array_equal(outputs[name], value)
    assert not np.array_equal(together[0]["logits"], together[1]["logits"])


@pytest.mark.parametrize(("native", "pack_tokens"), [(False, True), (True, False)])
def test_rows_that_some_models_are_asked_about_have_the_bits_of_these_alone(runs, columns, native, pack_tokens, kernels):
    assert kernels
    execution = Execution(native=native, pack_tokens=pack_tokens)
    models = list(runs.values())
    some = np.arange(len(columns)) % 2 == 0
    with joined(runs, execution) as joint:
        together = joint.outputs_of(columns, {0: np.ones(len(columns), bool), 2: some, 3: ~some})
        (_, _, lora, _) = joint.outputs_of(columns, {2: np.ones(len(columns), bool)})
    alone_lora = alone(models[2], columns, execution, None)["logits"]
    np.testing.assert_array_equal(together[0]["logits"], alone(models[0], columns, execution, None)["logits"])
    np.testing.assert_array_equal(lora["logits"], alone_lora)
    np.testing.assert_allclose(together[2]["logits"][some], alone_lora[some], atol=1e-6)  # in smaller batches
    np.testing.assert_allclose(together[3]["logits"][~some], alone(models[3], columns, execution)["logits"][~some], atol=1e-6)


def test_the_rest_of_a_model_is_computed_only_for_its_rows(runs, columns, monkeypatch):
    computed, run = [], Tower.run

    def counted(tower, head, fetched, batch, *stages):
        computed.append((sorted(fetched), len(batch["input_ids"]), bool(stages and stages[0])))
        return run(tower, head, fetched, batch, *stages)

    monkeypatch.setattr(Tower, "run", counted)
    every, one = np.ones(len(columns), bool), np.arange(len(columns)) == 1
    with joined(runs) as joint:
        joint.outputs_of(columns, {0: every, 2: one}, batch_size=len(columns))
    assert computed == [([""], len(columns), False), (["logits"], len(columns), True), (["model_2/logits"], 1, True)]


def test_models_part_where_their_paths_do():
    below, parted = (("embeddings", None, "e"), (0, None, "0")), (("embeddings", None, "e"), (0, None, "other"))
    paths = {
        0: (*below, (1, None, "a")),
        1: (*below, (1, None, "a")),
        2: (*below, (1, None, "b")),
        3: (*parted, (1, None, "a")),
    }
    ends = Branch((0, 1), paths[0], (Branch((0,)), Branch((1,))))
    assert branches(paths) == (Branch((0, 1, 2), below, (ends, Branch((2,)))), Branch((3,)))


def test_layers_with_equal_weights_are_there_once(runs):
    with joined(runs) as joint:
        names = joint.variables
    kernels = [name for name in names if name.endswith("attention/self/query/kernel")]
    assert sorted(kernels) == [
        *(f"bert/encoder/layer_{layer}/attention/self/query/kernel" for layer in (0, 1, 2)),
        "model_1/bert/encoder/layer_2/attention/self/query/kernel",
        "model_2/bert/encoder/layer_2/attention/self/query/kernel",
        *(f"model_3/bert/encoder/layer_{layer}/attention/self/query/kernel" for layer in (0, 1, 2)),
    ]


def test_a_last_layer_of_its_own_has_the_weights_that_layers_below_share(project, columns, tmp_path):
    tags = {"task_name": "custom", "kind": "tags", "labels": ["O", "B-W"]}
    folders = [
        write_run(tmp_path / record["kind"], project, [3], layers=3, record=record, sizes=ALBERT) for record in (MRPC, tags)
    ]
    models = [loading.load(saved.best_or_newest(folder), ModelOverrides()) for folder in folders]
    with contextlib.closing(JointForward(models, Machine(session_config()), PLAIN)) as joint:
        together, names = joint.outputs(columns, batch_size=4), joint.variables
    assert "model_1/bert/encoder/layer_0/attention/self/query/kernel" in names
    for model, outputs in zip(models, together):
        expected = alone(model, columns, PLAIN)
        for name, value in expected.items():
            np.testing.assert_allclose(outputs[name], value, atol=1e-6)


def test_stages_are_told_apart_by_their_weights(runs):
    config = runs["head"].config
    head, upper, lora, whole = (
        digests(model_reader(runs[name].prefix), config).items() for name in ("head", "upper", "lora", "whole")
    )
    assert {stage for stage, _ in head & upper & lora} == {"embeddings", 0, 1}
    assert head & whole == set()


def test_models_that_read_texts_otherwise_are_refused(runs):
    other = loading.load(runs["upper"].prefix, ModelOverrides(max_seq_length=12))
    with pytest.raises(CheckpointError, match="its max seq length differs from that of .*; such models share no layers"):
        JointForward([runs["head"], other], Machine(session_config()), Execution())


def test_each_file_has_the_bytes_of_its_own_model(runs, tmp_path):
    (tmp_path / "rows.tsv").write_text(ROWS)
    ends = f"--input={tmp_path / 'rows.tsv'}", f"--output={tmp_path / 'out.tsv'}"
    assert lines.run("predict", f"--checkpoint={runs['head'].folder},{runs['lora'].folder}", *ends) == 0
    for name in ("head", "lora"):
        assert lines.run("predict", f"--checkpoint={runs[name].folder}", ends[0], f"--output={tmp_path / 'alone.tsv'}") == 0
        assert (tmp_path / f"out-{name}.tsv").read_bytes() == (tmp_path / "alone.tsv").read_bytes()
        (tmp_path / "alone.tsv").unlink()
        (tmp_path / "alone.tsv.job.json").unlink()
    assert not (tmp_path / "out.tsv").exists()


@pytest.mark.parametrize(
    ("names", "more", "message"),
    [
        ("{a},{nowhere}", [], "no checkpoint of this name"),
        ("{a},{copy}", [], "two models are named head, and their predictions would be one file; give a link to the folder"),
        ("{a},{b}", ["--average_outputs"], "--average_outputs: takes a pattern, not several models"),
        ("{a},{b}", ["--output=-"], "several models read and write files, no pipe; name files, or one model, as "),
        ("{a},{b}", ["--engine=onnxruntime"], "--engine=onnxruntime: several checkpoints are computed by TensorFlow"),
    ],
)
def test_what_several_models_cannot_do_is_one_line(runs, names, more, message, tmp_path, capsys):
    copy = shutil.copytree(runs["head"].folder, tmp_path / "head")
    named = names.format(a=runs["head"].folder, b=runs["lora"].folder, copy=copy, nowhere=tmp_path / "nowhere")
    (tmp_path / "rows.tsv").write_text(ROWS)
    ends = [f"--input={tmp_path / 'rows.tsv'}", f"--output={tmp_path / 'out.tsv'}"]
    assert lines.run("predict", f"--checkpoint={named}", *ends, *more) == 2
    assert message in capsys.readouterr().err.splitlines()[-1]
    assert not list(tmp_path.glob("out*"))

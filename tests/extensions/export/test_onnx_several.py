"""Several models in one ONNX folder: the answers of each one's own export, and equal layers once."""

import functools
import json
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest

import bert_tf
from bert_tf.__main__ import main
from bert_tf.batch import loading
from bert_tf.batch.job import ModelOverrides
from bert_tf.checkpoints.reader import CheckpointReader, write_checkpoint
from bert_tf.cli import command_line
from bert_tf.errors import CheckpointError
from bert_tf.extensions.export import command
from bert_tf.extensions.serve import worker
from bert_tf.extensions.serve.call import PREDICT, Part
from bert_tf.extensions.serve.settings import configured
from bert_tf.operations import predict
from tests.extensions.export.runs import CASES, write_run
from tests.extensions.export.test_onnx import numbers, without_tensorflow

pytestmark = pytest.mark.versions

NAMES = ("pairs", "tags", "answers", "other")  # the last with an upper layer of its own
LINES = "#1 String\t#2 String\nrain came\tstorm went\nbread blue\tsoup red\n"


def export(*arguments):
    return command_line.main(["export", *map(str, arguments), "--format=onnx"], command.COMMAND)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs that share what is below their heads, but for the last one's feed-forward layer; not to be changed."""
    folder = tmp_path_factory.mktemp("several")
    for name in NAMES[:3]:
        write_run(folder / name, CASES[name].record, CASES[name].decision)
    other = write_run(folder / "other", CASES["pairs"].record)
    reader = CheckpointReader(other / "model.ckpt-7")
    weights = {name: reader[name] for name in reader.shapes}
    weights["bert/encoder/layer_0/output/dense/kernel"] *= 2.0
    write_checkpoint(other / "model.ckpt-7", weights)
    return [folder / name for name in NAMES]


@pytest.fixture(scope="module")
def folder(runs):
    """All of them, exported; not to be changed."""
    assert export(*runs, f"--output={runs[0].parent / 'together'}") == 0
    return runs[0].parent / "together"


@pytest.fixture(scope="module")
def own_export(runs):
    """Returns a function from a run to its own export; not to be changed."""

    @functools.cache
    def of_run(run):
        place = runs[0].parent / "alone" / run.name
        assert export(run, f"--output={place}") == 0
        return place

    return of_run


@pytest.mark.parametrize("number", range(len(NAMES)))
def test_answers_are_those_of_the_own_export(runs, folder, own_export, number):
    name, own = NAMES[number], own_export(runs[number])
    rows = CASES.get(name, CASES["pairs"]).rows
    with bert_tf.load(own) as alone, bert_tf.load(folder / name) as model:
        for expected, actual in zip(alone.predict(rows), model.predict(rows)):
            (wanted, same), (got, rest) = numbers(expected), numbers(actual)
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
            assert rest == same
    with bert_tf.encoder(own) as alone, bert_tf.encoder(folder / name) as model:
        np.testing.assert_allclose(model.encode(["rain came"]), alone.encode(["rain came"]), rtol=1e-5, atol=1e-5)


def test_what_is_shared_is_there_once_and_computed_once(folder):
    graph = onnx.load(str(folder / "model.onnx"), load_external_data=False).graph
    nodes = [node.name for node in graph.node]
    assert [name for name in nodes if "key/MatMul" in name] == ["bert/encoder/layer_0/attention/self/key/MatMul"]
    weights = [tensor.name for tensor in graph.initializer if "layer_0/output/dense/kernel" in tensor.name]
    assert weights == ["bert/encoder/layer_0/output/dense/kernel", "other/bert/encoder/layer_0/output/dense/kernel"]
    assert [output.name for output in graph.output] == ["pairs/logits", "tags/logits", "answers/span_logits", "other/logits"]


def test_predict_writes_a_file_for_each_without_tensorflow(runs, tmp_path):
    (tmp_path / "rows.tsv").write_text(LINES)
    both = runs[0], runs[3]
    assert export(*both, f"--output={tmp_path / 'both'}") == 0
    ends = f"--input={tmp_path / 'rows.tsv'}", f"--output={tmp_path / 'out.tsv'}"
    without_tensorflow(tmp_path, f"print(main(['bert_tf', 'predict', {str(tmp_path / 'both')!r}, *{ends!r}]))")
    assert not (tmp_path / "out.tsv").exists()
    for run in both:
        alone = tmp_path / f"alone-{run.name}.tsv"
        assert command_line.main(["predict", f"--checkpoint={run}", ends[0], f"--output={alone}"], predict.COMMAND) == 0
        actual, expected = (path.read_text().split() for path in (tmp_path / f"out-{run.name}.tsv", alone))
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected):
            assert one == other or float(one) == pytest.approx(float(other), abs=1e-5)


def test_a_service_answers_for_each(folder):
    served = worker.served(configured(str(folder)))
    try:
        served.load()
        assert len({one.trunk for one in served.descriptions}) == 2
        rows = [("rain came", "storm went"), ("bread", "soup"), ("red", "pear")]
        examples = {0: [rows[0], rows[1]], 3: [rows[1], rows[2]]}
        parts = [
            Part(PREDICT, served.descriptions[number].reader.examples(asked), 0, models=(number,))
            for number, asked in examples.items()
        ]
        answers = [[json.loads(one)["probabilities"]["1"] for one in answer] for answer in served.answers(parts)]
    finally:
        served.close()
    for answer, (number, asked) in zip(answers, examples.items()):
        with bert_tf.load(folder / NAMES[number]) as model:
            expected = [one.probabilities["1"] for one in model.predict(asked)]
        np.testing.assert_allclose(answer, expected, atol=1e-5)


def test_a_model_of_several_arrives_on_another_machine(folder, tmp_path, monkeypatch):
    shipped = pytest.importorskip("bert_tf.extensions.cluster.shipped")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    model = loading.load(str(folder / "pairs" / "export.json"), ModelOverrides())
    arrived = shipped.unpacked(str(shipped.pack(model, tmp_path)))
    with bert_tf.load(folder / "pairs") as expected, bert_tf.load(Path(arrived).parent) as arrived_model:
        assert arrived_model.predict([("rain", "storm")]) == expected.predict([("rain", "storm")])


def test_int8_is_measured_for_each(runs, tmp_path):
    data = tmp_path / "dev.tsv"
    header = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    data.write_text(header + "".join(f"{number % 2}\t1\t2\train {number}\twind\n" for number in range(4)))
    options = f"--gate_data={data}", "--precision=int8", "--max_loss_of_metric=100"
    assert export(runs[0], runs[3], f"--output={tmp_path / 'int8'}", *options) == 0
    for name in ("pairs", "other"):
        assert json.loads((tmp_path / "int8" / name / "gate.json").read_text())["precision"] == "int8"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["export", "{pairs}", "{pairs}", "--format=onnx"],
            "two models are named pairs, by which the exported",
        ),
        (["export", "{pairs}", "{tags}", "--format=openvino"], "--format=openvino: one run or checkpoint, not 2"),
        (["export", "{pairs}", "{windows}", "--format=onnx"], "its long text differs from that of"),
        (["predict", "--checkpoint={folder}/pairs,{alone}", "--input={rows}"], "export their runs together"),
        (["serve", "{folder}/pairs", "{alone}"], "is an exported model; name runs alone, or export them to one folder"),
    ],
)
def test_what_cannot_be_done_is_one_line(runs, folder, own_export, tmp_path, arguments, message, capsys):
    places = {path.name: path for path in runs} | {"folder": folder, "rows": tmp_path / "rows.tsv"}
    if "{windows}" in arguments:
        places["windows"] = write_run(tmp_path / "windows", {**CASES["pairs"].record, "long_text": "windows"})
    places["rows"].write_text(LINES)
    if "{alone}" in " ".join(arguments):
        places["alone"] = own_export(runs[3])
    ends = [f"--output={tmp_path / 'out.tsv'}"] if arguments[0] in ("export", "predict") else []
    assert main(["bert_tf", *(one.format(**places) for one in arguments), *ends]) == 2
    assert message.format(**places) in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "out.tsv").exists()


def test_load_and_damage(folder, tmp_path):
    with pytest.raises(CheckpointError, match="holds the models pairs, tags, answers, other: name one"):
        bert_tf.load(folder)
    copy = shutil.copytree(folder, tmp_path / "copy")
    with (copy / "weights.data").open("r+b") as file:
        file.write(b"bytes of another model")
    with pytest.raises(CheckpointError, match="weights.data: differs from what export wrote"):
        bert_tf.load(copy / "tags").predict(["rain"])
    (copy / "model.onnx").unlink()
    with pytest.raises(CheckpointError, match="model.onnx: "):
        bert_tf.load(copy / "tags")

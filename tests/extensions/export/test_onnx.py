"""Whole models as ONNX: the same answers as the run, without TensorFlow."""

import dataclasses
import functools
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import bert_tf
from bert_tf.errors import BertError, CheckpointError, FlagError
from bert_tf.extensions.calibrate.command import CalibrateSettings
from bert_tf.extensions.engines import onnxruntime_session
from bert_tf.extensions.export import command, onnx
from bert_tf.extensions.export import onnx_folder as folders
from bert_tf.extensions.export.model_format import ONNX
from bert_tf.settings import read_settings
from bert_tf.tokenization.library import LibraryVocabulary
from tests import tokenizer_files
from tests.extensions.export import models, runs
from tests.extensions.export.runs import CASES, MRPC, PAIRS, write_run

pytestmark = pytest.mark.versions

HEADER = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"  # of MRPC
AGAIN = r"export the run again \(python -m bert_tf export RUN --format=onnx\)"
# Names no module of TensorFlow, whatever is installed.
BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("tensorflow", "tensorflow_text", "keras"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
"""


def export(run, folder, **options):
    with bert_tf.load(run) as model:
        return model.export("onnx", folder, **options)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A classifier of pairs with random weights; not to be changed."""
    return write_run(tmp_path_factory.mktemp("whole") / "run", MRPC)


@pytest.fixture(scope="module")
def folder(run):
    """The run, exported; not to be changed."""
    return export(run, run.parent / "exported")


@pytest.fixture
def copy(folder, tmp_path):
    return shutil.copytree(folder, tmp_path / "copy")


def numbers(value):
    """All that a prediction holds: numbers, and the rest."""
    if isinstance(value, (float, np.floating)):
        return [float(value)], []
    if hasattr(value, "__dataclass_fields__"):
        value = [getattr(value, name) for name in value.__dataclass_fields__]
    if isinstance(value, dict):
        value = [part for pair in value.items() for part in pair]
    if isinstance(value, (list, tuple)):
        parts = [numbers(part) for part in value]
        return [one for values, _ in parts for one in values], [one for _, rest in parts for one in rest]
    return [], [value]


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Returns a function from a case to its run and the export; not to be changed."""
    folder = tmp_path_factory.mktemp("exported")

    @functools.cache
    def of_case(name):
        case = CASES[name]
        place = write_run(folder / name / "run", case.record, case.decision)
        return place, export(place, folder / name / "out")

    return of_case


@pytest.mark.parametrize("name", CASES)
def test_answers_are_those_of_the_run(exported, name):
    rows = [*CASES[name].rows, *runs.random_rows(name, 20, seed=2)]
    place, out = exported(name)
    with bert_tf.load(place) as model, bert_tf.load(out) as other:
        for expected, actual in zip(model.predict(rows), other.predict(rows)):
            (wanted, same), (got, rest) = numbers(expected), numbers(actual)
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
            assert rest == same


@pytest.mark.parametrize("name", ["texts", "similarity"])
def test_vectors_are_those_of_the_run(exported, name):
    texts = ["rain and the storm", "soup"]
    place, out = exported(name)
    with bert_tf.load(place) as model, bert_tf.load(out) as other:
        for options in ({}, {"pooling": "cls", "layers": 0}, {"pooling": "max"}):
            np.testing.assert_allclose(other.encode(texts, **options), model.encode(texts, **options), rtol=1e-4, atol=1e-5)
        for actual, expected in zip(other.encode(texts, tokens=True), model.encode(texts, tokens=True)):
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


def test_a_model_without_a_head_is_exported_for_its_vectors(project, tmp_path, caplog):
    caplog.set_level("INFO", "absl")
    named = {"runs": [project.init_checkpoint], "format": "onnx", "output": str(tmp_path / "x")}
    command.export(read_settings(command.ExportSettings, named))
    assert "has no task head: it is exported for its vectors, as by --task_name=STS-B-vectors" in caplog.text
    texts = ["rain and the storm", "soup"]
    with bert_tf.encoder(project.init_checkpoint) as encoder, bert_tf.encoder(tmp_path / "x") as exported:
        for options in ({}, {"pooling": "cls", "layers": 0, "normalize": True}):
            expected = encoder.encode(texts, **options)
            np.testing.assert_allclose(exported.encode(texts, **options), expected, rtol=1e-4, atol=1e-5)
    (compared,) = command.compare(command.ExportSettings((project.init_checkpoint,), "onnx", compare=True))
    assert (compared.kind, compared.format) == ("similarity", "onnx")


def test_a_task_other_than_that_of_the_export_is_refused(folder):
    with pytest.raises(FlagError, match="--task_name=CoLA: .*model.onnx was trained on MRPC; leave the flag out"):
        bert_tf.load(folder, task="CoLA")
    with bert_tf.load(folder, task="mrpc") as model:
        assert model.task.name == "MRPC"


def test_a_model_of_own_classes_is_measured_on_other_files(tmp_path):
    place = export(write_run(tmp_path / "run", runs.CLASSES), tmp_path / "exported")
    data = tmp_path / "new.csv"
    data.write_text("text,label\n" + "".join(f"rain {number},{'xyz'[number % 3]}\n" for number in range(45)))
    for task in ({}, {"task_name": "custom"}):
        assert bert_tf.calibrate(place, check=True, data=str(data), **task).examples == 45
    table = bert_tf.evaluate([str(place)], task_name="custom", data=str(data), output_dir=tmp_path / "table")
    assert not table.failed


def test_a_model_that_is_measured_on_its_training_rows_warns(tmp_path, caplog):
    place = export(write_run(tmp_path / "run", {**MRPC, "train_examples_sha256": "3f"}), tmp_path / "exported")
    with bert_tf.load(place) as model:
        for rows in ("3f", "4e"):
            model.trained.warn_if_fitted_on(lambda rows=rows: rows, f"rows {rows}")
    assert [message for message in caplog.messages if "trained on these" in message and "rows 3f" in message]
    assert "rows 4e" not in caplog.text


def test_a_tagger_keeps_the_tokenizer_that_reads_its_texts_here(tmp_path):
    made, vocabulary = models.exported(tmp_path / "run", "tags"), LibraryVocabulary(tokenizer_files.byte_level())
    job = dataclasses.replace(made, trained=dataclasses.replace(made.trained, vocabulary=vocabulary))
    onnx.write_files(job, tmp_path)
    assert (tmp_path / vocabulary.file).read_text() == vocabulary.to_text() != vocabulary.to_text_of_words()


def test_int8_is_the_same_alone_and_among_others(run, tmp_path):
    data = tmp_path / "dev.tsv"
    data.write_text(HEADER + "".join(f"{number % 2}\t1\t2\train {number}\twind\n" for number in range(4)))
    place = export(run, tmp_path / "int8", precision="int8", gate_data=str(data), max_loss_of_metric=100.0)
    rows = runs.random_rows("pairs", 30, seed=3)
    with bert_tf.load(run) as model, bert_tf.load(place) as other:
        together = [one.probabilities["1"] for one in other.predict(rows)]
        assert together == [other.predict([row])[0].probabilities["1"] for row in rows]
        full = [one.probabilities["1"] for one in model.predict(rows)]
        assert 0 < np.abs(np.subtract(together, full)).max() < 0.1
    assert json.loads((place / "export.json").read_text())["precision"] == "int8"


def test_the_same_bytes_each_time_for_other_programs_too(run, folder, tmp_path):
    again = export(run, tmp_path / "again")
    for path in folder.iterdir():
        assert (again / path.name).read_bytes() == path.read_bytes()
    code = (
        "import json, sys, numpy, onnxruntime\n"
        f"session = onnxruntime.InferenceSession({str(folder / 'model.onnx')!r})\n"
        "ids = numpy.array([[2, 7, 3], [2, 3, 0]], numpy.int32)\n"
        "feed = {'input_ids': ids, 'input_mask': (ids > 0).astype('int32'), 'segment_ids': 0 * ids}\n"
        "labels = json.loads(session.get_modelmeta().custom_metadata_map['labels'])\n"
        "print(json.dumps([session.run(None, feed)[0].shape, labels, 'bert_tf' in sys.modules]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert json.loads(done.stdout) == [[2, 2], ["0", "1"], False]
    assert {"requirements.txt", "MODEL_CARD.md", "vocab.txt", "tokenizer.json", "bert_config.json"} <= {
        path.name for path in folder.iterdir()
    }
    wanted = (folder / "requirements.txt").read_text()
    assert "onnxruntime" in wanted
    assert "tensorflow" not in wanted.lower().partition("\n")[2]


def without_tensorflow(tmp_path, *lines):
    """Runs lines of Python where TensorFlow cannot be imported; returns what is printed."""
    (tmp_path / "sitecustomize.py").write_text(BLOCKED)
    code = "\n".join(("import json, sys, bert_tf", "from bert_tf.__main__ import main", *lines))
    paths = os.pathsep.join([str(tmp_path), os.getcwd()])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths})
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1], done.stderr


def test_nothing_imports_tensorflow(folder, run, tmp_path):
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"text_a": "rain", "text_b": "wind"}\n')
    (tmp_path / "texts.txt").write_text("rain\nwind\n")
    data = tmp_path / "dev.tsv"
    data.write_text(HEADER + "".join(f"{number % 2}\t1\t2\train\twind and rain\n" for number in range(40)))
    said, log = without_tensorflow(
        tmp_path,
        f"folder, here, data = {str(folder)!r}, {str(tmp_path)!r}, {f'--data={data}'!r}",
        "run = lambda *words: main(['bert_tf', *words])",
        "codes = [",
        "    run('predict', folder, f'--input={here}/rows.jsonl', f'--output={here}/out.jsonl'),",
        "    run('evaluate', f'--checkpoints={folder}', '--task_name=MRPC', data, f'--output_dir={here}/t'),",
        "    run('calibrate', folder, data, '--check'),",
        "    run('encode', folder, f'--input={here}/texts.txt', f'--output={here}/v.npz'),",
        "    run('search', f'--index={here}/v.npz', '--query=rain'),",
        "    run('export', folder, '--format=onnx', f'--output={here}/no'),",
        "]",
        "with bert_tf.load(folder) as model:",
        "    made = model.predict([('rain', 'wind')])[0].label, len(model.encode(['rain'])[0])",
        "print(json.dumps([codes, made, [name for name in sys.modules if name.startswith('tensorflow')]]))",
    )
    codes, made, modules = json.loads(said)
    assert (codes, modules) == ([0, 0, 0, 0, 0, 2], [])
    assert "error: this needs TensorFlow, which is not installed; only models exported with --format=onnx" in log
    with bert_tf.load(run) as model:
        assert made[0] == model.predict([("rain", "wind")])[0].label
    assert json.loads((tmp_path / "out.jsonl").read_text())["label"] == made[0]


def changed(copy, **facts):
    path = copy / "export.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **facts}))


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"format": "saved_model"}, "an export as saved_model, for other software; name the run, or export it as onnx"),
        ({"version": None}, f"of an earlier version of bert_tf, which wrote the graph alone; {AGAIN}"),
        ({"version": 3}, "of version 3, and this bert_tf knows 2; update it"),
        ({"precision": "int4"}, f"damaged: precision is 'int4'; {AGAIN}"),
        ({"scope": ".."}, "damaged: scope is '..'"),
        ({"step": -1}, "damaged: step is '-1'"),
        ({"outputs": []}, "damaged: outputs is "),
        ({"outputs": [{"name": "logits", "axis": "all", "width": 2, "padding": 0}]}, "damaged: outputs is "),
        ({"sha256": {"../vocab.txt": "0" * 64}}, "damaged: sha256 is "),
        ({"model": {"task_name": "MRPC", "kind": "classification"}}, "labels missing"),
        ({"learned_sha256": "0" * 64}, f"kind, labels or do_lower_case differ from the training; {AGAIN}"),
    ],
)
def test_a_record_that_is_not_usable_is_one_line(copy, facts, said):
    changed(copy, **facts)
    with pytest.raises(BertError, match=said):
        bert_tf.load(copy)


def test_an_export_json_of_the_users_own_is_no_export(tmp_path):
    (tmp_path / "export.json").write_text('{"format": "csv", "rows": 120}')
    assert ONNX.file_of(tmp_path) is None


def test_a_decision_rule_is_checked(copy):
    model = json.loads((copy / "export.json").read_text())["model"]
    for rule, problem in (
        ({"temperatures": [-1.0]}, "decision is no decision rule"),
        ({"temperatures": [], "thresholds": [0.5, 0.5, 0.5]}, "decision is the rule of another model"),
    ):
        changed(copy, model={**model, "decision": rule})
        with pytest.raises(BertError, match=problem):
            bert_tf.load(copy)
    changed(copy, model={**model, "decision": {"temperatures": [], "thresholds": None}})
    bert_tf.load(copy).close()


@pytest.mark.parametrize("name", ["model.onnx", "encoder.onnx", "weights.data", "vocab.txt", "bert_config.json"])
def test_a_damaged_or_missing_file_is_one_line(copy, name):
    (copy / name).write_bytes((copy / name).read_bytes()[:-1] + b"\x07")
    with pytest.raises(CheckpointError, match=f"{name}: differs from what export wrote; {AGAIN}"):
        bert_tf.load(copy).predict(PAIRS)
    (copy / name).unlink()
    with pytest.raises(CheckpointError, match="no such file"):
        bert_tf.load(copy)


def test_a_folder_that_is_exported_again_is_loaded_again(copy, tmp_path, monkeypatch):
    """Neither the session that a service shares nor a model that opens its graphs later mixes two exports."""
    monkeypatch.setattr(onnxruntime_session, "_shared", {})
    onnxruntime_session.share(copy / "model.onnx")
    (copy / "predictions.tsv").touch()
    assert onnxruntime_session._state(copy / "model.onnx") in onnxruntime_session._shared
    used, unused = (bert_tf.load(copy, intra_op_threads=1) for _ in range(2))
    before = used.predict(PAIRS)
    other = write_run(tmp_path / "other", {**MRPC, "max_seq_length": 8})
    export(other, copy, overwrite=True)
    assert used.predict(PAIRS) == before
    for opens in (lambda: unused.predict(PAIRS), lambda: used.encode(["rain"])):
        with pytest.raises(CheckpointError, match="copy: was exported again after it was loaded; load it again"):
            opens()
    assert onnxruntime_session._state(copy / "model.onnx") not in onnxruntime_session._shared


def test_calibrated_graphs_are_not_averaged(exported, tmp_path):
    for name in ("fold-1", "fold-2"):
        shutil.copytree(exported("options")[1], tmp_path / name)
    with pytest.raises(CheckpointError, match="its graph has the temperatures of a calibrated model; name the run instead"):
        bert_tf.predict_files(
            checkpoint=str(tmp_path / "fold-*"), average_outputs=True, input="-", output=str(tmp_path / "out.jsonl")
        )


def test_a_foreign_graph_is_one_line(copy):
    (copy / "export.json").unlink()
    with pytest.raises(CheckpointError, match=f"no export.json, so not a model that export wrote; {AGAIN}"):
        bert_tf.load(copy)


def test_the_card_may_be_edited_and_is_only_written_anew_from_the_run(copy):
    assert "\nModel in ONNX, fine-tuned with" in (copy / "MODEL_CARD.md").read_text()
    with pytest.raises(CheckpointError, match="results of its run are not here; name the run, or export it again"):
        bert_tf.write_card(copy, license="mit")
    (copy / "MODEL_CARD.md").write_text("ours")
    assert bert_tf.load(copy).labels == ("0", "1")


def test_what_needs_a_checkpoint_says_so(folder, run, tmp_path):
    model = bert_tf.load(folder)
    with bert_tf.load(run) as whole, pytest.raises(FlagError, match="--gate_data: measures --precision=int8 or bfloat16"):
        whole.export("onnx", tmp_path / "idle", gate_data="missing.tsv")
    for use in (lambda: model.explain(PAIRS[:1]), lambda: model.export("onnx", tmp_path / "again")):
        with pytest.raises(CheckpointError, match="an exported model has no weights for this; name the run"):
            use()
    with pytest.raises(CheckpointError, match="calibrate the run, and export it again"):
        bert_tf.calibrate(folder, task_name="MRPC")
    with pytest.raises(FlagError, match="--check chooses no rule; leave one of both out"):
        bert_tf.calibrate(folder, check=True, threshold="f1")
    assert read_settings(CalibrateSettings, {"checkpoint": str(folder)}).check is False
    with pytest.raises(CheckpointError, match="has no weights for this"):
        bert_tf.fine_tune("MRPC", init_checkpoint=folder, output_dir=tmp_path / "run")
    with pytest.raises(FlagError, match="--engine=openvino: .* is computed by onnxruntime; leave the flag out"):
        bert_tf.load(folder, engine="openvino")
    with pytest.raises(FlagError, match="--precision=int8: .* was exported in float32; leave the flag out"):
        bert_tf.load(folder, precision="int8")
    with pytest.raises(FlagError, match="--vocab_file: .* is an exported model, which has its own; leave it out"):
        bert_tf.load(folder, vocab_file=str(folder / "vocab.txt"))
    with pytest.raises(FlagError, match="is an exported model, and .* is none of its format: name them in two commands"):
        bert_tf.evaluate([str(folder), str(run)], task_name="MRPC", output_dir=tmp_path / "table")


def test_a_layer_is_an_output_of_the_encoder(folder):
    import onnxruntime

    session = onnxruntime.InferenceSession(str(folder / folders.ENCODER))
    assert [value.name for value in session.get_outputs()] == ["layer_0"]

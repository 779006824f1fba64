"""A RoBERTa in Hugging Face's layout, from its folder to a run and back; tests/modeling holds its numbers."""

import json
import pickle
import shutil

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf

import bert_tf
from bert_tf import __main__ as front
from bert_tf import encoders
from tests.modeling.test_encoders_oracle import write_folder

pytestmark = pytest.mark.versions

pytest.importorskip("tokenizers")

TEXTS = [("w1 w2", "w3"), ("w4", "w5 w6 w7"), ("w8", "w8")]
ROWS = [(f"w{n % 7}", "w1" if n % 2 else "w2 w3", ("no", "maybe", "yes")[n % 3]) for n in range(24)]
SETTINGS = {"max_seq_length": 10, "train_batch_size": 8, "num_train_steps": 2, "seed": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BERT_TF_HOME", str(tmp_path_factory.mktemp("home")))
        yield write_folder(tmp_path_factory.mktemp("folders") / "roberta", "roberta", "SequenceClassification")


@pytest.fixture(scope="module")
def run(folder, tmp_path_factory):
    output = tmp_path_factory.mktemp("runs") / "run"
    task = bert_tf.SentenceTask(train=ROWS, dev=ROWS[:6])
    bert_tf.fine_tune(task, init_checkpoint=str(folder), output_dir=output, eval_every_n_steps=1, **SETTINGS).close()
    return output


@pytest.fixture(scope="module")
def model(run):
    with bert_tf.load(run) as opened:
        yield opened


def of_texts(model):
    return [list(one.probabilities.values()) for one in model.predict(TEXTS)]


def probabilities(place, **options):
    with bert_tf.load(place, **options) as opened:
        return of_texts(opened)


def error(argv, capsys) -> str:
    """Returns the only line that a command fails with."""
    assert front.main(["bert_tf", *map(str, argv)]) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    return lines[0]


def test_a_run_keeps_the_tokenizer_with_every_model_and_needs_not_the_folder_it_began_with(folder, run, model, tmp_path):
    content = (folder / "tokenizer.json").read_bytes()
    for place in (run, run / "best"):
        assert (place / "tokenizer.json").read_bytes() == content
        assert not (place / "vocab.txt").exists()
    assert json.loads((run / "run_config.json").read_text())["training"]["do_lower_case"] is False
    moved = shutil.copytree(run, tmp_path / "moved")
    np.testing.assert_array_equal(probabilities(moved), of_texts(model))


def test_an_export_is_loaded_again(folder, model, tmp_path):
    model.export("huggingface", tmp_path / "hf", pairs=True)
    assert (tmp_path / "hf" / "tokenizer.json").read_bytes() == (folder / "tokenizer.json").read_bytes()
    assert not (tmp_path / "hf" / "vocab.txt").exists()
    settings = json.loads((tmp_path / "hf" / "tokenizer_config.json").read_text())
    assert (settings["cls_token"], settings["sep_token"], settings["pad_token"]) == ("<s>", "</s>", "<pad>")
    assert settings["model_input_names"] == ["input_ids", "attention_mask"]
    assert settings["add_prefix_space"] is False
    bert_tf.convert_checkpoint(model.checkpoint, to="hf", output=tmp_path / "converted")
    assert json.loads((tmp_path / "converted" / "tokenizer_config.json").read_text()) == settings
    values = json.loads((tmp_path / "hf" / "config.json").read_text())
    assert values["architectures"] == ["RobertaForSequenceClassification"]
    assert [values[name] for name in ("max_position_embeddings", "pad_token_id", "layer_norm_eps")] == [12, 1, 1e-5]
    np.testing.assert_allclose(probabilities(tmp_path / "hf"), of_texts(model), rtol=1e-6)


def test_other_formats_take_ids_alone_and_words_are_explained(run, model, tmp_path):
    model.export("saved_model", tmp_path / "saved", pairs=True)
    assert (tmp_path / "saved" / "assets" / "tokenizer.json").is_file()
    with tf.compat.v1.Session(graph=tf.Graph()) as session:
        loaded = tf.compat.v1.saved_model.load(session, ["serve"], str(tmp_path / "saved"))
    assert sorted(loaded.signature_def) == ["examples", "ids", "serving_default"]
    (explanation,) = model.explain([("w1 w2", "w3")])
    assert (explanation.words, explanation.segments) == (("w1", "w2", "w3"), (0, 0, 1))
    pytest.importorskip("onnxruntime")
    model.export("onnx", tmp_path / "onnx")  # which compares itself with TensorFlow
    np.testing.assert_allclose(probabilities(run, engine="onnxruntime"), of_texts(model), rtol=1e-5)


def test_an_estimator_is_pickled_with_its_tokenizer(folder):
    texts, names = [f"w{n}" for n in range(8)], ["a", "b"] * 4
    trained = bert_tf.BertClassifier(init_checkpoint=str(folder), **SETTINGS).fit(texts, names)
    restored = pickle.loads(pickle.dumps(trained))  # noqa: S301  (its own)
    np.testing.assert_array_equal(restored.predict_proba(texts), trained.predict_proba(texts))


def changed(folder, target, *, weights=None, tokenizer=True, **values):
    """Copies the folder with other values in its config.json; None takes one away."""
    shutil.copytree(folder, target, ignore=None if tokenizer else shutil.ignore_patterns("tokenizer.json"))
    content = {**json.loads((folder / "config.json").read_text()), **values}
    content = {name: value for name, value in content.items() if value is not None}
    (target / "config.json").write_text(json.dumps(content))
    if weights:
        arrays = safetensors.numpy.load_file(folder / "model.safetensors")
        safetensors.numpy.save_file(weights(arrays), target / "model.safetensors")
    return target


def wider(weights):
    name = "roberta.embeddings.word_embeddings.weight"
    return {**weights, name: np.concatenate([weights[name], weights[name][:6]])}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"pad_token_id": 0}, "pad_token_id is 0, only 1 can be loaded for model_type roberta"),
        ({"type_vocab_size": 2}, "type_vocab_size is 2, only 1 can be loaded for model_type roberta"),
        ({"max_position_embeddings": 2}, "max_position_embeddings is 0, expected at least 1"),
        ({"max_position_embeddings": 20}, "position_embeddings.weight gives (10, 12), not (18, 12)"),
        ({"vocab_size": 40}, "word_embeddings.weight gives (23, 12), not (40, 12)"),
        ({"vocab_size": 29, "weights": wider},
         "the vocabulary has 23 pieces, the configuration says 29; take tokenizer.json and the configuration"),
        ({"tokenizer": False}, "hf: no tokenizer.json beside the weights; AutoTokenizer of transformers writes it"),
    ],
)  # fmt: skip
def test_damaged_folders_end_in_one_line(folder, values, expected, tmp_path, capsys):
    place = changed(folder, tmp_path / "hf", **values)
    argv = ["classifier", "--task_name=MRPC", f"--init_checkpoint={place}", f"--output_dir={tmp_path}/out"]
    assert expected in error(argv, capsys)


def test_a_run_that_lost_the_file_says_which_and_next_sentences_are_refused(folder, run, tmp_path, capsys):
    place = shutil.copytree(run, tmp_path / "run")
    for path in place.rglob("tokenizer.json"):
        path.unlink()
    argv = ["predict", f"--checkpoint={place}", f"--input={__file__}", f"--output={tmp_path}/out.csv"]
    assert "tokenizer.json: no such file; name it with --vocab_file" in error(argv, capsys)
    (tmp_path / "text.txt").write_text("w1 w2\n\nw3\n" * 20)
    argv = ["pretrain", f"--init_checkpoint={folder}", f"--input_file={tmp_path}/text.txt", f"--output_dir={tmp_path}/out"]
    assert "--nsp: models of type roberta do not learn next sentences; add --nsp=false" in error(argv, capsys)


@pytest.mark.parametrize(("kind", "classes"), [("xlm-roberta", "XLMRoberta"), ("camembert", "Camembert")])
def test_other_types_differ_in_the_names_of_classes(kind, classes, folder, tmp_path):
    place = changed(folder, tmp_path / "hf", model_type=kind)
    np.testing.assert_array_equal(probabilities(place), probabilities(folder))
    assert encoders.ENCODERS[kind].classes == classes


def test_a_student_has_the_tokenizer_of_its_teacher(folder, tmp_path):
    deep = shutil.copytree(folder, tmp_path / "deep")  # its only layer twice
    weights = safetensors.numpy.load_file(deep / "model.safetensors")
    second = {name.replace("layer.0.", "layer.1."): value for name, value in weights.items() if "layer.0." in name}
    safetensors.numpy.save_file({**weights, **second}, deep / "model.safetensors", {"format": "pt"})
    values = json.loads((deep / "config.json").read_text())
    (deep / "config.json").write_text(json.dumps({**values, "num_hidden_layers": 2}))
    task = bert_tf.SentenceTask(train=ROWS, dev=ROWS[:6])
    bert_tf.fine_tune(task, init_checkpoint=str(deep), output_dir=tmp_path / "teacher", **SETTINGS).close()
    with bert_tf.distill(tmp_path / "teacher", task, student_layers=1, output_dir=tmp_path / "student", **SETTINGS) as model:
        assert len(model.predict(TEXTS)) == len(TEXTS)
    assert (tmp_path / "student" / "tokenizer.json").read_bytes() == (folder / "tokenizer.json").read_bytes()

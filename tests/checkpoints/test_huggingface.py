import json
import re
import struct

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

from bert_tf.checkpoints import huggingface, weight_files
from bert_tf.checkpoints.names import name_pairs, task_head
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.config import BertConfig
from bert_tf.errors import CheckpointError, ConfigError, VocabularyError
from bert_tf.estimator import run_folder
from tests.huggingface import write_folder, write_modules
from tests.modeling import test_encoders_oracle as encoders
from tests.tiny import TOKENS, random_weights

pytestmark = pytest.mark.versions

CONFIG = BertConfig.tiny(vocab_size=len(TOKENS))
NAMES = {pair.huggingface: pair.published for pair in name_pairs(CONFIG.num_hidden_layers)}
BIAS = "pooler.dense.bias"


@pytest.fixture
def folder(tmp_path):
    return write_folder(tmp_path / "hf")


def rewrite(folder, change):
    """Saves the tensors that `change` makes of name and array of each; None drops one."""
    path = folder / "model.safetensors"
    tensors = filter(None, (change(name, array) for name, array in safetensors.numpy.load_file(path).items()))
    safetensors.numpy.save_file(dict(tensors), path)


def read(folder):
    return huggingface.read_weights(folder / "model.safetensors", CONFIG)


def assert_original(weights):
    for name, value in random_weights(CONFIG).items():
        np.testing.assert_array_equal(weights[name], value, err_msg=name)


def with_header(content, change):
    """Returns a file with what `change` makes of its header before the same data."""
    length = struct.unpack("<Q", content[:8])[0]
    header = change(content[8 : 8 + length])
    return struct.pack("<Q", len(header)) + header + content[8 + length :]


def of_float8(header):
    """Says that a tensor has a type that NumPy lacks."""
    entries = json.loads(header)
    entries[BIAS] |= {"dtype": "F8_E4M3"}
    return json.dumps(entries).encode()


def test_a_model_without_pooler_gets_a_new_one(folder, caplog):
    rewrite(folder, lambda name, array: None if "pooler" in name else (name, array))
    first, second = read(folder), read(folder)
    kernel, width = first["bert/pooler/dense/kernel"], CONFIG.hidden_size
    assert (kernel.shape, first["bert/pooler/dense/bias"].tolist()) == ((width, width), [0.0] * width)
    assert 0 < np.abs(kernel).max() <= 2 * CONFIG.initializer_range
    np.testing.assert_array_equal(kernel, second["bert/pooler/dense/kernel"])
    assert "has no pooler: it is newly initialized" in caplog.text


def test_a_head_without_the_pooler_that_it_reads_is_left_out(folder, caplog):
    head = {"classifier.weight": np.ones((2, CONFIG.hidden_size), np.float32), "classifier.bias": np.zeros(2, np.float32)}
    rewrite(folder, lambda name, array: None if name.startswith("pooler") else (name, array))
    path = folder / "model.safetensors"
    safetensors.numpy.save_file({**safetensors.numpy.load_file(path), **head}, path)
    assert "output_weights" in huggingface.read_weights(path, CONFIG, architecture="['BertForTokenClassification']")
    assert "left out" not in caplog.text
    weights = huggingface.read_weights(path, CONFIG, architecture="['BertForSequenceClassification']")
    assert not task_head(weights)
    assert "its head reads pooler.dense, which is missing: the head is left out" in caplog.text


def test_the_pooler_of_multiple_choice_has_its_name_in_the_warning(tmp_path, caplog):
    folder = encoders.write_folder(tmp_path / "roberta", "roberta", "MultipleChoice")
    rewrite(folder, lambda name, array: None if "pooler" in name else (name, array))
    huggingface.convert(folder, tmp_path / "converted")
    assert "its head reads roberta.pooler.dense, which is missing" in caplog.text


@pytest.mark.parametrize(("changed", "kept"), [(0.0, True), (0.5, False)])
def test_a_head_with_word_vectors_of_its_own_is_left_out(folder, caplog, changed, kept):
    path = folder / "model.safetensors"
    tensors = safetensors.numpy.load_file(path)
    words = tensors["embeddings.word_embeddings.weight"]
    head = {"cls.predictions.bias": np.zeros(len(words), np.float32), "cls.predictions.decoder.weight": words + changed}
    safetensors.numpy.save_file({**tensors, **head}, path)
    assert ("cls/predictions/output_bias" in read(folder)) == kept
    assert ("has other word vectors in its head" in caplog.text) != kept


DAMAGES = [
    (lambda c: c[:0], "damaged weights: .*header too small"),
    (lambda c: c[:-1], "damaged weights: .*incomplete metadata, file not fully covered; fetch them again"),
    (lambda c: struct.pack("<Q", 2**60) + c[8:], "damaged weights: .*header too large"),
    (lambda c: with_header(c, lambda _: b"weights"), "damaged weights: .*invalid JSON in header"),
    (lambda c: with_header(c, of_float8), "pooler.dense.bias is of type f8_e4m3, which is not read"),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGES)
def test_a_damaged_file_ends_in_one_line(folder, damage, message):
    path = folder / "model.safetensors"
    if "f8" in message:
        rewrite(folder, lambda name, array: (name, array.astype(np.int8) if name == BIAS else array))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(CheckpointError, match=rf"\A{re.escape(str(path))}: [^\n]*{message}[^\n]*\Z"):
        read(folder)


OLD = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}


@pytest.mark.parametrize(
    "renamed",
    [lambda name: name, lambda name: f"bert.{name}", lambda name: re.sub("|".join(OLD), lambda match: OLD[match[0]], name)],
    ids=["plain", "with a prefix", "of the first PyTorch files"],
)
def test_reads_all_names_and_a_whole_head_beside_the_encoder(folder, renamed):
    rewrite(folder, lambda name, array: (renamed(name), array))
    path = folder / "model.safetensors"
    tensors = {**safetensors.numpy.load_file(path), "classifier.weight": np.ones([2, 8], np.float32)}
    safetensors.numpy.save_file(tensors, path)
    assert read(folder).keys() == set(NAMES.values())
    safetensors.numpy.save_file({**tensors, "classifier.bias": np.ones(2, np.float32)}, path)
    weights = read(folder)
    assert weights.keys() == {*NAMES.values(), "output_weights", "output_bias"}
    assert_original(weights)


@pytest.mark.parametrize("kind", [np.float16, np.float64, ml_dtypes.bfloat16], ids=lambda kind: kind.__name__)
def test_other_float_types_become_float32(folder, kind):
    rewrite(folder, lambda name, array: (name, array.astype(kind)))
    value = read(folder)["bert/pooler/dense/kernel"]
    assert value.dtype == np.float32
    np.testing.assert_allclose(value, random_weights(CONFIG)["bert/pooler/dense/kernel"], rtol=0.01)


NOT_FINITE = r"safetensors: weights that are NaN or infinite: bert/pooler/dense/bias; take another checkpoint$"
OTHER = r"safetensors: not the encoder that its configuration describes: "


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *(
            (lambda a, kind=kind: a.astype(kind), rf"{OTHER}{BIAS} is of type \w+, not floats$")
            for kind in (np.int64, np.int8, bool)
        ),
        *((lambda a, value=value: np.full_like(a, value), NOT_FINITE) for value in (np.nan, np.inf)),
        (lambda _: None, rf"{OTHER}{BIAS} is missing$"),
        (lambda a: a[:5], rf"{OTHER}{BIAS} gives \(5,\), not \(8,\)$"),
    ],
    ids=["int64", "int8", "bool", "nan", "inf", "missing", "shape"],
)
def test_a_tensor_that_cannot_be_used_is_named(folder, change, message):
    def changed(name, array):
        array = change(array) if name == BIAS else array
        return None if array is None else (name, array)

    rewrite(folder, changed)
    with pytest.raises(CheckpointError, match=message):
        read(folder)


def test_a_converted_folder_holds_the_same_weights_configuration_and_vocabulary(folder, tmp_path):
    target = tmp_path / "tf"
    huggingface.convert(folder, target)
    reader = CheckpointReader(target / "bert_model.ckpt")
    assert reader.shapes.keys() == set(NAMES.values())
    assert_original(reader)
    there = safetensors.numpy.load_file(folder / "model.safetensors")
    for name in (name for name in NAMES if name.endswith("intermediate.dense.weight")):
        np.testing.assert_array_equal(reader[NAMES[name]], there[name].T)
    assert BertConfig.from_json_file(target / "bert_config.json") == BertConfig.from_json_file(folder / "config.json")
    assert (target / "vocab.txt").read_bytes() == (folder / "vocab.txt").read_bytes()


@pytest.mark.parametrize(
    ("missing", "error", "message"),
    [
        ("config.json", ConfigError, r"config\.json: cannot read the configuration: No such file or directory"),
        ("vocab.txt", CheckpointError, r"hf: no vocab\.txt beside the weights"),
        ("model.safetensors", CheckpointError, r"model\.safetensors: cannot read the weights: No such file or directory"),
    ],
)
def test_a_failed_conversion_leaves_nothing(folder, tmp_path, missing, error, message):
    (folder / missing).unlink()
    with pytest.raises(error, match=message):
        huggingface.convert(folder, tmp_path / "out" / "tf")
    assert not (tmp_path / "out").exists()


def test_a_folder_is_converted_again_if_either_side_has_changed(folder, tmp_path, caplog, monkeypatch):
    made = huggingface.converted(folder, tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setattr(huggingface, "convert", None)
        assert huggingface.converted(folder, tmp_path / "out") == made
    (made / "vocab.txt").write_text("[PAD]\n")
    (made / "old").touch()
    assert huggingface.converted(folder, tmp_path / "out") == made
    assert (made / "vocab.txt").read_bytes() == (folder / "vocab.txt").read_bytes()
    assert not (made / "old").exists()
    assert f"{made}: vocab.txt has changed: it is made again" in caplog.messages
    rewrite(folder, lambda name, array: (name, array + 1))
    second = huggingface.converted(folder, tmp_path / "out")
    assert (made.parent, made.name[:3]) == (second.parent, "hf-")
    assert made != second


@pytest.mark.parametrize(
    ("pooling", "others", "recorded"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, ["Normalize"], "cls"),
        ({"pooling_mode_cls_token": 1, "pooling_mode_mean_tokens": 0}, [], "cls"),
        ({"pooling_mode_mean_tokens": True}, [], "mean"),
        ({}, [], "mean"),
        ({"pooling_mode": "max"}, [], "max"),
        ({"pooling_mode_lasttoken": True, "pooling_mode_mean_tokens": False}, [], "lasttoken"),
        ({"pooling_mode_cls_token": True}, [], "cls and mean"),
        ({"pooling_mode_mean_tokens": False}, [], "unknown (none in 1_Pooling/config.json)"),
        ({"pooling_mode_cls_token": True}, ["Dense", "Normalize"], "Dense"),
    ],
)
def test_the_vectors_of_sentence_transformers_are_recorded(folder, tmp_path, pooling, others, recorded):
    plain = huggingface.converted(folder, tmp_path)
    write_modules(folder, pooling, *others)
    (folder / "tokenizer_config.json").write_text('{"model_max_length": 24}')
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 12}')
    record = run_folder.trained(huggingface.converted(folder, tmp_path))
    assert record == {"pooling": recorded, "max_seq_length": 12, **({"normalize": True} if "Normalize" in others else {})}
    assert run_folder.trained(plain) == {}


def test_prompts_and_lower_case_of_sentence_transformers_are_recorded(folder, tmp_path):
    prompts = {"prompts": {"query": "q: ", "document": "passage: "}, "default_prompt_name": "document"}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    (folder / "sentence_bert_config.json").write_text('{"do_lower_case": true}')
    record = run_folder.trained(huggingface.converted(folder, tmp_path))
    assert record == {"left_out": "puts 'passage: ' before each text, lower-cases texts (do_lower_case)"}


@pytest.mark.parametrize("text", ["{}", "[", '["Pooling"]'])
def test_modules_that_are_damaged_are_no_pooling_but_can_be_converted(folder, tmp_path, text):
    (folder / "modules.json").write_text(text)
    converted = huggingface.converted(folder, tmp_path)
    assert run_folder.trained(converted)["pooling"] == "unknown (unreadable modules.json)"


def test_a_pooling_whose_file_is_missing_is_unknown_until_it_is_there(folder, tmp_path):
    write_modules(folder, {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False})
    config = folder / "1_Pooling" / "config.json"
    content = config.read_text()
    config.unlink()
    converted = huggingface.converted(folder, tmp_path)
    assert run_folder.trained(converted)["pooling"] == "unknown (unreadable 1_Pooling/config.json)"
    config.write_text(content)
    assert run_folder.trained(huggingface.converted(folder, tmp_path))["pooling"] == "cls"


def test_many_missing_tensors_are_counted(folder):
    rewrite(folder, lambda name, array: (name, array) if name == BIAS else None)
    with pytest.raises(CheckpointError, match=r"(\S+ is missing; ){2}\S+ is missing and 35 more$"):
        read(folder)


def configure(folder, **changes):
    path = folder / "config.json"
    values = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({name: value for name, value in values.items() if value is not None}))


@pytest.mark.parametrize("wrapper", ["module.", "module.bert.", "_orig_mod.module.", "0.auto_model."])
def test_the_prefix_of_a_wrapper_is_left_out(folder, wrapper):
    rewrite(folder, lambda name, array: (wrapper + name, array))
    assert_original(read(folder))


def renamed(name):
    return lambda folder: rewrite(folder, lambda own, array: (f"{name}{own}", array))


def added(name):
    def change(folder):
        path = folder / "model.safetensors"
        safetensors.numpy.save_file({**safetensors.numpy.load_file(path), name: np.ones([8, 8], np.float32)}, path)

    return change


def of_end(folder, name="tokenizer_config.json", said='{"truncation_side": "left"}'):
    (folder / name).write_text(said)
    path = folder / "model.safetensors"
    head = {"classifier.weight": np.ones([2, 8], np.float32), "classifier.bias": np.ones(2, np.float32)}
    safetensors.numpy.save_file({**safetensors.numpy.load_file(path), **head}, path)


def with_names(names):
    def change(folder):
        of_end(folder, said="{}")
        configure(folder, architectures=["BertForSequenceClassification"], id2label=names)

    return change


BEYOND = [
    (lambda folder: configure(folder, num_hidden_layers=1), "it has 2 layers, the configuration says 1"),
    (lambda folder: configure(folder, type_vocab_size=0), "embeddings.token_type_embeddings.weight would not be used"),
    (added("encoder.layer.1.crossattention.self.query.weight"), "crossattention.self.query.weight would not be used"),
    (added("embeddings.LayerNorm.gamma"), "LayerNorm.gamma and embeddings.LayerNorm.weight are one variable"),
    (renamed("net."), "embeddings.word_embeddings.weight is missing (there is net.embeddings.word_embeddings.weight)"),
    (lambda folder: configure(folder, is_decoder=True), "config.json: is_decoder is True: a decoder reads only"),
    (lambda folder: configure(folder, add_cross_attention=True), "config.json: add_cross_attention is True"),
    (lambda folder: configure(folder, quantization_config={"bits": 8}), "config.json: quantization_config is {'bits': 8}"),
    (with_names({"0": "a", "1": None}), "config.json: id2label must name the labels 0 to 1 of its head"),
    (with_names({"0": "a"}), "config.json: id2label must name the labels 0 to 1 of its head"),
    (of_end, "is not 'right': its model reads the end of long texts"),
    (
        lambda folder: of_end(  # as large as XLM-RoBERTa's with indents
            folder, "tokenizer.json", '{"truncation": {"direction": "Left", "max_length": 512}}'.ljust(17 << 20)
        ),
        "tokenizer_config.json: truncation_side (else direction in tokenizer.json) is not 'right': its model reads",
    ),
    (lambda folder: (folder / "added_tokens.json").write_text('{"x": 20000000}'), "has the id 20000000, but the pieces end at"),
]


@pytest.mark.parametrize(("change", "message"), BEYOND)
def test_what_would_be_read_otherwise_than_meant_is_refused(folder, tmp_path, change, message):
    change(folder)
    with pytest.raises((CheckpointError, ConfigError, VocabularyError)) as caught:
        huggingface.convert(folder, tmp_path / "tf")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_sizes_are_held_to_the_file_before_anything_is_made(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(huggingface, "_new_pooler", None)
    rewrite(folder, lambda name, array: None if "pooler" in name else (name, array))
    configure(folder, hidden_size=1 << 24)
    with pytest.raises(CheckpointError, match=r"word_embeddings\.weight gives \(34, 8\), not \(34, 16777216\)"):
        huggingface.convert(folder, tmp_path / "tf")


def test_a_configuration_without_model_type_is_of_hugging_face_and_said(folder, caplog):
    configure(folder, model_type=None)
    assert BertConfig.from_json_file(folder / "config.json").hidden_act == "gelu_erf"
    assert "no model_type: taken as bert, and hidden_act 'gelu' as gelu_erf" in caplog.text
    configure(folder, hidden_act="gelu_new")
    assert BertConfig.from_json_file(folder / "config.json").hidden_act == "gelu_tanh"


LAYOUTS = {
    "weights.bin": "weights.bin is not read; name it pytorch_model.bin",
    "tf_model.h5": 'tf_model.h5: Keras weights of transformers are not read.*"transformers<5".*from_tf=True.*" .* OUTPUT',
    "weights.safetensors": "weights.safetensors is not read; name it model.safetensors",
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_what_was_seen_in_another_folder_is_said_with_the_command_that_helps(tmp_path, name):
    (tmp_path / name).write_text("{}")
    assert re.fullmatch(f"{LAYOUTS[name]}.*", weight_files.unread(tmp_path))


def test_a_folder_without_weights_has_nothing_to_say(tmp_path):
    assert weight_files.unread(tmp_path) == weight_files.unread(tmp_path / "missing") == ""

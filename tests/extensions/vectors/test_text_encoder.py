"""Texts become vectors, of files that may be continued."""

import numpy as np
import pytest

from bert_tf.batch import loading, stream
from bert_tf.batch.file_pairs import FilePair
from bert_tf.batch.job import Columns, ModelOverrides
from bert_tf.batch.texts import TextInputs
from bert_tf.errors import FlagError
from bert_tf.extensions.vectors.files import ArrayForm, JsonForm, form_of
from bert_tf.extensions.vectors.options import VectorOptions, layer_numbers
from bert_tf.extensions.vectors.text_encoder import TextEncoder
from bert_tf.tasks.sentence.rows import SentenceExample
from tests.batch.runs import Counting, inference

LINES = ["rain", "the wind came near ||| a storm", "bread , soup", "cloud over a pear", "two", "red blue red", "far"]


@pytest.fixture(scope="module")
def model(project):
    """Is not trained."""
    return loading.load_encoder(project.init_checkpoint, ModelOverrides(max_seq_length=24))


@pytest.fixture(scope="module")
def encoder(model):
    made = TextEncoder(model, inference(), VectorOptions(normalize=True))
    yield made
    made.close()


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.txt"
    path.write_text("\n".join(LINES) + "\n")
    return path


def form(kind, model):
    return JsonForm() if kind == "jsonl" else ArrayForm(kind, "float32", model.config.hidden_size)


def encode(source, output, encoder, form):
    inputs = TextInputs(Columns(), chunk=2)
    stream.predict(FilePair(str(source), str(output)), inputs, encoder, {}, form=form)


@pytest.mark.parametrize("killed_at", [0, 2, 3])
@pytest.mark.parametrize("kind", ["npy", "npz", "parquet", "jsonl"])
def test_killed_and_started_again_gives_the_same_bytes(source, tmp_path, encoder, model, kind, killed_at):
    out, whole = tmp_path / f"out.{kind}", tmp_path / f"whole.{kind}"
    encode(source, whole, encoder, form(kind, model))
    with pytest.raises(KeyboardInterrupt):
        encode(source, out, Counting(encoder, killed_at), form(kind, model))
    assert not out.exists()
    if killed_at:
        with open(f"{out}.part", "ab") as part:
            part.write(b"half a")
    again = Counting(encoder)
    encode(source, out, again, form(kind, model))
    assert again.chunks == list(range(killed_at, 4))
    assert out.read_bytes() == whole.read_bytes()
    assert not (tmp_path / f"out.{kind}.part").exists()
    encode(source, out, Counting(encoder, killed_at=0), form(kind, model))  # it is there already


def test_killed_while_the_file_is_put_together(source, tmp_path, encoder, model, monkeypatch):
    def killed(*_):
        raise KeyboardInterrupt

    out, whole = tmp_path / "out.npz", tmp_path / "whole.npz"
    encode(source, whole, encoder, form("npz", model))
    monkeypatch.setattr(ArrayForm, "assemble", killed)
    with pytest.raises(KeyboardInterrupt):
        encode(source, out, encoder, form("npz", model))
    monkeypatch.undo()
    encode(source, out, Counting(encoder, killed_at=0), form("npz", model))  # computes nothing
    assert out.read_bytes() == whole.read_bytes()


def test_order_length_and_type_of_vectors(source, tmp_path, encoder, model):
    encode(source, tmp_path / "out.npy", encoder, form("npy", model))
    texts = [SentenceExample("1", *line.split(" ||| ")) for line in LINES]
    alone = [encoder.vectors(encoder.read([text])).values[0] for text in texts]
    vectors = np.load(tmp_path / "out.npy")
    np.testing.assert_allclose(vectors, alone, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, rtol=1e-6)
    encode(source, tmp_path / "out.npy", encoder, ArrayForm("npy", "float16", model.config.hidden_size))
    assert (vectors.dtype, np.load(tmp_path / "out.npy").dtype) == ("float32", "float16")  # another form is another output


def test_cut_texts_are_counted_over_chunks(tmp_path, model):
    source = tmp_path / "in.txt"
    source.write_text("\n".join(["rain " * 40, "rain", "two", "red", "wind " * 40, "soup " * 40]) + "\n")  # 3 chunks of 2
    counting = TextEncoder(model, inference(), VectorOptions())
    encode(source, tmp_path / "out.npy", counting, form("npy", model))
    counting.close()
    assert counting.truncated == 3


@pytest.mark.parametrize(
    ("overrides", "options", "message"),
    [
        ({}, {"layers": (0, 1)}, "--layers: no layer 1: the model has 0 to 0, or from the last -1 to -1"),
        ({}, {"layers": (-2,)}, "--layers: no layer -2"),
        ({"long_text": "windows"}, {"tokens": True}, "--long_text=windows: a token is in several windows"),
    ],
)
def test_vectors_that_a_model_does_not_have_are_refused(project, overrides, options, message):
    model = loading.load_encoder(project.init_checkpoint, ModelOverrides(max_seq_length=24, **overrides))
    with pytest.raises(FlagError, match=message):
        TextEncoder(model, inference(), VectorOptions(**options))


@pytest.mark.parametrize(
    ("read", "values", "expected"),
    [
        (layer_numbers, ["-1"], (-1,)),
        (layer_numbers, ["-1, -2"], (-1, -2)),
        (layer_numbers, [0], (0,)),
        (layer_numbers, [[0, -1]], (0, -1)),
        (layer_numbers, ["last"], "write whole numbers"),
        (layer_numbers, ["-1,"], "write whole"),
        (layer_numbers, ["1,1"], "named twice"),
        (layer_numbers, [[]], "name one"),
        (layer_numbers, [[1.5]], "write"),
        (form_of, ["a.npy", None], ("npy", False)),
        (form_of, ["A.JSONL.GZ", None], ("jsonl", True)),
        (form_of, ["-", None], ("jsonl", False)),
        (form_of, ["a.json", "published"], ("published", False)),
        (form_of, ["a.vec", "npz"], ("npz", False)),
        (form_of, ["a.txt", None], "name it .npy"),
        (form_of, ["a", None], "name it"),
        (form_of, ["a.npz.gz", None], "cannot write npz"),
    ],
)
def test_layers_by_number_and_forms_by_name(read, values, expected):
    if isinstance(expected, tuple):
        assert read(*values) == expected
    else:
        with pytest.raises(FlagError, match=expected):
            read(*values)

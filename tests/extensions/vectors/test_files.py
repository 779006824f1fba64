"""Vectors in files."""

import gzip
import json
import zipfile

import numpy as np
import pyarrow.parquet
import pytest

from bert_tf.errors import BertError
from bert_tf.extensions.vectors.files import ArrayForm, JsonForm, PublishedForm
from bert_tf.extensions.vectors.text_encoder import Vectors
from bert_tf.tasks.sentence.rows import SentenceExample

TEXTS = [SentenceExample("1", "rain"), SentenceExample("2", 'wind \u2028 "x"', "über"), SentenceExample("3", "soup")]
ROWS = [{"id": "1", "text": "rain"}, {"id": "2", "text": TEXTS[1].text_a, "text_b": "über"}, {"id": "3", "text": "soup"}]
WIDTH = 4
SENTENCES = Vectors(np.random.default_rng(0).normal(size=(3, WIDTH)).astype(np.float32))
LENGTHS = np.array([2, 1, 3], np.int32)
TOKENS = Vectors(np.random.default_rng(1).normal(size=(6, WIDTH)).astype(np.float32), LENGTHS, list("abcdef"))
PIECES = [["a", "b"], ["c"], ["d", "e", "f"]]


def parts_of(form, vectors):
    """Returns the parts of two chunks: of the first two texts, and the last."""
    of_tokens = vectors.lengths is not None
    middle = 3 if of_tokens else 2
    parts = [
        Vectors(vectors.values[:middle], *((LENGTHS[:2], vectors.pieces[:3]) if of_tokens else ())),
        Vectors(vectors.values[middle:], *((LENGTHS[2:], vectors.pieces[3:]) if of_tokens else ())),
    ]
    return b"".join(form.part(texts, part) for texts, part in zip((TEXTS[:2], TEXTS[2:]), parts))


@pytest.fixture
def write(tmp_path):
    def write(form, vectors):
        parts, whole = tmp_path / "parts", tmp_path / f"whole.{form.kind}"
        parts.write_bytes(parts_of(form, vectors))
        form.assemble(parts, whole)
        return whole

    return write


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_vectors_of_texts(write, dtype):
    values = SENTENCES.values.astype(dtype)
    loaded = np.load(write(ArrayForm("npy", dtype, WIDTH), SENTENCES), mmap_mode="r")
    assert loaded.dtype == dtype
    np.testing.assert_array_equal(loaded, values)
    path = write(ArrayForm("npz", dtype, WIDTH, {"pooling": "mean"}), SENTENCES)
    loaded = np.load(path)
    np.testing.assert_array_equal(loaded["vectors"], values)
    assert [json.loads(line) for line in loaded["rows.jsonl"].decode().split("\n")[:-1]] == ROWS
    assert json.loads(loaded["encoding.json"]) == {"pooling": "mean"}
    assert zipfile.ZipFile(path).testzip() is None
    table = pyarrow.parquet.read_table(write(ArrayForm("parquet", dtype, WIDTH), SENTENCES))
    np.testing.assert_array_equal(table["vector"].to_pylist(), values)
    rows = table.select(["id", "text", "text_b"]).to_pylist()
    assert [{name: value for name, value in row.items() if value is not None} for row in rows] == ROWS


def test_vectors_of_tokens(write):
    loaded = np.load(write(ArrayForm("npz", "float32", WIDTH), TOKENS))
    np.testing.assert_array_equal(loaded["vectors"], TOKENS.values)
    np.testing.assert_array_equal(loaded["lengths"], LENGTHS)
    assert [json.loads(line)["tokens"] for line in loaded["rows.jsonl"].decode().split("\n")[:-1]] == PIECES
    table = pyarrow.parquet.read_table(write(ArrayForm("parquet", "float32", WIDTH), TOKENS))
    assert table["tokens"].to_pylist() == PIECES
    np.testing.assert_array_equal(np.concatenate(table["vectors"].to_pylist()), TOKENS.values)


def test_json_lines_have_every_bit_and_the_published_layout_six_digits():
    plain = parts_of(JsonForm(), SENTENCES)
    lines = [json.loads(line) for line in plain.decode().split("\n")[:-1]]
    np.testing.assert_array_equal(np.array([line.pop("vector") for line in lines], np.float32), SENTENCES.values)
    assert lines == ROWS
    assert gzip.decompress(parts_of(JsonForm(compressed=True), SENTENCES)) == plain
    lines = [json.loads(line) for line in parts_of(JsonForm(), TOKENS).decode().split("\n")[:-1]]
    assert [line["tokens"] for line in lines] == PIECES
    np.testing.assert_array_equal(np.concatenate([np.array(line["vectors"], np.float32) for line in lines]), TOKENS.values)
    first, *_ = parts_of(PublishedForm((-1, -2)), TOKENS).decode().split("\n")
    values = TOKENS.values.astype(float).round(6).tolist()
    layers = [[{"index": -1, "values": row[:2]}, {"index": -2, "values": row[2:]}] for row in values[:2]]
    tokens = [{"token": piece, "layers": of_token} for piece, of_token in zip("ab", layers)]
    assert json.loads(first) == {"linex_index": 0, "features": tokens}


def test_published_lines_of_several_files_have_the_file_in_their_number():
    """As a pipeline of Beam writes them into one output."""
    texts = [SentenceExample(f"{name}.txt:7", "rain") for name in ("a", "b")]
    values = Vectors(np.ones((2, WIDTH), np.float32), np.array([1, 1], np.int32), ["rain", "rain"])
    lines = PublishedForm((-1,)).part(texts, values).decode().splitlines()
    assert [json.loads(line)["linex_index"] for line in lines] == ["a.txt:7", "b.txt:7"]


def test_a_vector_that_the_type_has_no_room_for_is_refused():
    form = ArrayForm("npy", "float16", 1)
    for number in (1e6, 1e-9, np.nan):
        with pytest.raises(BertError, match="--dtype=float16: a vector is too large or too small"):
            form.part(TEXTS[:1], Vectors(np.array([[number]], np.float32)))
    form.part(TEXTS[:1], Vectors(np.zeros((1, 1), np.float32)))  # zeros are written

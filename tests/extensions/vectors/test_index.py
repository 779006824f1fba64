"""Files of vectors that are searched, whole and damaged."""

import json
import zipfile

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from bert_tf.batch.job import Columns
from bert_tf.errors import DataError, FlagError
from bert_tf.extensions.vectors import files, index
from bert_tf.extensions.vectors.files import ArrayForm
from bert_tf.extensions.vectors.nearest import nearest
from bert_tf.extensions.vectors.text_encoder import Vectors
from bert_tf.settings import values_of
from bert_tf.tasks.sentence.rows import SentenceExample

COUNT, WIDTH = 50, 4
VALUES = np.random.default_rng(0).normal(size=(COUNT, WIDTH)).astype(np.float32)
TEXTS = [SentenceExample(f"id{n}", f"text {n}", f"pair {n}" if n % 2 else None) for n in range(COUNT)]
ENCODING = {"pooling": "mean", "layers": [-1]}


def write(path, kind=None):
    """Writes an index of two chunks, the first of 20 texts."""
    form = ArrayForm(kind or path.suffix[1:], "float32", WIDTH, ENCODING)
    chunks = [slice(0, 20), slice(20, COUNT)]
    parts = path.with_suffix(".part")
    parts.write_bytes(b"".join(form.part(TEXTS[chunk], Vectors(VALUES[chunk])) for chunk in chunks))
    form.assemble(parts, path)
    return path


def read(path, source=None):
    """Returns all vectors and texts of an index."""
    with index.readable_errors(str(path)):
        opened = index.opened(str(path), None if source is None else str(source))
        nearest(np.ones((1, opened.width)), opened.blocks(), 1)
        return np.concatenate(list(opened.blocks())), opened.rows(range(COUNT))


@pytest.mark.parametrize("kind", ["npz", "parquet"])
@pytest.mark.parametrize("block", [1, 20, 7, 8192])
def test_vectors_and_texts_come_in_their_order(tmp_path, monkeypatch, kind, block):
    monkeypatch.setattr(index, "_BLOCK", block)
    monkeypatch.setattr(files, "_ROWS_OF_GROUP", 13)
    path = write(tmp_path / f"i.{kind}")
    vectors, rows = read(path)
    np.testing.assert_array_equal(vectors, VALUES)
    assert {n: (row["id"], row["text"], row.get("text_b")) for n, row in rows.items()} == {
        n: (text.guid, text.text_a, text.text_b) for n, text in enumerate(TEXTS)
    }
    opened = index.opened(str(path), None)
    for number in (0, 19, 20, COUNT - 1):
        (best,) = nearest(VALUES[[number]], opened.blocks(), 1)
        assert (best.numbers.tolist(), opened.rows([number])[number]["text"]) == ([number], f"text {number}")


def npy(text, data=b""):
    """Returns the bytes of an .npy with this header."""
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + data


def header(shape, descr="<f4", *, fortran_order=False):
    return repr({"descr": descr, "fortran_order": fortran_order, "shape": shape})


SPOILED_ARRAYS = {
    "": "the header of an array is missing",
    npy(header((10**30, WIDTH))): "vectors of 4 numbers .* are announced, but 0 bytes follow",
    npy(header((-1, WIDTH))): "-1 vectors",
    npy(header((-1, -4)), bytes(16)): "-1 vectors",
    npy(header((0, WIDTH))): "0 vectors",
    npy(header((2, WIDTH)), bytes(31)): "2 vectors of 4 numbers .float32. are announced, but 31 bytes follow",
    npy(header((2, WIDTH)), bytes(33)): "but 33 bytes follow",
    npy(header(())): "an array of float32 with 0 axes",
    npy(header((2, WIDTH), "|O"), bytes(64)): "an array of object",
    npy(header((2, WIDTH), "nothing")): "the header of an array is missing or damaged",
    npy("{" * 5000): "the header of an array is missing or damaged",
    npy("'''"): "the header of an array is missing or damaged",
    npy("{[]: 1}"): "the header of an array is missing or damaged",
    npy(header((True, WIDTH), "<f4"))[:30]: "the header of an array is missing or damaged",
}


def rewritten(path, **members):
    """Writes an .npz anew, with other members; None leaves one out."""
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    content.update({name.replace("__", "."): data for name, data in members.items()})
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            if data is not None:
                archive.writestr(name, data, zipfile.ZIP_DEFLATED if data == COMPRESSED else zipfile.ZIP_STORED)
    return path


COMPRESSED = b"{}"


@pytest.mark.parametrize("kind", ["npy", "npz"])
@pytest.mark.parametrize(("data", "message"), SPOILED_ARRAYS.items())
def test_an_array_of_another_size_or_kind_is_refused_unmapped(tmp_path, monkeypatch, kind, data, message):
    monkeypatch.setattr(np, "memmap", None)
    path = tmp_path / f"i.{kind}"
    if kind == "npy":
        path.write_bytes(data or b"")
    else:
        rewritten(write(path), vectors__npy=data)
    with pytest.raises(DataError, match=f"i.{kind}: holds no vectors of texts, or is damaged: .*{message}"):
        index.opened(str(path), None)


SPOILED_MEMBERS = {
    "no rows": ({"rows__jsonl": None}, "rows.jsonl"),
    "short rows": ({"rows__jsonl": b'{"id": "1", "text": "a"}\n' * (COUNT - 1)}, "rows.jsonl has 49 texts, vectors.npy 50"),
    "long rows": ({"rows__jsonl": b'{"id": "1", "text": "a"}\n' * (COUNT + 1)}, "rows.jsonl has 51 texts"),
    "other rows": ({"rows__jsonl": b'["a"]\n' * COUNT}, r"not a text: \['a'\]"),
    "no id": ({"rows__jsonl": b'{"text": "a"}\n' * COUNT}, "a text without an id"),
    "a number as text": ({"rows__jsonl": b'{"id": "1", "text": 5}\n' * COUNT}, "not a text"),
    "no rows of json": ({"rows__jsonl": b"a\n" * COUNT}, "not JSON"),
    "a list": ({"encoding__json": b"[]"}, "unusable record"),
    "no pooling": ({"encoding__json": b'{"layers": [-1]}'}, "unusable record of what made the vectors: 'pooling'"),
    "a layer in words": ({"encoding__json": b'{"pooling": "mean", "layers": ["x"]}'}, "write whole numbers"),
    "no layers": ({"encoding__json": b'{"pooling": "mean", "layers": 1.5}'}, "write whole numbers"),
    "a long length": ({"encoding__json": json.dumps({**ENCODING, "max_seq_length": "x"})}, "max_seq_length='x': expected"),
    "columns that are a list": ({"encoding__json": json.dumps({**ENCODING, "columns": []})}, "unusable record"),
    "a switch of another kind": (
        {"encoding__json": json.dumps({**ENCODING, "skip_bad_rows": 1})},
        "skip_bad_rows must be true or false",
    ),
    "vectors by columns": (
        {"vectors__npy": npy(header((COUNT, WIDTH), fortran_order=True), VALUES.T.tobytes())},
        "vectors.npy is in Fortran order",
    ),
    "a name of another kind": ({"encoding__json": json.dumps({**ENCODING, "checkpoint": 5})}, "checkpoint"),
    "lengths": ({"lengths__npy": b""}, "these are vectors of tokens"),
    "compressed": ({"encoding__json": COMPRESSED}, "encoding.json is compressed"),
}


@pytest.mark.parametrize(("members", "message"), SPOILED_MEMBERS.values(), ids=SPOILED_MEMBERS)
def test_an_npz_with_other_members_is_refused(tmp_path, members, message):
    with pytest.raises(DataError, match=f"holds no vectors of texts, or is damaged: .*{message}"):
        read(rewritten(write(tmp_path / "i.npz"), **members))


@pytest.mark.parametrize("kind", ["npz", "parquet"])
def test_damaged_bytes_are_noticed(tmp_path, kind):
    path = write(tmp_path / f"i.{kind}")
    data = bytearray(path.read_bytes())
    place = len(data) // 4  # within the vectors
    data[place : place + 8] = bytes(8)
    path.write_bytes(data)
    with pytest.raises(DataError, match=f"i.{kind}: "):
        read(path)


def table(vectors, **columns):
    rows = {"id": [f"id{n}" for n in range(len(vectors))], "text": ["a"] * len(vectors), **columns}
    return pyarrow.table({**rows, "vector": vectors}).replace_schema_metadata({"encoding.json": json.dumps(ENCODING)})


FIXED = pyarrow.list_(pyarrow.float32(), 2)
SPOILED_TABLES = {
    "a row without vector": (table(pyarrow.array([[1, 2], None, [3, 4]], FIXED)), "(a row has no vector|Expected all lists)"),
    "a missing number": (table(pyarrow.array([[1, 2], [None, 4]], FIXED)), "row 1, counted from 0, has NaN"),
    "vectors of any length": (table(pyarrow.array([[1.0], [2.0, 3.0]])), "its vectors are of the type list<"),
    "whole numbers": (table(pyarrow.array([[1, 2]], pyarrow.list_(pyarrow.int32(), 2))), "its vectors are of the type"),
    "ids that are numbers": (table(pyarrow.array([[1, 2]], FIXED), id=[5]), "a text without an id"),
    "no record": (table(pyarrow.array([[1, 2]], FIXED)).replace_schema_metadata({}), "encoding.json"),
}


@pytest.mark.parametrize(("made", "message"), SPOILED_TABLES.values(), ids=SPOILED_TABLES)
def test_another_table_is_refused(tmp_path, made, message):
    path = tmp_path / "i.parquet"
    try:
        pyarrow.parquet.write_table(made, path)
    except NotImplementedError as error:
        pytest.skip(str(error))  # an older pyarrow writes no rows without vectors
    with pytest.raises(DataError, match=f"i.parquet: holds no vectors of texts, or is damaged: .*{message}"):
        read(path)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8", "<f2"])
def test_arrays_of_any_layout_are_read(tmp_path, order, dtype, caplog):
    np.save(tmp_path / "i.npy", np.asarray(VALUES, dtype, order=order))
    np.testing.assert_array_equal(read(tmp_path / "i.npy")[0], VALUES.astype(dtype))
    assert "i.npy: holds no ids; those shown are places in it, from 1" in caplog.text


def texts(folder, count, *, first=0):
    path = folder / "texts.txt"
    path.write_text("".join(f"text {n}\n" for n in range(first, first + count)))
    return path


@pytest.mark.parametrize("count", [COUNT - 1, COUNT + 1])
def test_texts_that_are_not_as_many_as_vectors_are_refused(tmp_path, count):
    path, source = write(tmp_path / "i.npy"), texts(tmp_path, count)
    with pytest.raises(DataError, match=f"texts.txt: has {count} texts, but .*i.npy has {COUNT} vectors"):
        read(path, source)


def test_an_npy_has_its_texts_by_their_place_and_its_record_beside_it(tmp_path):
    rows = read(write(tmp_path / "i.npy"), texts(tmp_path, COUNT))[1]
    assert rows[20] == {"id": "21", "text": "text 20"}
    with pytest.raises(FlagError, match=r"--texts=t: .*i.npz holds its texts"):
        read(write(tmp_path / "i.npz"), "t")
    path = write(tmp_path / "i.npy")
    job_of(path)
    assert index.opened(str(path), None).encoding == ENCODING
    np.save(path, VALUES[:3])
    assert index.opened(str(path), None).encoding == {}


def job_of(path, **settings):
    """Writes what `encode` leaves beside an .npy."""
    state = {"settings": {**ENCODING, **settings}, "size": path.stat().st_size}
    path.with_name(f"{path.name}.job.json").write_text(json.dumps(state))


def test_texts_are_those_that_were_encoded_read_as_they_were(tmp_path):
    path, source = write(tmp_path / "i.npy"), texts(tmp_path, COUNT)
    job_of(path, input_sha256=index.files.digest(source))
    read(path, source)
    texts(tmp_path, COUNT, first=1)
    with pytest.raises(DataError, match=r"texts.txt: is not the file that became .*i.npy, or was changed"):
        read(path, source)
    path, source = write(tmp_path / "i.npy"), tmp_path / "rows.csv"
    source.write_text("text,title\n" + "".join(f"no,text {n}\n" for n in range(COUNT)) + ",\n")
    job_of(path, input_sha256=index.files.digest(source), columns=values_of(Columns(text_a="title")), skip_bad_rows=True)
    assert read(path, source)[1][20]["text"] == "text 20"

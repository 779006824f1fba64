"""Files of texts."""

import gzip

import pytest

from bert_tf.batch.job import Columns
from bert_tf.batch.texts import TextInputs
from bert_tf.errors import DataError, FlagError


def read(path, *, skip_bad_rows=False, **columns):
    chunks = TextInputs(Columns(**columns), skip_bad_rows).chunks(str(path))
    return [(one.guid, *one.texts) for chunk in chunks for one in chunk]


def written(folder, name, text):
    path, data = folder / name, text.encode(errors="surrogateescape")
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


LINES = 'one "quoted"\ttext\r\na ||| b\nx ||| y ||| z\n'
READ = [("1", 'one "quoted"\ttext'), ("2", "a", "b"), ("3", "x ||| y", "z")]


@pytest.mark.parametrize(
    ("name", "text", "columns", "expected"),
    [
        *((name, LINES, {}, READ) for name in ("a.txt", "a", "a.txt.gz", "a.en")),
        ("a.txt", "one\n\nthree\n", {"skip_bad_rows": True}, [("1", "one"), ("3", "three")]),
        ("a.tsv", "id\ttext\nq\tone\nr\ttwo\n", {"id_column": "id"}, [("q", "one"), ("r", "two")]),
        ("a.csv", 'text_a,text_b\n"a, b",c\n', {}, [("2", "a, b", "c")]),
        ("a.jsonl", '{"text": "one"}\n{"text": "two ||| three"}\n', {}, [("1", "one"), ("2", "two ||| three")]),
        ("a", "x\tone\n", {"file_format": "tsv", "text_a": "2"}, [("1", "one")]),
        ("a.tsv", "no\ttable\n", {"file_format": "text"}, [("1", "no\ttable")]),
        ("a.txt", "id\tbody\nq\tone\n", {"id_column": "id", "text_a": "body"}, [("q", "one")]),
    ],
)
def test_lines_and_columns_of_tables(tmp_path, name, text, columns, expected):
    assert read(written(tmp_path, name, text), **columns) == expected


def test_columns_of_lines_are_refused():
    with pytest.raises(FlagError, match="--text_a: --file_format=text reads a text in each line; leave one out"):
        TextInputs(Columns(text_a="body", file_format="text"))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.txt", "one\n\nthree\n", "a.txt:2: the line has no text"),
        ("a.txt", "one ||| \n", r"a.txt:1: no text beside \|\|\|"),
        ("a.txt", "", "a.txt: the file is empty"),
        ("a.txt", "one\n\udcff\n", "a.txt:2: not UTF-8"),
        ("a.jsonl", '{"text": "one"}\n{"text": 3}\n', "a.jsonl:2: the value in column 'text' is not a string"),
        ("a.csv", "title\none\n", "a.csv: which column holds the text"),
    ],
)
def test_a_bad_row_is_named(tmp_path, name, text, message):
    with pytest.raises(DataError, match=message):
        read(written(tmp_path, name, text))

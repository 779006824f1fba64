"""Tables in every format, whole and damaged."""

import csv
import gzip
import io
import itertools
import os
import sys
import threading
import tracemalloc

import pytest

from bert_tf.errors import DataError
from bert_tf.tasks import text_lines
from bert_tf.tasks.tables import RowError, open_table
from tests.tasks.refusals import refusal

BOM = b"\xef\xbb\xbf"
LATIN1 = "; iconv -f LATIN1 -t UTF-8 converts Latin-1"
GZIPPED = gzip.compress(b"x\n" * 99)


def write(folder, data: bytes, name: str = "train.tsv"):
    """Writes a file; returns its path."""
    path = folder / name
    path.write_bytes(data)
    return path


def rows(path, *columns, **options):
    """Returns the line and the cells of each row."""
    return list(open_table(path, **options).read(columns, lambda line, cells: (line, cells)))


def cells(path, *columns, **options):
    return [found for _, found in rows(path, *columns, **options)]


def message_of(path, *columns, **options) -> str:
    return refusal(DataError, cells, path, *columns, **options)


@pytest.mark.parametrize("start", [b"", BOM])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("blank", [0, 1, 3])
@pytest.mark.parametrize(("name", "comma"), [("a.tsv", b"\t"), ("a.TSV", b"\t"), ("a.b.txt", b"\t"), ("a.csv", b",")])
def test_byte_order_mark_line_ends_and_blank_lines_at_the_end_are_no_part_of_a_cell(tmp_path, start, end, blank, name, comma):
    data = start + end.join([b"sentence" + comma + b"label", b"a b" + comma + b"1", b"c" + comma + b"0", *[b""] * blank])
    assert cells(write(tmp_path, data, name), "sentence", "label") == [["a b", "1"], ["c", "0"]]


@pytest.mark.parametrize(
    "text",
    [
        *(f"one{character}two" for character in "\u2028\u2029\x85\x0b\x0c\x1c\r"),  # only a line feed ends a line
        *('"', 'say "no"', '"whole"', '"open', "don't", '""', 'end"'),  # quotes are characters like any other
        " a ",
        "",
    ],
    ids=ascii,
)
def test_cells_of_tsv_are_what_stands_there(tmp_path, text):
    assert cells(write(tmp_path, f"sentence\tlabel\n{text}\t1\nnext\t{text}\n".encode()), "sentence", "label")[0] == [text, "1"]
    assert cells(write(tmp_path, f"sentence\tlabel\na\t{text}\nnext\t\n".encode()), "label") == [[text.rstrip("\r")], [""]]


@pytest.mark.parametrize(
    ("data", "columns", "options", "expected"),
    [
        (b"x\ty\tz\n1\t2\t3\n", "zx", {}, [(2, ["3", "1"])]),
        (b"x\ty\n1\t2\n\t\n", "2x", {}, [(2, ["2", "1"]), (3, ["", ""])]),  # numbers count from one; tabs are a row
        (b"2\t1\na\tb\n", "1", {}, [(2, ["b"])]),  # a name that is a number counts as a name
        (b"1\t2\n3\t4\n", "y", {"header": ("x", "y")}, [(1, ["2"]), (2, ["4"])]),
        (b"1\t2\n3\t4\n", "2", {"header": False}, [(1, ["2"]), (2, ["4"])]),
        (b"x\ty\tx\n1\t2\t3\n", "y", {}, [(2, ["2"])]),
        (b"x\n", "x", {}, []),
    ],
)
def test_columns_and_line_numbers(tmp_path, data, columns, options, expected):
    assert rows(write(tmp_path, data), *columns, **options) == expected


READS = "; the header line reads sentence | label"


@pytest.mark.parametrize(
    ("data", "columns", "message"),
    [
        *(
            (b"sentence\tlabel\na\t1\n", name, f":1: no column {name!r}{READS}")
            for name in ("text", "Sentence", "a ", "3", "0")
        ),
        (b"sentence\tlabel\n", "x,label,y", f":1: no column 'x', 'y'{READS}"),
        (b"x\ty\tx\n1\t2\t3\n", "x", ":1: column 'x' appears 2 times in the header line"),
        (b"some words\t1\n", "sentence", ":1: no column 'sentence'; the header line reads some words | 1"),
        (b"\nsentence\tlabel\n", "sentence", ":1: no column 'sentence'; the header line reads "),
        (b"sentence,label\na,1\n", "sentence", ":1: no column 'sentence'; the header line reads sentence,label"),
        (b"word " * 1000, "x", ":1: no column 'x'; the header line reads " + ("word " * 40)),
        *(
            (b"x\ty\nfine\t0\n" + row + b"\nz\t0\n", "x", f":3: {count} cells, expected 2; cells are separated by tabs")
            for row, count in ((b"a", 1), (b"a\t1\t2", 3), (b"", 1), (b"a\t1\t", 3))
        ),
        (b"x\tlabel\nfine\t0\ncaf\xe9\t1\n", "x", f":3: not UTF-8: byte 4 of the line is 0xe9{LATIN1}"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, data, columns, message):
    path = write(tmp_path, data)
    assert message_of(path, *columns.split(",")) == f"{path}{message}"


def test_without_a_header_columns_are_numbers(tmp_path):
    path = write(tmp_path, b"a\t1\n")
    expected = f"{path}:1: no column 'label'; without a header line columns are numbers, here 1 to 2"
    assert message_of(path, "label", header=False) == expected
    for column in ("9" * 5000, "٣"):
        assert "no column" in message_of(path, column, header=False)
    assert message_of(write(tmp_path, b"1\t2\n3\n"), "y", header=("x", "y")).startswith(f"{path}:2: 1 cells, expected 2")


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl"])
def test_files_that_are_no_tables_are_named(tmp_path, name):
    for data in (b"", BOM, b"\n", b"\r\n\r\n", b"  \n\t\n"):
        path = write(tmp_path, data, name)
        assert message_of(path, "x") == f"{path}: the file is empty"
    for encoding in ("utf-16-le", "utf-16-be"):
        write(tmp_path, "\ufeffsentence\tlabel\na\t1\n".encode(encoding), name)
        assert message_of(path, "x") == f"{path}:1: not UTF-8: the file is UTF-16; iconv -f UTF-16 -t UTF-8 converts it"
    path.unlink()
    assert message_of(path, "x") == f"{path}: cannot read the file: No such file or directory"
    path.mkdir()
    assert message_of(path, "x") == f"{path}: cannot read the file: Is a directory; name a file"


def test_rows_that_cannot_be_used_are_reported_and_left_out(tmp_path):
    def make(_, row):
        if row[0] == "bad":
            raise RowError("it is bad")
        return row[0]

    path = write(tmp_path, b"x\ty\na\t\nbad\t\nb\nc\xff\t\nd\t\n")
    problems: list[DataError] = []
    assert list(open_table(path).read(["x"], make, problems.append)) == ["a", "d"]
    assert list(map(str, problems)) == [
        f"{path}:3: it is bad",
        f"{path}:4: 1 cells, expected 2; cells are separated by tabs",
        f"{path}:5: not UTF-8: byte 2 of the line is 0xff{LATIN1}",
    ]


# CSV


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (b"plain", "plain"),
        (b'"one, two"', "one, two"),
        (b'"say ""no"""', 'say "no"'),
        (b'"two\nlines"', "two\nlines"),
        (b'"blank\n\nline"', "blank\n\nline"),
        (b'""', ""),
        (b'5" wide', '5" wide'),
        (b"word " * 200_000, "word " * 200_000),
    ],
    ids=range(8),
)
def test_csv_is_quoted(tmp_path, cell, text):
    found = rows(write(tmp_path, b"label,sentence\n1," + cell + b"\n0,next\n", "a.csv"), "sentence")
    assert found == [(2, [text]), (3 + text.count("\n"), ["next"])]  # a row of several lines counts by its first


_LIMIT = "field larger than field limit (1000); cut the text, or close the quote that swallows the rows below"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'x,y\n0,0\n"never closed,1\n', ":3: not CSV: unexpected end of data; close the quote that begins in this row"),
        (b'x,y\n0,0\n"closed" early,1\n', "; put a cell that holds a quote in quotes, and double the quote"),
        (b"x,y\n0,0\nold\rMac,1\n", "; a lone carriage return ends no line: put its cell in quotes, or convert the file"),
        (b"x,y\n0,0\n" + b"x" * 1001 + b",1\n", f":3: not CSV: {_LIMIT}"),
        (b"x,y\n1,2,3\n", ":2: 3 cells, expected 2; cells are separated by commas"),
        (b"text;x\n", ":1: no column 'y'; the header line reads text;x, which ';' divides: save the file with commas"),
        (b"text\tx\n", ":1: no column 'y'; the header line reads text\tx, which tabs divide: add --file_format=tsv"),
        (b"text\n", ":1: no column 'y'; the header line reads text"),
        (b"a;b,c\n", ":1: no column 'y'; the header line reads a;b | c"),
    ],
)
def test_what_is_no_csv_is_named_with_what_to_do(tmp_path, monkeypatch, data, message):
    monkeypatch.setattr("bert_tf.tasks.tables._LARGEST_CELL", 1000)
    before = csv.field_size_limit(1000)
    try:
        problem = message_of(write(tmp_path, data, "a.csv"), "y")
    finally:
        csv.field_size_limit(before)
    assert message in problem
    assert " - do you" not in problem  # Python's advice to programmers


# JSON lines


def test_objects_are_read_by_name_and_arrays_by_place(tmp_path):
    path = write(tmp_path, b'{"text": "a", "label": 1}\n{"label": null, "text": "b", "more": []}\n', "a.jsonl")
    assert rows(path, "label", "text") == [(1, [1, "a"]), (2, [None, "b"])]
    path = write(tmp_path, b'["text", "label"]\n["a", ["x", "y"]]\n', "a.jsonl")
    assert cells(path, "label") == [[["x", "y"]]]
    assert cells(path, "2", header=False) == [["label"], [["x", "y"]]]
    path = write(tmp_path, b'{"x": 1}\n', "a.jsonl")
    assert message_of(path, "1") == f"{path}:1: no column '1'; the first object has x"  # keys are no numbers


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b'{"x": 1', ":2: not JSON: Expecting ',' delimiter at character 8; write one object a line"),
        (b"17", ":2: neither a JSON object nor an array"),
        (b"[1]", ":2: expected an object, as in the first line"),
        (b'{"y": 1}', ":2: no 'x' in the object"),
        (b'{"x": 1, "x": 2}', ":2: the key 'x' appears twice; fix or drop the row"),
        (b"", ":2: not JSON: Expecting value at character 1; write one object a line"),
        (b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", ":2: nested more than 64 deep; fix or drop the row"),
        pytest.param(
            b'{"x": ' + b"1" * 5000 + b"}",
            ":2: not usable: Exceeds the limit (4300",
            marks=pytest.mark.skipif(not hasattr(sys, "get_int_max_str_digits"), reason="this Python reads any number"),
        ),
    ],
    ids=range(8),
)
def test_wrong_json_is_the_problem_of_its_row(tmp_path, line, problem):
    path, problems = write(tmp_path, b'{"x": 1, "y": 2}\n' + line + b'\n{"x": 3}\n', "a.jsonl"), []
    assert list(open_table(path).read(["x"], lambda _, row: row[0], problems.append)) == [1, 3]
    assert [str(one).startswith(f"{path}{problem}") for one in problems] == [True]


# Formats and sources


def test_another_suffix_needs_the_format_and_damaged_gzip_is_named(tmp_path):
    path = write(tmp_path, b"x,y\n1,2\n", "a.data")
    assert message_of(path, "x") == f"{path}: unknown format of this file name; add --file_format=tsv|csv|jsonl"
    assert cells(path, "y", form="csv") == [["2"]]
    assert cells(write(tmp_path, gzip.compress(b"x,y\n1,2\n"), "a.csv.gz"), "y") == [["2"]]
    for data in (b"no gzip", GZIPPED[:-9], GZIPPED[:12] + b"\xff" * 9):
        path = write(tmp_path, data, "a.tsv.gz")
        assert message_of(path, "x").startswith(f"{path}: cannot read the file: ")


def test_standard_input_is_read_and_left_open_and_lines_are_all_lines_blank_ones_too(monkeypatch, tmp_path):
    pipe = io.BytesIO(b"x\n1\n\xff\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(pipe))
    assert message_of("-", "x", form="tsv") == f"standard input:3: not UTF-8: byte 1 of the line is 0xff{LATIN1}"
    assert not pipe.closed
    found = list(text_lines.lines(write(tmp_path, BOM + b"\r\na\tb\r\n\n\xff\n \n\n")))
    assert [line.text for line in found if isinstance(line, text_lines.Line)] == ["", "a\tb", "", " ", ""]
    assert isinstance(found[3], DataError)
    with pytest.raises(DataError, match="the file is empty"):
        list(text_lines.lines(write(tmp_path, b"\n\n")))


@pytest.mark.parametrize(("name", "row"), [("a.tsv", "{}\tb\n"), ("a.csv", '{},"b"\n'), ("a.jsonl", '["{}", "b"]\n')])
def test_memory_does_not_grow_with_the_file(tmp_path, name, row):
    path = write(tmp_path, "".join(row.format(n) for n in range(8_000)).encode(), name)

    def peak(count: int) -> int:
        tracemalloc.start()
        for _ in itertools.islice(open_table(path, header=False).read(["1"], lambda _, cells: cells), count):
            pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert peak(8_000) < peak(1_000) + 20_000


def test_what_has_no_end_is_refused_and_a_pipe_read_where_it_is_read_once_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(text_lines, "LONGEST_LINE", 1 << 20)
    monkeypatch.setattr(text_lines, "_MOST_BLANK", 3)
    path = write(tmp_path, b"text\n" + b"x" * ((1 << 20) + 1))
    assert message_of(path, "text") == f"{path}:2: a line of more than 1 MB; is it a table?"
    assert message_of(write(tmp_path, b"\n" * 9), "text").startswith(f"{path}:4: more than 3 blank lines in a row")
    with pytest.raises(DataError, match="/dev/zero: cannot read the file: it is a device, which may never end"):
        open_table("/dev/zero", form="tsv")
    path = tmp_path / "a.tsv"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b"text\none\ntwo\n",))
    with pytest.raises(DataError, match="it is a pipe, which can be read only once"):
        open_table(path)
    writer.start()
    assert list(open_table(text_lines.Once(path)).read(["text"], lambda _, row: row[0])) == ["one", "two"]
    writer.join()

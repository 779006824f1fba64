"""Tables in every format, whole and damaged."""

import csv
import datetime
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
LATIN1 = "; it looks like WINDOWS-1252: iconv -f WINDOWS-1252 -t UTF-8 converts the file; look at the result"
DAMAGED = "; convert the file from its encoding, as with iconv -f ENCODING -t UTF-8"
GZIPPED = gzip.compress(b"x\n" * 99)


def write(folder, data: bytes, name: str = "train.tsv"):
    """Writes a file; returns its path."""
    path = folder / name
    path.write_bytes(data)
    return path


def rows(path, *columns, **options):
    """Returns the line and the cells of each row."""
    return list(open_table(path, **options).read_rows(columns, lambda line, cells: (line, cells)))


def cells(path, *columns, **options):
    return [values for _, values in rows(path, *columns, **options)]


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
        assert message_of(path, "x") == f"{path}:1: the file is UTF-16; iconv -f UTF-16 -t UTF-8 converts it"
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
    assert list(open_table(path).read_rows(["x"], make, problems.append)) == ["a", "d"]
    assert list(map(str, problems)) == [
        f"{path}:3: it is bad",
        f"{path}:4: 1 cells, expected 2; cells are separated by tabs",
        f"{path}:5: not UTF-8: byte 2 of the line is 0xff{DAMAGED}",
    ]


@pytest.mark.parametrize(
    ("text", "encoding", "name"),
    [
        ("It didn\u2019t stop \u201cat all\u201d.", "cp1252", "WINDOWS-1252"),
        ("L\u2019\xe9t\xe9 \xe0 Gr\xfc\xdfau: 5 \u20ac.", "cp1252", "WINDOWS-1252"),
        ("\u5929\u6c14\u5f88\u597d", "gbk", "GB18030"),
        ("\u5929\u6c17 rain, \u3044\u3044\u3067\u3059\u3002", "shift_jis", "SHIFT-JIS"),
        ("\u4eca\u65e5\u306f\u3044\u3044\u3067\u3059", "euc_jp", "EUC-JP"),
        ("\uc624\ub298 \ub0a0\uc528\uac00 \uc88b\uc2b5\ub2c8\ub2e4", "euc_kr", "EUC-KR"),
        ("\u6211\u5011\u4eca\u5929\u53bb\u516c\u5712\u73a9", "big5", "BIG5"),
        ("\u0414\u043e\u0436\u0434\u044c \u0438\u0434\u0451\u0442 \u0432\u0435\u0441\u044c", "cp1251", "WINDOWS-1251"),
        ("\u0414\u043e\u0436\u0434\u044c \u0432\u0435\u0441\u044c \u0434\u0435\u043d\u044c", "koi8_r", "KOI8-R"),
    ],
)  # fmt: skip
def test_the_encoding_of_a_file_is_guessed(tmp_path, text, encoding, name):
    path = write(tmp_path, f"x\tlabel\nplain\t0\n{text}\t1\n".encode(encoding))
    message = message_of(path, "x")
    assert message.startswith(f"{path}:3: not UTF-8: byte ")
    assert f"; it looks like {name}: iconv -f {name} -t UTF-8 converts the file" in message


def test_a_line_of_another_encoding_among_utf8_is_named(tmp_path):
    path = write(tmp_path, "x\ncaf\xe9\n".encode() + b"caf\xe9\n")
    assert message_of(path, "x").endswith(
        "; other lines are UTF-8, so this one is damaged or from another file: write it again"
    )


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl", "a.parquet"])
@pytest.mark.parametrize(
    ("data", "said"),
    [
        (LFS, "the file is a pointer of Git LFS to the data; git lfs pull fetches it"),
        ("text,label\na,b\n".encode("utf-16-le"), "the file is UTF-16LE; iconv -f UTF-16LE -t UTF-8 converts it"),
        ("text\tlabel\na\tb\n".encode("utf-16-be"), "the file is UTF-16BE; iconv -f UTF-16BE -t UTF-8 converts it"),
        ("text,label\na,b\n".encode("utf-32-le"), "the file is UTF-32LE; iconv -f UTF-32LE -t UTF-8 converts it"),
        (b"PK\x03\x04\x14\0", "the file is a ZIP archive or an Excel workbook; unpack it, or save it as CSV in UTF-8"),
    ],
)
def test_a_file_of_another_kind_is_named_by_its_first_bytes(tmp_path, name, data, said):
    assert message_of(write(tmp_path, data, name), "text").endswith(said)


def test_quotes_of_pandas_in_tsv_are_read_or_left_if_a_format_says_so(tmp_path):
    path = write(tmp_path, b'x\ty\n"The ""rain"" fell."\t1\n"two\nlines"\t0\n')
    remedy = "add --file_format=quoted_tsv, or tsv if the quotes belong to the text"
    problems: list[DataError] = []
    assert list(open_table(path).read_rows(["x"], lambda _, row: row[0], problems.append)) == ['lines"']
    assert [str(one).partition(": ")[0] for one in problems] == [f"{path}:2", f"{path}:3"]
    assert all(str(one).endswith(remedy) for one in problems)
    assert rows(path, "x", form="quoted_tsv") == [(2, ['The "rain" fell.']), (3, ["two\nlines"])]
    assert cells(write(tmp_path, b'x\n"The ""rain"" fell."\n'), "x", form="tsv") == [['"The ""rain"" fell."']]


def test_quotes_of_excel_in_tsv_are_said_once(tmp_path, caplog):
    path = write(tmp_path, b'x\ty\n"rain, again"\t1\n"a, b"\t"c, d"\n')
    assert cells(path, "x") == [['"rain, again"'], ['"a, b"']]
    said = f"{path}:2: a cell is in quotes, which belong to its text; if Excel wrote them, add --file_format=quoted_tsv"
    assert caplog.messages == [said]


# Rows that are no lines


@pytest.mark.parametrize("space", ["", "\n", " \n  "])
def test_a_json_array_of_objects_is_rows(tmp_path, space):
    text = f'[{space}{{"x": "a\\u00e9", "y": 1}},{space}{{"x": "b", "y": [0.5, null]}}{space}]'
    path = write(tmp_path, text.encode(), "a.json")
    assert rows(path, "x", "y") == [(1, ["a\xe9", 1]), (2, ["b", [0.5, None]])]
    assert rows(write(tmp_path, f"\n\n {text}\n\n".encode(), "a.json"), "x") == [(1, ["a\xe9"]), (2, ["b"])]
    path = write(tmp_path, text.replace('"b"', "2").replace("]}", '], "y": 0}').encode(), "a.json")
    assert message_of(path, "x") == f"{path}: row 2: the key 'y' appears twice"
    path = write(tmp_path, f'[{space}{{"x": "a"}},{space}{{"z": 1}}]'.encode(), "a.json")
    assert message_of(path, "x") == f"{path}: row 2: no 'x' in the object"
    path = write(tmp_path, f'[{space}{{"x": "a"}},{space}{{"x": '.encode(), "a.json")
    assert message_of(path, "x").startswith(f"{path}: row 2: not JSON: ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", ": the JSON array has no rows"),
        ("[\n\n]\n", ": the JSON array has no rows"),
        ('[[1, 2],\n{"x": 1}]', ": row 1: not a JSON object: [1, 2]"),
        ('[{"x": "a"}\n{"x": "b"}]', ': row 2: not JSON: \'{"x": "b"}]\' where a comma or the end of the array is expected'),
        ('[{"x": "a"}] more', ": more text after the JSON array: 'more'"),
        ('[{"x": "a"}', ": row 2: not JSON: '' where a comma or the end of the array is expected"),
    ],
)
def test_what_is_wrong_with_a_json_array_is_named(tmp_path, text, said):
    path = write(tmp_path, text.encode(), "a.json")
    assert message_of(path, "x") == f"{path}{said}"


def test_a_json_array_that_is_nested_too_deep_is_refused(tmp_path):
    path = write(tmp_path, b'[{"x": ' + b"[" * 9000 + b"]" * 9000 + b"}]", "a.json")
    assert message_of(path, "x") == f"{path}: row 1: nested more than 64 deep"


def test_an_object_of_columns_is_named(tmp_path):
    path = write(tmp_path, b'{"x": {"0": "a", "1": "b"}, "y": {"0": 1, "1": 2}}', "a.json")
    assert "holds columns, as to_json() of pandas writes them" in message_of(path, "x")


def test_parquet_is_rows_with_lists_and_missing_values(tmp_path, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as files

    path = tmp_path / "a.parquet"
    day = datetime.date(2020, 1, 2)
    files.write_table(pyarrow.table({"x": ["a", None], "y": [[1, 2], []], "z": [day, day], "b": [b"t", b"\xff"]}), path)
    assert rows(path, "x", "y", "z", "b") == [(1, ["a", [1, 2], "2020-01-02", "t"]), (2, [None, [], "2020-01-02", b"\xff"])]
    assert message_of(path, "w") == f"{path}: row 1: no column 'w'; the first object has x, y, z, b"
    kept = text_lines.Kept(path)
    assert list(open_table(kept).read_rows(["x"], lambda *_: kept.columns)) == [("x", "y", "z", "b")] * 2
    assert kept.row == (None, [], "2020-01-02", "b'\\xff'")
    files.write_table(pyarrow.table({"x": pyarrow.array([], pyarrow.string())}), path)
    assert message_of(path, "x") == f"{path}: the file has no rows"
    path.write_bytes(path.read_bytes()[:-9])
    assert message_of(path, "x").startswith(f"{path}: cannot read the Parquet file: ")
    assert (
        message_of("-", "x", form="parquet")
        == "standard input: Parquet is read from a plain file, neither a pipe nor compressed"
    )
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert f"{path}: Parquet needs pyarrow: pip install 'pyarrow>=15,<26'" in message_of(path, "x")


# CSV


def test_the_separator_line_of_excel_is_no_header(tmp_path):
    path = write(tmp_path, b"sep=,\r\nx,y\r\na,1\r\n", "a.csv")
    assert rows(path, "x", "y") == [(3, ["a", "1"])]
    path = write(tmp_path, b"sep=|\nx|y\n", "a.csv")
    assert (
        message_of(path, "x")
        == f"{path}:1: the line names the separator '|', but ',' divides cells of this format; delete the line"
    )
    assert message_of(write(tmp_path, b"sep=,\n", "a.csv"), "x") == f"{path}: the file is empty"


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
    read = rows(write(tmp_path, b"label,sentence\n1," + cell + b"\n0,next\n", "a.csv"), "sentence")
    assert read == [(2, [text]), (3 + text.count("\n"), ["next"])]  # a row of several lines counts by its first


@pytest.mark.parametrize("above", ["", "\r\n", "\ufeffSEP=;\r\n"])
def test_semicolons_divide_a_csv_whose_header_has_them_and_no_commas(tmp_path, above):
    path = write(tmp_path, f'{above}"x, old";y\r\n"1; ""2""";3,5\r\n,;\r\n'.encode(), "a.csv")
    assert cells(path, "x, old", "y") == [['1; "2"', "3,5"], [",", ""]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Good; thanks\n", ["Good; thanks"]),
        ("Good; thanks\nBad; so\n", ["Good; thanks", "Bad; so"]),
        ("sep=;\nGood;0\nBad\n", ["Good"]),
    ],
)
def test_without_a_header_line_semicolons_divide_below_a_line_that_says_so(tmp_path, text, expected):
    table = open_table(write(tmp_path, text.encode(), "a.csv"), header=False)
    assert list(table.read_rows(["1"], lambda _, row: row[0], lambda _: None)) == expected
    other = open_table(write(tmp_path, b"a;b\nc\n", "a.csv"), header=False)
    assert other.there.endswith("here 1 to 1; if semicolons divide, write sep=; in a line above the first")


_LIMIT = "field larger than field limit (1000); cut the text, or close the quote that swallows the rows below"


def test_blank_lines_of_csv_are_no_rows(tmp_path):
    assert rows(write(tmp_path, b"\nx,y\n\n1,2\n\n\n3,4\n", "a.csv"), "y") == [(4, ["2"]), (7, ["4"])]


@pytest.mark.parametrize("blank", ["", " "])
def test_a_blank_after_each_comma_of_the_first_line_is_no_part_of_a_cell(tmp_path, blank):
    path = write(tmp_path, f'x,{blank}y\n1,{blank}"a, ""b"""\n2, c\n'.encode(), "a.csv")
    assert rows(path, "y") == [(2, ['a, "b"']), (3, ["c" if blank else " c"])]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'x,y\n0,0\n"never closed,1\n', ":3: not CSV: unexpected end of data; close the quote that begins in this row"),
        (b'x,y\n0,0\n"closed" early,1\n', "; put a cell that holds a quote in quotes, and double the quote"),
        (b"x,y\n0,0\nold\rMac,1\n", "; a lone carriage return ends no line: put its cell in quotes, or convert the file"),
        (b"x,y\n0,0\n" + b"x" * 1001 + b",1\n", f":3: not CSV: {_LIMIT}"),
        (b"x,y\n1,2,3\n", ":2: 3 cells, expected 2; cells are separated by commas"),
        (b"a, b;x\n", ":1: no column 'y'; the header line reads a | b;x, which ';' divides: write sep=; in a line above it"),
        (b"x;y\n1;2;3\n", ":2: 3 cells, expected 2; cells are separated by semicolons, as in the first line"),
        (b"text|x\n", ":1: no column 'y'; the header line reads text|x, which '|' divides: write commas instead"),
        (b"text\tx\n", ":1: no column 'y'; the header line reads text\tx, which tabs divide: add --file_format=quoted_tsv"),
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
    assert list(open_table(path).read_rows(["x"], lambda _, row: row[0], problems.append)) == [1, 3]
    assert [str(one).startswith(f"{path}{problem}") for one in problems] == [True]


# Formats and sources


def test_another_suffix_needs_the_format_and_damaged_gzip_is_named(tmp_path):
    path = write(tmp_path, b"x,y\n1,2\n", "a.data")
    assert (
        message_of(path, "x") == f"{path}: unknown format of this file name; add --file_format=tsv|csv|jsonl|quoted_tsv|parquet"
    )
    assert "is a ZIP archive or an Excel workbook" in message_of(write(tmp_path, b"PK\x03\x04", "a.xlsx"), "x")
    assert cells(path, "y", form="csv") == [["2"]]
    assert message_of(tmp_path, "x") == f"{tmp_path}: is a folder; name a file"
    for name in ("a.csv.gz", "A.CSV.GZ"):
        assert cells(write(tmp_path, gzip.compress(b"x,y\n1,2\n"), name), "y") == [["2"]]
    for data in (b"no gzip", GZIPPED[:-9], GZIPPED[:12] + b"\xff" * 9):
        path = write(tmp_path, data, "a.tsv.gz")
        assert message_of(path, "x").startswith(f"{path}: cannot read the file: ")


def test_standard_input_is_read_and_left_open_and_lines_are_all_lines_blank_ones_too(monkeypatch, tmp_path):
    pipe = io.BytesIO(b"x\n1\n\xff\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(pipe))
    assert message_of("-", "x", form="tsv") == f"standard input:3: not UTF-8: byte 1 of the line is 0xff{DAMAGED}"
    assert not pipe.closed
    lines = list(text_lines.lines(write(tmp_path, BOM + b"\r\na\tb\r\n\n\xff\n \n\n")))
    assert [line.text for line in lines if isinstance(line, text_lines.Line)] == ["", "a\tb", "", " ", ""]
    assert isinstance(lines[3], DataError)
    with pytest.raises(DataError, match="the file is empty"):
        list(text_lines.lines(write(tmp_path, b"\n\n")))


@pytest.mark.parametrize(("name", "row"), [("a.tsv", "{}\tb\n"), ("a.csv", '{},"b"\n'), ("a.jsonl", '["{}", "b"]\n')])
def test_memory_does_not_grow_with_the_file(tmp_path, name, row):
    path = write(tmp_path, "".join(row.format(n) for n in range(8_000)).encode(), name)

    def peak(count: int) -> int:
        tracemalloc.start()
        for _ in itertools.islice(open_table(path, header=False).read_rows(["1"], lambda _, cells: cells), count):
            pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert peak(8_000) < peak(1_000) + 20_000


def test_what_has_no_end_is_refused_and_a_pipe_read_where_it_is_read_once_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(text_lines, "LONGEST_LINE", 1 << 20)
    monkeypatch.setattr(text_lines, "_MOST_BLANK", 3)
    path = write(tmp_path, b"text\n" + b"x" * ((1 << 20) + 1))
    assert (
        message_of(path, "text") == f"{path}:2: a line of more than 1 MB; write each row as a line (JSON: lines=True of pandas)"
    )
    assert message_of(write(tmp_path, b"\n" * 9), "text").startswith(f"{path}:4: more than 3 blank lines in a row")
    with pytest.raises(DataError, match="/dev/zero: cannot read the file: it is a device, which may never end"):
        open_table("/dev/zero", form="tsv")
    path = tmp_path / "a.tsv"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b"text\none\ntwo\n",))
    with pytest.raises(DataError, match="it is a pipe, which can be read only once"):
        open_table(path)
    writer.start()
    assert list(open_table(text_lines.Once(path)).read_rows(["text"], lambda _, row: row[0])) == ["one", "two"]
    writer.join()

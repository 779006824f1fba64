"""Slices of files: all rows, each once, with their numbers, in groups that no cut changes."""

import gzip
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert_tf.extensions.cluster import slices
from bert_tf.extensions.cluster.slices import Part, Whole
from bert_tf.tasks import tables
from bert_tf.tasks.names import JSONL, TSV
from bert_tf.tasks.tables import LINES

FORMS = {TSV: {"header": True}, LINES: {"header": ("text",)}, JSONL: {}}


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch):
    monkeypatch.setattr(slices, "PIECE", 16)


def rows(source, form):
    """Returns line and first cell of each row."""
    table = tables.open_table(source, form=form, **FORMS[form])
    return list(table.read_rows([table.names[0]], lambda line, cells: (line, cells[0])))


def cut(data: bytes, form: str, block: int):
    """Returns the rows of each slice."""

    def open_file(_):
        return io.BytesIO(data)

    whole = Whole("x", open_file)
    rows(whole, form)
    parts = slices.slices(io.BytesIO(data), "x", whole.first_line_of_rows)
    return [rows(Part(part, open_file, block=block), form) for part in parts]


LINE = {
    TSV: st.text("a\tü ", max_size=30).map(lambda text: text.replace("\t", "")),
    LINES: st.text("ab ü", max_size=30),
    JSONL: st.integers(0, 10**12).map(lambda number: f'{{"a": {number}}}'),
}


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=100)
@given(data=st.data(), block=st.integers(1, 4), ends=st.booleans(), windows=st.booleans())
def test_slices_hold_all_rows_once_with_their_numbers(form, data, block, ends, windows):
    lines = data.draw(st.lists(LINE[form], min_size=1, max_size=25))
    first = '{"a": 1}' if form == JSONL else "a"
    text = ("\r\n" if windows else "\n").join([first, *lines]) + "\n" * ends
    parts = cut(text.encode(), form, block)
    assert [row for part in parts for row in part] == rows(Whole("x", lambda _: io.BytesIO(text.encode())), form)


def test_blocks_are_those_of_one_process():
    data = ("a\n" + "".join(f"row {number}\n" for number in range(23))).encode()
    blocks = [[text for _, text in part] for part in cut(data, TSV, 4) if part]
    assert [part[0] for part in blocks] == ["row 0", "row 4", "row 8", "row 12", "row 16", "row 20"]
    assert {len(part) for part in blocks[:-1]} == {4}


def test_a_line_that_is_longer_than_a_piece_is_one_row():
    data = b"a\n" + b"x" * 100 + b"\ny\n"
    assert [row for part in cut(data, TSV, 1) for row in part] == [(2, "x" * 100), (3, "y")]


@pytest.mark.parametrize(("name", "data"), [("x.tsv.gz", gzip.compress(b"a\nb\n", mtime=0)), ("x.csv", b"a\nb\n")])
def test_compressed_files_and_csv_are_not_cut(name, data):
    source = Whole(name, lambda _: io.BytesIO(data))
    assert tables.open_table(source).read_rows(["a"], lambda line, cells: (line, cells[0]))
    assert source.first_line_of_rows is None

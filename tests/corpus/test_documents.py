"""Forms of a corpus, and what cannot be read."""

import dataclasses
import gzip
import os
import textwrap
import threading

import pytest

from bert_tf.corpus import documents as module
from bert_tf.corpus.documents import BOOK, PARAGRAPHS, SENTENCES, Corpus, Place, documents, find, pieces, warn_of_lines
from bert_tf.errors import DataError, FlagError


@pytest.fixture
def file(tmp_path):
    def write(data, name="text.txt"):
        path = tmp_path / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return str(path)

    return write


LONG = "word " * module.WRAPPED


def read(path, form=None):
    return list(documents(Corpus((path,), form)))


@pytest.mark.parametrize(
    ("name", "data", "form", "expected"),
    [
        ("x.txt", "\ufeffa b\r\nc\n\n\n \nd\n", None, [("a b", "c"), ("d",)]),
        ("x.txt.gz", gzip.compress(b"a\n\nb\n", mtime=0), None, [("a",), ("b",)]),
        ("x.txt", "One. Two?\n\nThree.\n", PARAGRAPHS, [("One.", "Two?"), ("Three.",)]),
        ("x.txt", "It is\nlong. It\nends.\n\nA new one.\n", BOOK, [("It is long.", "It ends.", "A new one.")]),
        ("x.txt", f"{LONG}\nNext\n", BOOK, [(LONG.strip(), "Next")]),  # long lines of a book are paragraphs
        (
            "x.jsonl",
            '{"text": "One. Two."}\n\n{"text": ["a. b", " ", "c"]}\n{"text": ""}\n',
            None,
            [("One.", "Two."), ("a. b", "c")],
        ),
        (  # half a character is replaced
            "x.jsonl",
            '{"text": "a\\ud800 b\\ud83d\\ude00."}\n{"text": ["\\udc00a"]}\n',
            None,
            [("a\ufffd b\U0001f600.",), ("\ufffda",)],
        ),
    ],
    ids=range(7),
)
def test_documents_of_each_form(file, name, data, form, expected):
    assert read(file(data, name), form) == expected


def test_every_file_begins_a_document(file):
    paths = file("a\n", "1.txt"), file("b", "2.txt")
    assert list(documents(Corpus(paths))) == [("a",), ("b",)]


PROSE = "A long day went by. " + "The old man, who had seen the sea before, said that it was grey and very cold then. " * 30
LOOKS = {
    "hard-wrapped; add --input_format=book": textwrap.fill(PROSE, 72),
    "like paragraphs; add --input_format=paragraphs": f"{PROSE[:103]}\n" * 20,
    "": PROSE.replace(". ", ".\n"),
    "no ends": PROSE.replace(". ", "\n").replace(", ", "\n"),
}


@pytest.mark.parametrize("look", LOOKS)
def test_lines_that_are_no_sentences_are_warned_of_unless_they_are_asked_for(file, look, caplog):
    corpus = Corpus((file("", "empty.txt"), file(LOOKS[look])))
    warn_of_lines(corpus)
    said, advice = look.split("; ") if "; " in look else ("", "")
    assert caplog.messages == ([f"{corpus.files[1]}: lines look {said}, but each is read as a sentence; {advice},"
                                " or write one sentence a line"] if said else [])  # fmt: skip
    caplog.clear()
    warn_of_lines(dataclasses.replace(corpus, form=SENTENCES))
    assert not caplog.messages


def test_a_pipe_is_read(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    threading.Thread(target=path.write_bytes, args=(b"a\n\nb\n",), daemon=True).start()
    assert read(str(path)) == [("a",), ("b",)]


@pytest.mark.parametrize("size", [42, 54])
def test_a_book_with_line_ends_of_windows_is_cut_where_a_sentence_ends(file, monkeypatch, size):
    text = "One two\r\nthree. Four\r\nfive six.\r\n\r\nSeven\r\neight nine.\r\nTen.\r\n"
    whole = read(file(text), BOOK)
    monkeypatch.setattr(module, "PIECE", size)
    assert read(file(text), BOOK) == whole == [("One two three.", "Four five six.", "Seven eight nine.", "Ten.")]


@pytest.mark.parametrize("size", [1, 5, 7, 64])
def test_documents_do_not_depend_on_pieces(file, monkeypatch, size):
    text = "one two\nthree\n\n\nfour\nfive five\n\nsix\n"
    whole = read(file(text))
    monkeypatch.setattr(module, "PIECE", size)
    assert read(file(text)) == whole


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_reading_goes_on_at_a_place(file, monkeypatch, pack):
    monkeypatch.setattr(module, "PIECE", 4)
    corpus = Corpus((file(pack(b"a\nbb\nc\nd\neeeee\nf\nggg\nhh\ni"), "1"), file("e\n", "2")))
    all_pieces = list(pieces(corpus))
    for number, piece in enumerate(all_pieces[:-1], 1):
        assert list(pieces(corpus, piece.after)) == all_pieces[number:]
    assert all_pieces[1].place == Place(0, 2, 2)


@pytest.mark.parametrize(
    ("data", "name", "said"),
    [
        (b"a\nb\xff\n", "x.txt", "x.txt:2: not UTF-8"),
        (b"a\rb\r\rc\r", "x.txt", "x.txt: its lines end with CR alone"),
        (b"a\n\nb\0c\n", "x.txt", "x.txt:3: holds a NUL byte"),
        (gzip.compress(b"a\n" * 50000, mtime=0)[:-20], "x.gz", "x.gz:.*damaged or cut off"),
        (b"\x1f\x8b\x07" + bytes(20), "x.gz", "x.gz: not a whole gz file"),
        (b'{"text": "a"}\n{"body": "a"}\n', "x.jsonl", "x.jsonl:2: expected an object with 'text'"),
        (b'{"text": "a"}\n{"text": 3}\n', "x.jsonl", "x.jsonl:2: expected an object with 'text'"),
        (b"{\n", "x.jsonl", "x.jsonl:1: not JSON"),
    ],
)
def test_names_what_cannot_be_read(file, data, name, said):
    with pytest.raises(DataError, match=said):
        read(file(data, name))


def test_names_a_line_without_end(file, monkeypatch):
    monkeypatch.setattr(module, "PIECE", 8)
    monkeypatch.setattr(module, "LONGEST_LINE", 16)
    with pytest.raises(DataError, match="x.txt:2: a line of more than"):
        read(file("a\n" + "b" * 64, "x.txt"))


def test_names_a_file_that_is_missing(tmp_path):
    with pytest.raises(DataError, match="cannot read the file: No such file"):
        read(str(tmp_path / "x"))
    with pytest.raises(DataError, match="cannot read the file: Is a directory"):
        read(str(tmp_path))


def test_finds_files_by_patterns_once(file, tmp_path):
    first, second = file("a", "1.txt"), file("b", "2.txt")
    assert find(f"{tmp_path}/*.txt,{second},-") == (first, second, "-")
    with pytest.raises(FlagError, match="no file matches"):
        find(f"{tmp_path}/*.gz")

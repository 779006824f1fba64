"""Forms of a corpus, and what cannot be read."""

import dataclasses
import gzip
import os
import textwrap
import threading

import pytest

from bert_tf.errors import DataError, FlagError
from bert_tf.extensions.pretrain.corpus import documents as module
from bert_tf.extensions.pretrain.corpus.documents import (
    BOOK,
    PARAGRAPHS,
    SENTENCES,
    Corpus,
    Place,
    find,
    parse,
    pieces,
    warn_of_lines,
)

LONG = "word " * module.WRAPPED
OBJECTS = '{"text": "One. Two."}\n\n{"text": ["a. b", " ", "c"]}\n{"text": ""}\n'
HALF_CHARACTERS = '{"text": "a\\ud800 \\ud83d\\ude00."}\n{"text": ["\\udc00"]}\n'  # are replaced


def file(folder, data, name="text.txt"):
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return str(path)


def read(*paths, form=None):
    """Documents as lists of sentences."""
    corpus, sentences, starts = Corpus(paths, form), [], set()
    for piece in pieces(corpus):
        parsed = parse(piece, corpus)
        starts |= {len(sentences) + start for start in parsed.starts}
        sentences += parsed.sentences
    borders = [*sorted(starts), len(sentences)]
    return [sentences[a:b] for a, b in zip(borders, borders[1:]) if a < b]


@pytest.mark.parametrize(
    ("name", "data", "form", "expected"),
    [
        ("x.txt", "\ufeffa b\r\nc\n\n\n \nd\n", None, [["a b", "c"], ["d"]]),
        ("x.txt.gz", gzip.compress(b"a\n\nb\n", mtime=0), None, [["a"], ["b"]]),
        ("x.txt", "One. Two?\n\nThree.\n", PARAGRAPHS, [["One.", "Two?"], ["Three."]]),
        ("x.txt", "It is\nlong. It\nends.\n\nA new one.\n", BOOK, [["It is long.", "It ends.", "A new one."]]),
        ("x.txt", f"{LONG}\nNext\n", BOOK, [[LONG.strip(), "Next"]]),  # long lines of a book are paragraphs
        ("x.jsonl", OBJECTS, None, [["One.", "Two."], ["a. b", "c"]]),
        ("x.jsonl", HALF_CHARACTERS, None, [["a\ufffd \U0001f600."], ["\ufffd"]]),
        ("x.JSONL.GZ", gzip.compress(b'{"text": "a"}\n', mtime=0), None, [["a"]]),
    ],
    ids=range(8),
)
def test_documents_of_each_form(tmp_path, name, data, form, expected):
    path = file(tmp_path, data, name)
    assert read(path, form=form) == expected
    assert read(path, file(tmp_path, "e\n", "2.txt"), form=form) == [*expected, ["e"]]  # a file begins a document


PROSE = "A long day went by. " + "The old man, who had seen the sea before, said that it was grey and very cold then. " * 30


@pytest.mark.parametrize(
    ("look", "form", "text"),
    [
        ("hard-wrapped", "book", textwrap.fill(PROSE, 72)),
        ("like paragraphs", "paragraphs", f"{PROSE[:103]}\n" * 20),
        (None, None, PROSE.replace(". ", ".\n")),
        (None, None, PROSE.replace(". ", "\n").replace(", ", "\n")),
    ],
)
def test_lines_that_do_not_look_like_sentences_are_warned_of_unless_asked_for(tmp_path, look, form, text, caplog):
    corpus = Corpus((file(tmp_path, "", "empty.txt"), file(tmp_path, text)))
    advice = f"but each is read as a sentence; add --input_format={form}, or write one sentence a line"
    for asked in (None, SENTENCES):
        caplog.clear()
        warn_of_lines(dataclasses.replace(corpus, form=asked))
        assert caplog.messages == ([f"{corpus.files[1]}: lines look {look}, {advice}"] if look and not asked else [])


BOOK_OF_WINDOWS = "One two\r\nthree. Four\r\nfive.\r\n\r\nSix\r\nseven.\r\n", [["One two three.", "Four five.", "Six seven."]]
OF_LINES = "one two\nthree\n\n\nfour\n\nsix\n", [["one two", "three"], ["four"], ["six"]]


@pytest.mark.parametrize(
    ("size", "form", "text", "expected"),
    [*((size, BOOK, *BOOK_OF_WINDOWS) for size in (30, 42)), *((size, None, *OF_LINES) for size in (1, 5, 7, 64))],
)
def test_documents_do_not_depend_on_pieces(tmp_path, monkeypatch, size, form, text, expected):
    assert read(file(tmp_path, text), form=form) == expected
    monkeypatch.setattr(module, "PIECE", size)
    assert read(file(tmp_path, text), form=form) == expected


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_reading_goes_on_at_a_place(tmp_path, monkeypatch, pack):
    monkeypatch.setattr(module, "PIECE", 4)
    corpus = Corpus((file(tmp_path, pack(b"a\nbb\nc\nd\neeeee\nf\nggg\nhh\ni"), "1"), file(tmp_path, "e\n", "2")))
    all_pieces = list(pieces(corpus))
    for number, piece in enumerate(all_pieces[:-1], 1):
        assert list(pieces(corpus, piece.after)) == all_pieces[number:]
    assert all_pieces[1].place == Place(0, 2, 2)


@pytest.mark.parametrize(
    ("data", "name", "message"),
    [
        (b"a\nb\xff\n", "x.txt", "x.txt:2: not UTF-8"),
        (b"a\rb\r\rc\r", "x.txt", "x.txt: its lines end with CR alone"),
        (b"a\n\nb\0c\n", "x.txt", "x.txt:3: holds a NUL byte"),
        (b"a\n" + b"b" * 200, "x.txt", "x.txt:2: a line of more than"),
        (gzip.compress(b"a\n" * 50000, mtime=0)[:-20], "x.gz", "x.gz:.*damaged or cut off"),
        (b"\x1f\x8b\x07" + bytes(20), "x.gz", "x.gz: not a complete gz file"),
        (b'{"text": "a"}\n{"body": "a"}\n', "x.jsonl", "x.jsonl:2: expected an object with 'text'"),
        (b'{"text": "a"}\n{"text": 3}\n', "x.jsonl", "x.jsonl:2: expected an object with 'text'"),
        (b"{\n", "x.jsonl", "x.jsonl:1: not JSON"),
        (b"PAR1\x15", "x.parquet", "x.parquet:1: the file is Parquet: write its texts as JSON lines"),
        (None, "none", "none: cannot read the file: No such file"),
        (None, ".", "cannot read the file: Is a directory"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, monkeypatch, data, name, message):
    monkeypatch.setattr(module, "PIECE", 64)
    monkeypatch.setattr(module, "LONGEST_LINE", 128)
    with pytest.raises(DataError, match=message):
        read(str(tmp_path / name) if data is None else file(tmp_path, data, name))


def test_finds_files_by_patterns_once_and_reads_a_pipe(tmp_path):
    first, second = file(tmp_path, "a", "1.txt"), file(tmp_path, "b", "2.txt")
    assert find(f"{tmp_path}/*.txt,{second},-") == (first, second, "-")
    with pytest.raises(FlagError, match="no file matches"):
        find(f"{tmp_path}/*.gz")
    assert find(f"{tmp_path}/[1].txt") == (first,)
    bracketed = file(tmp_path, "c", "[1].txt")
    assert find(bracketed) == (bracketed,)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    threading.Thread(target=path.write_bytes, args=(b"a\n\nb\n",), daemon=True).start()
    assert read(str(path)) == [["a"], ["b"]]

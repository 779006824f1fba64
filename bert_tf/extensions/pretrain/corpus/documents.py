"""Streams documents from files and pipes; a document is a tuple of sentences.

A reader splits the bytes into pieces at line ends; each piece is parsed on its own, so that processes can share the
work. A document may span any number of pieces: memory depends neither on its length nor on the file size.
"""

from __future__ import annotations

import codecs
import contextlib
import dataclasses
import glob
import gzip
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from bert_tf.errors import DataError, FlagError, UnreadTextError
from bert_tf.extensions.pretrain.corpus import sentences
from bert_tf.extensions.pretrain.settings import BOOK, JSONL, PARAGRAPHS, SENTENCES
from bert_tf.io import encodings, files
from bert_tf.io.documents import DocumentError, json_value
from bert_tf.io.log_form import log

STANDARD_INPUT = "-"
PIECE = 1 << 20  # bytes, about; pieces affect only the division of work, and where a book without pauses is cut
LONGEST_LINE = 1 << 24  # bytes
WRAPPED = 120  # characters: a book's line up to this length continues in the next

_LOOKED_AT = 64  # files that are checked
_NO_SENTENCES = ((sentences.are_wrapped, "hard-wrapped", BOOK), (sentences.are_paragraphs, "like paragraphs", PARAGRAPHS))
_PAUSE = b".!?\"'\n"  # last bytes of a line after which a book may be cut
_JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Text files and the format of their documents."""

    files: tuple[str, ...]  # paths; `-` is the standard input
    form: str | None = None  # of `settings.FORMS`; None: by file name
    text_key: str = "text"  # key of the text in JSON lines
    language: str = "en"  # of raw text, for sentence splitting

    def form_of(self, path: str) -> str:
        """Format of a file: JSON lines if its name says so, else the published format."""
        suffix = Path(files.uncompressed(path)).suffix.lower()
        return self.form or (JSONL if suffix in _JSON_SUFFIXES else SENTENCES)

    @property
    def is_cut(self) -> bool:
        """Whether a file may hold raw text, which must be split into sentences."""
        return any(self.form_of(path) != SENTENCES for path in self.files)

    @property
    def can_be_read_again(self) -> bool:
        return all(path != STANDARD_INPUT and files.is_plain(path) for path in self.files)


class Place(NamedTuple):
    """A reading position in a corpus."""

    file: int = 0  # index of the file
    offset: int = 0  # uncompressed bytes read
    line: int = 1  # number of the next line, from 1


class Piece(NamedTuple):
    """Some lines of a file."""

    path: str
    place: Place  # where they begin
    data: bytes
    after: Place  # where the next piece begins


class Parsed(NamedTuple):
    """The sentences of a piece, of all its documents.

    `starts` are the ascending indices of sentences that begin a document, repeated for an empty document. The index
    after the last sentence means that the next piece begins a document. Sentences before the first start belong to the
    document of the previous piece.
    """

    sentences: list[str]
    starts: list[int]


def find(patterns: str) -> tuple[str, ...]:
    """Expands a comma-separated list of names, patterns or `-`; raises FlagError for an empty name or no match."""
    paths: list[str] = []
    for name in patterns.split(","):
        if not name:
            raise FlagError(f"{patterns!r}: an empty name between commas")
        if os.path.lexists(name) or not glob.has_magic(name):  # a name may have brackets
            paths.append(name)
            continue
        matching = sorted(path for path in glob.glob(name, recursive=True) if not os.path.isdir(path))
        if not matching:
            raise FlagError(f"{name}: no file matches")
        paths += matching
    return tuple(dict.fromkeys(paths))


def pieces(corpus: Corpus, start: Place = Place()) -> Iterator[Piece]:  # noqa: B008  (immutable)
    """Yields the lines of all files, piece by piece, from `start`; only gz files and pipes are read up to there."""
    for number in range(start.file, len(corpus.files)):
        path = corpus.files[number]
        position = start if number == start.file else Place(number)
        with _readable(path) as at, _opened(path) as stream:
            at.line = position.line
            _skip(stream, position.offset)
            for data in _lines(stream, path, at, is_book=corpus.form_of(path) == BOOK):
                after = Place(number, position.offset + len(data), position.line + data.count(b"\n"))
                yield Piece(path, position, data, after)
                position, at.line = after, after.line


def parse(piece: Piece, corpus: Corpus) -> Parsed:
    """Raises DataError with the line number if the piece is not UTF-8 or not in its format."""
    parsed = _PARSERS[corpus.form_of(piece.path)](piece, _text(piece), corpus)
    if piece.place.offset == 0 and parsed.starts[:1] != [0]:
        parsed.starts.insert(0, 0)
    return parsed


def warn_of_lines(corpus: Corpus) -> None:
    """Warns of the first file that is read as one sentence per line by default but does not look like it."""
    for path in corpus.files[:_LOOKED_AT] if corpus.form is None else ():
        alone = dataclasses.replace(corpus, files=(path,))
        if alone.is_cut or not alone.can_be_read_again or (first := next(pieces(alone), None)) is None:
            continue
        lines = parse(first, alone).sentences
        for looks_so, look, form in _NO_SENTENCES:
            if looks_so(lines):
                text = "%s: lines look %s, but each is read as a sentence; add --input_format=%s, or write one sentence a line"
                log.warning(text, path, look, form)
                return


@dataclasses.dataclass
class _At:
    """The current line."""

    line: int = 1


@contextlib.contextmanager
def _readable(path: str) -> Iterator[_At]:
    at = _At()
    try:
        yield at
    except OSError as error:  # also if a .gz file is not gzip
        problem = "not a complete gz file" if isinstance(error, gzip.BadGzipFile) else "cannot read the file"
        reason = str(error) if isinstance(error, gzip.BadGzipFile) else files.reason(error)
        kind = UnreadTextError if error.errno in files.OF_STORAGE else DataError
        raise kind(f"{problem}: {reason}", path, at.line if at.line > 1 else None) from error
    except (EOFError, zlib.error) as error:
        raise DataError(f"the gz file is damaged or cut off after this line: {error}", path, at.line) from error


@contextlib.contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    """Opens a file, a pipe or the standard input, uncompressed."""
    with contextlib.ExitStack() as opened:
        if path == STANDARD_INPUT:
            raw: Any = sys.stdin.buffer
        else:
            if os.path.isdir(path) or not os.path.exists(path):
                files.check_plain(path)  # raises a clearer error
            raw = opened.enter_context(open(path, "rb"))
        if raw.peek(2)[:2] == encodings.GZIP:
            raw = opened.enter_context(gzip.GzipFile(fileobj=raw))
        yield cast(BinaryIO, raw)


def _skip(stream: BinaryIO, size: int) -> None:
    if stream.seekable():  # gz reads what it skips
        stream.seek(size)
    else:
        while size and (data := stream.read(min(size, PIECE))):
            size -= len(data)


def _lines(stream: BinaryIO, path: str, at: _At, *, is_book: bool) -> Iterator[bytes]:
    """Yields whole lines, up to `PIECE` bytes at a time; the last line of a file may lack its end.

    The end of a piece depends only on its start, so that reading can resume there.
    """
    buffer, size, is_begin = b"", PIECE, at.line == 1
    while data := stream.read(size - len(buffer)):
        problem = encodings.instead_of_text(data) if is_begin else None
        if is_begin and data.startswith(encodings.PARQUET):
            problem = "the file is Parquet: write its texts as JSON lines, each as an object with 'text'"
        if problem:
            raise DataError(problem, path, 1)
        is_begin = False
        if b"\0" in data:
            line = at.line + (buffer + data[: data.index(b"\0")]).count(b"\n")
            raise DataError("holds a NUL byte; is it a binary file, or UTF-16?", path, line)
        buffer += data
        end = (_pause(buffer) if is_book else 0) or buffer.rfind(b"\n") + 1
        if end:
            yield buffer[:end]
            buffer, size = buffer[end:], PIECE
        elif len(buffer) > LONGEST_LINE:
            raise DataError(f"a line of more than {LONGEST_LINE >> 20} MB; split it into lines", path, at.line)
        else:
            size = len(buffer) + PIECE
    if buffer:
        yield buffer


def _pause(data: bytes) -> int:
    """Offset after the last line that ends a sentence, where a book may be split; 0 if there is none."""
    end = data.rfind(b"\n")
    while end > 0:
        if data[end - 1 - data.startswith(b"\r", end - 1)] in _PAUSE:
            return end + 1
        end = data.rfind(b"\n", 0, end)
    return 0


def _text(piece: Piece) -> str:
    try:
        text = piece.data.decode()
    except UnicodeDecodeError as error:
        line = piece.place.line + piece.data.count(b"\n", 0, error.start)
        raise DataError(f"not UTF-8; {encodings.remedy(piece.data)}", piece.path, line) from error
    if piece.place.offset == 0 and "\n" not in text and "\r" in text.strip():
        raise DataError("its lines end with CR alone; convert it, as with tr '\\r' '\\n'", piece.path)
    return text.removeprefix(codecs.BOM_UTF8.decode()) if piece.place.offset == 0 else text


def _parse_lines(text: str, cut: Callable[[str], Iterable[str]]) -> Parsed:
    """Parses text lines, with blank lines between documents."""
    all_sentences: list[str] = []
    starts: list[int] = []
    for line in text.split("\n"):
        if line := line.strip():
            all_sentences += cut(line)
        else:
            starts.append(len(all_sentences))
    if text.endswith("\n"):
        starts.pop()  # nothing follows the last line end
    return Parsed(all_sentences, starts)


def _of_raw(text: str, language: str) -> list[str]:
    """Sentences of raw text; paragraphs end at blank lines, and at lines too long to be wrapped."""
    all_sentences: list[str] = []
    paragraph: list[str] = []
    for line in (*text.split("\n"), ""):
        line = line.strip()
        if line:
            paragraph.append(line)
        if paragraph and not 0 < len(line) <= WRAPPED:
            all_sentences += sentences.cut(" ".join(paragraph), language)
            paragraph = []
    return all_sentences


def _parse_json(piece: Piece, text: str, corpus: Corpus) -> Parsed:
    """Parses one JSON object per line; a text that is a list holds sentences."""
    all_sentences: list[str] = []
    starts: list[int] = []
    for number, line in enumerate(text.split("\n"), piece.place.line):
        if line := line.strip():
            starts.append(len(all_sentences))
            all_sentences += _of_object(line, corpus, piece.path, number)
    return Parsed(all_sentences, [*starts, len(all_sentences)] if starts else [])


def _of_object(line: str, corpus: Corpus, path: str, number: int) -> list[str]:
    try:
        value = json_value(line)
    except DocumentError as error:
        raise DataError(error.problem, path, number) from error
    text = value.get(corpus.text_key) if isinstance(value, dict) else None
    if isinstance(text, list) and all(isinstance(part, str) for part in text):
        return [sentence for part in text if (sentence := " ".join(_whole(part).split()))]
    if not isinstance(text, str):
        raise DataError(f"expected an object with {corpus.text_key!r}: a text, or a list of sentences", path, number)
    return _of_raw(_whole(text), corpus.language)


def _whole(text: str) -> str:
    """Replaces lone surrogates, which JSON can escape, with U+FFFD, which the tokenizer drops."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


_PARSERS: Mapping[str, Callable[[Piece, str, Corpus], Parsed]] = {
    SENTENCES: lambda _, text, __: _parse_lines(text, lambda line: (line,)),
    PARAGRAPHS: lambda _, text, corpus: _parse_lines(text, lambda line: sentences.cut(line, corpus.language)),
    BOOK: lambda _, text, corpus: Parsed(_of_raw(text, corpus.language), []),
    JSONL: _parse_json,
}

"""Files of vectors: NumPy, Parquet, JSON lines, and the format of the published extract_features.py.

JSON is written part by part. The others start with their size or end with a directory, so parts use a format of our
own and are assembled at the end: each starts with two sizes, then has its vectors as rows of numbers, and its
texts' metadata as JSON lines.
"""

from __future__ import annotations

import dataclasses
import gzip
import itertools
import struct
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Union

import numpy as np
import numpy.typing as npt

from bert_tf.errors import BertError, FlagError
from bert_tf.io import documents
from bert_tf.tasks.sentence.rows import SentenceExample

if TYPE_CHECKING:  # it loads what computes
    from bert_tf.extensions.vectors.text_encoder import Vectors

NPY, NPZ, PARQUET, JSONL, PUBLISHED = "npy", "npz", "parquet", "jsonl", "published"
FORMATS = (NPY, NPZ, PARQUET, JSONL, PUBLISHED)
ARRAYS = (NPY, NPZ, PARQUET)  # written at the end, so never to a pipe
FLOAT32 = "float32"
DTYPES = (FLOAT32, "float16")
_GZ = ".gz"
_SUFFIXES = {".npy": NPY, ".npz": NPZ, ".parquet": PARQUET, ".jsonl": JSONL, ".ndjson": JSONL, ".json": JSONL}
# Members of an .npz: vectors, tokens of each text (if tokens have vectors), and what made it.
VECTORS, LENGTHS, ROWS, ENCODING = "vectors", "lengths", "rows.jsonl", "encoding.json"

_SIZES = struct.Struct("<QQ")  # of a part: bytes of vectors, bytes of lines
_PARQUET = {"compression": "zstd", "use_dictionary": False, "write_page_checksum": True}
_ROWS_OF_GROUP = 1 << 14  # of Parquet, at most: readers load a group at a time
_DIGITS = 6  # after the point, as published
_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the time of all members, so that equal vectors make equal files


class VectorForm(NamedTuple):
    """One of `FORMATS`, perhaps compressed with gzip."""

    kind: str
    compressed: bool = False


def form_of(output: str, asked: str | None) -> VectorForm:
    """Format from a path or `-`; `asked` (of `FORMATS`) overrides its suffix except for compression.

    FlagError for an unknown suffix or compressed arrays.
    """
    name = output.lower()
    plain = name.removesuffix(_GZ)
    kind = asked or _SUFFIXES.get(PurePath(plain).suffix) or (JSONL if output == "-" else None)
    if kind is None:
        raise FlagError(f"{output}: name it .npy, .npz, .parquet, .jsonl or .jsonl.gz, or add --output_format")
    if kind in ARRAYS and plain != name:
        raise FlagError(f"{output}: cannot write {kind} with {_GZ}; leave it out of the name")
    return VectorForm(kind, plain != name)


@dataclasses.dataclass(frozen=True)
class JsonForm:
    """JSON lines: id, text, and vector of a text, or tokens and their vectors."""

    compressed: bool = False
    assemble = None

    def __str__(self) -> str:
        return JSONL + _GZ * self.compressed

    def part(self, texts: Sequence[SentenceExample], encoded: Vectors) -> bytes:
        return _encoded("".join(self._lines(texts, encoded)), self.compressed)

    def _lines(self, texts: Sequence[SentenceExample], encoded: Vectors) -> Iterator[str]:
        for text, (vectors, pieces) in zip(texts, _by_text(encoded)):
            row_text = documents.to_json(_row(text, pieces), ensure_ascii=False)
            numbers = [f"[{','.join(map('%.9g'.__mod__, vector))}]" for vector in vectors.tolist()]
            values = f'"vector": {numbers[0]}' if pieces is None else f'"vectors": [{", ".join(numbers)}]'
            yield f"{row_text[:-1]}, {values}}}\n"


@dataclasses.dataclass(frozen=True)
class PublishedForm:
    """Output of the published extract_features.py: layer values of each token, with its rounding."""

    layers: tuple[int, ...]  # as requested
    compressed: bool = False  # gzip
    numbered: bool = True  # ids are line numbers from 1, unless a file's name goes before them; published ones are from 0
    assemble = None

    def __str__(self) -> str:
        return PUBLISHED + _GZ * self.compressed

    def part(self, texts: Sequence[SentenceExample], encoded: Vectors) -> bytes:
        lines = (documents.to_json(self._as_published(text, *of_text)) for text, of_text in zip(texts, _by_text(encoded)))
        return _encoded("".join(f"{line}\n" for line in lines), self.compressed)

    def _as_published(self, text: SentenceExample, vectors: npt.NDArray[Any], pieces: Sequence[str] | None) -> dict[str, Any]:
        values = vectors.reshape(len(vectors), len(self.layers), -1).astype(np.float64).round(_DIGITS).tolist()
        features = [
            {"token": piece, "layers": [{"index": layer, "values": row} for layer, row in zip(self.layers, of_token)]}
            for piece, of_token in zip(pieces or (), values)
        ]
        is_number = self.numbered and text.guid.isdecimal()
        return {"linex_index": int(text.guid) - 1 if is_number else text.guid, "features": features}


@dataclasses.dataclass(frozen=True)
class ArrayForm:
    """NumPy formats and Parquet."""

    kind: str  # NPY, NPZ or PARQUET
    dtype: str  # of `DTYPES`
    width: int  # numbers of a vector, W
    encoding: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # model and settings, for readers

    def __str__(self) -> str:
        return f"{self.kind}:{self.dtype}"

    def part(self, texts: Sequence[SentenceExample], encoded: Vectors) -> bytes:
        """Returns vectors and metadata of a chunk; BertError if a vector overflows the dtype or becomes zero."""
        with np.errstate(over="ignore", under="ignore"):
            values = encoded.values.astype(self.dtype)
        lost = ~np.isfinite(values).all(axis=1) | (encoded.values.any(axis=1) & ~values.any(axis=1))
        if lost.any():
            raise BertError(f"--dtype={self.dtype}: a vector is too large or too small for it; leave it out")
        rows = "".join(
            f"{documents.to_json(_row(text, pieces), ensure_ascii=False)}\n"
            for text, (_, pieces) in zip(texts, _by_text(encoded))
        ).encode()
        return _SIZES.pack(values.nbytes, len(rows)) + values.tobytes() + rows

    def assemble(self, parts: Path, whole: Path) -> None:
        with parts.open("rb") as source:
            _ASSEMBLED[self.kind](self, _Parts(source), whole)


AnyForm = Union[JsonForm, PublishedForm, ArrayForm]


class _Part(NamedTuple):
    """Offset of a part's vectors, followed by its lines, and bytes of both."""

    start: int
    vectors: int
    rows: int


class _Parts:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def __iter__(self) -> Iterator[_Part]:
        offset = 0
        while head := self._read(offset, _SIZES.size):
            part = _Part(offset + _SIZES.size, *_SIZES.unpack(head))
            yield part
            offset = part.start + part.vectors + part.rows

    @property
    def are_of_tokens(self) -> bool:
        return any("tokens" in row for part in itertools.islice(self, 1) for row in self.rows(part))

    def vectors(self, part: _Part) -> bytes:
        return self._read(part.start, part.vectors)

    def lines(self, part: _Part) -> bytes:
        return self._read(part.start + part.vectors, part.rows)

    def rows(self, part: _Part) -> list[Any]:
        return [documents.json_value(line) for line in self.lines(part).decode().split("\n")[:-1]]

    def _read(self, start: int, size: int) -> bytes:
        self._file.seek(start)
        return self._file.read(size)


def _npy(form: ArrayForm, parts: _Parts, whole: Path) -> None:
    with whole.open("wb") as target:
        _write_array(form, parts, target)


def _npz(form: ArrayForm, parts: _Parts, whole: Path) -> None:
    with zipfile.ZipFile(whole, "w") as archive:  # not compressed: vectors hardly shrink, and are read in place
        with _member(archive, f"{VECTORS}.npy") as target:
            _write_array(form, parts, target)
        if parts.are_of_tokens:
            lengths = [len(row["tokens"]) for part in parts for row in parts.rows(part)]
            with _member(archive, f"{LENGTHS}.npy") as target:
                np.save(target, np.array(lengths, np.int32))
        with _member(archive, ROWS) as target:
            target.writelines(map(parts.lines, parts))
        with _member(archive, ENCODING) as target:
            target.write(documents.to_json(form.encoding, indent=1).encode())


def _member(archive: zipfile.ZipFile, name: str) -> Any:
    return archive.open(zipfile.ZipInfo(name, _LONG_AGO), "w", force_zip64=True)


def _write_array(form: ArrayForm, parts: _Parts, target: Any) -> None:
    dtype = np.dtype(form.dtype)
    vectors = sum(part.vectors for part in parts) // (dtype.itemsize * form.width)
    header = {"descr": dtype.str, "fortran_order": False, "shape": (vectors, form.width)}
    layout: Any = np.lib.format  # typed in some versions of NumPy only
    layout.write_array_header_1_0(target, header)
    target.writelines(map(parts.vectors, parts))


def _parquet(form: ArrayForm, parts: _Parts, whole: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    vector = pyarrow.list_(pyarrow.from_numpy_dtype(np.dtype(form.dtype)), form.width)
    text = [(name, pyarrow.string()) for name in ("id", "text", "text_b")]
    of_tokens = [("tokens", pyarrow.list_(pyarrow.string())), ("vectors", pyarrow.list_(vector))]
    fields = [*text, *(of_tokens if parts.are_of_tokens else [("vector", vector)])]
    schema = pyarrow.schema(fields, {ENCODING: documents.to_json(form.encoding)})
    with pyarrow.parquet.ParquetWriter(whole, schema, **_PARQUET) as writer:
        for part in parts:
            values = np.frombuffer(parts.vectors(part), form.dtype)
            writer.write_table(_table(schema, values, parts.rows(part), form.width), row_group_size=_ROWS_OF_GROUP)


def _table(schema: Any, values: npt.NDArray[Any], rows: Sequence[Mapping[str, Any]], width: int) -> Any:
    import pyarrow

    vectors = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(values), width)
    if "vectors" in schema.names:
        ends = np.cumsum([0, *(len(row["tokens"]) for row in rows)], dtype=np.int32)
        vectors = pyarrow.ListArray.from_arrays(pyarrow.array(ends), vectors)
    columns = [pyarrow.array([row.get(name) for row in rows], schema.field(name).type) for name in schema.names[:-1]]
    return pyarrow.table([*columns, vectors], schema=schema)


_ASSEMBLED = {NPY: _npy, NPZ: _npz, PARQUET: _parquet}


def _by_text(encoded: Vectors) -> Iterator[tuple[npt.NDArray[Any], Sequence[str] | None]]:
    if encoded.lengths is None or encoded.pieces is None:
        yield from ((row[None], None) for row in encoded.values)
        return
    ends = np.cumsum(encoded.lengths).tolist()
    for start, end in zip([0, *ends], ends):
        yield encoded.values[start:end], encoded.pieces[start:end]


def _row(text: SentenceExample, pieces: Sequence[str] | None) -> dict[str, Any]:
    second = {} if text.text_b is None else {"text_b": text.text_b}
    return {"id": text.guid, "text": text.text_a, **second, **({} if pieces is None else {"tokens": list(pieces)})}


def _encoded(text: str, compressed: bool) -> bytes:
    return gzip.compress(text.encode(), mtime=0) if compressed else text.encode()

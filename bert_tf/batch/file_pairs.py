"""Input files and their outputs: patterns, folders, pipes, and names that contradict each other."""

from __future__ import annotations

import collections
import dataclasses
import glob
import gzip
import os
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import NamedTuple

from bert_tf import run_layout
from bert_tf.errors import FlagError
from bert_tf.io import files
from bert_tf.io.files import PIPE
from bert_tf.settings import refuse_remote, setting
from bert_tf.tasks import names, tables
from bert_tf.tasks.names import FORMATS

_GZ = ".gz"
# Suffixes that promise another format.
_OTHERS = (".parquet", ".feather", ".arrow", ".xls", ".xlsx", ".ods", ".npy", ".npz", ".pkl", ".yaml", ".yml", ".xml", ".html")
_COMPRESSED = (".bz2", ".xz", ".zst", ".lz4", ".zip", ".7z", ".tar", ".tgz")


@dataclasses.dataclass(frozen=True)
class FilePair:
    """An input file and its output; `-` is a pipe."""

    input: str = setting(None, "file to read", required=True)
    output: str = setting(None, "file to write", required=True)
    output_format: str | None = setting(None, "else as the name of the output says", choices=FORMATS)

    def with_pipes(self, output_format: str | None = None) -> FilePair:
        """Resolves the devices of pipes, and the format if none is set."""
        source = PIPE if self.input == "/dev/stdin" else self.input
        output = PIPE if self.output == "/dev/stdout" else self.output
        return FilePair(source, output, self.output_format or output_format)


def expanded(pair: FilePair, suffix: str | None) -> list[FilePair]:
    """Expands a pattern, with one output per file (ending in `suffix`) if the output is a folder."""
    inputs = _matching(pair.input)
    if pair.output == PIPE or not (pair.output.endswith(os.sep) or os.path.isdir(pair.output)):
        if len(inputs) > 1:
            raise FlagError(f"--input={pair.input}: {len(inputs)} files; name a folder for their vectors: --output=FOLDER/")
        return [dataclasses.replace(pair, input=inputs[0])]
    if suffix is None:
        raise FlagError(f"--output={pair.output}: is a folder; add --output_format, or name a file to write")
    stems = ["stdin" if path == PIPE else Path(files.uncompressed(path)).stem for path in inputs]  # a of a.txt.gz
    outputs = [str(Path(pair.output, f"{stem}.{suffix}")) for stem in stems]
    counts = collections.Counter(outputs)
    for path, output in zip(inputs, outputs):
        if counts[output] > 1:
            raise FlagError(f"{path}: its vectors and those of another file would be {output}; rename one of them")
    return [FilePair(path, output, pair.output_format) for path, output in zip(inputs, outputs)]


def refuse_clashes(pairs: Sequence[FilePair]) -> None:
    """Raises FlagError if an output is remote or a folder, belongs to a run, is also an input or is written twice."""
    outputs = collections.Counter(_place(pair.output) for pair in pairs)
    for pair in pairs:
        if pair.output != PIPE:
            refuse_remote("", pair.output, "or add --beam")
            if pair.output.endswith(os.sep) or os.path.isdir(pair.output):
                raise FlagError(f"{pair.output}: is a folder; name a file to write")
            run_layout.refuse_own_file(pair.output)
        if outputs[_place(pair.output)] > 1:
            raise FlagError(f"{pair.output}: two inputs would be written there")
        if pair.input != PIPE and _place(pair.input) in outputs:
            raise FlagError(f"{pair.input}: is an input and an output")
    if sum(pair.input == PIPE for pair in pairs) > 1:
        raise FlagError("the standard input can be read once")


def _place(name: str) -> str:
    return name if name == PIPE else os.path.realpath(name)


def _matching(name: str) -> list[str]:
    if not glob.has_magic(name) or os.path.exists(name):
        return [name]
    matching = sorted(path for path in glob.glob(name) if not os.path.isdir(path))
    if not matching:
        raise FlagError(f"--input={name}: no file matches")
    return matching


class OutputForm(NamedTuple):
    form: str = names.TSV  # one of names.FORMATS
    compressed: bool = False

    @property
    def assemble(self) -> None:
        """None: the file is the concatenation of its parts."""

    def __str__(self) -> str:
        return self.form + _GZ * self.compressed

    def encode(self, text: str) -> bytes:
        """Compresses each part to a gzip member of its own; files of several members are legal (RFC 1952).

        Half of a surrogate pair, which a kept column of JSON may hold, is written as JSON's escape.
        """
        data = text.encode(errors="backslashreplace")
        return gzip.compress(data, mtime=0) if self.compressed else data


def output_form(output: str, named_format: str | None) -> OutputForm:
    """Format of an output; TSV if the name (as of a pipe) does not tell; FlagError for an unsupported one.

    `named_format` overrides the name's format, but only the name decides about compression.
    """
    name = output.lower()
    plain = name.removesuffix(_GZ)
    known = ", ".join(f".{form}" for form in names.FORMATS)
    if PurePath(plain).suffix in _COMPRESSED:
        raise FlagError(f"{output}: cannot compress to {PurePath(plain).suffix}; name it {known} or one of these with {_GZ}")
    if named_format is None and PurePath(plain).suffix in _OTHERS:
        raise FlagError(f"{output}: cannot write that; name it {known} or one of these with {_GZ}, or add --output_format")
    return OutputForm(named_format or tables.form_of(plain) or names.TSV, name != plain)

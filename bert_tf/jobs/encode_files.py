"""Pairs of input files and output files of an encoding job."""

from __future__ import annotations

import glob
import os
from pathlib import Path

from bert_tf.batch.job import FilePair
from bert_tf.batch.stream import PIPE
from bert_tf.errors import FlagError
from bert_tf.vectors.forms import JSONL, PUBLISHED


def pairs(files: FilePair) -> list[FilePair]:
    """Expands a pattern, with one output per file if the output is a folder; FlagError if names clash."""
    found = _found(files.input)
    if not _is_folder(files.output):
        if len(found) > 1:
            raise FlagError(f"--input={files.input}: {len(found)} files; name a folder for their vectors: --output=FOLDER/")
        return [FilePair(found[0], files.output, files.output_format)]
    if files.output_format is None:
        raise FlagError(f"--output={files.output}: is a folder; add --output_format, or name a file to write")
    suffix = JSONL if files.output_format == PUBLISHED else files.output_format
    outputs = [str(Path(files.output, f"{_stem(path)}.{suffix}")) for path in found]
    for path, output in zip(found, outputs):
        if outputs.count(output) > 1:
            raise FlagError(f"{path}: its vectors and those of another file would be {output}; rename one of them")
    return [FilePair(path, output, files.output_format) for path, output in zip(found, outputs)]


def _found(name: str) -> list[str]:
    if not glob.has_magic(name) or os.path.exists(name):
        return [name]
    found = sorted(path for path in glob.glob(name) if not os.path.isdir(path))
    if not found:
        raise FlagError(f"--input={name}: no file matches")
    return found


def _is_folder(output: str) -> bool:
    return output != PIPE and (output.endswith(os.sep) or os.path.isdir(output))


def _stem(path: str) -> str:
    """File name without suffixes: a for a.txt.gz."""
    return "stdin" if path == PIPE else Path(path.removesuffix(".gz")).stem

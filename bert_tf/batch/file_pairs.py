"""Input files and their outputs: patterns, folders, pipes, and names that contradict each other."""

from __future__ import annotations

import collections
import dataclasses
import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bert_tf.batch import job
from bert_tf.errors import FlagError
from bert_tf.settings import setting
from bert_tf.tasks.tables import FORMATS

PIPE = "-"


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


def read_pair(value: Any) -> FilePair:
    """Reads an entry of `files` in a job file."""
    return job.read_entry(FilePair, value)


def expanded(pair: FilePair, suffix: str | None) -> list[FilePair]:
    """Expands a pattern, with one output per file (ending in `suffix`) if the output is a folder."""
    inputs = _matching(pair.input)
    if pair.output == PIPE or not (pair.output.endswith(os.sep) or os.path.isdir(pair.output)):
        if len(inputs) > 1:
            raise FlagError(f"--input={pair.input}: {len(inputs)} files; name a folder for their vectors: --output=FOLDER/")
        return [dataclasses.replace(pair, input=inputs[0])]
    if suffix is None:
        raise FlagError(f"--output={pair.output}: is a folder; add --output_format, or name a file to write")
    outputs = [str(Path(pair.output, f"{_stem(path)}.{suffix}")) for path in inputs]
    for path, output in zip(inputs, outputs):
        if outputs.count(output) > 1:
            raise FlagError(f"{path}: its vectors and those of another file would be {output}; rename one of them")
    return [FilePair(path, output, pair.output_format) for path, output in zip(inputs, outputs)]


def refuse_clashes(pairs: Sequence[FilePair]) -> None:
    """Raises FlagError if an output is a folder, belongs to a run, is also an input or is written twice."""
    from bert_tf.estimator import run_folder

    outputs = collections.Counter(_place(pair.output) for pair in pairs)
    for pair in pairs:
        if pair.output != PIPE:
            if pair.output.endswith(os.sep) or os.path.isdir(pair.output):
                raise FlagError(f"{pair.output}: is a folder; name a file to write")
            run_folder.refuse_own_file(pair.output)
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


def _stem(path: str) -> str:
    """File name without suffixes: a for a.txt.gz."""
    return "stdin" if path == PIPE else Path(path.removesuffix(".gz")).stem

"""Configuration of an encoding job, made from settings by name."""

from __future__ import annotations

import dataclasses
from typing import Any

from bert_tf.batch.job import Columns, FilePair, Given
from bert_tf.errors import FlagError
from bert_tf.jobs.batch_settings import COLUMNS, MACHINE, MODEL, divided
from bert_tf.jobs.machine_settings import MachineSettings
from bert_tf.settings import MOST_EXAMPLES, Setting, fields_of, named
from bert_tf.tasks import tables
from bert_tf.tasks.custom import CustomSettings
from bert_tf.vectors import options as vector_options
from bert_tf.vectors.forms import DTYPES, FLOAT32, FORMATS
from bert_tf.vectors.options import VectorOptions, layer_numbers

_OF_TEXTS = frozenset(field.name for field in dataclasses.fields(CustomSettings))  # not columns of words and tags
_INPUT_FORMATS = (tables.LINES, *tables.FORMATS)
_DTYPE = Setting("dtype", str, FLOAT32, f"of the numbers of .npy, .npz and .parquet: {', '.join(DTYPES)}", None, DTYPES)
_ENDS = (
    Setting(
        "input",
        str,
        None,
        "a text a line (a pair: text ||| text), or .tsv, .csv, .jsonl; a pattern for several files; - is a pipe",
    ),
    Setting(
        "output",
        str,
        None,
        "vectors: .npy, .npz, .parquet, .jsonl or .jsonl.gz; a folder for a file each; - is a pipe of JSON lines",
    ),
)
# Which model encodes texts, and how.
CHECKPOINT = Setting("checkpoint", str, None, "checkpoint, run or Hugging Face folder; else $BERT_BASE_DIR, the default")
BATCH_SIZE = Setting("batch_size", int, None, "texts at a time; else by length, and a GPU's memory", 1, highest=MOST_EXAMPLES)
SETTINGS = (
    *_ENDS,
    CHECKPOINT,
    *vector_options.SETTINGS,
    Setting("output_format", str, None, f"{', '.join(FORMATS)}; else as the name of the output says", None, FORMATS),
    _DTYPE,
    BATCH_SIZE,
    Setting("skip_bad_rows", bool, False, "leave out rows that cannot be used; else stop at the first"),
    *(
        row._replace(choices=_INPUT_FORMATS, help=f"{', '.join(_INPUT_FORMATS)}; else as the name says, or text")
        if row.name == "file_format"
        else row
        for row in COLUMNS
        if row.name in _OF_TEXTS
    ),
    *(
        row._replace(help=row.help.replace("as trained", "as trained, or 128")) if row.name == "max_seq_length" else row
        for row in MODEL
    ),
    *MACHINE,
)


@dataclasses.dataclass(frozen=True)
class EncodeConfig:
    files: FilePair
    columns: Columns  # of the input
    checkpoint: str | None  # None for the default
    model: Given  # overrides of recorded settings
    options: VectorOptions
    dtype: str  # of arrays
    batch_size: int | None  # None chooses by length
    skip_bad_rows: bool
    machine: MachineSettings


def configured(**values: Any) -> EncodeConfig:
    keys, machine = divided(named(SETTINGS, values))
    for row in _ENDS:
        if row.name not in keys:
            raise FlagError(f"--{row.name} is required")
    return EncodeConfig(
        files=FilePair(keys["input"], keys["output"], keys.get("output_format")),
        columns=fields_of(Columns, keys),
        checkpoint=keys.get(CHECKPOINT.name),
        model=fields_of(Given, keys),
        options=options(keys),
        dtype=keys.get(_DTYPE.name, _DTYPE.default),
        batch_size=keys.get(BATCH_SIZE.name),
        skip_bad_rows=keys.get("skip_bad_rows", False),
        machine=machine,
    )


def options(keys: Any) -> VectorOptions:
    given = {row.name: keys.get(row.name, row.default) for row in vector_options.SETTINGS}
    return VectorOptions(**{**given, "layers": layer_numbers(given["layers"])})

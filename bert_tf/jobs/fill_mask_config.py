"""Configuration of filling in masked words, made from settings by name."""

from __future__ import annotations

import dataclasses
from typing import Any

from bert_tf.batch.job import Columns, FilePair, Given
from bert_tf.errors import FlagError
from bert_tf.head_spec import BEST_WORDS
from bert_tf.jobs import encode_config
from bert_tf.jobs.batch_settings import MACHINE, MODEL, divided
from bert_tf.jobs.encode_config import BATCH_SIZE
from bert_tf.jobs.machine_settings import ENGINE, MachineSettings
from bert_tf.settings import Setting, fields_of, named
from bert_tf.tasks import tables

TEXT, INPUT, OUTPUT = "text", "input", "output"
TOP = Setting("top", int, 5, f"words of each place, the most probable first; up to {BEST_WORDS}", 1, highest=BEST_WORDS)
# Of the model, and of what computes; other engines than TensorFlow have one output, not several.
OF_MODEL = tuple(
    row._replace(help=row.help.replace("as trained", "as trained, or all that the model can read"))
    if row.name == "max_seq_length"
    else row
    for row in MODEL
    if row.name != "long_text"
)
OF_MACHINE = tuple(row for row in MACHINE if row != ENGINE)
_COLUMNS = tuple(row for row in encode_config.SETTINGS if row.name in ("text_a", "id_column", "file_format", "has_header"))
SETTINGS = (
    Setting(TEXT, str, None, "a text with [MASK], one or several; its words are printed"),
    Setting(INPUT, str, None, "texts with [MASK]: one a line, or .tsv, .csv, .jsonl; - is a pipe"),
    Setting(OUTPUT, str, None, "JSON lines: .jsonl or .jsonl.gz; - is a pipe"),
    TOP,
    BATCH_SIZE,
    Setting("skip_bad_rows", bool, False, "leave out rows that cannot be used; else stop at the first"),
    *_COLUMNS,
    *OF_MODEL,
    *OF_MACHINE,
)


@dataclasses.dataclass(frozen=True)
class FillMaskConfig:
    checkpoint: str  # checkpoint, run or Hugging Face folder
    text: str | None  # with [MASK]; None if there are files
    files: FilePair | None  # None if there is a text
    columns: Columns  # of the input
    model: Given  # overrides of recorded settings
    top: int  # words per mask
    batch_size: int | None  # texts; None chooses by length
    skip_bad_rows: bool
    machine: MachineSettings


def configured(checkpoint: str, **values: Any) -> FillMaskConfig:
    keys, machine = divided(named(SETTINGS, values))
    if (TEXT in keys) == (INPUT in keys):
        raise FlagError("--text or --input is required, and one of them alone")
    if (INPUT in keys) != (OUTPUT in keys):
        raise FlagError("--input and --output go together; the words of --text are printed")
    return FillMaskConfig(
        checkpoint=checkpoint,
        text=keys.get(TEXT),
        files=FilePair(keys[INPUT], keys[OUTPUT], tables.JSONL) if INPUT in keys else None,
        columns=fields_of(Columns, keys),
        model=fields_of(Given, keys),
        top=keys.get(TOP.name, TOP.default),
        batch_size=keys.get(BATCH_SIZE.name),
        skip_bad_rows=keys.get("skip_bad_rows", False),
        machine=machine,
    )

"""The forms of a published log's lines, and which of them a log here has.

A form is a line without its numbers and names. The published log was read off screenshots: most lines lost their
two leading blanks, "Trainable" was read as "Training", and so on. The patterns match the original lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

EQUAL, MISSING, NOT_COMPARABLE = "equal", "missing", "not comparable"


class FormFound(NamedTuple):
    """A form and its number of lines in a log."""

    form: str
    lines: int
    verdict: str  # EQUAL, MISSING, or NOT_COMPARABLE for the reason
    reason: str


_NUMBER = r"\d+(\.\d+)?(e[+-]?\d+)?"
_METRICS = rf"\w+ = {_NUMBER}(, \w+ = {_NUMBER})*"
_NEVER = r"(?!)"
_RUNTIME = "written by TensorFlow 1.14's runtime on a GPU, not to the log; this release words it differently"
_OLD = "each release of TensorFlow deprecates other functions, and warns once a process"
_IMPORT = "a warning of TensorFlow 1.14 about numpy and old names, which this package does not use"

# By shortened line: a pattern that must match the whole line, and the reason if a log here may lack it.
FORMS: Mapping[str, tuple[str, str]] = {
    "Writing example 0 of 408": (r"Writing example \d+ of \d+", ""),
    "*** Example ***": (r"\*\*\* Example \*\*\*", ""),
    "guid: dev-4": (r"guid: dev-\d+", ""),
    "tokens: [CLS] ... [SEP]": (r"tokens: \[CLS\] .* \[SEP\]", ""),
    "input_ids: 101 ...": (r"input_ids: \d+( \d+)+", ""),
    "label: 1 (id = 1)": (r"label: \S+ \(id = \d+\)", ""),
    "Calling model_fn.": (r"Calling model_fn\.", ""),
    "*** Features ***": (r"\*\*\* Features \*\*\*", ""),
    "name = input_ids, shape = (?, 64)": (r"name = \w+, shape = \(\?, \d+\)", ""),
    "name = label_ids, shape = (?,)": (r"name = \w+, shape = \(\?,\)", ""),
    "**** Trainable Variables ****": (r"\*{4} Train(able|ing) Variables \*{4}", ""),
    "name = ...:0, shape = (768,), *INIT_FROM_CKPT*": (r"name = \S+:0, shape = \([\d, ]+\), \*INIT_FROM_CKPT\*", ""),
    "name = ...:0, shape = (2, 768)": (r"name = \S+:0, shape = \([\d, ]+\)", ""),
    "Done calling model_fn.": (r"Done calling model_fn\.", ""),
    "Create CheckpointSaverHook.": (r"Create CheckpointSaverHook\.", ""),
    "Graph was finalized.": (r"Graph was finalized\.", ""),
    "Restoring parameters from ...model.ckpt-917": (r"Restoring parameters from .*model\.ckpt-\d+", ""),
    "Running local_init_op.": (r"Running local_init_op\.", ""),
    "Done running local_init_op.": (r"Done running local_init_op\.", ""),
    "global_step/sec: 3.16163": (rf"global_step/sec: {_NUMBER}", ""),
    "examples/sec: 37.9395": (rf"examples/sec: {_NUMBER}", ""),
    "Saving checkpoints for 917 into ...model.ckpt.": (r"Saving checkpoints for \d+ into .*model\.ckpt\.", ""),
    "Starting evaluation at ...": (r"Starting evaluation at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ?", ""),
    "Finished evaluation at ...": (r"Finished evaluation at \d{4}-\d\d-\d\d-\d\d:\d\d:\d\d", ""),
    "Saving dict for global step 917: ...": (rf"Saving dict for global step \d+: {_METRICS}", ""),
    "Saving 'checkpoint_path' summary for ...": (r"Saving 'checkpoint_path' summary for global step \d+: .*\.ckpt-\d+", ""),
    "evaluation_loop marked as finished": (r"evaluation_loop marked as finished", ""),
    "***** Eval results *****": (r"\*{5} Eval results \*{5}", ""),
    "eval_accuracy = 0.8504902": (rf"eval_accuracy = {_NUMBER}", ""),
    "eval_loss = 0.5313762": (rf"eval_loss = {_NUMBER}", ""),
    "global_step = 917": (r"global_step = \d+", ""),
    "loss = 0.5313762": (rf"loss = {_NUMBER}", ""),
    "From ...: ... is deprecated and will be removed": (r"From .*:\d+: .* is deprecated and will be removed in .*", _OLD),
    "Instructions for updating:": (r"Instructions for updating:", _OLD),
    "From ...: The name tf... is deprecated": (_NEVER, _IMPORT),
    "dtypes.py:516: FutureWarning: ...": (_NEVER, _IMPORT),
    "Your CPU supports instructions that ...": (_NEVER, _RUNTIME),
    "CPU Frequency: 3600000000 Hz": (_NEVER, _RUNTIME),
    "Successfully opened dynamic library ...": (_NEVER, _RUNTIME),
    "XLA service ... executing computations": (_NEVER, _RUNTIME),
    "StreamExecutor device (0): ...": (_NEVER, _RUNTIME),
    "successful NUMA node read from SysFS ...": (_NEVER, _RUNTIME),
    "Found device 0 with properties: ...": (_NEVER, _RUNTIME),
    "Adding visible gpu devices: 0": (_NEVER, _RUNTIME),
    "Device interconnect StreamExecutor ...": (_NEVER, _RUNTIME),
    "Created TensorFlow device (... 5175 MB memory)": (_NEVER, _RUNTIME),
}

_PREFIX = re.compile(r"[DIWE]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [^\]]+:\d+\] ")  # absl's


def found_in(log: Iterable[str]) -> list[FormFound]:
    """Counts the log's lines of each form; lines may have absl's prefix."""
    lines = [_PREFIX.sub("", line, count=1).strip() for line in log]
    forms = []
    for form, (pattern, reason) in FORMS.items():
        count = sum(re.fullmatch(pattern, line) is not None for line in lines)
        forms.append(FormFound(form, count, NOT_COMPARABLE if reason else EQUAL if count else MISSING, reason))
    return forms

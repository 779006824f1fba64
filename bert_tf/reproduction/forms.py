"""The forms of a published log's lines, and which of them a log here has.

A form is a line without its numbers and names. The published log was read off screenshots: most lines lost their
two leading blanks, "Trainable" was read as "Training", and so on. The patterns match the original lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

EQUAL, MISSING, NOT_COMPARABLE = "equal", "missing", "not comparable"


class Form(NamedTuple):
    """A form of log line."""

    name: str  # the line, shortened
    pattern: str  # must match the whole line
    reason: str = ""  # why a log here need not have it; empty if it must


class FormFound(NamedTuple):
    """A form and its number of lines in a log."""

    form: str
    lines: int
    verdict: str  # EQUAL, MISSING, or NOT_COMPARABLE for the reason
    reason: str


_NUMBER = r"\d+(\.\d+)?(e[+-]?\d+)?"
_METRICS = rf"\w+ = {_NUMBER}(, \w+ = {_NUMBER})*"
_NEVER = r"(?!)"
_RUNTIME = "written by TensorFlow 1.14's runtime on a GPU, past the log; this release has other words"
_OLD = "each release of TensorFlow deprecates other functions, and warns once a process"
_IMPORT = "a warning of TensorFlow 1.14 about numpy and old names, which this package does not use"

FORMS = (
    Form("Writing example 0 of 408", r"Writing example \d+ of \d+"),
    Form("*** Example ***", r"\*\*\* Example \*\*\*"),
    Form("guid: dev-4", r"guid: dev-\d+"),
    Form("tokens: [CLS] ... [SEP]", r"tokens: \[CLS\] .* \[SEP\]"),
    Form("input_ids: 101 ...", r"input_ids: \d+( \d+)+"),
    Form("label: 1 (id = 1)", r"label: \S+ \(id = \d+\)"),
    Form("Calling model_fn.", r"Calling model_fn\."),
    Form("*** Features ***", r"\*\*\* Features \*\*\*"),
    Form("name = input_ids, shape = (?, 64)", r"name = \w+, shape = \(\?, \d+\)"),
    Form("name = label_ids, shape = (?,)", r"name = \w+, shape = \(\?,\)"),
    Form("**** Trainable Variables ****", r"\*{4} Train(able|ing) Variables \*{4}"),
    Form("name = ...:0, shape = (768,), *INIT_FROM_CKPT*", r"name = \S+:0, shape = \([\d, ]+\), \*INIT_FROM_CKPT\*"),
    Form("name = ...:0, shape = (2, 768)", r"name = \S+:0, shape = \([\d, ]+\)"),
    Form("Done calling model_fn.", r"Done calling model_fn\."),
    Form("Create CheckpointSaverHook.", r"Create CheckpointSaverHook\."),
    Form("Graph was finalized.", r"Graph was finalized\."),
    Form("Restoring parameters from ...model.ckpt-917", r"Restoring parameters from .*model\.ckpt-\d+"),
    Form("Running local_init_op.", r"Running local_init_op\."),
    Form("Done running local_init_op.", r"Done running local_init_op\."),
    Form("global_step/sec: 3.16163", rf"global_step/sec: {_NUMBER}"),
    Form("examples/sec: 37.9395", rf"examples/sec: {_NUMBER}"),
    Form("Saving checkpoints for 917 into ...model.ckpt.", r"Saving checkpoints for \d+ into .*model\.ckpt\."),
    Form("Starting evaluation at ...", r"Starting evaluation at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ?"),
    Form("Finished evaluation at ...", r"Finished evaluation at \d{4}-\d\d-\d\d-\d\d:\d\d:\d\d"),
    Form("Saving dict for global step 917: ...", rf"Saving dict for global step \d+: {_METRICS}"),
    Form("Saving 'checkpoint_path' summary for ...", r"Saving 'checkpoint_path' summary for global step \d+: .*\.ckpt-\d+"),
    Form("evaluation_loop marked as finished", r"evaluation_loop marked as finished"),
    Form("***** Eval results *****", r"\*{5} Eval results \*{5}"),
    Form("eval_accuracy = 0.8504902", rf"eval_accuracy = {_NUMBER}"),
    Form("eval_loss = 0.5313762", rf"eval_loss = {_NUMBER}"),
    Form("global_step = 917", r"global_step = \d+"),
    Form("loss = 0.5313762", rf"loss = {_NUMBER}"),
    Form("From ...: ... is deprecated and will be removed", r"From .*:\d+: .* is deprecated and will be removed in .*", _OLD),
    Form("Instructions for updating:", r"Instructions for updating:", _OLD),
    Form("From ...: The name tf... is deprecated", _NEVER, _IMPORT),
    Form("dtypes.py:516: FutureWarning: ...", _NEVER, _IMPORT),
    Form("Your CPU supports instructions that ...", _NEVER, _RUNTIME),
    Form("CPU Frequency: 3600000000 Hz", _NEVER, _RUNTIME),
    Form("Successfully opened dynamic library ...", _NEVER, _RUNTIME),
    Form("XLA service ... executing computations", _NEVER, _RUNTIME),
    Form("StreamExecutor device (0): ...", _NEVER, _RUNTIME),
    Form("successful NUMA node read from SysFS ...", _NEVER, _RUNTIME),
    Form("Found device 0 with properties: ...", _NEVER, _RUNTIME),
    Form("Adding visible gpu devices: 0", _NEVER, _RUNTIME),
    Form("Device interconnect StreamExecutor ...", _NEVER, _RUNTIME),
    Form("Created TensorFlow device (... 5175 MB memory)", _NEVER, _RUNTIME),
)

_PREFIX = re.compile(r"[DIWE]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [^\]]+:\d+\] ")  # absl's


def found_in(log: Iterable[str]) -> list[FormFound]:
    """Counts the log's lines of each form; lines may have absl's prefix."""
    lines = [_PREFIX.sub("", line, count=1).strip() for line in log]
    return list(_counted(lines))


def _counted(lines: Sequence[str]) -> Iterator[FormFound]:
    for form in FORMS:
        count = sum(re.fullmatch(form.pattern, line) is not None for line in lines)
        verdict = NOT_COMPARABLE if form.reason else EQUAL if count else MISSING
        yield FormFound(form.name, count, verdict, form.reason)

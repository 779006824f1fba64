"""Files of a run's folder: names, contents, and whether training or evaluation writes them."""

from __future__ import annotations

import fnmatch
import functools
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bert_tf import extension
from bert_tf.errors import OutputError
from bert_tf.io import atomic

RECORD = "run_config.json"
DETERMINING = "training"  # key in it: settings that decide the result
POOLING = "pooling"  # key in that, of a model from elsewhere: how its vectors are made, see head_spec.POOLINGS
NORMALIZE = "normalize"  # key in that, likewise: whether they are scaled to length 1
LEFT_OUT = "left_out"  # key in that, of a model from elsewhere: what else is done to its vectors and their texts there
ROWS = "examples_sha256"  # key of a split in eval_results.json: the digest of what was measured
REPLACED = "replaced"  # key in it: task and results of the run that was overwritten
CHECKPOINTS, LIST, OPTIMIZER = "model.ckpt-*", "checkpoint", "optimizer"
CORPUS = "corpus"
BEST, EMA, AVERAGE = "best", "ema", "average"
AVERAGES = (EMA, AVERAGE)  # of the weights: moving, and of the last checkpoints
MODELS = (BEST, *AVERAGES)  # folders of a run that are trained models of their own
DECISION = "decision.json"
VOCABULARY, TOKENIZER, CONFIG = "vocab.txt", "tokenizer.json", "bert_config.json"
TEXT_RULES = "tokenizer_config.json"  # if the published rules do not suffice
METRICS, EVALUATIONS, CLOCK = "metrics.jsonl", "evaluations.jsonl", "clock.jsonl"
EVENTS, GRAPH, EVALUATION_EVENTS = "events.out.tfevents.*", "graph.pbtxt", "eval"
TIMING = "timing.json"
FEATURES, VARIABLES, EXAMPLES = "features", "variables.tsv", "examples.txt"
PAGE, CARD = "report.html", "MODEL_CARD.md"
RESULTS_TEXT, RESULTS = "eval_results.txt", "eval_results.json"
WRONG_EXAMPLES, EXPLANATIONS = "wrong_examples.jsonl", "explanations.jsonl"
SUBMISSION, SUBMISSION_ZIP = "submission", "submission.zip"

_DIGEST = "?" * 16

# Half-written files of killed processes, or of a failed save of TensorFlow.
UNFINISHED = re.compile(rf"{atomic.TEMPORARY}|(model\.ckpt|moments|rows)-\d+(_temp|\..*\.tempstate\d+)")


class Part(NamedTuple):
    """Files of a run that belong together."""

    names: tuple[str, ...]  # or glob patterns, as narrow as possible: people have folders of these names; a slash ends a folder
    holds: str  # description of their content
    shown: tuple[str, ...] = ()  # the names for people, if a pattern tells them nothing


_OF_TRAINING = (
    Part((RECORD,), "settings of the run, and the command that repeats it"),
    Part((CHECKPOINTS, LIST, *(f"{name}/{CHECKPOINTS}" for name in MODELS)), "checkpoints (docs/checkpoints.md)"),
    Part((f"{OPTIMIZER}/moments-*", f"{OPTIMIZER}/rows-*"), "state of the optimizer, to continue"),
    Part((DECISION,), "decision rule of the calibrated model: temperatures, thresholds (docs/calibration.md)"),
    Part((VOCABULARY, TOKENIZER, TEXT_RULES, CONFIG), "copies used in training; a run refuses others"),
    Part((VARIABLES,), "trained variables, and the source of their initial values"),
    Part((METRICS, EVENTS, GRAPH), "loss, times and memory by step; the same for TensorBoard, and the graph"),
    Part(
        (EVALUATIONS, CLOCK, f"{EVALUATION_EVENTS}/{EVENTS}"), "evaluations during training, and when; the same for TensorBoard"
    ),
    Part((TIMING,), "step time, bottleneck, breakdown of the command's wall time"),
    Part(
        (f"{FEATURES}/*-*-{_DIGEST}.safetensors", f"{FEATURES}/teacher-{_DIGEST}/"),
        "cached features, and outputs of a teacher",
        (f"{FEATURES}/TASK-SPLIT-DIGEST.safetensors", f"{FEATURES}/teacher-DIGEST/"),
    ),
    Part((PAGE,), "the report"),
)
# Belongs to the pre-training text, not to the run: kept if the run is overwritten.
OF_TEXT = (Part((f"{CORPUS}/",), "from `pretrain`: the text as tokens, and its rows; kept by `--overwrite_output_dir`"),)
# Of an evaluation or prediction, also in folders of other tasks; a task's family may add files.
OF_RESULTS = (
    Part(
        (RESULTS_TEXT, RESULTS),
        "metrics; the latter with 95 % intervals, confusion matrix, precision and recall by class, the digest of the rows and"
        " the name of your own file",
    ),
    Part((WRONG_EXAMPLES,), "the most confident mistakes"),
    Part((EXPLANATIONS,), "scores of the words of mistakes, from `report --explain` (docs/explain.md)"),
    Part((CARD,), "the model card"),
    Part((EXAMPLES,), "the first examples of each split as tokens and ids"),
    Part((f"{SUBMISSION}/*.tsv", SUBMISSION_ZIP), "predictions for GLUE's server"),
)


@functools.cache
def of_training() -> tuple[Part, ...]:
    """Also files of extensions; a function since settings of extensions read this module."""
    return (
        *_OF_TRAINING,
        *(Part(files, holds) for entry in extension.installed().values() for files, holds in entry.files.items()),
    )


@functools.cache
def beside() -> tuple[str, ...]:
    """Files that a checkpoint needs beside it; DECISION belongs to these too, but to the same bytes alone."""
    of_extensions = (name for entry in extension.installed().values() for name in entry.beside)
    return (VOCABULARY, TOKENIZER, TEXT_RULES, CONFIG, RECORD, *of_extensions)


def names(parts: tuple[Part, ...]) -> Iterator[str]:
    for part in parts:
        yield from part.names


@functools.cache
def folders() -> tuple[str, ...]:
    """A run's own folders; half-written files are deleted there too."""
    return tuple(dict.fromkeys(name.partition("/")[0] for name in names((*of_training(), *OF_RESULTS)) if "/" in name))


def run_of(folder: Path) -> Path:
    """The folder of the run that a checkpoint's folder belongs to: above that of the best checkpoint, or of an average."""
    return folder.parent if folder.name in MODELS and os.path.isfile(folder.parent / RECORD) else folder


def refuse_taken_name(output: Path) -> None:
    """Raises OutputError if an output could be mistaken for a checkpoint beside it or a part of the surrounding run."""
    folder = output.absolute().parent
    parts = names((*of_training(), *OF_TEXT, *OF_RESULTS)) if (folder / RECORD).is_file() else ()
    is_part = any(fnmatch.fnmatch(output.name, name.partition("/")[0]) for name in parts)
    if is_part or (folder / f"{output.name}.index").is_file():
        raise OutputError(f"{output}: would be taken for a checkpoint or a part of the run in {folder}; name another --output")


def refuse_own_file(output: str, *, allowed: str | None = None) -> None:
    """Raises OutputError if an output would replace a file that training or evaluation has written to a run's folder."""
    path = Path(output).resolve()
    is_own = any(fnmatch.fnmatchcase(path.name, name) for name in names((*of_training(), *OF_RESULTS)))
    if is_own and (path.parent / RECORD).is_file() and path.name != allowed:
        raise OutputError(f"{output}: is a file of the run there; name another output")


def vocabulary_in(folder: Path, usual: str = VOCABULARY) -> Path:
    """Where a model's vocabulary is, or would be: beside a vocab.txt, a tokenizer.json only repeats it."""
    return next((folder / name for name in (VOCABULARY, TOKENIZER) if (folder / name).exists()), folder / usual)


def own_folders(output_dir: Path) -> set[Path]:
    return {output_dir.resolve(), *((output_dir / name).resolve() for name in MODELS)}


def of_step(pattern: str, step: int) -> str:
    return pattern.replace("*", str(step))


def recorded_flags(record: Mapping[str, Any]) -> dict[str, str]:
    """Flags of the command in a run's record, by name; empty if the command is unknown or damaged."""
    try:
        words = shlex.split(str(record.get("command", "")))
    except ValueError:  # an open quote
        return {}
    pairs = (word[2:].partition("=") for word in words if word.startswith("--"))
    return {name: value for name, equals, value in pairs if equals}

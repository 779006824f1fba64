"""A published run and one here side by side: equal, within the published range, outside it, or not comparable."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from bert_tf.config import BertConfig
from bert_tf.extensions.reproduce.facts import FORMS, Published, Variable, digest

EQUAL, WITHIN, OUTSIDE, NOT_COMPARABLE = "equal", "within the published range", "outside", "not comparable"
MISSING = "missing"  # of a form of log lines

# Properties that must be equal for a row to be comparable.
DATA, VOCABULARY, WEIGHTS, HARDWARE, LENGTH = "data", "vocabulary", "weights", "hardware", "length"

Verdict = tuple[str, str]  # with the reason

_SIZES = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
)
_LAYER = re.compile(r"/layer_(\d+)/")
_PREFIX = re.compile(r"[DIWE]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [^\]]+:\d+\] ")  # absl's


@dataclasses.dataclass(frozen=True)
class Row:
    """One comparison."""

    what: str  # name of the quantity
    published: float | str
    measured: float | str
    verdict: str  # EQUAL, WITHIN, OUTSIDE or NOT_COMPARABLE
    reason: str = ""  # empty if none is needed


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Result of training with one seed."""

    seed: int
    steps: int
    accuracy: float  # on dev
    loss: float  # mean over dev
    examples_per_second: float  # of training, the median of the logged ones
    steps_per_second: float  # likewise
    collapsed: str | None = None  # why nothing was learned; None if something was


class FormFound(NamedTuple):
    """A form and its number of lines in a log."""

    form: str
    lines: int
    verdict: str  # EQUAL, MISSING, or NOT_COMPARABLE for the reason
    reason: str


def found_in(log: Iterable[str]) -> list[FormFound]:
    """Counts the log's lines of each form; lines may have absl's prefix."""
    lines = [_PREFIX.sub("", line, count=1).strip() for line in log]
    forms = []
    for form, (pattern, reason) in FORMS.items():
        count = sum(re.fullmatch(pattern, line) is not None for line in lines)
        forms.append(FormFound(form, count, NOT_COMPARABLE if reason else EQUAL if count else MISSING, reason))
    return forms


@dataclasses.dataclass(frozen=True)
class Measured:
    """Everything that is compared with a published run."""

    outcomes: tuple[Outcome, ...]  # one for each seed
    config: BertConfig
    vocabulary: str  # `Vocabulary.fingerprint`
    examples: Mapping[str, int]  # by split
    shown: Mapping[str, Mapping[str, Sequence[object]]]  # tokens of the first dev examples, by guid and `TokenLine.field`
    labels: Mapping[str, str]  # label lines of the same, by guid
    features: Mapping[str, tuple[int | None, ...]]  # shapes by name; None is an open size
    variables: Mapping[str, Variable]  # of the model, by name
    forms: Sequence[FormFound]  # of the log's lines
    device: tuple[str, str, int | None]  # CPU or GPU, the maker's name, and the limit of tensor memory in MiB, if set
    num_train_steps: int | None = None  # None if the length was not set


class _Rows:
    """Makes rows; differences between the runs leave some without a verdict."""

    def __init__(self, differences: Mapping[str, str]) -> None:
        self._differences = differences

    def row(self, what: str, published: float | str, measured: float | str, verdict: Verdict, needs: Sequence[str] = ()) -> Row:
        reasons = [self._differences[need] for need in needs if need in self._differences]
        return Row(what, published, measured, *((NOT_COMPARABLE, "; ".join(reasons)) if reasons else verdict))

    def all_of(self, what: str, parts: Mapping[str, bool], needs: Sequence[str] = ()) -> Row:
        wrong = [name for name, holds in parts.items() if not holds]
        verdict = (OUTSIDE, f"not {', '.join(wrong[:3])}{', ...' * (len(wrong) > 3)}") if wrong else (EQUAL, "")
        return self.row(what, f"{len(parts)} legible", f"{len(parts) - len(wrong)} equal", verdict, needs)


def compare(published: Published, measured: Measured) -> list[Row]:
    """Returns all rows; with several seeds, a seed's rows name it."""
    rows = _Rows(differences(published, measured))
    of_outcomes: list[Row] = []
    for outcome in measured.outcomes:
        seed = f", seed {outcome.seed}" if len(measured.outcomes) > 1 else ""
        of_outcomes += _of_outcome(rows, published, outcome, measured.examples["dev"], seed)
    forms = {form.form: form.verdict == EQUAL for form in measured.forms if form.verdict != NOT_COMPARABLE}
    return [
        *of_outcomes,
        *_of_examples(rows, published, measured),
        *_of_features(rows, published, measured),
        *_of_variables(rows, published, measured),
        _memory(rows, published, *measured.device),
        rows.all_of("forms of log lines", forms),
    ]


def differences(published: Published, measured: Measured) -> dict[str, str]:
    """Returns how the runs differ, by DATA, VOCABULARY, WEIGHTS, HARDWARE and LENGTH; equal ones are omitted."""
    causes = {}
    if dict(measured.examples) != dict(published.examples):
        causes[DATA] = f"other data: {_listed(measured.examples)} examples, published {_listed(published.examples)}"
    if measured.vocabulary != published.vocabulary:
        causes[VOCABULARY] = "other vocabulary"
    sizes = [(name, getattr(measured.config, name), getattr(published.config, name)) for name in _SIZES]
    others = [f"{name} {ours}, not {theirs}" for name, ours, theirs in sizes if ours != theirs]
    if others:
        causes[WEIGHTS] = f"other weights ({'; '.join(others)})"
    elif VOCABULARY in causes:
        causes[WEIGHTS] = "other weights (of another vocabulary)"
    _, device, _ = measured.device
    if published.gpu not in device:
        causes[HARDWARE] = f"other hardware: {device}"
    if measured.num_train_steps not in (None, published.steps):
        causes[LENGTH] = f"other length: --num_train_steps={measured.num_train_steps}, published {published.steps}"
    return causes


def _listed(values: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def _of_outcome(rows: _Rows, published: Published, outcome: Outcome, dev_examples: int, seed: str) -> Iterator[Row]:
    yield rows.row(f"steps{seed}", published.steps, outcome.steps, _exact(published.steps, outcome.steps), (DATA, LENGTH))
    for what, theirs, ours, verdict in (
        ("eval_accuracy", published.accuracy, outcome.accuracy, _accuracy(published, outcome, dev_examples)),
        ("eval_loss", published.loss, outcome.loss, _loss(published.loss, outcome.loss)),
    ):
        yield rows.row(f"{what}{seed}", theirs, ours, verdict, (DATA, WEIGHTS, LENGTH))
    for what, (shown, slowest), ours in (
        ("examples/s", published.examples_per_second, outcome.examples_per_second),
        ("steps/s", published.steps_per_second, outcome.steps_per_second),
    ):
        verdict = (WITHIN if ours >= slowest else OUTSIDE), f"the slowest line of the log has {slowest}"
        yield rows.row(f"{what}{seed}", shown, ours, verdict, (HARDWARE, DATA, WEIGHTS))


def _exact(published: object, measured: object) -> Verdict:
    return (EQUAL if measured == published else OUTSIDE), ""


def _accuracy(published: Published, outcome: Outcome, dev_examples: int) -> Verdict:
    right = round(outcome.accuracy * dev_examples)
    if right == published.right:
        return EQUAL, ""
    low, high = published.accuracy_range
    reason = f"{right} of {dev_examples} right, published {published.right}; range {low} to {high}"
    if outcome.collapsed:
        reason += f"; collapsed: {outcome.collapsed}"
    return (WITHIN if low <= outcome.accuracy <= high else OUTSIDE), reason


def _loss(published: float, measured: float) -> Verdict:
    if round(measured, 7) == published:
        return EQUAL, ""
    return NOT_COMPARABLE, "another random draw, and no range is published; --seeds shows the spread"


def _of_examples(rows: _Rows, published: Published, measured: Measured) -> Iterator[Row]:
    for line in published.token_lines:
        tokens = measured.shown.get(line.guid, {}).get(line.field, ())
        wrong = [(start, count) for start, count, sha256 in line.spans if digest(tokens[start : start + count]) != sha256]
        places = ", ".join(f"{start} to {start + count - 1}" for start, count in wrong)
        yield rows.row(
            f"{line.guid} {line.field}",
            f"{line.legible} of {line.shown} legible",
            f"{line.legible - sum(count for _, count in wrong)} equal",
            (OUTSIDE, f"among positions {places}") if wrong else (EQUAL, ""),
            (DATA, VOCABULARY),
        )
    for guid, wanted in published.labels.items():
        label = measured.labels.get(guid, "no such example")
        yield rows.row(f"{guid} label", wanted, label, _exact(wanted, label), (DATA,))


def _of_features(rows: _Rows, published: Published, measured: Measured) -> Iterator[Row]:
    wanted, features = published.features, measured.features
    yield rows.all_of("feature names", {name: name in features for name in wanted})
    yield rows.all_of("feature shapes", {name: features.get(name) == shape for name, shape in wanted.items()})


def _of_variables(rows: _Rows, published: Published, measured: Measured) -> Iterator[Row]:
    layers, variables = measured.config.num_hidden_layers, measured.variables
    wanted = {name: variable for name, variable in published.variables.items() if _layer(name) < layers}
    yield rows.all_of("names of variables, in layers that exist", {name: name in variables for name in wanted})
    pairs = {name: (variable, variables[name]) for name, variable in wanted.items() if name in variables}
    marks = {name: theirs.from_checkpoint == ours.from_checkpoint for name, (theirs, ours) in pairs.items()}
    yield rows.all_of("*INIT_FROM_CKPT* of variables", marks)
    shapes = {name: theirs.shape == ours.shape for name, (theirs, ours) in pairs.items() if theirs.shape}
    yield rows.all_of("shapes of variables", shapes, (WEIGHTS,))


def _layer(name: str) -> int:
    """Returns the layer of a variable, -1 for variables outside the layers."""
    match = _LAYER.search(name)
    return int(match[1]) if match else -1


def _memory(rows: _Rows, published: Published, kind: str, model: str, limit_mb: int | None) -> Row:
    wanted = published.gpu_limit_mb
    if kind != "GPU":
        verdict = NOT_COMPARABLE, f"other hardware: {model}"
    elif limit_mb != wanted:
        verdict = NOT_COMPARABLE, f"--gpu_memory_limit_mb={wanted} sets it"
    else:
        verdict = EQUAL, "the run fits into it"
    return rows.row("GPU memory, MB", wanted, limit_mb or "no limit", verdict)

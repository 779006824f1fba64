"""Writes the card from the model and the files of its run: the same text on every call, without paths and times."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from bert_tf import run_layout, versions
from bert_tf.batch import sample_row
from bert_tf.batch.trained import Trained
from bert_tf.checkpoints.huggingface_export import CLASSES, Architecture
from bert_tf.errors import OutputError
from bert_tf.extensions.card import Credits, usage
from bert_tf.extensions.report import curves, outcome, run_files, wording
from bert_tf.extensions.report.outcome import Score
from bert_tf.extensions.report.run_files import Run, is_number, mapping
from bert_tf.features.long_text import TRUNCATE
from bert_tf.head_spec import CHOICE, CLASSIFICATION, MULTI_LABEL, PRETRAINING, SPAN, TAGS
from bert_tf.tasks.base import Task
from bert_tf.tasks.decision import DECISION, Decision, by_label
from bert_tf.tasks.sentence.rows import recorded_texts
from bert_tf.tokenization.vocabulary import MASK
from bert_tf.training.results import split_and_average

if TYPE_CHECKING:
    import jinja2

TODO = "TODO"
_ELSEWHERE = ("task_name", "kind", "labels", "bert_config", DECISION)  # shown elsewhere; the rest affects what was learned
_DIGESTS = {
    "train_examples_sha256": "training examples",
    "phase2_examples_sha256": "training examples of the second phase",
    "dev_examples_sha256": "dev examples",
    "checkpoint_sha256": "checkpoint that training began with",
    "vocabulary_sha256": "vocabulary",
}
_QUALITY = {"ece": "ECE", "nll": "NLL", "brier": "Brier"}  # of probabilities, in decision.json
_WITH_PROBABILITIES = (CLASSIFICATION, MULTI_LABEL, CHOICE, TAGS)
_MOST_LABELS, _MOST_CLASSES = 50, 20
_FEW = 500  # examples: below, an interval of accuracy is up to 9 points wide
_NO_TEXT = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
_MARKUP = re.compile(r"[\\`*_{}\[\]<>|~$&#]")
# What is made a link without any markup, even if its characters are escaped.
_WORD, _ADDRESS = re.compile(r"([\s|`])"), re.compile(r"://|www\.|mailto:|xmpp:|@", re.IGNORECASE)
_SEAL = re.compile(r"<!-- written by bert_tf, sha256 (\w{64}) of the text above -->\n\Z")


@dataclasses.dataclass(frozen=True)
class Model:
    """What a card is about."""

    trained: Trained
    task: Task
    step: int
    credits: Credits
    pairs: bool | None = None  # texts come in pairs; None: as in training

    @property
    def reads_pairs(self) -> bool:
        learned = (recorded_texts(self.trained.record) or getattr(self.task.family, "texts", None)) == 2
        return learned if self.pairs is None else self.pairs

    @functools.cached_property
    def run(self) -> Run:
        """The run of the weights, with results of these weights alone; empty if its files are missing."""
        name = self.trained.folder.name
        try:
            run = run_files.read_runs([run_layout.run_of(self.trained.folder)])[0]
        except OutputError:
            return Run("", self.trained.folder, {}, (), (), (), ())
        own, average = run.own, name if name in run_layout.AVERAGES else ""
        step = own and own.results.get(f"global_step_{name}", own.results.get("global_step"))
        if own is None or step != self.step:
            return dataclasses.replace(run, evaluated=())
        every = {split_and_average(title): details for title, details in own.splits.items()}
        splits = {split: details for (split, of_weights), details in every.items() if of_weights == average}
        return dataclasses.replace(run, evaluated=[dataclasses.replace(own, results={"splits": splits})])

    @property
    def splits(self) -> Mapping[str, Mapping[str, Any]]:
        return self.run.own.splits if self.run.own else {}

    @property
    def scores(self) -> list[Score]:
        rows = (row for rows_of_split in outcome.scores([self.run]).values() for row in rows_of_split)
        return [row for row in rows if row.metric in self.task.family.metrics]


class _Raw(str):
    """Markdown, as opposed to text."""


def render(
    model: Model,
    *,
    what: str = "TensorFlow checkpoint",
    place: str = ".",
    runs_in: str = "this card",
    architecture: Architecture | None = None,
    long_texts: Sequence[str] = (),
) -> str:
    """Returns the card of a run, or with an architecture that of an export for transformers.

    `place` is the model seen from the folder in which the code runs, `long_texts` Markdown on truncation.
    """
    family, given = model.task.family, model.credits
    kind = family.kind
    code, line = _usage(model, place, architecture)
    calibration = _calibration(model)
    text = _template().render(
        metadata=_Raw(_metadata(model, architecture)),
        model=model,
        what=_code(architecture.name) if architecture else what,
        learned="pre-trained" if kind == PRETRAINING else "fine-tuned",
        version=mapping(model.run.record, "versions").get("bert_tf", versions.__version__),
        family=family,
        labels=_labels(family.labels),
        config=model.trained.config,
        parameters=f"{model.trained.weight_bytes // 4:,}",
        blanks={
            "License": given.license or _todo("that of the weights", "license"),
            "Author": given.author or _todo("who trained the model", "author"),
            "Language": given.language or _todo("that of the texts", "language"),
            "Intended use": _todo("what the model is for, and what it must not be used for"),
        },
        source=_todo("where the training texts are from, and under which license"),
        runs_in=runs_in,
        code=_Raw(code),
        line=_Raw(line),
        scores=model.scores,
        classes={split: rows for split, result in model.splits.items() if (rows := _classes(result))},
        calibration=calibration,
        limits=tuple(_limits(model, is_calibrated=calibration is not None)),
        long_texts=_Raw("\n".join(long_texts)),
        examples=mapping(model.run.record, "schedule").get("train_examples"),
        digests=_digests(model),
        settings=_settings(model.trained.record),
        command=_Raw(" ".join(run_files.without_folders(model.run.recorded_command, keep=1).split()).replace("```", "")),
        costs=_costs(model.run),
    )
    return f"{text}\n<!-- written by bert_tf, sha256 {_digest(text)} of the text above -->\n"


def _usage(model: Model, place: str, architecture: Architecture | None) -> tuple[str, str]:
    """Code that uses the model, and a command line, if there is one."""
    kind, row = model.task.family.kind, sample_row.sample_row(model.trained)
    if architecture is None:
        return usage.package(kind, place, pairs=model.reads_pairs, row=row)
    code = usage.transformers(kind, architecture, pairs=model.reads_pairs, row=row)
    # The package reads [MASK] for any.
    return code.replace(MASK, model.trained.vocabulary.special[-1]) if kind == PRETRAINING else code, ""


def is_edited(text: str) -> bool:
    """Whether a card was edited, or is another text."""
    seal = _SEAL.search(text)
    return seal is None or seal[1] != _digest(text[: seal.start() - 1])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()


@functools.cache
def _template() -> jinja2.Template:
    import jinja2  # imported only to make a card

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=False,  # noqa: S701  (it is no HTML; `finalize` escapes Markdown, HTML in it included)
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: value if isinstance(value, _Raw) else plain(str(value)),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["code"] = _code
    return environment.get_template("card.md.j2")


def plain(text: str) -> str:
    """Any text as one line of Markdown that shows it as it is, also in a cell of a table; addresses are code, not links."""
    parts = _WORD.split(_NO_TEXT.sub("\ufffd", " ".join(text.split())))
    return "".join(f"`{part}`" if _ADDRESS.search(part) else _MARKUP.sub(r"\\\g<0>", part) for part in parts)


def _labels(names: Sequence[str]) -> _Raw:
    more = f" and {len(names) - _MOST_LABELS} more" if len(names) > _MOST_LABELS else ""
    return _Raw(", ".join(plain(name) or "(empty)" for name in names[:_MOST_LABELS]) + more)


def _code(text: str) -> _Raw:
    return _Raw(f"`{_NO_TEXT.sub('', ' '.join(text.split())).replace('`', '')}`")


def _todo(what: str, flag: str = "") -> _Raw:
    return _Raw(f"**{TODO}**: {what}" + (f" (`--{flag}`)" if flag else ""))


def _metadata(model: Model, architecture: Architecture | None) -> str:
    """Hugging Face's block."""
    kind, task, given, scores = model.task.family.kind, model.task.name, model.credits, model.scores
    known = architecture or CLASSES.get(kind)
    pipeline = known.pipeline if known else None
    library = "sentence-transformers" if architecture and architecture.makes_vectors else "transformers"
    results = []
    for split in dict.fromkeys(row.split for row in scores):
        rows = [row for row in scores if row.split == split]
        metrics = [{"type": row.metric, "name": row.name, "value": round(row.value, 6)} for row in rows]
        dataset: Mapping[str, str] = {"type": re.sub(r"\W+", "-", task.lower()), "name": task, "split": split}
        results.append({"task": {"type": pipeline or kind}, "dataset": dataset, "metrics": metrics})
    block: dict[str, Any] = {
        "language": (given.language or "").replace(",", " ").split(),
        "license": " ".join((given.license or "").split()),
        "library_name": library if architecture else "bert_tf",
        "pipeline_tag": pipeline,
        "tags": ["bert"],
        "model-index": [{"name": f"BERT for {task}", "results": results}] if results else [],
    }
    block = {name: value for name, value in block.items() if value}
    return yaml.safe_dump(block, sort_keys=False, allow_unicode=True, width=math.inf).rstrip("\n")


def _classes(details: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Rows of the table by class; empty if they are many."""
    rows = outcome.classes(details)
    return rows if len(rows) <= _MOST_CLASSES else ()


def _calibration(model: Model) -> dict[str, Any] | None:
    """Decision rule of these weights, and the quality of probabilities without and with temperatures; None without a rule."""
    decision = Decision.from_record(model.trained.record)
    if not decision.temperatures:
        return None
    rule = run_files.read_object(model.trained.folder / run_layout.DECISION) or {}
    before, after = mapping(rule, "before"), mapping(rule, "after")
    both = {name: (before.get(key), after.get(key)) for key, name in _QUALITY.items()}
    facts = decision.facts()
    if decision.thresholds:
        facts["thresholds"] = by_label(decision.thresholds, model.trained.record["labels"])
    counts = mapping(rule, "fitted_on").get("examples"), rule.get("reported_on")
    return {
        "temperatures": ", ".join(f"{one:.4g}" for one in decision.temperatures),
        "data": f", fitted on {counts[0]} examples and measured on {counts[1]} others" if all(map(is_number, counts)) else "",
        "rows": [(name, *values) for name, values in both.items() if all(map(is_number, values))],
        "rule": facts,
    }


def _limits(model: Model, *, is_calibrated: bool) -> Iterator[str]:
    weights, kind = model.trained, model.task.family.kind
    reads = f"The model reads {weights.max_seq_length} word pieces at a time, [CLS] and [SEP] included; longer texts are "
    if kind in (SPAN, TAGS, PRETRAINING) or weights.long_text == "windows":
        yield f"{reads}read in windows."
    else:
        yield f"{reads}cut{'' if weights.long_text == TRUNCATE else f' by long_text={weights.long_text}'}."
    if weights.lower_case:
        yield "Texts are lower-cased and lose their accents: US and us are the same to the model."
    note = model.run.note
    if note:
        yield f"Data: {note}."
    if model.trained.folder.name == run_layout.BEST:
        yield "The checkpoint was chosen by its results on dev, which are therefore too good."
    for split, result in model.splits.items():
        count = result.get("examples")
        if is_number(count) and 0 < count < _FEW:
            yield f"{split} has only {count} examples, {100 / count:.2g} % each: compare by the intervals, not by the values."
        if isinstance(result.get("collapsed"), str):
            yield f"{split}: {result['collapsed']}. Nothing was learned."
    if kind in _WITH_PROBABILITIES and not is_calibrated:
        yield "Probabilities are not calibrated."
    yield "Other kinds of text, fairness and attacks were not examined."


def _digests(model: Model) -> dict[str, str]:
    record = {**model.trained.record, "vocabulary_sha256": model.trained.vocabulary.fingerprint}
    digests = {words: _listed(record[name]) for name, words in _DIGESTS.items() if record.get(name)}
    return {**digests, "this checkpoint": model.trained.digest}


def _settings(record: Mapping[str, Any]) -> dict[str, str]:
    kept = {name: value for name, value in record.items() if name not in _ELSEWHERE and not name.endswith("_sha256")}
    return {name: _listed(value) for name, value in kept.items() if value not in (None, [])}


def _listed(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _costs(run: Run) -> dict[str, str]:
    """Time, memory, devices and versions."""
    timing = run_files.read_object(run.folder / run_layout.TIMING) or {}
    times = {"training steps": curves.training_seconds(run), "the whole command": mapping(timing, "wall").get("seconds")}
    used = mapping(run.record, "versions")
    return {
        **{name: wording.duration(seconds) for name, seconds in times.items() if is_number(seconds)},
        **{name: f"{wording.number(value)} {unit}" for name, (value, unit) in curves.figures(run).items()},
        "devices": _listed(mapping(run.record, "machine").get("devices", "unknown")),
        **{name: str(used[name]) for name in ("bert_tf", "tensorflow", "python", "numpy") if name in used},
    }

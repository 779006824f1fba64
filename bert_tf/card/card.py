"""Writes the card from the model and the files of its run: the same text on every call, without paths and times."""

from __future__ import annotations

import contextlib
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
from bert_tf.batch.trained import Trained
from bert_tf.card import usage
from bert_tf.card.credits import Credits
from bert_tf.checkpoints.huggingface_export import CLASSES, Architecture
from bert_tf.errors import OutputError
from bert_tf.features.long_text import TRUNCATE
from bert_tf.head_spec import CHOICE, CLASSIFICATION, MULTI_LABEL, PRETRAINING, SPAN, TAGS
from bert_tf.report import curves, outcome, run_files, wording
from bert_tf.report.outcome import Score
from bert_tf.report.run_files import Run, is_number, mapping
from bert_tf.tasks.base import Task

if TYPE_CHECKING:
    import jinja2

TODO = "TODO"
_ELSEWHERE = ("task_name", "kind", "labels", "bert_config")  # of the record, the rest changed what was learned
_DIGESTS = {
    "train_examples_sha256": "training examples",
    "phase2_examples_sha256": "training examples of the second phase",
    "dev_examples_sha256": "dev examples",
    "checkpoint_sha256": "checkpoint that training began with",
    "vocabulary_sha256": "vocabulary",
}
_QUALITY = {"ece": "ECE", "nll": "NLL", "brier": "Brier"}  # of probabilities, in decision.json
_PACKAGES = {"bert_tf": "bert_tf", "tensorflow": "TensorFlow", "python": "Python", "numpy": "NumPy"}
_PACKAGES = {"bert_tf": "bert_tf", "tensorflow": "TensorFlow", "python": "Python", "numpy": "NumPy"}
_WITH_PROBABILITIES = (CLASSIFICATION, MULTI_LABEL, CHOICE, TAGS)
_MOST_LABELS, _MOST_CLASSES = 50, 20
_FEW = 500  # examples: below, an interval of accuracy is up to 9 points wide
_NO_TEXT = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
_MARKUP = re.compile(r"[\\`*_{}\[\]<>|~$&#]")
_SEAL = re.compile(r"<!-- written by bert_tf, sha256 (\w{64}) of the text above -->\n\Z")


@dataclasses.dataclass(frozen=True)
class Model:
    """What a card is about."""

    trained: Trained
    task: Task
    step: int
    credits: Credits = Credits()  # noqa: RUF009  (frozen)
    pairs: bool | None = None  # texts come in pairs; None: as in training

    @property
    def reads_pairs(self) -> bool:
        if self.pairs is not None:
            return self.pairs
        return getattr(self.task.family.as_trained(self.trained.record), "texts", None) == 2

    @functools.cached_property
    def run(self) -> Run:
        """The run of the weights; empty if there is none beside them."""
        folder, above = self.trained.folder, self.trained.folder.parent
        is_inner = folder.name in run_layout.MODELS and (above / run_layout.RECORD).is_file()
        with contextlib.suppress(OutputError):
            return run_files.read([above if is_inner else folder])[0]
        return Run("", folder, {}, (), (), (), ())

    @property
    def splits(self) -> Mapping[str, Mapping[str, Any]]:
        """Results of these weights by split; empty if the run was evaluated at another step."""
        own, name = self.run.own, self.trained.folder.name
        if own is None or own.results.get("global_step") != self.step:
            return {}
        ending = f" ({name})" if name in run_layout.AVERAGES else ""
        return {split.removesuffix(ending): found for split, found in own.splits.items() if _average(split) == ending}

    @property
    def scores(self) -> list[Score]:
        own = self.run.own
        if own is None:
            return []
        run = dataclasses.replace(self.run, evaluated=[dataclasses.replace(own, results={"splits": dict(self.splits)})])
        rows = [row for found in outcome.scores([run]).values() for row in found]
        return [row for row in rows if row.metric in self.task.family.metrics]


def _average(split: str) -> str:
    """(ema) of dev (ema), empty for plain weights."""
    return next((f" ({name})" for name in run_layout.AVERAGES if split.endswith(f" ({name})")), "")


class _Raw(str):
    """Markdown, as opposed to text."""


def render(model: Model, *, place: str = ".", architecture: Architecture | None = None, long_texts: Sequence[str] = ()) -> str:
    """Returns the card of a run, or with an architecture that of an export for transformers.

    `place` is the model seen from the card's folder, `long_texts` Markdown on truncation.
    """
    family, given = model.task.family, model.credits
    kind = family.kind
    if architecture is None:
        code, line = usage.package(kind, place, pairs=model.reads_pairs)
    else:
        code, line = usage.transformers(kind, architecture.pipeline, pairs=model.reads_pairs), ""
    calibration = _calibration(model)
    text = _template().render(
        metadata=_Raw(_metadata(model, architecture)),
        model=model,
        what=_code(architecture.name) if architecture else "TensorFlow checkpoint",
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
        code=_Raw(code),
        line=_Raw(line),
        scores=model.scores,
        classes={split: rows for split, found in model.splits.items() if (rows := _classes(found))},
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


def is_edited(text: str) -> bool:
    """Whether somebody changed a card, or it is another text."""
    seal = _SEAL.search(text)
    return seal is None or seal[1] != _digest(text[: seal.start() - 1])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()


@functools.cache
def _template() -> jinja2.Template:
    import jinja2  # with its imports only where a card is made

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
    """Any text as one line of Markdown that shows it as it is, also in a cell of a table."""
    return _MARKUP.sub(r"\\\g<0>", _NO_TEXT.sub("\ufffd", " ".join(text.split())))


def _labels(names: Sequence[str]) -> _Raw:
    more = f" and {len(names) - _MOST_LABELS} more" if len(names) > _MOST_LABELS else ""
    return _Raw(", ".join(plain(name) or "(empty)" for name in names[:_MOST_LABELS]) + more)


def _code(text: str) -> _Raw:
    return _Raw(f"`{_NO_TEXT.sub('', ' '.join(text.split())).replace('`', '')}`")


def _todo(what: str, flag: str = "") -> _Raw:
    return _Raw(f"**{TODO}**: {what}" + (f" (`--{flag}`)" if flag else ""))


def _metadata(model: Model, architecture: Architecture | None) -> str:
    kind, given, scores = model.task.family.kind, model.credits, model.scores
    known = architecture or CLASSES.get(kind)
    library = "bert_tf" if architecture is None else "sentence-transformers" if architecture.makes_vectors else "transformers"
    data = {"type": re.sub(r"\W+", "-", model.task.name.lower()), "name": model.task.name}
    results = [
        {
            "task": {"type": known.pipeline if known else kind},
            "dataset": {**data, "split": split},
            "metrics": [
                {"type": row.metric, "name": wording.metric(row.metric), "value": round(row.value, 6)}
                for row in scores
                if row.split == split
            ],
        }
        for split in dict.fromkeys(row.split for row in scores)
    ]
    block = {
        **({"language": [one for one in re.split(r"[,\s]+", given.language) if one]} if given.language else {}),
        **({"license": " ".join(given.license.split())} if given.license else {}),
        "library_name": library,
        **({"pipeline_tag": known.pipeline} if known else {}),
        "tags": ["bert"],
        **({"model-index": [{"name": f"BERT for {model.task.name}", "results": results}]} if results else {}),
    }
    return yaml.safe_dump(block, sort_keys=False, allow_unicode=True, width=math.inf).rstrip("\n")


def _classes(details: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Rows of the table by class; empty if they are many."""
    rows = outcome.classes(details)
    return rows if len(rows) <= _MOST_CLASSES else ()


def _calibration(model: Model) -> dict[str, Any] | None:
    """Temperatures of these weights, and the quality of probabilities without and with them; None without usable ones."""
    found = run_files.read_object(model.trained.folder / run_layout.DECISION) or {}
    if found.get("checkpoint_sha256", model.trained.digest) != model.trained.digest:
        return None
    before, after = mapping(found, "before"), mapping(found, "after")
    both = {name: (before.get(key), after.get(key)) for key, name in _QUALITY.items()}
    rows = [(name, *values) for name, values in both.items() if all(map(is_number, values))]
    temperatures, fitted = found.get("temperatures"), mapping(found, "fitted_on")
    if not rows or not isinstance(temperatures, list) or not all(map(is_number, temperatures)):
        return None
    counts = fitted.get("examples"), found.get("reported_on")
    data = f", fitted on {counts[0]} examples and measured on {counts[1]} others" if all(map(is_number, counts)) else ""
    return {"temperatures": ", ".join(f"{one:.4g}" for one in temperatures), "data": data, "rows": rows}


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
    for split, found in model.splits.items():
        count = found.get("examples")
        if is_number(count) and 0 < count < _FEW:
            yield f"{split} has only {count} examples, {100 / count:.2g} % each: compare by the intervals, not by the values."
        if isinstance(found.get("collapsed"), str):
            yield f"{split}: {found['collapsed']}. Nothing was learned."
    if kind in _WITH_PROBABILITIES and not is_calibrated:
        yield "Probabilities are not calibrated."
    yield "Other kinds of text, fairness and attacks were not examined."


def _digests(model: Model) -> dict[str, str]:
    record = {**model.trained.record, "vocabulary_sha256": model.trained.vocabulary.fingerprint}
    found = {words: record[name] for name, words in _DIGESTS.items() if record.get(name)}
    lists = {words: value if isinstance(value, list) else [value] for words, value in found.items()}
    shown = {words: ", ".join(map(str, values)) for words, values in lists.items()}
    return {**shown, "TensorFlow checkpoint": model.trained.digest}


def _settings(record: Mapping[str, Any]) -> dict[str, str]:
    kept = {name: value for name, value in record.items() if name not in _ELSEWHERE and not name.endswith("_sha256")}
    shown = {name: value for name, value in kept.items() if value not in (None, [])}
    return {name: ", ".join(map(str, value)) if isinstance(value, list) else str(value) for name, value in shown.items()}


def _costs(run: Run) -> dict[str, str]:
    timing = run_files.read_object(run.folder / run_layout.TIMING) or {}
    steps, wall = curves.training_seconds(run), mapping(timing, "wall").get("seconds")
    machine, used = mapping(run.record, "machine"), mapping(run.record, "versions")
    devices = machine.get("devices")
    return {
        **({"training steps": wording.duration(steps)} if steps else {}),
        **({"the whole command": wording.duration(wall)} if is_number(wall) else {}),
        **{name: f"{wording.number(value)} {unit}" for name, (value, unit) in curves.figures(run).items()},
        **({"devices": ", ".join(map(str, devices))} if isinstance(devices, list) else {}),
        **{name: str(used[key]) for key, name in _PACKAGES.items() if key in used},
    }

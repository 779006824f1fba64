"""Runs of each family without training, rows to predict, and what is asked of the exported model."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bert_tf.batch.trained import digest
from bert_tf.checkpoints.reader import write_checkpoint
from bert_tf.config import BertConfig
from bert_tf.estimator.run_folder import DETERMINING
from bert_tf.modeling.heads import registry as heads
from bert_tf.run_layout import DECISION, RECORD
from bert_tf.tasks import families
from tests.tiny import TOKENS, random_weights

LENGTH = 24
LONG = "the storm came over the old bread , and far under it the pear went near "
CUSTOM = {"task_name": "custom"}
NONE: Mapping[str, Any] = {}


class Case(NamedTuple):
    """A model and what is asked of it."""

    record: Mapping[str, Any]  # of its run: task, kind, labels
    rows: Sequence[Any]  # as `Model.predict` takes them
    inputs: tuple[str, ...]  # of the raw signature, in the order of a row's parts
    wanted: Mapping[str, Callable[[Any], Any]]  # of a prediction, by the name of an output
    options: Mapping[str, Any] = {}  # of the export
    decision: Mapping[str, Any] = {}  # rule of the calibrated model


PAIRS = [("Rain, the new wind.", "Storm near!"), ("soup", LONG * 3), (LONG * 3, "a\0 \ufffdsálts \u00df"), ("\ufffd", "x")]
TEXTS = ["rain and the storm", LONG * 4, "\ufffd", "B\u00e9d's, \u4e2d wind\u2028red"]
QUESTIONS = [
    {"question": "Who came ?", "context": LONG * 3},
    {"question": LONG, "context": "the old breads\u0301 and \u00df wind"},
    {"question": "soup", "context": "near"},
]
CHOICES = [
    {"context": "the wind came", "question": "it went _ far", "options": ["near and near", "pear " * 40]},
    {"context": LONG * 2, "question": LONG, "options": ["red", "blue"]},
    {"context": "", "question": "_", "options": ["salt", "salt and bread"]},
]
PROBABILITIES = {"probabilities": lambda one: list(one.probabilities.values()), "label": lambda one: one.label}
TAGS = ["B-A", "I-A", "O"]
OF_TAGS = {"tags": lambda one: list(one.label), "scores": lambda one: list(one.scores)}
OF_ANSWERS = {
    "answer": lambda one: one.label,
    "start": lambda one: -1 if one.start is None else one.start,
    "end": lambda one: -1 if one.end is None else one.end,
}
OF_PAIRS = {"score": lambda one: one.label, "cosine": lambda one: one.cosine}
SPAN = {"task_name": "SQuAD", "kind": "span", "labels": [], "doc_stride": 5, "max_query_length": 8}

MRPC = {"task_name": "MRPC", "kind": "classification", "labels": ["0", "1"]}
STS_B = {"task_name": "STS-B", "kind": "regression", "labels": []}
SWAG = {"task_name": "SWAG", "kind": "choice", "labels": []}
VECTORS = {"task_name": "STS-B-vectors", "kind": "similarity", "labels": [], "highest_score": 5.0}
OR_NONE = {**SPAN, "task_name": "SQuAD2", "version_2_with_negative": True, "null_score_diff_threshold": 0.5}
OF_LABELS = {
    "probabilities": PROBABILITIES["probabilities"],
    "applies": lambda one: [name in one.label for name in one.probabilities],
}
OF_OPTIONS = {
    "probabilities": lambda one: list(one.probabilities),
    "label": lambda one: one.label,
    "option": lambda one: one.option,
}
TWO, ASKED, CHOSEN = ("text_a", "text_b"), ("question", "context"), ("context", "question", "options")


CLASSES = {**CUSTOM, "kind": "classification", "labels": ["x", "y", "z"]}
LABELS = {**CUSTOM, "kind": "multi_label", "labels": ["x", "y", "z"], "long_text": "windows"}
CONTRASTIVE = {**CUSTOM, "kind": "contrastive", "labels": [], "temperature": 0.05, "long_text": "windows"}

ABSTAINING = {"temperatures": [2.5], "abstain_below": 0.6, "set_from": 0.2}
EACH_LABEL = {"temperatures": [0.5, 1.0, 3.0], "thresholds": [0.2, 0.9, 0.5]}
OF_RULE = {
    "probabilities": PROBABILITIES["probabilities"],
    "label": lambda one: one.label or "",
    "in_label_set": lambda one: [name in one.label_set for name in one.probabilities],
}

CASES = {
    "pairs": Case(MRPC, PAIRS, TWO, PROBABILITIES, {}, {"temperatures": [0.5], "thresholds": [0.3]}),
    "texts": Case(CLASSES, TEXTS, ("text_a",), OF_RULE, {"pairs": False}, ABSTAINING),
    "number": Case({**STS_B, "long_text": "head_tail"}, PAIRS, TWO, {"scores": lambda one: one.label}),
    "several labels": Case(LABELS, PAIRS, TWO, OF_LABELS, {"pairs": True}, EACH_LABEL),
    "answers": Case(SPAN, QUESTIONS, ASKED, OF_ANSWERS),
    "answers or none": Case(OR_NONE, QUESTIONS, ASKED, {**OF_ANSWERS, "null_odds": lambda one: one.null_odds}),
    "tags": Case({**CUSTOM, "kind": "tags", "labels": TAGS}, TEXTS, ("text",), OF_TAGS, {}, {"temperatures": [1.75]}),
    "options": Case({**SWAG, "long_text": "windows"}, CHOICES, CHOSEN, OF_OPTIONS, {}, {"temperatures": [0.5]}),
    "similarity": Case(VECTORS, PAIRS, TWO, OF_PAIRS),
    "contrastive": Case(CONTRASTIVE, PAIRS, TWO, {"cosine": lambda one: one.cosine}),
}


def random_rows(name: str, count: int, seed: int) -> list[Any]:
    """Returns rows of the form of a case, of any length: shorter than a row of the model, and several windows long."""
    rng = random.Random(seed)
    words = [*(token.removeprefix("##") for token in TOKENS if not token.startswith("[")), "unknown", "storm,bread", "\u00e9"]

    def text(least: int = 1, most: int = 70) -> str:
        return " ".join(rng.choices(words, k=rng.randint(least, rng.choice([2, 12, most]))))

    makers: dict[tuple[str, ...], Callable[[], Any]] = {
        TWO: lambda: (text(), text()),
        ASKED: lambda: {"question": text(1, 30), "context": text()},
        CHOSEN: lambda: {
            "context": text(),
            "question": rng.choice([text(), f"{text()} _ {text()}", f"_ {text()} _"]),
            "options": [text(1, 40) for _ in range(3)],
        },
    }
    return [makers.get(CASES[name].inputs, text)() for _ in range(count)]


def write_run(folder: Path, record: Mapping[str, Any], decision: Mapping[str, Any] = NONE) -> Path:
    """Writes a run of random weights, and its decision rule if there is one."""
    folder.mkdir(parents=True)
    config = dataclasses.replace(BertConfig.tiny(vocab_size=len(TOKENS)), num_hidden_layers=1)
    (folder / "vocab.txt").write_text("\n".join(TOKENS) + "\n", encoding="utf-8")
    (folder / "bert_config.json").write_text(config.to_json())
    head = heads.make_head(families.of_record(record).head)
    rng = np.random.default_rng(7)
    of_head = {name: rng.normal(0, 1, shape).astype(np.float32) for name, shape in head.variables(config).items()}
    write_checkpoint(folder / "model.ckpt-7", {**random_weights(config), **of_head, "global_step": np.int64(7)})
    (folder / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-7"\n')
    trained = {"max_seq_length": LENGTH, "do_lower_case": True, **record}
    (folder / RECORD).write_text(json.dumps({DETERMINING: trained}))
    if decision:
        of_weights = digest(str(folder / "model.ckpt-7"))
        (folder / DECISION).write_text(json.dumps({"checkpoint_sha256": of_weights, **decision}))
    return folder


def values(case: Case, given: Sequence[Any] | None = None) -> dict[str, list[Any]]:
    """Returns rows, those of a case where none are given, as inputs of the raw signature."""
    all_rows = case.rows if given is None else given
    rows = [list(row.values()) if isinstance(row, dict) else [row] if isinstance(row, str) else list(row) for row in all_rows]
    return {name: [row[place] for row in rows] for place, name in enumerate(case.inputs)}

"""Integrated gradients beside Captum's, on pairs of MRPC's dev split.

    python -m benchmarks.explanations RUN DATA_DIR --peer=PYTHON

PYTHON is that of an environment with benchmarks/peers/transformers.txt. Captum explains the run as `export
--format=huggingface` writes it. Both explain the predicted label, from word vectors of [PAD]. Prints

- the share of rows with a completeness error of at most 1 %;
- the largest difference to Captum's scores with the same number of points;
- comprehensiveness and sufficiency (DeYoung et al., 2020): the mean drop of the label's probability if the words with the
  highest scores, or all others, are replaced by [MASK], over several shares of the words; Captum with its defaults;
- seconds for 100 rows, in turns of ten.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import bert_tf
from benchmarks.engines import peer_worker
from benchmarks.report import table
from benchmarks.workers import Worker
from bert_tf.tasks.base import DEV
from bert_tf.tasks.registry import get_task

Array = npt.NDArray[Any]

_SHARES = (0.1, 0.2, 0.5)  # of the words
_TURN = 10  # rows


@dataclasses.dataclass(frozen=True)
class Row:
    """A tokenized pair."""

    pair: tuple[str, str]
    ids: Array  # [T]
    segments: Array  # [T]
    word: Array  # [T] number of each token's word, -1 of [CLS] and [SEP]

    def by_word(self, of_tokens: Sequence[float]) -> Array:
        real = self.word >= 0
        return np.bincount(self.word[real], np.asarray(of_tokens)[real])


def main(arguments: Sequence[str]) -> None:
    asked = parsed(arguments)
    examples = get_task("MRPC").examples(asked.data_dir, DEV)[: asked.rows]
    machine = {"intra_op_threads": asked.threads, "inter_op_threads": 1}
    with (
        bert_tf.load(asked.run, max_seq_length=asked.max_seq_length, **machine) as model,
        peer_worker(asked.peer, "transformers_captum.py", model, threads=asked.threads) as worker,
    ):
        rows = _rows(model, [(example.text_a, example.text_b) for example in examples])
        own, usual, seconds = _in_turns(worker, model, rows)
        same, same_s = _captum(worker, model, rows, [one.steps for one in own])
        scores = {"bert_tf": [np.array(one.scores) for one in own], "Captum": usual}
        faithful = {name: _faithfulness(model, rows, own, each) for name, each in scores.items()}
    sys.stdout.write(table(("", *faithful), _rows_of_table(own, same, faithful, {**seconds, "same": [same_s]})) + "\n")


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.explanations")
    parser.add_argument("run", help="folder of a run that was trained on MRPC")
    parser.add_argument("data_dir", help="folder of MRPC's files")
    parser.add_argument("--peer", required=True, help="Python of an environment with benchmarks/peers/transformers.txt")
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--max_seq_length", type=int, default=64)
    return parser.parse_args(arguments)


def _rows(model: bert_tf.Model, pairs: Sequence[tuple[str, str]]) -> list[Row]:
    features = model.reader.features(model.reader.examples(pairs))
    batch = features.batch(np.arange(len(pairs)), int(features.lengths.max()))
    columns = zip(pairs, features.lengths, batch["input_ids"], batch["segment_ids"])
    return [Row(pair, ids[:size], segments[:size], _words(model, ids[:size])) for pair, size, ids, segments in columns]


def _words(model: bert_tf.Model, ids: Array) -> Array:
    vocabulary = model.trained.vocabulary
    special = np.isin(ids, (vocabulary.cls_id, vocabulary.sep_id))
    continues = np.array([vocabulary.tokens[one].startswith("##") for one in ids])
    return np.where(special, -1, np.cumsum(~special & ~continues) - 1)


def _in_turns(
    worker: Worker, model: bert_tf.Model, rows: Sequence[Row]
) -> tuple[list[Any], list[Array], Mapping[str, list[float]]]:
    """Explanations, Captum's scores, and the seconds of the turns of both."""
    model.explain([rows[0].pair])
    _captum(worker, model, rows[:1])
    own: list[Any] = []
    usual: list[Array] = []
    seconds: dict[str, list[float]] = {"bert_tf": [], "Captum": []}
    for first in range(0, len(rows), _TURN):
        turn, began = rows[first : first + _TURN], time.perf_counter()
        own += model.explain([row.pair for row in turn])
        seconds["bert_tf"].append(time.perf_counter() - began)
        scores, took = _captum(worker, model, turn)
        usual += scores
        seconds["Captum"].append(took)
    return own, usual, seconds


def _captum(worker: Worker, model: bert_tf.Model, rows: Sequence[Row], steps: Sequence[int] = ()) -> tuple[list[Array], float]:
    answer = worker.ask({"run": _requests(model, rows, steps)})
    return [row.by_word(of_tokens) for row, of_tokens in zip(rows, answer["scores"])], answer["seconds"]


def _requests(model: bert_tf.Model, rows: Sequence[Row], steps: Sequence[int] = ()) -> list[dict[str, Any]]:
    """Captum's arguments; without `steps` its own number of points."""
    pad = model.trained.vocabulary.pad_id
    return [
        {
            "ids": row.ids.tolist(),
            "baseline": np.where(row.word < 0, row.ids, pad).tolist(),
            "segments": row.segments.tolist(),
            **({"steps": steps[number]} if steps else {}),
        }
        for number, row in enumerate(rows)
    ]


def _faithfulness(
    model: bert_tf.Model, rows: Sequence[Row], explanations: Sequence[Any], scores: Sequence[Array]
) -> tuple[float, float]:
    """Comprehensiveness and sufficiency, means over rows and shares."""
    labels = [model.labels.index(one.label) for one in explanations]
    whole = _probabilities(model, rows, labels, [np.zeros(len(row.ids), bool) for row in rows])
    drops: list[list[float]] = [[], []]
    for share, of_rest in itertools.product(_SHARES, (False, True)):
        masks = [_best(row, score, share) ^ (of_rest & (row.word >= 0)) for row, score in zip(rows, scores)]
        drops[of_rest].append(float(np.mean(whole - _probabilities(model, rows, labels, masks))))
    return float(np.mean(drops[False])), float(np.mean(drops[True]))


def _best(row: Row, scores: Array, share: float) -> Array:
    """[T] whether a token belongs to the words with the highest scores."""
    return np.isin(row.word, np.argsort(-scores, kind="stable")[: max(1, round(share * len(scores)))])


def _probabilities(model: bert_tf.Model, rows: Sequence[Row], labels: Sequence[int], masks: Sequence[Array]) -> Array:
    """[rows] of the labels, with some tokens replaced by [MASK]."""
    features = model.reader.features(model.reader.examples([row.pair for row in rows]))
    masked = np.where(np.concatenate(masks), model.trained.vocabulary.mask_id, np.concatenate([row.ids for row in rows]))
    logits = model.outputs(dataclasses.replace(features, token_ids=masked.astype(np.int32)))["logits"]
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(shares[np.arange(len(labels)), labels] / shares.sum(axis=1))


def _rows_of_table(
    own: Sequence[Any],
    same: Sequence[Array],
    faithful: Mapping[str, tuple[float, float]],
    seconds: Mapping[str, list[float]],
) -> Iterator[tuple[str, ...]]:
    complete = sum(one.completeness_error <= 0.01 for one in own)
    apart = [np.abs(np.array(one.scores) - other) for one, other in zip(own, same)]
    relative = [float(each.max() / np.abs(other).max()) for each, other in zip(apart, same)]
    yield f"completeness error up to 1 %, of {len(own)} rows", str(complete), ""
    points = sorted(one.steps for one in own)
    yield "points: median, most", f"{points[len(points) // 2]}, {points[-1]}", "50"
    yield (
        "largest difference at the same points, of the largest score",
        f"{max(map(np.max, apart)):.1e}, {max(relative):.1e}",
        "",
    )
    for number, name in enumerate(("comprehensiveness (higher is better)", "sufficiency (lower is better)")):
        yield name, *(f"{each[number]:.4f}" for each in faithful.values())
    ours, theirs, at_same = (f"{100 / len(own) * sum(each):.1f}" for each in seconds.values())
    yield "seconds for 100 rows", ours, f"{theirs}; with the points of bert_tf {at_same}"
    ratios = [other / own_s for own_s, other in zip(seconds["bert_tf"], seconds["Captum"])]
    yield "seconds of Captum / ours, by turn", f"{np.median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f})", ""


if __name__ == "__main__":
    main(sys.argv[1:])

"""What TensorFlow's allocator of GPU memory needs for real steps beside their forecast: python -m tests.profiling.bfc_table.

Each row trains in a process of its own on the bundled sample of MRPC, for steps of other packed shapes, with the allocator that
GPUs have. All that it did is recorded and compared with the simulation, chunk by chunk; the simulation then does the same in
less memory, down to the least with which every allocation still finds a chunk.
"""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.features.columns import Features
from bert_tf.profiling.forecast.compute_options import ComputeOptions
from bert_tf.profiling.forecast.step_peak import forecast
from bert_tf.runtime.machine import Machine
from bert_tf.tasks.base import Limits
from bert_tf.tokenization.wordpiece import WordPieceTokenizer
from bert_tf.training import memory_preflight, preparation
from tests import classifier
from tests.profiling import bfc_events, steps
from tests.profiling.bfc import Allocator, OutOfMemoryError, rounded
from tests.profiling.bfc_events import Event

STEPS = 24
_TRIED = 0.005  # of the peak, from one limit that is tried to the next
_MOST = 0.3  # above the peak
_BASE = {"vocab_size": 30522}  # BERT-Base


class Cell(NamedTuple):
    """A run: flags of the training command, and sizes of the model in the place of the default checkpoint's."""

    flags: Sequence[str]
    sizes: dict[str, Any] | None = None


class Found(NamedTuple):
    """What a run takes, in bytes."""

    forecast: int  # of the step, as the check before training makes it, for the CPU's order of updates
    requested: int  # the most that tensors ask for at a time
    rounded: int  # the same in multiples of 256 bytes
    chunks: int  # the most that they are given, with what is left over in a chunk
    whole: int  # the least memory that is enough, taken at once
    grown: int  # that is enough where it is taken as needed
    events: int  # allocations and releases
    different: int  # those for which the simulation is not what TensorFlow did


CELLS = (
    *(Cell([f"--train_batch_size={size}"]) for size in (8, 16, 32)),
    Cell(["--train_batch_size=32", "--nopack_tokens"]),
    Cell(["--train_batch_size=32", "--recompute"]),
    Cell(["--train_batch_size=32", "--nodefer_embeddings"]),
    Cell(["--train_batch_size=32", "--gradient_accumulation_steps=4"]),
    Cell(["--train_batch_size=32", "--precision=bfloat16"]),
    Cell(["--train_batch_size=32", "--freeze=embeddings,0-2"]),
    Cell(["--train_batch_size=32", "--published_layout", "--pad_to_longest"]),
    *(Cell([f"--train_batch_size={size}"], _BASE) for size in (8, 32)),
)


def measure(cell: Cell, count: int = STEPS) -> Found:
    """Trains in this process, which must not have allocated anything yet."""
    os.environ.update(bfc_events.BFC)
    flags = ["run_classifier.py", "--task_name=MRPC", "--do_train", "--max_seq_length=128", *cell.flags]
    prepared = preparation.prepare(classifier.parse(flags), Machine(tf.compat.v1.ConfigProto()), environment={})
    model = BertConfig(**cell.sizes) if cell.sizes else prepared.config
    lengths = memory_preflight._lengths(prepared)
    options = memory_preflight._options(prepared, lengths, hosted=False)
    if not any(flag.startswith("--freeze") for flag in cell.flags):  # the recipe of the sample freezes parts
        options = dataclasses.replace(options, frozen=frozenset())
    batch_size = prepared.settings.train.train_batch_size
    events = record(model, _features(prepared), batch_size, options, count)
    return Found(
        _of_cpu(model, lengths.tokens, batch_size, options),
        *_peaks(events),
        least(events),
        least(events, growth=True),
        len(events),
        len(bfc_events.differences(events)),
    )


def record(model: BertConfig, features: Features, batch_size: int, options: ComputeOptions, count: int) -> list[Event]:
    """Returns what the allocator did from the first variable to the last step."""
    with tempfile.TemporaryDirectory() as folder:
        bfc_events.start(Path(folder))
        with steps.training(model, features, batch_size, options) as (session, train_op):
            for _ in range(count):
                session.run(train_op)
        return bfc_events.stop(Path(folder))


def least(events: Sequence[Event], *, growth: bool = False) -> int:
    """Returns the least memory with which every allocation finds a chunk, to `_TRIED` of the peak; so does all above it."""
    peak = _peaks(events)[1]
    needed = peak * (1 + _MOST)
    for share in np.arange(_MOST, -_TRIED, -_TRIED):
        limit = int(peak * (1 + share))
        if not fits(events, limit, growth=growth):
            return int(needed)
        needed = limit
    return int(needed)


def fits(events: Sequence[Event], limit: int, *, growth: bool = False) -> bool:
    """Whether so much memory is enough for the same allocations and releases."""
    allocator = Allocator(limit, growth=growth)
    places: dict[int, int] = {}
    try:
        for event in events:
            if event.requested:
                places[event.address] = allocator.allocate(event.requested)
            else:
                allocator.free(places.pop(event.address))
    except OutOfMemoryError:
        return False
    return True


def _peaks(events: Sequence[Event]) -> tuple[int, int, int]:
    """Returns the most bytes that are asked for at a time, the same rounded, and of chunks."""
    asked: dict[int, int] = {}
    live = np.zeros(2, np.int64)
    most = live.copy()
    for event in events:
        size = event.requested or -asked[event.address]
        asked[event.address] = event.requested
        live += (size, rounded(size) if size > 0 else -rounded(-size))
        most = np.maximum(most, live)
    return int(most[0]), int(most[1]), max(event.in_use for event in events)


def _of_cpu(model: BertConfig, tokens: int, batch_size: int, options: ComputeOptions) -> int:
    return forecast(model, tokens=tokens, batch_size=batch_size, options=dataclasses.replace(options, on_gpu=False)).peak


def _features(prepared: preparation.Job) -> Features:
    examples, data = prepared.examples[prepared.train_split], prepared.settings.data
    tokenizer = WordPieceTokenizer(prepared.vocabulary, lower_case=data.do_lower_case)
    return prepared.task.family.features(examples, tokenizer, Limits(data.max_seq_length))


def lines(cells: Sequence[Cell] = CELLS) -> Iterator[str]:
    """Yields a Markdown table."""
    head = "model", "flags", "forecast, MB", "tensors", "rounded", "chunks", "whole", "grown"
    yield f"| {' | '.join(head)} | whole / tensors | whole / forecast | events | different |"
    yield "|---" * 12 + "|"
    with multiprocessing.get_context("spawn").Pool(3, maxtasksperchild=1) as pool:
        for cell, found in zip(cells, pool.imap(measure, cells, chunksize=1)):
            sizes = " | ".join(f"{size / 1e6:.1f}" for size in found[:6])
            ratios = f"{found.whole / found.requested:.3f} | {found.whole / found.forecast:.3f}"
            model = "BERT-Base" if cell.sizes else "default"
            yield f"| {model} | {' '.join(cell.flags)} | {sizes} | {ratios} | {found.events} | {found.different} |"


if __name__ == "__main__":
    for line in lines():
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

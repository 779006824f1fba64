"""Trains questions, tags or options with transformers on this project's features: see benchmarks.quality.

    .peers/transformers/bin/python benchmarks/peers/transformers_families.py JOB.json

The job names files and training settings. It writes the logits of all dev rows before and after training, the loss
of each step, and the seconds that the steps took.

Shapes: N rows, T tokens of the longest row of a batch, B rows of a batch.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import safetensors
import safetensors.numpy
import torch
import transformers
from torch.nn.functional import cross_entropy
from transformers_kinds import KINDS, load_pretrained

_EVAL_ROWS = 32
_PADDING = -1e30  # logit of what is no token


class Split:
    """The features of a split; units are rows, or questions whose rows stay together."""

    def __init__(self, path):
        with safetensors.safe_open(path, framework="numpy") as file:
            self.columns = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no iterator)
            self.together = "together" in (file.metadata() or {})
        self.lengths = self.columns["lengths"].astype(np.int64)
        self.starts = np.cumsum(self.lengths) - self.lengths
        rows = np.arange(len(self.lengths))
        firsts = np.flatnonzero(np.diff(self.columns["example_ids"], prepend=-1)) if self.together else rows
        self.units = np.split(rows, firsts[1:])

    def padded(self, name, rows, padding=0):
        """Returns [B, T] of a column by token."""
        found = np.full([len(rows), self.lengths[rows].max()], padding, np.int64)
        for place, row in enumerate(rows):
            found[place, : self.lengths[row]] = self.columns[name][self.starts[row] : self.starts[row] + self.lengths[row]]
        return found

    def inputs(self, rows):
        ids = self.padded("token_ids", rows)
        token = np.arange(ids.shape[1])
        real = token < self.lengths[rows][:, None]
        second = real & (token >= self.columns["first_lengths"][rows][:, None])
        arrays = {"input_ids": ids, "attention_mask": real.astype(np.int64), "token_type_ids": second.astype(np.int64)}
        options = len(self.units[0]) if self.together else None  # every question has as many
        shape = [-1, options, ids.shape[1]] if options else ids.shape
        return {name: torch.from_numpy(array.reshape(shape)) for name, array in arrays.items()}


def span_targets(split, rows):
    """Returns the answer's first and last token; for rows that do not count the batch's length, which is ignored."""
    counted, longest = split.columns["is_counted"][rows] > 0, split.lengths[rows].max()
    ends = {name: np.where(counted, split.columns[name][rows], longest) for name in ("start_positions", "end_positions")}
    return {name: torch.from_numpy(end.astype(np.int64)) for name, end in ends.items()}


def tag_targets(split, rows):
    """Returns the tag of each token, -100 for none."""
    tags = split.padded("tag_ids", rows, padding=-1)
    return {"labels": torch.from_numpy(np.where(tags < 0, -100, tags))}


def choice_targets(split, rows):
    options = len(split.units[0])
    return {"labels": torch.from_numpy(split.columns["is_answer"][rows].reshape(-1, options).argmax(axis=1))}


TARGETS = {"span": span_targets, "tags": tag_targets, "choice": choice_targets}


def load_model(kind, folder, num_labels):
    """Loads a model with the last layer stored beside it."""
    labels = {} if kind == "choice" else {"num_labels": num_labels}
    model = load_pretrained(kind, folder, **labels, attn_implementation="sdpa")
    head = getattr(model, KINDS[kind].head)
    with torch.no_grad():
        for name, array in safetensors.numpy.load_file(Path(folder) / "head.safetensors").items():
            getattr(head, name).copy_(torch.from_numpy(array))
    return model


def span_loss_of_tokens(output, inputs, targets):
    """Returns the loss over real tokens only; transformers' includes padding positions."""
    longest = inputs["input_ids"].shape[1]
    real = inputs["attention_mask"].bool()
    ends = ((output.start_logits, targets["start_positions"]), (output.end_logits, targets["end_positions"]))
    losses = [cross_entropy(logits.masked_fill(~real, _PADDING), end, ignore_index=longest) for logits, end in ends]
    return sum(losses) / 2


def loss_of(model, split, rows, job):
    inputs, targets = split.inputs(rows), TARGETS[job.kind](split, rows)
    if job.kind == "span" and job.of_tokens:
        return span_loss_of_tokens(model(**inputs), inputs, targets)
    return model(**inputs, **targets).loss


@torch.no_grad()
def logits_of(model, split):
    """Returns the logits of all rows: [N] of options, [total, L] of tokens without padding."""
    model.eval()
    size = max(1, _EVAL_ROWS // len(split.units[0]))
    order = np.argsort([-split.lengths[unit].max() for unit in split.units], kind="stable")
    found = {}
    for first in range(0, len(order), size):
        rows = np.concatenate([split.units[unit] for unit in order[first : first + size]])
        output = model(**split.inputs(rows))
        logits = torch.stack([output.start_logits, output.end_logits], -1) if "start_logits" in output else output.logits
        logits = logits.reshape(len(rows)) if split.together else logits
        for row, values in zip(rows, logits.numpy()):
            found[row] = values if split.together else values[: split.lengths[row]]
    each = [found[row] for row in range(len(split.lengths))]
    return np.array(each) if split.together else np.concatenate(each)


def make_optimizer(model, rate):
    """AdamW with the published constants; biases and LayerNorm do not decay."""
    undecayed = ("bias", "LayerNorm.weight")
    groups = [
        {"params": [p for n, p in model.named_parameters() if not n.endswith(undecayed)], "weight_decay": 0.01},
        {"params": [p for n, p in model.named_parameters() if n.endswith(undecayed)], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.999), eps=1e-6, fused=True)


def share_of_rate(step, warmup, total):
    """Returns the published schedule: linear warm-up, times a line that falls from the first step to 0."""
    return step / warmup if step < warmup else 1 - step / total


def batches(units, job):
    """Yields each step's units: a new order per epoch, as `bert_tf.inputs.pipeline.training_draws`."""
    epoch, left = 0, np.zeros(0, np.int64)
    for _ in range(job.steps):
        while len(left) < job.batch_size:
            left = np.concatenate([left, np.random.default_rng([job.seed, epoch]).permutation(units)])
            epoch += 1
        yield left[: job.batch_size]
        left = left[job.batch_size :]


def take_steps(model, job, losses):
    """Takes a step down each of the losses, which are computed one by one; yields their values."""
    optimizer = make_optimizer(model, job.learning_rate)
    warmup = int(job.steps * job.warmup_proportion)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: share_of_rate(step, warmup, job.steps))
    model.train()
    for loss in losses:
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad(set_to_none=True)
        yield loss.item()


def train(model, split, job):
    drawn = (np.concatenate([split.units[unit] for unit in units]) for units in batches(len(split.units), job))
    return list(take_steps(model, job, (loss_of(model, split, rows, job) for rows in drawn)))


def read_job():
    job = SimpleNamespace(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    torch.set_num_threads(job.threads)
    transformers.set_seed(job.seed)
    return job


def write_answer(job, answer):
    versions = {"transformers": transformers.__version__, "torch": torch.__version__}
    Path(job.output).write_text(json.dumps({**answer, "versions": versions}) + "\n", encoding="utf-8")


def main():
    job = read_job()
    model = load_model(job.kind, job.model, job.num_labels)
    train_split, dev_split = Split(job.train), Split(job.dev)
    before = logits_of(model, dev_split)
    start = time.perf_counter()
    losses = train(model, train_split, job)
    seconds = time.perf_counter() - start
    logits = {"before": before, "after": logits_of(model, dev_split)}
    safetensors.numpy.save_file(logits, Path(job.output).with_suffix(".safetensors"))
    write_answer(job, {"seconds": seconds, "losses": losses})


if __name__ == "__main__":
    main()

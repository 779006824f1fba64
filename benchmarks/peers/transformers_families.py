"""Trains questions, tags, options or masked texts with transformers on this project's features: see benchmarks.quality.

    .peers/transformers/bin/python benchmarks/peers/transformers_families.py JOB.json

The job names files and training settings. It writes the logits of all dev rows before and after training (of texts:
loss and accuracy, at some steps too), the loss of each step, and the seconds that the steps took.

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
_IGNORED = -100  # label without a loss

PRETRAINING = "pretraining"


class Split:
    """The features of a split; units are rows, or questions whose rows stay together."""

    def __init__(self, path):
        with safetensors.safe_open(path, framework="numpy") as file:
            self.columns = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no iterator)
            self.together = "together" in (file.metadata() or {})
        self.lengths = self.columns["lengths"].astype(np.int64)
        self.starts = np.cumsum(self.lengths) - self.lengths
        self.slots = self.columns.get("slots", np.zeros(0)).astype(np.int64)
        self.masks = np.cumsum(self.slots) - self.slots
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
    """Returns the tag of each token, _IGNORED for none."""
    tags = split.padded("tag_ids", rows, padding=-1)
    return {"labels": torch.from_numpy(np.where(tags < 0, _IGNORED, tags))}


def choice_targets(split, rows):
    options = len(split.units[0])
    return {"labels": torch.from_numpy(split.columns["is_answer"][rows].reshape(-1, options).argmax(axis=1))}


def masked_targets(split, rows):
    """Returns the masked word of each token, and whether the second text follows the first."""
    labels = np.full([len(rows), split.lengths[rows].max()], _IGNORED, np.int64)
    for place, row in enumerate(rows):
        masks = slice(split.masks[row], split.masks[row] + split.slots[row])
        labels[place, split.columns["masked_lm_positions"][masks]] = split.columns["masked_lm_ids"][masks]
    pairs = split.columns["next_sentence_labels"][rows].astype(np.int64)
    return {"labels": torch.from_numpy(labels), "next_sentence_label": torch.from_numpy(pairs)}


TARGETS = {"span": span_targets, "tags": tag_targets, "choice": choice_targets, PRETRAINING: masked_targets}


def load_model(job):
    """Loads a model with the last layer stored beside it, if it has one of its task's own."""
    labels = {"num_labels": job.num_labels} if job.kind in ("span", "tags") else {}
    model = load_pretrained(job.kind, job.model, **labels, attn_implementation="sdpa")
    if KINDS[job.kind].head:
        head = getattr(model, KINDS[job.kind].head)
        with torch.no_grad():
            for name, array in safetensors.numpy.load_file(Path(job.model) / "head.safetensors").items():
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
def measure(model, split, job):
    """Returns loss and accuracy on texts, else the logits of all rows."""
    model.eval()
    return measure_words(model, split) if job.kind == PRETRAINING else {"logits": logits_of(model, split)}


def measure_words(model, split):
    sums = np.zeros(5)  # words, their loss, right ones; of pairs the loss, right ones
    for first in range(0, len(split.units), _EVAL_ROWS):
        rows = np.arange(first, min(first + _EVAL_ROWS, len(split.units)))
        output, targets = model(**split.inputs(rows)), masked_targets(split, rows)
        masked, pairs = targets["labels"] != _IGNORED, targets["next_sentence_label"]
        words, true = output.prediction_logits[masked], targets["labels"][masked]
        losses = [
            float(cross_entropy(logits, labels, reduction="sum"))
            for logits, labels in ((words, true), (output.seq_relationship_logits, pairs))
        ]
        right = int((words.argmax(-1) == true).sum()), int((output.seq_relationship_logits.argmax(-1) == pairs).sum())
        sums += (len(true), losses[0], right[0], losses[1], right[1])
    return {
        "masked_lm_loss": sums[1] / sums[0],
        "masked_lm_accuracy": sums[2] / sums[0],
        "next_sentence_loss": sums[3] / len(split.units),
        "next_sentence_accuracy": sums[4] / len(split.units),
    }


def logits_of(model, split):
    """Returns the logits of all rows: [N] of options, [total, L] of tokens without padding."""
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


def batches(split, job):
    """Yields each step's rows: a new order per epoch, as `bert_tf.features.batching.training_draws`; texts are in order."""
    epoch, left = 0, np.arange(job.steps * job.batch_size if job.kind == PRETRAINING else 0)
    for _ in range(job.steps):
        while len(left) < job.batch_size:
            left = np.concatenate([left, np.random.default_rng([job.seed, epoch]).permutation(len(split.units))])
            epoch += 1
        yield np.concatenate([split.units[unit] for unit in left[: job.batch_size]])
        left = left[job.batch_size :]


def take_steps(model, rate, schedule_of, losses):
    """Takes a step down each of the losses, which are computed one by one; yields their values."""
    optimizer = make_optimizer(model, rate)
    schedule = schedule_of(optimizer)
    model.train()
    for loss in losses:
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad(set_to_none=True)
        yield loss.item()


def train(model, split, dev_split, job):
    """Trains; returns what is measured at some steps, the loss of each step, and the seconds that they took."""

    def schedule_of(optimizer):
        warmup = int(job.steps * job.warmup_proportion)
        return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: share_of_rate(step, warmup, job.steps))

    reached, losses, seconds = [], [], 0.0
    start = time.perf_counter()
    computed = (loss_of(model, split, rows, job) for rows in batches(split, job))
    for step, loss in enumerate(take_steps(model, job.learning_rate, schedule_of, computed), start=1):
        losses.append(loss)
        seconds += time.perf_counter() - start
        if step % job.every == 0 or step == job.steps:
            reached.append({"step": step, **measure(model, dev_split, job)})
            sys.stderr.write(f"{step} of {job.steps} steps, {seconds:.0f} s\n")
            model.train()
        start = time.perf_counter()
    return reached, losses, seconds


def main():
    job = SimpleNamespace(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    torch.set_num_threads(job.threads)
    transformers.set_seed(job.seed)
    model, dev_split = load_model(job), Split(job.dev)
    before = measure(model, dev_split, job)
    reached, losses, seconds = train(model, Split(job.train), dev_split, job)
    if job.kind != PRETRAINING:
        logits = {"before": before.pop("logits"), "after": reached[-1].pop("logits")}
        safetensors.numpy.save_file(logits, Path(job.output).with_suffix(".safetensors"))
    versions = {"transformers": transformers.__version__, "torch": torch.__version__}
    answer = {"before": before, "reached": reached, "losses": losses, "seconds": seconds, "versions": versions}
    Path(job.output).write_text(json.dumps(answer) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Pre-trains with transformers and PyTorch on rows masked by this project: see benchmarks.quality.pretraining.

    .peers/transformers/bin/python benchmarks/peers/transformers_pretraining.py JOB.json

The job names files and training settings. Rows are in training order, with new masks in each epoch. It writes loss
and accuracy on held-out rows at some steps, the loss of each step, and the seconds that they took.

Shapes: N rows, T tokens of the longest row of a batch, B rows of a batch.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import safetensors.numpy
import torch
import transformers
from transformers_families import read_job, take_steps, write_answer

_EVAL_ROWS = 32
_NOT_MASKED = -100


class Rows:
    """Rows with their masks."""

    def __init__(self, path):
        self.columns = safetensors.numpy.load_file(path)
        self.lengths = self.columns["lengths"].astype(np.int64)
        self.slots = self.columns["slots"].astype(np.int64)
        self.starts, self.masks = (np.cumsum(sizes) - sizes for sizes in (self.lengths, self.slots))

    def __len__(self):
        return len(self.lengths)

    def batch(self, rows):
        shape = [len(rows), self.lengths[rows].max()]
        ids, labels, segments = np.zeros(shape, np.int64), np.full(shape, _NOT_MASKED), np.zeros(shape, np.int64)
        for place, row in enumerate(rows):
            length, first = self.lengths[row], self.starts[row]
            masks = slice(self.masks[row], self.masks[row] + self.slots[row])
            ids[place, :length] = self.columns["token_ids"][first : first + length]
            segments[place, self.columns["first_lengths"][row] : length] = 1
            labels[place, self.columns["masked_lm_positions"][masks]] = self.columns["masked_lm_ids"][masks]
        arrays = {
            "input_ids": ids,
            "attention_mask": (np.arange(shape[1]) < self.lengths[rows][:, None]).astype(np.int64),
            "token_type_ids": segments,
            "labels": labels,
            "next_sentence_label": self.columns["next_sentence_labels"][rows].astype(np.int64),
        }
        return {name: torch.from_numpy(array) for name, array in arrays.items()}


@torch.no_grad()
def measure(model, rows):
    model.eval()
    sums = np.zeros(5)  # words, their loss, right ones; of pairs the loss, right ones
    for first in range(0, len(rows), _EVAL_ROWS):
        batch = rows.batch(np.arange(first, min(first + _EVAL_ROWS, len(rows))))
        labels, pairs = batch.pop("labels"), batch.pop("next_sentence_label")
        output = model(**batch)
        masked = labels != _NOT_MASKED
        words, true = output.prediction_logits[masked], labels[masked]
        losses = (torch.nn.functional.cross_entropy(logits, found, reduction="sum") for logits, found in
                  ((words, true), (output.seq_relationship_logits, pairs)))  # fmt: skip
        of_words, of_pairs = (float(loss) for loss in losses)
        right = int((words.argmax(-1) == true).sum()), int((output.seq_relationship_logits.argmax(-1) == pairs).sum())
        sums += (len(true), of_words, right[0], of_pairs, right[1])
    model.train()
    return {
        "masked_lm_loss": sums[1] / sums[0],
        "masked_lm_accuracy": sums[2] / sums[0],
        "next_sentence_loss": sums[3] / len(rows),
        "next_sentence_accuracy": sums[4] / len(rows),
    }


def train(model, rows, held_out, job):
    count = job.batch_size
    batches = (rows.batch(np.arange(step * count, (step + 1) * count)) for step in range(job.steps))
    losses, reached, seconds = [], [], 0.0
    start = time.perf_counter()
    for step, loss in enumerate(take_steps(model, job, (model(**batch).loss for batch in batches)), start=1):
        losses.append(loss)
        seconds += time.perf_counter() - start
        if step % job.every == 0 or step == job.steps:
            reached.append({"step": step, **measure(model, held_out)})
            found = ", ".join(f"{name} {value:.4f}" for name, value in reached[-1].items())
            sys.stderr.write(f"{found}; of {job.steps} steps, {seconds:.0f} s\n")
        start = time.perf_counter()
    return losses, reached, seconds


def main():
    job = read_job()
    model, info = transformers.BertForPreTraining.from_pretrained(
        job.model, dtype=torch.float32, attn_implementation="sdpa", output_loading_info=True
    )
    if info["missing_keys"]:
        raise SystemExit(f"not in {job.model}: {sorted(info['missing_keys'])}")
    rows, held_out = Rows(job.train), Rows(job.held_out)
    before = measure(model, held_out)
    losses, reached, seconds = train(model, rows, held_out, job)
    write_answer(job, {"before": before, "reached": reached, "losses": losses, "seconds": seconds})


if __name__ == "__main__":
    main()

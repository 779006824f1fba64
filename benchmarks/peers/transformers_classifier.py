r"""Fine-tunes a sentence classifier with transformers and PyTorch, by the recipe of run_classifier.py.

    .peers/transformers/bin/python benchmarks/peers/transformers_classifier.py --model=HF_FOLDER --data_dir=$GLUE_DIR/MRPC \
      --max_seq_length=64 --batch_size=12 --learning_rate=2e-5 --epochs=3 --seed=1 --output=result.json

HF_FOLDER holds config.json, model.safetensors, vocab.txt and tokenizer.json. What differs from the published recipe is what
transformers' users get: Adam with bias correction (torch.optim.AdamW).
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import transformers
from protocol import require_known
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef
from transformers_families import take_steps
from transformers_kinds import load_pretrained


class Task(NamedTuple):
    """Layout of a task's files; empty labels mean regression."""

    labels: tuple[str, ...]
    columns: tuple[str, ...]  # one text, or two
    label: str = "label"
    dev: str = "dev"
    header: tuple[str, ...] | None = None  # of files without a header line


NLI = ("contradiction", "entailment", "neutral")
ENTAILMENT = ("entailment", "not_entailment")
SENTENCES = ("sentence1", "sentence2")
TASKS = {
    "CoLA": Task(("0", "1"), ("sentence",), header=("source", "label", "mark", "sentence")),
    "SST-2": Task(("0", "1"), ("sentence",)),
    "MRPC": Task(("0", "1"), ("#1 String", "#2 String"), "Quality"),
    "STS-B": Task((), SENTENCES, "score"),
    "QQP": Task(("0", "1"), ("question1", "question2"), "is_duplicate"),
    "MNLI": Task(NLI, SENTENCES, "gold_label", dev="dev_matched"),
    "RTE": Task(ENTAILMENT, SENTENCES),
    "WNLI": Task(("0", "1"), SENTENCES),
}


def read(path, task):
    rows = [line.rstrip("\r").split("\t") for line in path.read_text(encoding="utf-8-sig").rstrip("\n").split("\n")]
    header = list(task.header or rows.pop(0))
    cells = [[row[header.index(name)] for row in rows] for name in (task.label, *task.columns)]
    labels = [task.labels.index(label) if task.labels else float(label) for label in cells[0]]
    return labels, cells[1], cells[2] if len(cells) > 2 else None


def encode(split, tokenizer, limit):
    labels, first, second = split
    encoded = tokenizer(first, second, truncation="longest_first", max_length=limit)
    require_known(encoded["input_ids"], tokenizer.unk_token_id)
    examples = [{key: encoded[key][i] for key in ("input_ids", "token_type_ids")} for i in range(len(labels))]
    return labels, examples


def batch_of(data, rows, tokenizer):
    labels, examples = data
    inputs = tokenizer.pad([examples[i] for i in rows], return_tensors="pt")
    return dict(inputs), torch.tensor([labels[i] for i in rows])


def train(model, data, tokenizer, args):
    """Takes int(N / batch * epochs) steps over a full shuffle per epoch; returns the step count."""
    count = len(data[0])
    steps = int(count / args.batch_size * args.epochs)
    order = np.concatenate([np.random.permutation(count) for _ in range(int(np.ceil(args.epochs)))])
    batches = (batch_of(data, order[step * args.batch_size :][: args.batch_size], tokenizer) for step in range(steps))
    losses = (model(**inputs, labels=labels).loss for inputs, labels in batches)

    def schedule_of(optimizer):
        return transformers.get_linear_schedule_with_warmup(optimizer, int(0.1 * steps), steps)

    return len(list(take_steps(model, args.learning_rate, schedule_of, losses)))


@torch.no_grad()
def evaluate(model, data, tokenizer, task):
    model.eval()
    starts = range(0, len(data[0]), 32)
    batches = (batch_of(data, range(s, min(s + 32, len(data[0]))), tokenizer) for s in starts)
    logits, labels = torch.cat([model(**inputs).logits for inputs, _ in batches]), torch.tensor(data[0])
    if not task.labels:
        values = logits.squeeze(-1)
        return {
            "pearson": float(pearsonr(labels, values)[0]),
            "spearman": float(spearmanr(labels, values)[0]),
            "loss": float(torch.nn.functional.mse_loss(values, labels)),
        }
    predictions = logits.argmax(-1)
    return {
        "accuracy": accuracy_score(labels, predictions),
        "f1": f1_score(labels, predictions, average="binary" if len(task.labels) == 2 else "macro"),
        "matthews_correlation": float(matthews_corrcoef(labels, predictions)),
        "loss": float(torch.nn.functional.cross_entropy(logits, labels)),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--task", choices=TASKS, default="MRPC")
    parser.add_argument("--model", required=True)
    parser.add_argument("--data_dir", type=Path, required=True)
    parser.add_argument("--max_seq_length", type=int, default=128)
    parser.add_argument("--batch_size", type=int, default=12)
    parser.add_argument("--learning_rate", type=float, default=2e-5)
    parser.add_argument("--epochs", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--save", type=Path, help="folder of the trained model")
    args = parser.parse_args()
    transformers.set_seed(args.seed)
    tokenizer = transformers.AutoTokenizer.from_pretrained(args.model)
    task = TASKS[args.task]
    model = load_pretrained("classification", args.model, num_labels=len(task.labels) or 1)
    files = {"train": args.data_dir / "train.tsv", "dev": args.data_dir / f"{task.dev}.tsv"}
    data = {split: encode(read(path, task), tokenizer, args.max_seq_length) for split, path in files.items()}
    start = time.perf_counter()
    steps = train(model, data["train"], tokenizer, args)
    seconds = time.perf_counter() - start
    if args.save:
        model.save_pretrained(args.save)
        tokenizer.save_pretrained(args.save)
    speed = {"steps": steps, "examples_per_second": steps * args.batch_size / seconds}
    settings = {name: getattr(args, name) for name in ("task", "seed", "learning_rate")}
    result = {**evaluate(model, data["dev"], tokenizer, task), **speed, **settings, "transformers": transformers.__version__}
    args.output.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()

"""Fine-tunes a sentence-pair classifier with transformers and PyTorch, by the recipe of run_classifier.py.

What differs from the published recipe is what transformers' users get: Adam with bias correction (torch.optim.AdamW).
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
import transformers
from sklearn.metrics import accuracy_score, f1_score


def read(path):
    """Reads an MRPC split: labels, first and second sentences."""
    lines = path.read_text(encoding="utf-8-sig").rstrip("\n").split("\n")[1:]
    rows = [line.rstrip("\r").split("\t") for line in lines]
    return [int(row[0]) for row in rows], [row[3] for row in rows], [row[4] for row in rows]


def encode(split, tokenizer, limit):
    """Returns labels and the features of each example, not padded."""
    labels, first, second = split
    encoded = tokenizer(first, second, truncation="longest_first", max_length=limit)
    ids = [token for example in encoded["input_ids"] for token in example]
    # A tokenizer that was loaded wrongly says [UNK] to everything and still trains.
    if ids.count(tokenizer.unk_token_id) > 0.01 * len(ids):
        raise SystemExit("over 1 % of the tokens are unknown: the tokenizer is not the model's")
    examples = [{key: encoded[key][i] for key in ("input_ids", "token_type_ids")} for i in range(len(labels))]
    return labels, examples


def batch_of(data, rows, tokenizer):
    """Pads some examples to the longest of them."""
    labels, examples = data
    inputs = tokenizer.pad([examples[i] for i in rows], return_tensors="pt")
    return dict(inputs), torch.tensor([labels[i] for i in rows])


def load_model(folder):
    """Loads the classifier; only its last layer may be new."""
    model, info = transformers.AutoModelForSequenceClassification.from_pretrained(
        folder, num_labels=2, dtype=torch.float32, output_loading_info=True
    )
    if set(info["missing_keys"]) != {"classifier.weight", "classifier.bias"}:
        raise SystemExit(f"not loaded from the folder: {sorted(info['missing_keys'])}")
    return model


def make_optimizer(model, learning_rate):
    """AdamW with the published constants; biases and LayerNorm do not decay."""
    undecayed = ("bias", "LayerNorm.weight")
    groups = [
        {"params": [p for n, p in model.named_parameters() if not n.endswith(undecayed)], "weight_decay": 0.01},
        {"params": [p for n, p in model.named_parameters() if n.endswith(undecayed)], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=learning_rate, betas=(0.9, 0.999), eps=1e-6, fused=True)


def train(model, data, tokenizer, args):
    """Takes int(N / batch * epochs) steps over a full shuffle for each epoch; returns the step count."""
    count = len(data[0])
    steps = int(count / args.batch_size * args.epochs)
    order = np.concatenate([np.random.permutation(count) for _ in range(int(np.ceil(args.epochs)))])
    optimizer = make_optimizer(model, args.learning_rate)
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, int(0.1 * steps), steps)
    model.train()
    for step in range(steps):
        inputs, labels = batch_of(data, order[step * args.batch_size : (step + 1) * args.batch_size], tokenizer)
        model(**inputs, labels=labels).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad(set_to_none=True)
    return steps


@torch.no_grad()
def evaluate(model, data, tokenizer):
    """Returns accuracy, F1 and mean loss over a split."""
    model.eval()
    starts = range(0, len(data[0]), 32)
    batches = (batch_of(data, range(s, min(s + 32, len(data[0]))), tokenizer) for s in starts)
    logits = torch.cat([model(**inputs).logits for inputs, _ in batches])
    labels, predictions = torch.tensor(data[0]), logits.argmax(-1)
    loss = torch.nn.functional.cross_entropy(logits, labels)
    return {"accuracy": accuracy_score(labels, predictions), "f1": f1_score(labels, predictions), "loss": float(loss)}


def main():
    """Trains, evaluates, writes a JSON file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--data_dir", type=Path, required=True)
    parser.add_argument("--max_seq_length", type=int, default=64)
    parser.add_argument("--batch_size", type=int, default=12)
    parser.add_argument("--learning_rate", type=float, default=2e-5)
    parser.add_argument("--epochs", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    transformers.set_seed(args.seed)
    tokenizer = transformers.AutoTokenizer.from_pretrained(args.model)
    model = load_model(args.model)
    data = {s: encode(read(args.data_dir / f"{s}.tsv"), tokenizer, args.max_seq_length) for s in ("train", "dev")}
    start = time.perf_counter()
    steps = train(model, data["train"], tokenizer, args)
    seconds = time.perf_counter() - start
    result = {
        **evaluate(model, data["dev"], tokenizer),
        "steps": steps,
        "examples_per_second": steps * args.batch_size / seconds,
    }
    result |= {"seed": args.seed}
    result |= {"learning_rate": args.learning_rate, "transformers": transformers.__version__}
    args.output.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()

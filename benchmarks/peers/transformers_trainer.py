"""Worker: transformers' Trainer and PyTorch on a CPU."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import tokenizers
import torch
import transformers
from protocol import Pieces, WorkerError, require_known, run_worker, timed
from transformers_kinds import KINDS, load_pretrained

VERSIONS = {module.__name__: module.__version__ for module in (transformers, torch, tokenizers)}


class Encoded(torch.utils.data.Dataset):
    """The tokenizer's output, one example at a time."""

    def __init__(self, columns):
        self.columns = columns

    def __len__(self):
        return len(self.columns["input_ids"])

    def __getitem__(self, index):
        return {name: column[index] for name, column in self.columns.items()}


class Asked(transformers.TrainerCallback):
    """Lets one Trainer.train() take the requested steps and wait in between."""

    def __init__(self, pieces, model):
        """Makes the model remember its last batch and loss."""
        self._pieces = pieces
        self._batch = self._loss = None
        model.register_forward_hook(self._remember)

    def _remember(self, _model, _inputs, output):
        self._batch, self._loss = len(output[1]), output.loss  # logits follow the loss

    def on_train_begin(self, *_args, **_kwargs):
        self._pieces.wait()

    def on_step_end(self, *_args, **_kwargs):
        self._pieces.stepped(self._batch, self._loss.item)


def load_data(tokenizer, texts, workload, padding=False):
    """Returns the features of texts; rejects those of another tokenizer."""
    columns = KINDS[workload.kind].encode(tokenizer, texts, workload, padding)
    require_known(rows_of(columns), tokenizer.unk_token_id)
    return columns


def rows_of(columns):
    """Returns the token ids of each row; an example may have several."""
    ids = columns["input_ids"]
    return ids if isinstance(ids[0][0], int) else [row for rows in ids for row in rows]


def load_model(workload):
    """Builds the model; its last layer is the same in every worker."""
    kind, labels = KINDS[workload.kind], workload.num_labels
    if workload.random_weights:
        config = transformers.AutoConfig.from_pretrained(workload.weights, num_labels=labels)
        attention = "eager" if config.model_type == "deberta-v2" else "sdpa"  # the one there is
        model = kind.model.from_config(config, attn_implementation=attention, dtype=torch.float32)
    else:
        model = load_pretrained(workload.kind, workload.weights, num_labels=labels, attn_implementation="sdpa")
    if kind.head is None:
        return kind.goal(model) if kind.goal else model
    kernel = np.random.default_rng(workload.seed).normal(0, 0.02, [model.config.hidden_size, workload.num_labels])
    head = getattr(model, kind.head)
    head = getattr(head, "out_proj", head)  # ELECTRA's has a dense layer before it
    with torch.no_grad():
        head.weight.copy_(torch.from_numpy(kernel.T))
        head.bias.zero_()
    return model


@torch.inference_mode()
def evaluation_loss(model, columns, kind, tokenizer):
    """Returns the mean loss without dropout and without padding, which counts in that of answers."""
    was_training = model.training
    model.eval()
    data, collate = Encoded(columns), kind.collator(tokenizer)
    rows = [data[number] for number in range(len(data))]
    batches = [collate(some) for some in ([rows] if kind.goal else [[row] for row in rows])]  # pairs are told from others
    losses = [model(**batch).loss.item() for batch in batches]
    model.train(was_training)
    return float(np.average(losses, weights=[terms(batch) for batch in batches]))


def terms(batch):
    return int((batch["labels"] >= 0).sum()) if "labels" in batch else 1


def make_trainer(workload, model, tokenizer, data, callbacks, dev=None, measure=None):
    """Makes a Trainer with its defaults except for workload, saving and reporting; `measure` gives the metrics of `dev`."""
    evaluations = {} if dev is None else {"eval_strategy": "steps", "eval_steps": workload.every}
    is_half = getattr(workload, "precision", "float32") == "bfloat16"
    is_grouped = workload.suite == "train" and workload.way == "grouped"
    arguments = transformers.TrainingArguments(
        output_dir=workload.scratch,
        use_cpu=True,
        per_device_train_batch_size=workload.batch_size,
        per_device_eval_batch_size=workload.batch_size,
        learning_rate=workload.learning_rate,
        weight_decay=0.01,
        warmup_steps=workload.warmup_steps,
        max_steps=workload.total_steps,
        train_sampling_strategy="group_by_length" if is_grouped else "random",
        logging_steps=50,
        save_strategy="no",
        report_to="none",
        dataloader_pin_memory=False,
        disable_tqdm=True,
        remove_unused_columns=False,
        torch_compile=workload.way == "compiled",
        seed=workload.seed,
        bf16=is_half,
        bf16_full_eval=is_half,
        **evaluations,
    )
    return transformers.Trainer(
        model,
        arguments,
        KINDS[workload.kind].collator(tokenizer),
        train_dataset=data,
        eval_dataset=dev,
        processing_class=tokenizer,
        compute_metrics=measure,
        callbacks=callbacks,
    )


def train(workload, channel, tokenizer, texts, check_of):
    padding = "max_length" if workload.way == "max" else False
    data = Encoded(load_data(tokenizer, texts, workload, padding))
    model = load_model(workload)
    asked = Asked(Pieces(channel, workload, check_of(model)), model)
    trainer = make_trainer(workload, model, tokenizer, data, [asked])
    if workload.suite == "train":
        channel.ready(VERSIONS)
    trainer.train()
    raise WorkerError(f"all {workload.total_steps} steps of the workload are trained")


def predict(workload, channel, tokenizer, texts, check_of):
    columns = load_data(tokenizer, texts, workload)
    columns.pop("labels")
    data, model = Encoded(columns), load_model(workload)
    trainer = make_trainer(workload, model, tokenizer, None, [])
    channel.ready(VERSIONS)
    channel.serve({"check": check_of(model), "run": lambda passes: timed(passes, lambda: trainer.predict(data), len(data))})


def features(workload, channel, tokenizer, texts, check_of):
    kind = KINDS[workload.kind]

    def build():
        read = kind.read(workload) if getattr(workload, "reads_file", False) else texts
        torch.save(kind.encode(tokenizer, read, workload), Path(workload.scratch) / "features.pt")

    load_data(tokenizer, texts, workload)
    channel.ready(VERSIONS)
    channel.serve({"check": check_of(None), "run": lambda passes: timed(passes, build, len(texts[0]))})


def encode(workload, channel, tokenizer, texts, check_of):
    """Converts all texts to mean token vectors, on each request."""
    dtype = getattr(torch, workload.precision)
    model = transformers.AutoModel.from_pretrained(workload.weights, attn_implementation="sdpa", dtype=dtype).eval()

    def check(count):
        return {**check_of(None)(count), "vectors": vectors(model, tokenizer, texts[0][:count], workload).tolist()}

    def run(passes):
        return timed(passes, lambda: vectors(model, tokenizer, texts[0], workload), len(texts[0]))

    channel.ready(VERSIONS)
    channel.serve({"check": check, "run": run})


@torch.inference_mode()
def vectors(model, tokenizer, texts, workload):
    """Returns [E, D] vectors of texts, batch by batch."""
    order = sorted(range(len(texts)), key=lambda n: -len(texts[n])) if workload.way == "sorted" else range(len(texts))
    found = [None] * len(texts)
    for first in range(0, len(texts), workload.batch_size):
        numbers = order[first : first + workload.batch_size]
        chosen = [texts[number] for number in numbers]
        inputs = tokenizer(chosen, padding=True, truncation=True, max_length=workload.max_seq_length, return_tensors="pt")
        mask = inputs["attention_mask"].unsqueeze(-1)
        sums = (model(**inputs).last_hidden_state * mask).sum(1)
        for number, vector in zip(numbers, (sums / mask.sum(1)).float().numpy()):
            found[number] = vector
    return np.stack(found)


def work(workload, channel):
    torch.set_num_threads(workload.threads)
    os.environ["RAYON_NUM_THREADS"] = str(workload.threads)  # read when the tokenizer first runs
    transformers.set_seed(workload.seed)
    tokenizer = transformers.BertTokenizer.from_pretrained(workload.weights)  # of WordPiece, whatever the encoder
    texts = KINDS[workload.kind].read(workload)

    def check_of(model):
        def check(count):
            few = [column and column[:count] for column in texts]
            columns = load_data(tokenizer, few, workload)
            loss = None if model is None else evaluation_loss(model, columns, KINDS[workload.kind], tokenizer)
            return {"ids": rows_of(columns), "loss": loss}

        return check

    suites = {"train": train, "start": train, "predict": predict, "features": features, "encode": encode}
    suites[workload.suite](workload, channel, tokenizer, texts, check_of)


if __name__ == "__main__":
    run_worker(work)

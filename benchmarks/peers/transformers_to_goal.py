"""Trains with transformers' Trainer until dev reaches a goal, for benchmarks.time_to_quality: transformers_to_goal.py JOB.json

Each evaluation adds its result to evaluations.jsonl of the job's folder, and the seconds since `job.started` to clock.jsonl.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import seqeval.metrics
import transformers
from protocol import require_known
from sklearn.metrics import accuracy_score
from transformers_kinds import KINDS, load_pretrained
from transformers_trainer import Encoded, make_trainer

_IGNORED = -100  # label of tokens without a tag


def accuracy(found, labels):
    del labels
    return accuracy_score(found.label_ids, found.predictions.argmax(-1))


def entity_f1(found, labels):
    tagged = [(row != _IGNORED, row, tags) for row, tags in zip(found.label_ids, found.predictions.argmax(-1))]
    true, predicted = ([[labels[tag] for tag in row[side][row[0]]] for row in tagged] for side in (1, 2))
    return seqeval.metrics.f1_score(true, predicted)


class Goal(transformers.TrainerCallback):
    """Records each evaluation; ends the training at the goal."""

    def __init__(self, job):
        self._job = job

    def on_evaluate(self, _args, state, control, metrics, **_kwargs):
        name = f"eval_{self._job.metric}"
        lines = {
            "clock": {"seconds": time.time() - self._job.started, "training_seconds": 0.0},
            "evaluations": {name: metrics[name]},
        }
        for file, line in lines.items():
            with (Path(self._job.output_dir) / f"{file}.jsonl").open("a", encoding="utf-8") as opened:
                opened.write(json.dumps({"step": state.global_step, **line}) + "\n")
        control.should_training_stop |= metrics[name] >= self._job.goal


def main():
    job = SimpleNamespace(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    transformers.set_seed(job.seed)
    kind, tokenizer = KINDS[job.kind], transformers.AutoTokenizer.from_pretrained(job.model)
    data = {}
    for split in ("train", "dev"):
        read = kind.read(SimpleNamespace(texts=getattr(job, split), labels=job.labels))
        data[split] = Encoded(kind.encode(tokenizer, read, job))
        require_known(data[split].columns["input_ids"], tokenizer.unk_token_id)
    steps = int(len(data["train"]) / job.train_batch_size * job.num_train_epochs)
    named = SimpleNamespace(
        **vars(job),
        suite="train",
        way="grouped" if job.group_by_length else "dynamic",
        batch_size=job.train_batch_size,
        every=job.eval_every_n_steps,
        total_steps=steps,
        warmup_steps=int(0.1 * steps),
        scratch=job.output_dir,
    )
    model = load_pretrained(job.kind, job.model, num_labels=len(job.labels))
    score = {"accuracy": accuracy, "entity_f1": entity_f1}[job.metric]

    def measure(found):
        return {job.metric: float(score(found, job.labels))}

    make_trainer(named, model, tokenizer, data["train"], [Goal(job)], data["dev"], measure).train()


if __name__ == "__main__":
    main()

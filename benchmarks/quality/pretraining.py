"""Pre-training compared with transformers on the same rows, masks, weights and batches: loss and speed.

    python -m benchmarks.quality.pretraining --input_file='novels/*.txt' --held_out_file=other.txt --input_format=book

Ours first takes one step at rate 0, which creates a new head; both continue from there. Finished parts are kept in
the runs' folder. With --nodropout the losses of all steps are compared too.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

import bert_tf
from benchmarks import records
from benchmarks.command_line import run_tool
from benchmarks.quality import runs
from benchmarks.quality.command_line import STOPPED, transformers_python
from benchmarks.quality.runs import PEER
from benchmarks.workers import WorkerError
from bert_tf.checkpoints import huggingface_export
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.cli.command_line import Flag, by_name, parse_flags
from bert_tf.cli.process import setup_logging
from bert_tf.config import BertConfig
from bert_tf.errors import FlagError
from bert_tf.extensions.pretrain.opening import SplitFiles
from bert_tf.extensions.pretrain.rows import TextRows
from bert_tf.extensions.pretrain.settings import PretrainingSettings
from bert_tf.head_spec import PRETRAINING
from bert_tf.io import atomic, documents
from bert_tf.io.text_table import table
from bert_tf.tasks.base import DEV, TRAIN, Opening
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer
from bert_tf.training.settings import ModelSettings

FLAGS = (
    Flag("input_file", str, None, "text to train on (required)"),
    Flag("held_out_file", str, None, "text to evaluate on (required)"),
    Flag("input_format", str, None, "as of `python -m bert_tf pretrain`"),
    Flag("init_checkpoint", str, None, "to go on from; else the default checkpoint"),
    Flag("epochs", int, 3, "how often to see every row", 1),
    Flag("steps", int, None, "how many steps to take, in the place of epochs", 1),
    Flag("max_seq_length", int, 128, "most word pieces of a row", 5),
    Flag("train_batch_size", int, 32, "rows of a step", 1),
    Flag("learning_rate", float, 1e-4, "peak learning rate"),
    Flag("seed", int, 1, "of order and dropout"),
    Flag("dropout", bool, True, "as the model has it; else none: losses of all steps are compared too"),
    Flag("peer_python", str, None, "interpreter of transformers; else .peers/transformers/bin/python"),
    Flag("threads", int, 2, "of each side", 1, highest=1024),
    Flag("runs_dir", str, "out/quality/Pretraining", "folder of the runs; what is finished there is not trained again"),
    Flag("output", str, None, "file of the figures; else pretraining.json in the folder of the runs"),
)
_FILES = ("input_file", "held_out_file", "peer_python")
_LOSS_TOLERANCE = 1e-4  # of both before training
_REQUIRED = 0.02  # by which the held-out loss of ours may be above that of the peer


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Both trainings."""

    flags: Mapping[str, Any]  # by name
    folder: Path  # of the runs

    @property
    def start(self) -> Path:
        """Folder of the run that both continue from."""
        return self.folder / "start"

    def settings(self, **changes: Any) -> dict[str, Any]:
        names = ("input_file", "held_out_file", "input_format", "max_seq_length", "train_batch_size", "learning_rate", "seed")
        threads = {"intra_op_threads": self.flags["threads"], "inter_op_threads": self.flags["threads"]}
        named = {name: self.flags[name] for name in names if self.flags[name] is not None}
        return {**named, **threads, "adam_bias_correction": True, "corpus_dir": self.folder / "corpus", **changes}

    def begin(self) -> dict[str, float]:
        """Takes one step at rate 0; returns the evaluation of these weights."""
        checkpoint = self.flags["init_checkpoint"]
        given = {"init_checkpoint": checkpoint} if checkpoint else {}
        if not self.flags["dropout"]:
            given = runs.without_dropout(self.folder, ModelSettings(checkpoint), {})
        bert_tf.pretrain(output_dir=self.start, **self.settings(num_train_steps=1, **given, learning_rate=0.0))
        results = json.loads((self.start / "eval_results.json").read_text(encoding="utf-8"))
        found: dict[str, float] = results["splits"][DEV]
        return found

    @functools.cached_property
    def rows(self) -> TextRows:
        return self.opened(TRAIN)

    def opened(self, split: str) -> TextRows:
        names = ("input_file", "held_out_file", "input_format")
        given = PretrainingSettings(**{n: self.flags[n] for n in names}, corpus_dir=os.fspath(self.folder / "corpus"))
        record = json.loads((self.start / "run_config.json").read_text(encoding="utf-8"))["training"]
        vocabulary = Vocabulary.from_file(self.start / "vocab.txt")
        tokenizer = WordPieceTokenizer(vocabulary, lower_case=record["do_lower_case"])
        return SplitFiles(split, split, given).opened(Opening(tokenizer, self.flags["max_seq_length"], self.start))

    @property
    def every(self) -> int:
        """Steps between evaluations: an epoch, or a third of a shorter training."""
        epoch, steps = len(self.rows) // int(self.flags["train_batch_size"]), self.flags["steps"]
        return epoch if steps is None else max(1, min(epoch, int(steps) // 3))

    @property
    def steps(self) -> int:
        return int(self.flags["steps"] or self.flags["epochs"] * self.every)

    def ours(self) -> dict[str, Any]:
        folder, how = self.folder / "ours", {"eval_every_n_steps": self.every, "log_every_n_steps": 1}
        bert_tf.pretrain(output_dir=folder, **self.settings(init_checkpoint=self.start, num_train_steps=self.steps, **how))
        lines = map(json.loads, (folder / "evaluations.jsonl").read_text(encoding="utf-8").splitlines())
        reached = [{name.removeprefix("eval_"): value for name, value in line.items()} for line in lines]
        seconds, losses = runs.steps_of(folder)
        return {"reached": reached, "losses": losses, "seconds": seconds}

    def theirs(self) -> dict[str, Any]:
        folder = atomic.make_folder(self.folder / PEER)
        if (folder / "output.json").is_file():
            answer: dict[str, Any] = json.loads((folder / "output.json").read_text(encoding="utf-8"))
            return answer
        return runs.run_peer(self.flags["peer_python"], folder, self._job(folder), PEER)

    def _job(self, folder: Path) -> dict[str, Any]:
        safetensors.numpy.save_file(self._drawn(), folder / "train.safetensors")
        held_out = {name: np.ascontiguousarray(column) for name, column in self.opened(DEV).features().columns().items()}
        safetensors.numpy.save_file(held_out, folder / "held_out.safetensors")
        reader = CheckpointReader(self.start / "model.ckpt-1")
        weights = {name: reader[name] for name in reader.shapes if name.startswith(("bert/", "cls/")) and "adam" not in name}
        config = BertConfig.from_json_file(self.start / "bert_config.json")
        huggingface_export.write(atomic.make_folder(folder / "model"), weights, config)
        return {
            "kind": PRETRAINING,
            "model": os.fspath(folder / "model"),
            "train": os.fspath(folder / "train.safetensors"),
            "dev": os.fspath(folder / "held_out.safetensors"),
            "batch_size": self.flags["train_batch_size"],
            "steps": self.steps,
            "every": self.every,
            "warmup_proportion": runs.WARMUP_PROPORTION,
            **{name: self.flags[name] for name in ("learning_rate", "seed", "threads")},
        }

    def _drawn(self) -> dict[str, Any]:
        """Returns the rows of all steps in order: a new order per epoch, as `bert_tf.estimator.pipeline`."""
        count, needed = len(self.rows), self.steps * self.flags["train_batch_size"]
        epochs = [np.random.default_rng([self.flags["seed"], epoch]).permutation(count) for epoch in range(-(-needed // count))]
        units = np.concatenate(epochs)[:needed]
        features = self.rows.rows.drawn(units, np.arange(needed) // count).features
        return {name: np.ascontiguousarray(column) for name, column in features.columns().items()}


def compare(flags: Mapping[str, Any], command: str) -> dict[str, Any]:
    """Trains on both sides and returns the figures; WorkerError if the peer fails or its initial loss differs."""
    comparison = Comparison(flags, atomic.make_folder(flags["runs_dir"]))
    before, ours, theirs = comparison.begin(), comparison.ours(), comparison.theirs()
    apart = abs(before["masked_lm_loss"] - theirs["before"]["masked_lm_loss"])
    if not apart <= _LOSS_TOLERANCE:
        raise WorkerError(f"{PEER}: held-out loss before training is {apart:.2g} from ours, {before['masked_lm_loss']}")
    rows = [_row(*lines) for lines in zip(ours["reached"], theirs["reached"])]
    losses = np.abs(np.subtract(ours["losses"], theirs["losses"]))
    return {
        "measured": {"command": command, **records.when(), **records.machine()},
        "settings": {name: value for name, value in flags.items() if name not in _FILES},
        "rows": len(comparison.rows),
        "before": before["masked_lm_loss"],
        "epochs": rows,
        "loss_ratio": rows[-1]["ours"] / rows[-1][PEER],
        "seconds": {"ours": ours["seconds"], PEER: theirs["seconds"]},
        "speed_ratio": theirs["seconds"] / ours["seconds"],
        "largest_difference_of_step_losses": None if flags["dropout"] else float(losses.max()),
        "versions": theirs["versions"],
    }


def _row(ours: Mapping[str, float], theirs: Mapping[str, float]) -> dict[str, float]:
    losses = {"ours": ours["masked_lm_loss"], PEER: theirs["masked_lm_loss"]}
    accuracies = {"accuracy, ours": ours["masked_lm_accuracy"], f"accuracy, {PEER}": theirs["masked_lm_accuracy"]}
    return {"step": ours["step"], **losses, **accuracies}


def in_words(found: Mapping[str, Any]) -> str:
    cells = [[str(row["step"]), *(f"{row[name]:.4f}" for name in list(row)[1:])] for row in found["epochs"]]
    verdict = "within" if found["loss_ratio"] <= 1 + _REQUIRED else "NOT within"
    seconds = found["seconds"]
    lines = [
        *table(list(found["epochs"][0]), cells),
        f"held-out masked loss {found['loss_ratio'] - 1:+.2%} of that of {PEER}: {verdict} the required {_REQUIRED:.0%}",
        f"steps: {seconds['ours']:.1f} s, {PEER} {seconds[PEER]:.1f} s: {found['speed_ratio']:.2f} times as fast",
    ]
    if found["largest_difference_of_step_losses"] is not None:
        lines.append(f"losses of all steps differ by {found['largest_difference_of_step_losses']:.2g} at most")
    return "\n".join(lines)


def main(argv: Sequence[str]) -> int:
    command = shlex.join(["python", "-m", *argv])
    about = "Compares pre-training here and with transformers: python -m benchmarks.quality.pretraining --input_file=..."
    return run_tool(lambda: _run(parse(argv), command), about, FLAGS, STOPPED)


def parse(argv: Sequence[str]) -> dict[str, Any]:
    given = by_name(parse_flags(argv, FLAGS), FLAGS)
    for name in ("input_file", "held_out_file"):
        if given[name] is None:
            raise FlagError(f"--{name} is required")
    return {**given, "peer_python": transformers_python(given["peer_python"])}


def _run(flags: Mapping[str, Any], command: str) -> int:
    setup_logging(verbosity=-1)
    found = compare(flags, command)
    path = Path(flags["output"] or Path(flags["runs_dir"]) / "pretraining.json")
    atomic.write_text(path, documents.to_json(found, indent=2) + "\n")
    sys.stdout.write(in_words(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(["benchmarks.quality.pretraining", *sys.argv[1:]]))

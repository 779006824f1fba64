"""What must hold of the training of every family, and words with tags to train on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import processes
from tests.integration import commands
from tests.tiny import FILLERS, HALVES

SIZES = {"train": 60, "dev": 20, "test": 9}
TAG_OF = {**dict.fromkeys(HALVES[0], "weather"), **dict.fromkeys(HALVES[1], "food")}
NEUTRAL = tuple(word for word in FILLERS if word.isalpha())  # words of no half
WORDS = (*TAG_OF, *NEUTRAL)

Flags = Callable[..., list[str]]  # from the folder of a run, and further flags


def tagged_texts() -> dict[str, list[tuple[list[str], list[str]]]]:
    """Returns words and tags of each split: 2 to 30 words, of which a row of 24 tokens holds 22."""
    random = np.random.default_rng(2)
    return {split: [tagged(random, length) for length in random.integers(2, 31, size)] for split, size in SIZES.items()}


def tagged(random, length):
    """Returns words and their tags."""
    words = random.choice(WORDS, length).tolist()
    return words, [TAG_OF.get(word, "other") for word in words]


def question(random, name, words):
    """Returns a question whose context has one word of the first half, which is the answer."""
    before = random.choice(NEUTRAL, int(random.integers(words + 1))).tolist()
    answer = str(random.choice(HALVES[0]))
    context = " ".join([*before, answer, *random.choice(NEUTRAL, words - len(before))])
    start = len(" ".join([*before, answer])) - len(answer)
    return {"id": name, "question": "one ?", "context": context, "answer": answer, "start": start}


def sentence(random, half, most=6):
    """Returns a word of a half, and up to so many others."""
    return " ".join([str(random.choice(HALVES[half])), *random.choice(NEUTRAL, int(random.integers(1, most)))])


def choices(random, count):
    """Yields questions with as many options as they like, of which one is of the same half as the context."""
    for number in range(count):
        half, options = int(random.integers(2)), int(random.integers(2, 5))
        label = int(random.integers(options))
        texts = [sentence(random, half if option == label else 1 - half) for option in range(options)]
        yield {
            "id": f"c{number}",
            "context": sentence(random, half, 9),
            "question": "the _ .",
            "options": texts,
            "label": label,
        }


def pairs(random, count):
    """Yields pairs of texts, of which each second is of one half."""
    for number in range(count):
        half, alike = int(random.integers(2)), number % 2
        yield {
            "id": f"s{number}",
            "text_a": sentence(random, half, 9),
            "text_b": sentence(random, half if alike else 1 - half),
            "label": alike,
        }


def run(arguments: list[str], before: Callable[[], Any] | None = None) -> Any:
    """Runs a command line, which must succeed."""
    done = commands.run(arguments, before=before)
    assert done.returncode == 0, done.stderr
    return done


def batch(*arguments: object, before: Callable[[], Any] | None = None) -> None:
    """Runs `python -m bert_tf`, which must succeed."""
    done = processes.finish(processes.start(["-m", "bert_tf", *map(str, arguments)], before=before))
    assert done.returncode == 0, done.stderr


def without_dropout(folder: Path, project: Any) -> Path:
    """Writes the configuration of a model without dropout, of which each replica and each micro-batch draws its own."""
    sizes = json.loads(project.bert_config_file.read_text())
    path = folder / "config.json"
    path.write_text(json.dumps({**sizes, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}))
    return path


def losses(folder: Path) -> list[float]:
    """Returns the loss of each step of a run that logs all."""
    return [json.loads(line)["loss"] for line in (folder / "metrics.jsonl").read_text().splitlines()]


def check_loss_of_parts(folder: Path, flags: Flags, whole: Path, *, steps: int) -> None:
    """Micro-batches on replicas have different numbers of terms; their losses still add up to the mean over all.

    Args:
      folder: of the run that is made.
      flags: of a model without dropout.
      whole: a run of these flags on one device.
      steps: whose losses are compared.
    """
    run(flags(folder, num_train_steps=steps, gradient_accumulation_steps=3, virtual_devices=2))
    assert losses(folder) == pytest.approx(losses(whole)[:steps], rel=1e-4)

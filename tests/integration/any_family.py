"""What must hold of every family, by whole commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Optional

import numpy as np
import pytest

from tests import processes
from tests.integration import commands

Before = Optional[Callable[[], Any]]  # done first in each process
Flags = Callable[..., list]  # of a folder and settings


def run(arguments, before: Before = None):
    """Runs the command of training to its end."""
    done = commands.run(arguments, before=before)
    assert done.returncode == 0, done.stderr
    return done


def batch(*arguments, before: Before = None):
    """Runs `python -m bert_tf` to its end."""
    done = processes.finish(processes.start(["-m", "bert_tf", *map(str, arguments)], before=before))
    assert done.returncode == 0, done.stderr
    return done


def check_parts_add_up(folder: Path, flags: Flags, config_file: Path, before: Before = None) -> None:
    """Checks that the loss of a step is that of its whole batch, however replicas and micro-batches divide that."""
    losses, config = {}, folder / "config.json"
    sizes = json.loads(config_file.read_text())
    config.write_text(json.dumps({**sizes, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}))
    ways = {"whole": {}, "parts": {"gradient_accumulation_steps": 2}, "replicas": {"virtual_devices": 3}}
    for name, extra in ways.items():
        run(flags(folder / name, num_train_steps=1, bert_config_file=config, **extra), before)
        losses[name] = json.loads((folder / name / "metrics.jsonl").read_text().splitlines()[0])["loss"]
    assert losses["parts"] == pytest.approx(losses["whole"], rel=1e-5)
    assert losses["replicas"] == pytest.approx(losses["whole"], rel=1e-5)


def check_a_kill_changes_nothing(folder: Path, flags: list, trained: Path, steps: int, before: Before = None) -> None:
    """Checks that a run that is killed a little after its middle and goes on ends in the weights of another."""
    process = commands.start(flags, before=before)
    commands.wait_for_step(folder, steps // 2 + 3, process)
    process.kill()
    process.communicate()
    run(flags, before)
    found, expected = commands.weights(folder, steps), commands.weights(trained, steps)
    assert found.keys() == expected.keys()
    assert all(np.array_equal(found[name], expected[name]) for name in expected)

"""Runs the other side in an environment of its own.

PyTorch does not live with TensorFlow: the environment variable BERT_TF_PEERS_PYTHON names the Python of a virtual
environment with benchmarks/peers/transformers.txt.
"""

import os
import subprocess
from pathlib import Path

import pytest

from bert_tf.checkpoints import default

CHECKPOINTS = Path(__file__).resolve().parents[2] / "checkpoints"


def run(script: str, *arguments: object) -> None:
    """Runs a script of this folder."""
    python = os.environ.get("BERT_TF_PEERS_PYTHON")
    if not python:
        pytest.fail("set BERT_TF_PEERS_PYTHON to the Python of a virtual environment with benchmarks/peers/transformers.txt")
    command = [python, Path(__file__).with_name(script), *map(str, arguments)]
    subprocess.run(command, check=True, timeout=600, stdout=subprocess.DEVNULL)


def default_checkpoint(folder: Path) -> Path:
    """Returns the folder of the default checkpoint; the same weights, as they came, are written to `folder`."""
    default._extract(default._download(folder), folder)
    return default.ensure(CHECKPOINTS)

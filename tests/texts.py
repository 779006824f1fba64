"""Text to pre-train on, of the words that `tests.tiny` knows."""

from pathlib import Path

import numpy as np

from tests.tiny import FILLERS, HALVES, TinyProject

_WORDS = [*HALVES[0], *HALVES[1], *(word for word in FILLERS if not word.startswith("##"))]


def documents(count: int, seed: int = 0, sentences: int = 6) -> list[list[str]]:
    """Returns documents of some sentences, no two of which are the same."""
    rng = np.random.default_rng(seed)
    return [[" ".join(rng.choice(_WORDS, int(rng.integers(4, 12)))) for _ in range(sentences)] for _ in range(count)]


def write(path: Path, texts: list[list[str]]) -> Path:
    """Writes documents as published: a sentence a line, a blank line between documents."""
    path.write_text("\n".join("".join(f"{sentence}\n" for sentence in text) for text in texts))
    return path


def flags(project: TinyProject, output_dir: object, **extra: object) -> list[str]:
    """Returns arguments of `python -m bert_tf pretrain` for a run of 6 steps."""
    values = {
        "vocab_file": project.vocab_file,
        "bert_config_file": project.bert_config_file,
        "init_checkpoint": project.init_checkpoint,
        "max_seq_length": 24,
        "train_batch_size": 4,
        "num_train_steps": 6,
        "learning_rate": 0.003,
        "log_every_n_steps": 1,
        "output_dir": output_dir,
        **extra,
    }
    given = {
        name: str(value).lower() if isinstance(value, bool) else value for name, value in values.items() if value is not None
    }
    return [f"--{name}={value}" for name, value in given.items()]

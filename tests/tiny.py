"""A project in a folder: vocabulary, configuration, checkpoint and data so small that a run takes seconds."""

import dataclasses
from pathlib import Path

import numpy as np

from bert_tf.checkpoints.names import encoder_shapes
from bert_tf.checkpoints.reader import CheckpointReader, write_checkpoint
from bert_tf.config import BertConfig
from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS

# The first word of a sentence decides: both from one half is a paraphrase.
HALVES = (("rain", "storm", "cloud", "wind"), ("bread", "soup", "salt", "pear"))
FILLERS = tuple("a the old new came went over under and but near far one two red blue . , ##s ##ed ##ing".split())
TOKENS = (*SPECIAL_TOKENS, *HALVES[0], *HALVES[1], *FILLERS)
SIZES = {"train": 40, "dev": 13, "test": 12}


@dataclasses.dataclass(frozen=True)
class TinyProject:
    """Paths of the files, as flags name them."""

    data_dir: Path
    vocab_file: Path
    bert_config_file: Path
    init_checkpoint: str

    def flags(self, output_dir: object, **extra: object) -> list[str]:
        """Returns arguments of run_classifier.py; `extra` are further flags, or other values of these."""
        values = {
            "task_name": "MRPC",
            "data_dir": self.data_dir,
            "vocab_file": self.vocab_file,
            "bert_config_file": self.bert_config_file,
            "init_checkpoint": self.init_checkpoint,
            "max_seq_length": 24,
            "train_batch_size": 8,
            "output_dir": output_dir,
            **extra,
        }
        return [f"--{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in values.items()]


def write_project(folder: Path, *, layers: int = 2) -> TinyProject:
    """Writes all files; the same ones on every call."""
    model, data = folder / "model", folder / "data"
    model.mkdir(parents=True)
    data.mkdir()
    config = dataclasses.replace(BertConfig.tiny(vocab_size=len(TOKENS)), num_hidden_layers=layers)
    (model / "vocab.txt").write_text("\n".join(TOKENS) + "\n", encoding="utf-8")
    (model / "bert_config.json").write_text(config.to_json(), encoding="utf-8")
    write_checkpoint(model / "bert_model.ckpt", random_weights(config))
    rng = np.random.default_rng(5)
    for split, size in SIZES.items():
        (data / f"{split}.tsv").write_text(_table(rng, split, size), encoding="utf-8")
    return TinyProject(data, model / "vocab.txt", model / "bert_config.json", str(model / "bert_model.ckpt"))


def random_weights(config: BertConfig, seed: int = 3) -> dict[str, np.ndarray]:
    """Returns an encoder by published names."""
    rng = np.random.default_rng(seed)
    weights = {}
    for name, shape in encoder_shapes(config).items():
        center = 1.0 if name.endswith("gamma") else 0.0
        weights[name] = rng.normal(center, 0.2, shape).astype(np.float32)
    return weights


def held(prefix: object) -> dict[str, np.ndarray]:
    """Returns the entries of a checkpoint."""
    reader = CheckpointReader(prefix)
    return {name: reader[name] for name in reader.shapes}


def _table(rng: np.random.Generator, split: str, size: int) -> str:
    header = ["index" if split == "test" else "Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"]
    lines = ["\t".join(header)]
    for row in range(size):
        label = row % 2
        half = int(rng.integers(2))
        sentences = [_sentence(rng, half), _sentence(rng, half if label else 1 - half)]
        first = row if split == "test" else label
        lines.append("\t".join([str(first), str(1000 + row), str(2000 + row), *sentences]))
    return "\n".join(lines) + "\n"


def _sentence(rng: np.random.Generator, half: int) -> str:
    words = [token for token in FILLERS if not token.startswith("##")]
    return " ".join([str(rng.choice(HALVES[half])), *rng.choice(words, int(rng.integers(2, 9)))]) + " ."

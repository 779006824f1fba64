"""What belongs to trained weights: configuration, vocabulary, and how the text was prepared for them."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bert_tf.batch.job import Given
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.config import BertConfig
from bert_tf.errors import CheckpointError
from bert_tf.estimator import preflight, run_folder
from bert_tf.modeling.heads import CLASSIFICATION_VARIABLES
from bert_tf.tasks.base import HeadSpec, file_digest
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

_LENGTH = 128  # where nothing says otherwise, as in the published script


@dataclasses.dataclass(frozen=True)
class Trained:
    """Trained weights, and all that is needed to use them.

    Attributes:
      prefix: the checkpoint.
      config: of the encoder.
      vocabulary: of the tokenizer.
      lower_case: whether it lower-cases.
      max_seq_length: longest input in word pieces.
      long_text: key of `long_text.CUTS`, what is kept of longer ones.
      num_labels: logits of the head.
      record: see `run_folder.trained`; empty where that is unknown.
      digest: of the checkpoint's index, which holds the checksums of all entries.
    """

    prefix: str
    config: BertConfig
    vocabulary: Vocabulary
    lower_case: bool
    max_seq_length: int
    long_text: str
    num_labels: int
    record: Mapping[str, Any]
    digest: str

    @property
    def architecture(self) -> tuple[object, ...]:
        """What a graph is built from."""
        return self.config, self.num_labels

    @property
    def settings(self) -> dict[str, Any]:
        """All that decides on the logits of a text, but for how they are computed."""
        return {
            "checkpoint_sha256": self.digest,
            "bert_config_sha256": hashlib.sha256(self.config.to_json().encode()).hexdigest(),
            "vocabulary_sha256": self.vocabulary.fingerprint,
            "max_seq_length": self.max_seq_length,
            "do_lower_case": self.lower_case,
            "long_text": self.long_text,
        }

    @functools.cached_property
    def tokenizer(self) -> WordPieceTokenizer:
        """Cuts texts as the training did."""
        return WordPieceTokenizer(self.vocabulary, lower_case=self.lower_case)

    def refuse(self, head: HeadSpec, labels: tuple[str, ...]) -> None:
        """Stops where the model was trained for other labels than those of a task.

        Raises:
          CheckpointError: it was.
        """
        expected = {"kind": head.kind, "labels": list(labels)}
        for key, wanted in expected.items():
            if self.record.get(key, wanted) != wanted:
                raise CheckpointError(f"{self.prefix}: trained on {key} {_shown(self.record[key])}, not {_shown(wanted)}")
        if self.num_labels != head.num_labels:
            raise CheckpointError(f"{self.prefix}: its head has {self.num_labels} labels, the task {head.num_labels}")


def load(prefix: str, given: Given) -> Trained:
    """Finds what belongs to a checkpoint: what the job says, else what its folder holds.

    Raises:
      BertError: a file is missing or damaged, or they do not fit each other.
    """
    reader = CheckpointReader(prefix)
    folder = Path(prefix).parent
    trained = run_folder.trained(folder)
    config = BertConfig.from_json_file(_file(given.bert_config_file, folder / "bert_config.json", "--bert_config_file"))
    vocabulary = _vocabulary(_file(given.vocab_file, folder / "vocab.txt", "--vocab_file"))
    lower_case = _first(given.do_lower_case, trained.get("do_lower_case"), not vocabulary.is_cased)
    length = _first(given.max_seq_length, trained.get("max_seq_length"), _LENGTH)
    long_text = _first(given.long_text, trained.get("long_text"), "truncate")
    preflight.refuse(preflight.check_model(config, vocabulary, lower_case=lower_case, max_seq_length=length))
    head = CLASSIFICATION_VARIABLES[0]
    if head not in reader.shapes:
        raise CheckpointError(f"{prefix}: no {head}: this is a pretrained model, not a classifier; train it first")
    index = Path(f"{prefix}.index")
    digest = file_digest(index if index.is_file() else prefix)
    return Trained(prefix, config, vocabulary, lower_case, length, long_text, reader.shapes[head][0], trained, digest)


def _vocabulary(path: Path) -> Vocabulary:
    return _read_vocabulary(path, path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=4)
def _read_vocabulary(path: Path, _: int) -> Vocabulary:
    """Checkpoints of one run have one vocabulary, and reading it takes as long as loading their weights."""
    return Vocabulary.from_file(path)


def _file(given: str | None, beside: Path, flag: str) -> Path:
    path = Path(given) if given else beside
    if not path.is_file():
        raise CheckpointError(f"{path}: no such file; name it with {flag}")
    return path


def _first(*values: Any) -> Any:
    return next(value for value in values if value is not None)


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)

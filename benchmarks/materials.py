"""Files for contenders: texts, one model in the published layout for us and in Hugging Face's for the others, workloads.

Pretrained encoders have no task head. So that losses before training are comparable, every worker draws it by the
rule of `head`; our checkpoint holds it by its published names, the other format has no entry for it.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import texts
from benchmarks.comparisons import OTHER, OWN, PIECES, SUITES, Comparison, Contender
from benchmarks.figures import DEFAULT, SIZES
from bert_tf.checkpoints import huggingface_export
from bert_tf.checkpoints.huggingface import PUBLISHED_CONFIG_NAME, VOCABULARY_NAME
from bert_tf.checkpoints.huggingface_export import Architecture
from bert_tf.checkpoints.names import encoder_shapes
from bert_tf.checkpoints.prefixes import CHECKPOINT_NAME
from bert_tf.checkpoints.reader import CheckpointReader, write_checkpoint
from bert_tf.checkpoints.weight_files import WEIGHTS_NAME
from bert_tf.config import BertConfig
from bert_tf.features.columns import Features
from bert_tf.head_spec import PRETRAINING, SPAN, HeadSpec
from bert_tf.io import documents
from bert_tf.tasks.base import Limits, Opening, Task, Unopened
from bert_tf.tokenization import casing
from bert_tf.tokenization.casing import TOKENIZER_FILES
from bert_tf.tokenization.vocabulary import CLS, MASK, PAD, SEP, UNK, Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

Array = npt.NDArray[Any]

SEED = 1
_LEARNING_RATE = 2e-5
_EPOCHS = 3
_WARMUP_PROPORTION = 0.1
_TOKENIZER_FIELDS = {"unk_token": UNK, "sep_token": SEP, "pad_token": PAD, "cls_token": CLS, "mask_token": MASK}
_SCOPES = {SPAN: "cls/squad/"}  # of a head's variables, if not as in the published classifier
_CLASSIFIER = Architecture("BertForSequenceClassification")  # without its head


def head(config: BertConfig, spec: HeadSpec) -> dict[str, Array]:
    """Returns the initial head of all workers: normal(0, 0.02), drawn [D, L], and zeros."""
    kernel = np.random.default_rng(SEED).normal(0, 0.02, [config.hidden_size, spec.num_labels])
    scope = _SCOPES.get(spec.kind, "")
    return {
        f"{scope}output_weights": np.ascontiguousarray(kernel.T, np.float32),  # [L, D]
        f"{scope}output_bias": np.zeros(spec.num_labels, np.float32),
    }


def read_encoder(prefix: str | os.PathLike[str], config: BertConfig) -> dict[str, Array]:
    reader = CheckpointReader(prefix)
    return {name: reader[name] for name in encoder_shapes(config)}


def write_huggingface(
    folder: Path, config: BertConfig, vocabulary: Vocabulary, entries: dict[str, Array], *, num_labels: int
) -> None:
    """Writes config.json, vocab.txt, tokenizer_config.json and, if there are entries, model.safetensors."""
    folder.mkdir(parents=True)
    labels = [f"LABEL_{number}" for number in range(num_labels)]
    facts = {
        "id2label": {str(number): label for number, label in enumerate(labels)},
        "label2id": {label: number for number, label in enumerate(labels)},
        "pad_token_id": vocabulary.pad_id,
    }
    huggingface_export.write(folder, entries, config, architecture=_CLASSIFIER, facts=facts)
    _write_tokenizer(folder, config, vocabulary)
    if not entries:
        (folder / WEIGHTS_NAME).unlink()


def _write_tokenizer(folder: Path, config: BertConfig, vocabulary: Vocabulary) -> None:
    (folder / VOCABULARY_NAME).write_text(vocabulary.to_text(), encoding="utf-8")
    tokenizer = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": casing.find(vocabulary).lower_case,
        "model_max_length": config.max_position_embeddings,
        **_TOKENIZER_FIELDS,
        **({"model_input_names": ["input_ids", "attention_mask"]} if config.type_vocab_size < 2 else {}),
    }
    (folder / TOKENIZER_FILES[0]).write_text(documents.to_json(tokenizer, indent=2), encoding="utf-8")


@dataclasses.dataclass(frozen=True)
class Source:
    """Data and pretrained model."""

    data: Mapping[str, tuple[Task, Path]]  # tasks and their folders, by name, see `texts.TASKS`
    config: BertConfig
    vocabulary: Vocabulary
    checkpoint: str  # prefix


class Materials:
    """Files in a scratch folder, each made on first use."""

    def __init__(self, folder: Path, source: Source) -> None:
        self._folder = folder
        self._source = source
        self._workers = 0

    def task(self, kind: str) -> Task:
        return self._source.data[texts.TEXTS[kind].task][0]

    def folder(self, kind: str) -> Path:
        return self._source.data[texts.TEXTS[kind].task][1]

    def config(self, size: str) -> BertConfig:
        if size == DEFAULT:
            return self._source.config
        return dataclasses.replace(SIZES[size], vocab_size=len(self._source.vocabulary))

    def write_workload(self, content: dict[str, Any]) -> Path:
        folder = self.new_folder()
        folder.mkdir()
        path = folder.with_suffix(".json")
        path.write_text(documents.to_json({**content, "scratch": os.fspath(folder)}, indent=1), encoding="utf-8")
        return path

    def new_folder(self) -> Path:
        self._workers += 1
        return self._folder / f"worker-{self._workers}"

    @functools.cache  # noqa: B019  (lives as long as the benchmark)
    def examples(self, kind: str) -> Sequence[Any]:
        found: Any = texts.TEXTS[kind].read(self.task(kind), self.folder(kind))
        if isinstance(found, Unopened):
            return found.opened(Opening(self._tokenizer, PIECES, self._folder))
        examples: Sequence[Any] = found
        return examples

    @functools.cache  # noqa: B019  (lives as long as the benchmark)
    def texts(self, kind: str, first: int | None = None) -> Path:
        row = texts.TEXTS[kind]
        path = self._folder / f"{kind.replace(' ', '-')}{'' if first is None else f'-{first}'}{row.suffix}"
        texts.write(path, row, self.examples(kind)[:first], self.task(kind).family)
        return path

    @functools.cache  # noqa: B019  (lives as long as the benchmark)
    def features(self, kind: str, max_seq_length: int) -> Features:
        family = texts.family_of(self.task(kind))
        return family.features(self.examples(kind), self._tokenizer, Limits(max_seq_length))

    @property
    def _tokenizer(self) -> WordPieceTokenizer:
        vocabulary = self._source.vocabulary
        return WordPieceTokenizer(vocabulary, lower_case=casing.find(vocabulary).lower_case)

    @functools.cache  # noqa: B019  (lives as long as the benchmark)
    def _entries(self, size: str) -> dict[str, Array]:
        return read_encoder(self._source.checkpoint, self.config(size)) if size == DEFAULT else {}

    def published(self, size: str, kind: str) -> Path:
        """Returns our worker's model folder, with the head of a row of `texts.TEXTS`; no checkpoint for random weights."""
        folder = self._folder / f"published-{size}-{texts.TEXTS[kind].task}"
        if not folder.is_dir():
            config, entries = self.config(size), self._entries(size)
            folder.mkdir(parents=True)
            (folder / PUBLISHED_CONFIG_NAME).write_text(config.to_json(), encoding="utf-8")
            _write_tokenizer(folder, config, self._source.vocabulary)
            if entries:
                write_checkpoint(folder / CHECKPOINT_NAME, {**entries, **head(config, self.task(kind).family.head)})
        return folder

    def huggingface(self, size: str, kind: str) -> Path:
        """Returns the peers' model folder; no weights if they are random."""
        folder = self._folder / f"huggingface-{size}-{texts.TEXTS[kind].task}"
        if not folder.is_dir():
            labels = self.task(kind).family.head.num_labels
            write_huggingface(folder, self.config(size), self._source.vocabulary, self._entries(size), num_labels=labels)
        return folder


def workload(
    comparison: Comparison,
    contender: Contender,
    materials: Materials,
    *,
    threads: int,
    needed_steps: int,
    suite: str | None = None,
    batch_size: int | None = None,
    first: int | None = None,
) -> dict[str, Any]:
    """Returns a worker's workload without its output folder.

    `needed_steps` is the most that will be requested; the schedule is at least as long. `suite` and `batch_size`
    override the comparison's; `first` limits the number of texts.
    """
    size = contender.size or comparison.size
    task = materials.task(comparison.texts)
    batch_size = comparison.batch_size_of(contender, batch_size)
    examples = _EPOCHS * len(materials.examples(comparison.texts))
    total_steps = max(int(examples / (batch_size or comparison.batch_size)), needed_steps)
    return {
        "suite": suite or SUITES[comparison.suite].worker,
        "way": contender.way,
        "precision": contender.precision,
        "weights": os.fspath(materials.huggingface(size, comparison.texts)),
        "checkpoint": os.fspath(materials.published(size, comparison.texts)),
        "random_weights": size != DEFAULT or task.family.kind == PRETRAINING,  # whose head checkpoints may lack
        "texts": os.fspath(materials.texts(comparison.texts, first)),
        "data": os.fspath(materials.folder(comparison.texts)),
        "task": task.name,
        "kind": task.family.kind,
        "labels": list(task.family.labels),
        "num_labels": task.family.head.num_labels,
        "max_seq_length": contender.max_seq_length or comparison.max_seq_length,
        "batch_size": batch_size,
        "learning_rate": _LEARNING_RATE,
        "warmup_steps": int(total_steps * _WARMUP_PROPORTION),
        "total_steps": total_steps,
        "threads": threads,
        "seed": SEED,
        **comparison.workload,
        **({"flags": dict(contender.flags)} if contender.library in (OWN, OTHER) else {}),
    }

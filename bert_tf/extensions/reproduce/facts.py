"""Facts about published runs, in the form that they are compared in.

The log of the run on a GTX 1060 was read off screenshots, badly in places: most lines lost their two leading blanks,
"Trainable" was read as "Training". Token lines are compared where legible; docs/reproduce.md says how much of each that
is, and why. Only digests of the tokens are kept: the sentences are not
this project's to publish, and ids can be decoded.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from bert_tf.config import BertConfig

TOKENS, INPUT_IDS = "tokens", "input_ids"


@dataclasses.dataclass(frozen=True)
class TokenLine:
    """A log line that shows tokens of an example."""

    guid: str
    field: str  # TOKENS, without padding, or INPUT_IDS, with it
    shown: int  # tokens in the line, legible or not
    spans: tuple[tuple[int, int, str], ...]  # adjacent legible tokens: position of the first, count, `digest`

    @property
    def legible(self) -> int:
        return sum(count for _, count, _ in self.spans)


@dataclasses.dataclass(frozen=True)
class Variable:
    """A line of the variable list."""

    shape: tuple[int, ...] | None  # None if illegible
    from_checkpoint: bool = True  # marked *INIT_FROM_CKPT*


@dataclasses.dataclass(frozen=True)
class Published:
    """A published run."""

    name: str  # in the command line
    title: str
    task: str
    command: str  # as published
    settings: Mapping[str, Any]  # of the command, without the task and file paths
    config: BertConfig
    vocabulary: str  # `Vocabulary.fingerprint` of its word pieces
    examples: Mapping[str, int]  # by split
    steps: int
    accuracy: float  # on dev, to as many digits as published
    right: int  # dev examples predicted correctly
    accuracy_range: tuple[float, float]  # published by the model's authors over several runs
    loss: float  # mean over dev, to as many digits as published
    examples_per_second: tuple[float, float]  # of training: as logged; slowest after the first line
    steps_per_second: tuple[float, float]  # likewise
    gpu: str  # model
    gpu_total_mb: int  # most memory of a GPU of this model, MiB
    gpu_limit_mb: int  # memory that TensorFlow took of it, MiB
    token_lines: tuple[TokenLine, ...]  # of dev examples
    labels: Mapping[str, str]  # label lines by the guid of an example
    features: Mapping[str, tuple[int | None, ...]]  # shapes by name; None is an open size
    variables: Mapping[str, Variable]  # by name; the others are illegible


def digest(tokens: Sequence[object]) -> str:
    """Returns the sha256 of tokens joined by blanks."""
    return hashlib.sha256(" ".join(map(str, tokens)).encode()).hexdigest()


_D, _I = 768, 3072

# The variables of a layer in the order of the log; lists of the log break off and begin in the middle of a layer.
_LAYER: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("attention/self/query/kernel", (_D, _D)),
    ("attention/self/query/bias", (_D,)),
    ("attention/self/key/kernel", (_D, _D)),
    ("attention/self/key/bias", (_D,)),
    ("attention/self/value/kernel", (_D, _D)),
    ("attention/self/value/bias", (_D,)),
    ("attention/output/dense/kernel", (_D, _D)),
    ("attention/output/dense/bias", (_D,)),
    ("attention/output/LayerNorm/beta", (_D,)),
    ("attention/output/LayerNorm/gamma", (_D,)),
    ("intermediate/dense/kernel", (_D, _I)),
    ("intermediate/dense/bias", (_I,)),
    ("output/dense/kernel", (_I, _D)),
    ("output/dense/bias", (_D,)),
    ("output/LayerNorm/beta", (_D,)),
    ("output/LayerNorm/gamma", (_D,)),
)
_LEGIBLE_OF_LAYER: Mapping[int, tuple[int, ...]] = {
    0: (*range(3), *range(5, 12)),
    4: tuple(range(13, 16)),
    5: tuple(range(16)),
    6: tuple(range(15)),
    10: tuple(range(4, 16)),
    11: tuple(range(16)),
}
_VARIABLES = {
    "bert/embeddings/token_type_embeddings": Variable((2, _D)),
    "bert/embeddings/position_embeddings": Variable((512, _D)),
    "bert/embeddings/word_embeddings": Variable(None),
    **{
        f"bert/encoder/layer_{layer}/{_LAYER[row][0]}": Variable(_LAYER[row][1])
        for layer, rows in _LEGIBLE_OF_LAYER.items()
        for row in rows
    },
    "bert/pooler/dense/kernel": Variable((_D, _D)),
    "bert/pooler/dense/bias": Variable((_D,)),
    "output_weights": Variable((2, _D), from_checkpoint=False),
    "output_bias": Variable((2,), from_checkpoint=False),
}

GTX1060 = Published(
    name="gtx1060",
    title="BERT-Base uncased on MRPC, trained on a GTX 1060 with 6 GB in November 2020",
    task="MRPC",
    command=(
        "python3 run_classifier.py --task_name=MRPC --do_train=true --do_eval=true --data_dir=$GLUE_DIR/MRPC"
        " --vocab_file=$BERT_BASE_DIR/vocab.txt --bert_config_file=$BERT_BASE_DIR/bert_config.json"
        " --init_checkpoint=$BERT_BASE_DIR/bert_model.ckpt --max_seq_length=64 --train_batch_size=12 --learning_rate=2e-5"
        " --num_train_epochs=3.0 --output_dir=./out/"
    ),
    settings={
        "do_train": True,
        "do_eval": True,
        "max_seq_length": 64,
        "train_batch_size": 12,
        "learning_rate": 2e-5,
        "num_train_epochs": 3.0,
        "adam_bias_correction": False,  # the recipe for the default checkpoint would add it
        "strategy": "one_device",
        "precision": "float32",  # such a GPU has no TF32
    },
    config=BertConfig(vocab_size=30522),
    vocabulary="0f052197aac305fe42f378b5c61554b7bacb34b8be4af83fec2cfdcdffbc9973",
    examples={"train": 3668, "dev": 408},
    steps=917,
    accuracy=0.8504902,
    right=347,
    accuracy_range=(0.84, 0.88),  # README of google-research/bert
    loss=0.5313762,
    examples_per_second=(37.9, 37.7443),
    steps_per_second=(3.16, 3.14558),
    gpu="GTX 1060",
    gpu_total_mb=6144,
    gpu_limit_mb=5175,
    token_lines=(
        TokenLine(
            "dev-1",
            INPUT_IDS,
            24,
            ((0, 24, "6e5ab9a284ede007d55c9ac27a71c586a2a41f920faffd123dcdba1cc0133ee3"),),
        ),
        TokenLine(
            "dev-2",
            TOKENS,
            52,
            (
                (0, 2, "3fd71fe975ee1b41de9fc021409927ba88dde385d190dd6c278471df45c5c6b8"),
                (3, 2, "6560e510898399c685467c9735df53c96ba3bb1fac7ecaab044c457572b2aff1"),
                (7, 27, "3ab646d131e5b54f61a178ca2b6186da5fad24406a974c62c34fc09a0bea35ea"),
                (36, 16, "955ce931984d549d71e88c16836b5fa43fa7e1591d1d7d3c8863e1b53a729b87"),
            ),
        ),
        TokenLine(
            "dev-3",
            TOKENS,
            64,
            (
                (0, 41, "7dd339b2071f314efccea02f9d0c9ccbaa50c52f3b775d64ff49bb9a3a2ce538"),
                (43, 1, "380918b946a526640a40df5dced6516794f3d97bbd9e6bb553d037c4439f31c3"),
                (45, 5, "5c80b6c4bc713766527f8635eccf76adb7681a287b563c910450ed4aac0c6528"),
                (51, 13, "72e5da4ffab419787e9422008b1728187e8bd316f685c58d941cffe9056a949d"),
            ),
        ),
        TokenLine(
            "dev-4",
            INPUT_IDS,
            60,
            ((0, 60, "09fea5b60b18b22ebafcf3a5d042a13fb2a3c4d85daf8833c74ecb41c6586e46"),),
        ),
        TokenLine(
            "dev-5",
            INPUT_IDS,
            24,
            ((0, 24, "989165a29b1d1c34509cb033a08f7e6fb561cec9dca7cde167af15abc8739d7f"),),
        ),
    ),
    labels={"dev-4": "1 (id = 1)"},
    features={"input_ids": (None, 64), "label_ids": (None,), "segment_ids": (None, 64)},
    variables=_VARIABLES,
)

RUNS = {run.name: run for run in (GTX1060,)}

_NUMBER = r"\d+(\.\d+)?(e[+-]?\d+)?"
_METRICS = rf"\w+ = {_NUMBER}(, \w+ = {_NUMBER})*"
_NEVER = r"(?!)"
_RUNTIME = "written by TensorFlow 1.14's runtime on a GPU, not to the log; this release words it differently"
_OLD = "each release of TensorFlow deprecates other functions, and warns once a process"
_IMPORT = "a warning of TensorFlow 1.14 about numpy and old names, which this package does not use"

# Forms of the log's lines, which are lines without their numbers and names. By shortened line: a pattern of the original line,
# which must match the whole, and the reason if a log here may lack it.
FORMS: Mapping[str, tuple[str, str]] = {
    "Writing example 0 of 408": (r"Writing example \d+ of \d+", ""),
    "*** Example ***": (r"\*\*\* Example \*\*\*", ""),
    "guid: dev-4": (r"guid: dev-\d+", ""),
    "tokens: [CLS] ... [SEP]": (r"tokens: \[CLS\] .* \[SEP\]", ""),
    "input_ids: 101 ...": (r"input_ids: \d+( \d+)+", ""),
    "label: 1 (id = 1)": (r"label: \S+ \(id = \d+\)", ""),
    "Calling model_fn.": (r"Calling model_fn\.", ""),
    "*** Features ***": (r"\*\*\* Features \*\*\*", ""),
    "name = input_ids, shape = (?, 64)": (r"name = \w+, shape = \(\?, \d+\)", ""),
    "name = label_ids, shape = (?,)": (r"name = \w+, shape = \(\?,\)", ""),
    "**** Trainable Variables ****": (r"\*{4} Train(able|ing) Variables \*{4}", ""),
    "name = ...:0, shape = (768,), *INIT_FROM_CKPT*": (r"name = \S+:0, shape = \([\d, ]+\), \*INIT_FROM_CKPT\*", ""),
    "name = ...:0, shape = (2, 768)": (r"name = \S+:0, shape = \([\d, ]+\)", ""),
    "Done calling model_fn.": (r"Done calling model_fn\.", ""),
    "Create CheckpointSaverHook.": (r"Create CheckpointSaverHook\.", ""),
    "Graph was finalized.": (r"Graph was finalized\.", ""),
    "Restoring parameters from ...model.ckpt-917": (r"Restoring parameters from .*model\.ckpt-\d+", ""),
    "Running local_init_op.": (r"Running local_init_op\.", ""),
    "Done running local_init_op.": (r"Done running local_init_op\.", ""),
    "global_step/sec: 3.16163": (rf"global_step/sec: {_NUMBER}", ""),
    "examples/sec: 37.9395": (rf"examples/sec: {_NUMBER}", ""),
    "Saving checkpoints for 917 into ...model.ckpt.": (r"Saving checkpoints for \d+ into .*model\.ckpt\.", ""),
    "Starting evaluation at ...": (r"Starting evaluation at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ?", ""),
    "Finished evaluation at ...": (r"Finished evaluation at \d{4}-\d\d-\d\d-\d\d:\d\d:\d\d", ""),
    "Saving dict for global step 917: ...": (rf"Saving dict for global step \d+: {_METRICS}", ""),
    "Saving 'checkpoint_path' summary for ...": (r"Saving 'checkpoint_path' summary for global step \d+: .*\.ckpt-\d+", ""),
    "evaluation_loop marked as finished": (r"evaluation_loop marked as finished", ""),
    "***** Eval results *****": (r"\*{5} Eval results \*{5}", ""),
    "eval_accuracy = 0.8504902": (rf"eval_accuracy = {_NUMBER}", ""),
    "eval_loss = 0.5313762": (rf"eval_loss = {_NUMBER}", ""),
    "global_step = 917": (r"global_step = \d+", ""),
    "loss = 0.5313762": (rf"loss = {_NUMBER}", ""),
    "From ...: ... is deprecated and will be removed": (r"From .*:\d+: .* is deprecated and will be removed in .*", _OLD),
    "Instructions for updating:": (r"Instructions for updating:", _OLD),
    "From ...: The name tf... is deprecated": (_NEVER, _IMPORT),
    "dtypes.py:516: FutureWarning: ...": (_NEVER, _IMPORT),
    "Your CPU supports instructions that ...": (_NEVER, _RUNTIME),
    "CPU Frequency: 3600000000 Hz": (_NEVER, _RUNTIME),
    "Successfully opened dynamic library ...": (_NEVER, _RUNTIME),
    "XLA service ... executing computations": (_NEVER, _RUNTIME),
    "StreamExecutor device (0): ...": (_NEVER, _RUNTIME),
    "successful NUMA node read from SysFS ...": (_NEVER, _RUNTIME),
    "Found device 0 with properties: ...": (_NEVER, _RUNTIME),
    "Adding visible gpu devices: 0": (_NEVER, _RUNTIME),
    "Device interconnect StreamExecutor ...": (_NEVER, _RUNTIME),
    "Created TensorFlow device (... 5175 MB memory)": (_NEVER, _RUNTIME),
}

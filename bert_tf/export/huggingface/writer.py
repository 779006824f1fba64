"""Writes a folder in Hugging Face's layout: weights, configuration, tokenizer, modules of sentence-transformers, model card."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bert_tf import run_layout, versions
from bert_tf.batch.trained import Trained
from bert_tf.checkpoints import huggingface_export
from bert_tf.checkpoints.huggingface_export import Architecture
from bert_tf.conversion.weights import weights
from bert_tf.export import tokenizer_json
from bert_tf.export.exported import Exported, rule, write_kept_files
from bert_tf.export.huggingface import long_texts
from bert_tf.head_spec import MEAN, PRETRAINING, VECTORS
from bert_tf.io import documents
from bert_tf.tokenization.vocabulary import CLS, MASK, PAD, SEP, UNK

_CARD = "README.md"
_POOLER = "bert/pooler/"
_ELSEWHERE = ("task_name", "kind", "labels", "bert_config")  # of the record, the rest changed what was learned
_DIGESTS = {
    "train_examples_sha256": "training examples",
    "phase2_examples_sha256": "training examples of the second phase",
    "checkpoint_sha256": "checkpoint that training began with",
    "vocabulary_sha256": "vocabulary",
}
_TOKENS = {"unk_token": UNK, "sep_token": SEP, "pad_token": PAD, "cls_token": CLS, "mask_token": MASK}
_POOLINGS = {"mean": "pooling_mode_mean_tokens", "cls": "pooling_mode_cls_token", "max": "pooling_mode_max_tokens"}


def write(exported: Exported, folder: Path) -> None:
    """Writes a model deterministically into an empty folder.

    Raises CheckpointError for unusable weights, FlagError if transformers has no class for the head.
    """
    trained = exported.trained
    next_sentence = dict(trained.head.options).get("next_sentence", True)
    architecture = huggingface_export.class_of(trained.head.kind, next_sentence=next_sentence)
    read = {name: array for name, array in weights(trained).items() if architecture.has_pooler or not name.startswith(_POOLER)}
    huggingface_export.write(
        folder,
        read,
        trained.config,
        architecture=architecture,
        labels=exported.family.labels,
        facts={
            "pad_token_id": trained.vocabulary.pad_id,
            "classifier_dropout": None,
            "dtype": "float32",
            **rule(exported.family),
        },
    )
    contents = {
        **_tokenizer_files(trained),
        **(_module_files(trained) if architecture.makes_vectors else {}),
    }
    for name, content in contents.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(documents.to_json(content, indent=2) + "\n", encoding="utf-8")
    write_kept_files(exported, folder)
    (folder / _CARD).write_text(card(exported, architecture), encoding="utf-8")


def _tokenizer_files(trained: Trained) -> dict[str, dict[str, Any]]:
    return {
        "tokenizer_config.json": {
            **_TOKENS,
            "tokenizer_class": "PreTrainedTokenizerFast",  # reads tokenizer.json; BertTokenizer makes rules of its own
            "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],  # that class has no segments else
            "split_special_tokens": tokenizer_json.splits_special(trained),
            "do_lower_case": trained.lower_case,
            "model_max_length": trained.max_seq_length,
            "strip_accents": None,
            "tokenize_chinese_chars": True,
        },
        "special_tokens_map.json": dict(_TOKENS),
    }


def _module_files(trained: Trained) -> dict[str, Any]:
    """Mean pooling and, for similarity models, scaling to length 1."""
    options = dict(trained.head.options)
    pooling = options.get("pooling") or MEAN if trained.head.kind == VECTORS else MEAN
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    if trained.head.kind != VECTORS:
        modules.append(("2_Normalize", "Normalize"))
    return {
        "modules.json": [_module(number, *row) for number, row in enumerate(modules)],
        "1_Pooling/config.json": {
            "word_embedding_dimension": trained.config.hidden_size,
            **{name: way == pooling for way, name in _POOLINGS.items()},
        },
        "sentence_bert_config.json": {"max_seq_length": trained.max_seq_length, "do_lower_case": False},
        "config_sentence_transformers.json": {"prompts": {}, "default_prompt_name": None, "similarity_fn_name": "cosine"},
    }


def _module(number: int, path: str, name: str) -> dict[str, Any]:
    return {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{name}"}


def card(exported: Exported, architecture: Architecture) -> str:
    labels = ", ".join(" ".join(label.split()) for label in exported.family.labels)  # a line break would end the line
    library = "sentence-transformers" if architecture.makes_vectors else "transformers"
    learned = "pre-trained" if exported.family.kind == PRETRAINING else "fine-tuned"
    lines = [
        *("---", f"library_name: {library}", f"pipeline_tag: {architecture.pipeline}", "tags:", "- bert", "---", ""),
        *(f"# BERT for {exported.task.name}", ""),
        f"`{architecture.name}`, {learned} with bert_tf {versions.__version__}; step {exported.step}.",
        f"Kind: {exported.family.kind}." + (f" Labels: {labels}." if labels else ""),
        *_section("Metrics", _metrics(exported)),
        *_section("Long texts", long_texts.lines(exported)),
        *_section("Data", _digests(exported)),
        *_section("Training", _settings(exported)),
    ]
    return "\n".join(lines) + "\n"


def _section(title: str, lines: Iterator[str]) -> list[str]:
    found = list(lines)
    return ["", f"## {title}", "", *found] if found else []


def _metrics(exported: Exported) -> Iterator[str]:
    """Table rows of the run's results at this step."""
    results = _results(exported)
    if results.get("global_step") != exported.step:
        return
    of_splits = results["splits"].items()
    rows = [_row(split, name, found) for split, found in of_splits for name in exported.family.metrics]
    if any(rows):
        yield from ("| split | metric | value | 95 % interval | examples |", "|---|---|---|---|---|", *filter(None, rows))


def _row(split: str, name: str, found: Any) -> str | None:
    """None if the metric is missing, undefined, or written by another program."""
    try:
        ends = found.get("intervals_95", {}).get(name)
        within = "" if ends is None else f"{ends[0]:.4f} to {ends[1]:.4f}"
        return f"| {split} | {name} | {found[name]:.4f} | {within} | {found.get('examples', '')} |"
    except (AttributeError, LookupError, TypeError, ValueError):
        return None


def _results(exported: Exported) -> Mapping[str, Any]:
    """Content of the run's `eval_results.json`; empty if it is missing or written by another program."""
    try:
        found = documents.json_value(documents.read_text(exported.trained.folder / run_layout.RESULTS))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and isinstance(found.get("splits"), dict) else {}


def _digests(exported: Exported) -> Iterator[str]:
    record = {**exported.trained.record, "vocabulary_sha256": exported.trained.vocabulary.fingerprint}
    for name, words in _DIGESTS.items():
        if record.get(name):
            yield f"- {words}: sha256 `{record[name]}`"


def _settings(exported: Exported) -> Iterator[str]:
    for name, value in exported.trained.record.items():
        if name not in _ELSEWHERE and not name.endswith("_sha256") and value not in (None, []):
            shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            yield f"- {name}: {' '.join(shown.split())}"

"""What a client needs beside a graph: the vocabulary, how texts become ids, and what the outputs mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bert_tf import documents
from bert_tf.export import tokenizer_json
from bert_tf.export.exported import Exported

VOCABULARY = "vocab.txt"


def metadata(exported: Exported) -> dict[str, str]:
    """Returns what a model's own file says of it."""
    trained = exported.trained
    facts: dict[str, Any] = {
        "task": exported.task.name,
        **exported.family.record(),
        "max_seq_length": trained.max_seq_length,
        "do_lower_case": trained.lower_case,
    }
    return {name: value if isinstance(value, str) else documents.to_json(value) for name, value in facts.items()}


def write(exported: Exported, folder: Path) -> None:
    """Writes the vocabulary, by itself and in the rules of the tokenizer.

    Args:
      exported: the model.
      folder: to write to.
    """
    tokens = exported.trained.vocabulary.tokens
    (folder / VOCABULARY).write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")
    rules = documents.to_json(tokenizer_json.content(exported.trained), indent=2)
    (folder / tokenizer_json.FILE).write_text(rules + "\n", encoding="utf-8")

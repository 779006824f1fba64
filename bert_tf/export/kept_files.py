"""Files that a client needs besides a graph: vocabulary, tokenization and the meaning of the outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bert_tf import documents
from bert_tf.export import tokenizer_json
from bert_tf.export.exported import Exported

VOCABULARY = "vocab.txt"


def metadata(exported: Exported) -> dict[str, str]:
    trained = exported.trained
    facts: dict[str, Any] = {
        "task": exported.task.name,
        **exported.family.record(),
        "max_seq_length": trained.max_seq_length,
        "do_lower_case": trained.lower_case,
    }
    return {name: value if isinstance(value, str) else documents.to_json(value) for name, value in facts.items()}


def write(exported: Exported, folder: Path) -> None:
    tokens = exported.trained.vocabulary.tokens
    (folder / VOCABULARY).write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")
    rules = documents.to_json(tokenizer_json.content(exported.trained), indent=2)
    (folder / tokenizer_json.FILE).write_text(rules + "\n", encoding="utf-8")

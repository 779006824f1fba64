"""Names: of the matrices that have a low-rank update, of its variables and of its files. Does not import TensorFlow."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from bert_tf.errors import FlagError, unknown_name

ADAPTER = "adapter.json"  # beside a checkpoint of updates: whose they are
PEFT_CONFIG, PEFT_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
PEFT_TORCH = "adapter_model.bin"  # weights that PEFT wrote before 0.7
DOWN, UP = "lora_a", "lora_b"  # variables in the scope of a matrix [D, E]: [D, rank] and [rank, E]

ALL = "all"
TARGETS: Mapping[str, str] = {  # scope of a matrix within its layer, by the flag's word
    "query": "attention/self/query",
    "key": "attention/self/key",
    "value": "attention/self/value",
    "attention_output": "attention/output/dense",
    "intermediate": "intermediate/dense",
    "output": "output/dense",
}
HEAD, NORMS, POOLER = "head", "norms", "pooler"


def parse_targets(text: str) -> tuple[str, ...]:
    """Scopes of the matrices of --lora_targets, within a layer; FlagError for an unknown one."""
    chosen = _listed("lora_targets", "matrix", text, (ALL, *TARGETS))
    if not chosen:
        raise FlagError(f"--lora_targets={text}: names no matrix")
    return tuple(scope for name, scope in TARGETS.items() if name in chosen or ALL in chosen)


def parse_parts(text: str) -> tuple[str, ...]:
    """Parts of --lora_train; FlagError for an unknown one."""
    return _listed("lora_train", "part", text, (HEAD, NORMS, POOLER))


def _listed(flag: str, kind: str, text: str, known: Collection[str]) -> tuple[str, ...]:
    chosen = tuple(name.strip().replace(" ", "_") for name in text.split(",") if name.strip())
    for name in chosen:
        if name not in known:
            raise FlagError(f"--{flag}: {unknown_name(kind, name, known)}")
    return chosen

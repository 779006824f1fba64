"""Small files tokenizer.json, as transformers writes them, made by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
_BLANK = "\u0120"  # what byte-level BPE writes for it
_NO_MERGES: dict[str, Any] = {"dropout": None, "unk_token": None, "continuing_subword_prefix": "", "end_of_word_suffix": ""}
_BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}


def byte_level(
    merges: Sequence[str] = ("w 1", "w 2", f"{_BLANK} w"), special: Sequence[str] = SPECIAL, *, around: bool = True
) -> str:
    """Returns a byte-level BPE of 23 pieces: special ones, the characters of words as w10, merges, and unused ones."""
    pieces = [*special, "w", *"0123456789", _BLANK, *(merge.replace(" ", "") for merge in merges)]
    pieces += [f"unused{number}" for number in range(23 - len(pieces))]
    model = {"type": "BPE", **_NO_MERGES, "vocab": {piece: n for n, piece in enumerate(pieces)}, "merges": list(merges)}
    ends = {name: [token, pieces.index(token)] for name, token in (("sep", "</s>"), ("cls", "<s>")) if token in pieces}
    processor = {"type": "RobertaProcessing", **ends, "trim_offsets": True, "add_prefix_space": False}
    return json.dumps(_whole(pieces, special, model, _BYTE_LEVEL, processor if around and len(ends) == 2 else None))


def _whole(
    pieces: Sequence[str], special: Sequence[str], model: dict[str, Any], splitting: dict[str, Any], processor: object
) -> dict[str, Any]:
    switches = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": pieces.index(token), "content": token, **switches} for token in special],
        "normalizer": None,
        "pre_tokenizer": splitting,
        "post_processor": processor,
        "decoder": None,
        "model": model,
    }

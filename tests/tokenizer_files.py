"""A small tokenizer.json, as transformers writes them, made by hand."""

import json
from collections.abc import Sequence

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
SIZE = 23


def byte_level(special: Sequence[str] = SPECIAL, *, around: bool = True) -> str:
    """Returns byte-level BPE: special tokens, "w", digits, a blank (as it is written there), both as one, and unused pieces."""
    pieces = [*special, "w", *"0123456789", "\u0120", "\u0120w"]
    pieces += [f"unused{number}" for number in range(SIZE - len(pieces))]
    ends = {name: [token, pieces.index(token)] for name, token in (("sep", "</s>"), ("cls", "<s>")) if token in pieces}
    processor = {"type": "RobertaProcessing", **ends, "trim_offsets": True, "add_prefix_space": False}
    switches = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    content = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": number, "content": token, **switches} for number, token in enumerate(special)],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "post_processor": processor if around and len(ends) == 2 else None,
        "decoder": None,
        "model": {"type": "BPE", "vocab": {piece: n for n, piece in enumerate(pieces)}, "merges": ["\u0120 w"]},
    }
    return json.dumps(content)

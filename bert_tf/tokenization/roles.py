"""Which tokens of a tokenizer.json pad texts, begin, end and mask them, and stand for the unknown.

The token that begins a text and the one that ends it are those that the file's post-processor puts there. The others are named
by the files beside it, else have the names of BERT's or RoBERTa's.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bert_tf.errors import VocabularyError
from bert_tf.tokenization import text_rules

SPECIAL_MAP = "special_tokens_map.json"

# As in Hugging Face's files, with the names of the token where no file names it.
PAD, UNK, MASK = "pad_token", "unk_token", "mask_token"
CLS, SEP = "cls_token", "sep_token"
SPECIAL = PAD, UNK, CLS, SEP, MASK  # as `Vocabulary.special`
_INPUTS, _SEGMENTS = "model_input_names", "token_type_ids"
AS_THEY_ARE = "words_as_they_are"  # a key of ours
_OF_VERSION_5 = "backend"  # a key of tokenizer_config.json
_WITH_SEGMENTS = ("BertTokenizer", "DebertaTokenizer", "DebertaV2Tokenizer")
_ANY = "<pad> a 1"  # a text that has pieces in any kind of tokenizer
_USUAL: Mapping[str, tuple[str, ...]] = {
    PAD: ("<pad>", "[PAD]"),
    UNK: ("<unk>", "[UNK]"),
    MASK: ("<mask>", "[MASK]"),
}


class Template(NamedTuple):
    """CLS A SEP of a text; CLS A SEP B SEP of two, or with two SEP between them."""

    cls: int
    sep: int
    separators: int
    second_segment: int  # of B SEP; that of all others is 0


def named_in(folder: Path) -> dict[str, str]:
    """Returns the tokens that a folder's files name, by role; VocabularyError for a name that is no text."""
    token_by_role: dict[str, str] = {}
    for path in (folder / text_rules.CONFIG, folder / SPECIAL_MAP):
        values = text_rules.content(path)
        for role in SPECIAL:
            token = values.get(role)
            token = token.get("content") if isinstance(token, dict) else token
            if token is not None and not isinstance(token, str):
                raise VocabularyError(f"{role} is {token!r:.80}, expected a token", path)
            if token:
                token_by_role.setdefault(role, token)
    return token_by_role


def passes_segments(folder: Path) -> bool:
    """Whether transformers gives the model the segments of the post-processor; since version 5 only some classes do."""
    values = text_rules.content(folder / text_rules.CONFIG)
    names = values.get(_INPUTS)
    if isinstance(names, list):
        return _SEGMENTS in names
    return _OF_VERSION_5 not in values or values.get("tokenizer_class") in _WITH_SEGMENTS


def without_segments() -> dict[str, list[str]]:
    """Returns the entry of a tokenizer_config.json that `passes_segments` reads."""
    return {_INPUTS: ["input_ids", "attention_mask"]}


def reads_words_as_they_are(folder: Path) -> bool:
    """Whether a model from elsewhere that tags words has learned them without a blank before each, unless the file adds it."""
    return text_rules.content(folder / text_rules.CONFIG).get(AS_THEY_ARE) is True


def token_of(role: str, vocabulary: Container[str], named: Mapping[str, str], *, own: str | None) -> str:
    """Returns the token of a role: as named, as `own` of the tokenizer's model, else as usual; empty if there is none."""
    candidates = (named.get(role), own, *_USUAL[role])
    return next((token for token in candidates if token and token in vocabulary), "")


def template(library: Any, path: object) -> Template:
    """Reads it from what a tokenizer makes of one text and of two; VocabularyError for an unknown one."""
    counts = tuple(library.num_special_tokens_to_add(is_pair) for is_pair in (False, True))
    of_one, of_two = (library.encode(*texts) for texts in ((_ANY,), (_ANY, _ANY)))
    single, pair = _shape(of_one), _shape(of_two)
    cls, sep = single[0], single[-1]
    for separators in (1, 2):
        between = [sep] * separators
        if counts == (2, 2 + separators) and (single, pair) == ([cls, "A", sep], [cls, "A", *between, "B", sep]):
            return Template(int(cls), int(sep), separators, _second_segment(of_one, of_two, path))
    counted = "%d special tokens around a text and %d around a pair" % counts
    known = "CLS A SEP, and CLS A SEP B SEP or CLS A SEP SEP B SEP"
    raise VocabularyError(f"puts {counted}; only {known} are known, as encoders have them", path)


def _second_segment(single: Any, pair: Any, path: object) -> int:
    second = pair.type_ids[pair.sequence_ids.index(1) :]
    first = pair.type_ids[: -len(second)]
    if any(single.type_ids) or any(first) or set(second) not in ({0}, {1}):
        segments = sorted({*single.type_ids, *pair.type_ids})
        raise VocabularyError(
            f"its post-processor gives the segments {segments}; known are 0, and 0 or 1 of a second text", path
        )
    return int(second[0])


def _shape(row: Any) -> list[Any]:
    """Ids of the special tokens, "A" for the first text, "B" for the second."""
    shape: list[Any] = []
    for number, sequence in zip(row.ids, row.sequence_ids):
        part = number if sequence is None else "AB"[sequence]
        if sequence is None or part not in shape:
            shape.append(part)
    return shape or [0]

"""`tokenizer.json`: the text-to-ids pipeline for the tokenizers library.

Its own BertNormalizer and BertPreTokenizer use older Unicode tables, delete private-use characters, and lowercase a
final capital sigma like any other. So each rule is written as the list of characters to which `characters` applies
it.
"""

from __future__ import annotations

import functools
import itertools
import sys
import unicodedata
from collections.abc import Callable
from typing import Any

from bert_tf.batch.trained import Trained
from bert_tf.extensions.export.tokenizer_tables import CASED, IGNORED, sigma_sees
from bert_tf.head_spec import PRETRAINING
from bert_tf.tokenization.characters import CHUNK, IDEOGRAPHS, MAX_WORD_CHARACTERS, Rules, is_deleted, is_punctuation
from bert_tf.tokenization.text_rules import Added
from bert_tf.tokenization.vocabulary import CLS, SEP, SPECIAL_TOKENS, UNK

FILE = "tokenizer.json"

_BLANKS = CHUNK.pattern.replace("^", "", 1)


def splits_special(trained: Trained) -> bool:
    """Whether "[SEP]" in a text becomes three words, as in training; "[MASK]" is one token in fill-mask texts."""
    return trained.head.kind != PRETRAINING


def content(trained: Trained) -> dict[str, Any]:
    ids = {token: number for number, token in enumerate(trained.vocabulary.pieces)}
    around = {token: {"id": token, "ids": [ids[token]], "tokens": [token]} for token in (CLS, SEP)}
    rules = trained.vocabulary.text_rules.rules(lower_case=trained.lower_case)
    special = () if splits_special(trained) else sorted(SPECIAL_TOKENS, key=ids.__getitem__)
    added = [*(Added(token, ids[token]) for token in special), *trained.vocabulary.text_rules.added]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": one.id, **one.entry()} for one in sorted(added, key=lambda one: one.id)],
        "normalizer": {"type": "Sequence", "normalizers": _normalizers(rules)},
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                _split(_BLANKS, "Removed"),
                _split(_class(is_punctuation), "Isolated"),
                *([_split(IDEOGRAPHS.pattern, "Isolated")] if rules.split_ideographs else []),
            ],
        },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [_special(CLS, 0), _text("A", 0), _special(SEP, 0)],
            "pair": [_special(CLS, 0), _text("A", 0), _special(SEP, 0), _text("B", 1), _special(SEP, 1)],
            "special_tokens": around,
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": UNK,
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": MAX_WORD_CHARACTERS,
            "vocab": ids,
        },
    }


def _normalizers(rules: Rules) -> list[dict[str, Any]]:
    lowered = [_replace(_final_sigma(), "ς"), {"type": "Lowercase"}] if rules.lower_case else []
    marks = _class(lambda c: unicodedata.category(c) == "Mn")
    stripped = [{"type": "NFD"}, _replace(f"{marks}+", "")] if rules.strip_accents else []
    return [_replace(_class(is_deleted) + "+", ""), *lowered, *stripped]


def _final_sigma() -> str:
    """Pattern of a capital sigma after a cased letter and not before one; see `sigma_sees`."""
    cased = _class(lambda c: sigma_sees(c) == CASED)
    ignored = _class(lambda c: sigma_sees(c) == IGNORED)
    return f"(?<={cased}{ignored}*)Σ(?!{ignored}*{cased})"


def _class(belongs: Callable[[str], bool]) -> str:
    """A regular expression class of literal characters, which all engines read alike."""
    places = (ord(c) for c in _characters() if belongs(c))
    runs = (list(run) for _, run in itertools.groupby(enumerate(places), lambda pair: pair[1] - pair[0]))
    ends = ((run[0][1], run[-1][1]) for run in runs)
    return "[" + "".join(_literal(first) + ("" if first == last else f"-{_literal(last)}") for first, last in ends) + "]"


@functools.cache
def _characters() -> str:
    """Assigned Unicode characters without whitespace and ideographs, for which `wordpiece` has patterns."""
    every = (chr(point) for point in range(sys.maxunicode + 1))
    known = "".join(c for c in every if unicodedata.category(c) not in ("Cn", "Co", "Cs"))
    return IDEOGRAPHS.sub("", "".join(CHUNK.findall(known)))


def _literal(point: int) -> str:
    return f"\\{chr(point)}" if chr(point) in r"\[]^-" else chr(point)


def _replace(pattern: str, by: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": by}


def _split(pattern: str, behavior: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": False}


def _special(token: str, segment: int) -> dict[str, Any]:
    return {"SpecialToken": {"id": token, "type_id": segment}}


def _text(name: str, segment: int) -> dict[str, Any]:
    return {"Sequence": {"id": name, "type_id": segment}}

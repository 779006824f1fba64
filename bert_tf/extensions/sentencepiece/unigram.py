"""The tokenizer.json of a SentencePiece model, as each family of encoders uses it.

The steps before the model, the ids of special tokens and the template are not in the model's file. They are those of the
converters of transformers 4 (convert_slow_tokenizer.py), with which these encoders are published.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Callable, NamedTuple

from bert_tf.errors import VocabularyError
from bert_tf.extensions.sentencepiece import model_file
from bert_tf.extensions.sentencepiece.model_file import CONTROL, USER_DEFINED, SentencePieceModel
from bert_tf.io import documents
from bert_tf.tokenization import roles, text_rules
from bert_tf.tokenization.vocabulary import BLANK_OF_SENTENCEPIECE

_CONFIG = "config.json"  # of the model
_SEVERAL_BLANKS = {"Regex": " {2,}"}

Json = dict[str, Any]
Pieces = list[tuple[str, float]]


class _Family(NamedTuple):
    """How a family of encoders uses a model."""

    pieces: Callable[[SentencePieceModel], Pieces]
    steps: Callable[[Mapping[str, bool], list[Json]], list[Json]]  # of the normalizer, around the model's own
    special: Mapping[str, str]  # tokens by role
    separators: int = 1
    unk_id: int | None = None  # unless it is the model's
    mask: Mapping[str, bool] = {}  # its switches
    defaults: Mapping[str, bool] = {}  # of the switches in tokenizer_config.json


def content(path: Path) -> str:
    """Returns the text of a tokenizer.json; VocabularyError for a damaged file or one of an unknown family."""
    model, config = model_file.read_model(path), text_rules.content(path.parent / text_rules.CONFIG)
    family = _family(path, config)
    switches = {name: _switch(name, config.get(name, default), path) for name, default in family.defaults.items()}
    special = {**family.special, **roles.named_in(path.parent)}
    pieces = family.pieces(model)
    known = {text: number for number, (text, _) in enumerate(pieces)}
    if len(known) < len(pieces):
        raise VocabularyError("not a SentencePiece model: a piece is there twice", path)
    beside = {entry["content"]: entry for entry in text_rules.added_beside(path.parent)}
    tokens = _special_tokens(model, special, family)
    for token in dict.fromkeys((*beside, *tokens)):
        number = known.setdefault(token, len(known))
        entry = beside.get(token, {"id": number})
        if entry["id"] != number:
            mismatch = f"the added token {token!r:.80} has the id {entry['id']} there, but would get {number}"
            raise VocabularyError(f"{mismatch}; take the files from one folder", path)
        tokens[token] = {**tokens.get(token, _entry(token, special=False, normalized=True)), **entry}
    charsmap = [{"type": "Precompiled", "precompiled_charsmap": base64.b64encode(model.charsmap).decode()}]
    before = [{"type": "Punctuation", "behavior": "Isolated"}] if switches.get("split_by_punct") else []
    return documents.to_json(
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": sorted(tokens.values(), key=lambda entry: int(entry["id"])),
            "normalizer": {"type": "Sequence", "normalizers": family.steps(switches, charsmap if model.charsmap else [])},
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*before, _METASPACE]},
            "post_processor": _template(special, known, family.separators),
            "decoder": _METASPACE,
            "model": {
                "type": "Unigram",
                "unk_id": model.unk_id if family.unk_id is None else family.unk_id,
                "vocab": pieces,
                "byte_fallback": False,
            },
        }
    )


_METASPACE: Json = {"type": "Metaspace", "replacement": BLANK_OF_SENTENCEPIECE, "prepend_scheme": "always", "split": True}


def _replace(pattern: Json, by: str) -> Json:
    return {"type": "Replace", "pattern": pattern, "content": by}


def _strip(*, left: bool) -> Json:
    return {"type": "Strip", "strip_left": left, "strip_right": True}


def _deberta_steps(switches: Mapping[str, bool], charsmap: list[Json]) -> list[Json]:
    lowered = [{"type": "Lowercase"}] if switches["do_lower_case"] else []
    return [*lowered, _strip(left=True), *charsmap, _replace(_SEVERAL_BLANKS, " ")]


def _albert_steps(switches: Mapping[str, bool], charsmap: list[Json]) -> list[Json]:
    quotes = [_replace({"String": mark}, '"') for mark in ("``", "''")]
    accents = [] if switches["keep_accents"] else [{"type": "NFKD"}, {"type": "StripAccents"}]
    lowered = [{"type": "Lowercase"}] if switches["do_lower_case"] else []
    return [*quotes, *accents, *lowered, *charsmap, _replace(_SEVERAL_BLANKS, " ")]


def _roberta_steps(_: Mapping[str, bool], charsmap: list[Json]) -> list[Json]:
    return [*charsmap, _strip(left=False), _replace(_SEVERAL_BLANKS, BLANK_OF_SENTENCEPIECE)]


def _as_they_are(model: SentencePieceModel) -> Pieces:
    return [(piece.text, piece.score) for piece in model.pieces]


def _albert_pieces(model: SentencePieceModel) -> Pieces:
    """A digit and a comma are two pieces wherever they can be."""
    return [
        (text, score - 100 if len(text) > 1 and text[-1] == "," and text[-2].isdigit() else score)
        for text, score in _as_they_are(model)
    ]


def _xlm_roberta_pieces(model: SentencePieceModel) -> Pieces:
    return [*((token, 0.0) for token in ("<s>", "<pad>", "</s>", "<unk>")), *_as_they_are(model)[3:], ("<mask>", 0.0)]


def _camembert_pieces(model: SentencePieceModel) -> Pieces:
    first = [(token, 0.0) for token in ("<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>")]
    return [*first, ("<unk>NOTUSED", -100.0), *_as_they_are(model)[1:], ("<mask>", 0.0)]


_OF_BERT = {roles.PAD: "[PAD]", roles.UNK: "[UNK]", roles.CLS: "[CLS]", roles.SEP: "[SEP]", roles.MASK: "[MASK]"}
_OF_ROBERTA = {roles.PAD: "<pad>", roles.UNK: "<unk>", roles.CLS: "<s>", roles.SEP: "</s>", roles.MASK: "<mask>"}
_FAMILIES: Mapping[str, _Family] = {  # by the beginning of transformers' classes
    "DebertaV2": _Family(_as_they_are, _deberta_steps, _OF_BERT, defaults={"do_lower_case": False, "split_by_punct": False}),
    "Albert": _Family(
        _albert_pieces,
        _albert_steps,
        {**_OF_BERT, roles.PAD: "<pad>", roles.UNK: "<unk>"},
        mask={"lstrip": True},
        defaults={"do_lower_case": True, "keep_accents": False},
    ),
    "XLMRoberta": _Family(_xlm_roberta_pieces, _roberta_steps, _OF_ROBERTA, separators=2, unk_id=3, mask={"lstrip": True}),
    "Camembert": _Family(_camembert_pieces, _roberta_steps, _OF_ROBERTA, separators=2, unk_id=3, mask={"lstrip": True}),
}
_BY_MODEL_TYPE = {"deberta-v2": "DebertaV2", "albert": "Albert", "xlm-roberta": "XLMRoberta", "camembert": "Camembert"}
_BY_NAME = {
    "spm.model": "DebertaV2",
    "spiece.model": "Albert",
    "30k-clean.model": "Albert",  # as Google publishes it
    "sentencepiece.bpe.model": "XLMRoberta",
}


def _family(path: Path, config: Mapping[str, Any]) -> _Family:
    """By the class of the tokenizer, else by the model's type, else by the name of the file."""
    of_model = text_rules.content(path.parent / _CONFIG)
    class_name = config.get("tokenizer_class") or of_model.get("tokenizer_class")
    if isinstance(class_name, str) and class_name != "PreTrainedTokenizerFast":
        name = class_name.removesuffix("Fast").removesuffix("Tokenizer")
    else:
        name = _BY_MODEL_TYPE.get(str(of_model.get("model_type")), _BY_NAME.get(path.name, path.name))
    if name not in _FAMILIES:
        known = ", ".join(f"{family}Tokenizer" for family in _FAMILIES)
        raise VocabularyError(f"{name!r:.80} is no known kind of tokenizer ({known}); save its tokenizer.json", path)
    return _FAMILIES[name]


def _switch(name: str, value: Any, path: Path) -> bool:
    if not isinstance(value, bool):
        raise VocabularyError(f"{name} is {value!r:.80}, expected true or false", path.parent / text_rules.CONFIG)
    return value


def _special_tokens(model: SentencePieceModel, special: Mapping[str, str], family: _Family) -> dict[str, Json]:
    """Control and user-defined pieces, and the tokens with a role, by name, the mask last; ids are 0."""
    tokens = {
        piece.text: _entry(piece.text, special=piece.type == CONTROL)
        for piece in model.pieces
        if piece.type in (CONTROL, USER_DEFINED)
    }
    for role in (roles.CLS, roles.SEP, roles.UNK, roles.PAD, roles.MASK):
        tokens[special[role]] = _entry(special[role], special=True, **(family.mask if role == roles.MASK else {}))
    return tokens


def _entry(token: str, *, special: bool, lstrip: bool = False, normalized: bool = False) -> Json:
    return {
        "id": 0,
        "content": token,
        "single_word": False,
        "lstrip": lstrip,
        "rstrip": False,
        "normalized": normalized,
        "special": special,
    }


def _template(special: Mapping[str, str], known: Mapping[str, int], separators: int) -> Json:
    cls, sep = special[roles.CLS], special[roles.SEP]
    segment = int(separators == 1)
    tokens = {token: {"id": token, "ids": [known[token]], "tokens": [token]} for token in (cls, sep)}
    first = [_special(cls, 0), _text("A", 0), _special(sep, 0)]
    between = [_special(sep, 0)] * (separators - 1)
    pair = [*first, *between, _text("B", segment), _special(sep, segment)]
    return {"type": "TemplateProcessing", "single": first, "pair": pair, "special_tokens": tokens}


def _special(token: str, segment: int) -> Json:
    return {"SpecialToken": {"id": token, "type_id": segment}}


def _text(name: str, segment: int) -> Json:
    return {"Sequence": {"id": name, "type_id": segment}}

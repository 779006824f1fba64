"""Files of the tokenizer, for transformers and for the library tokenizers."""

from __future__ import annotations

from typing import Any

from bert_tf.batch.trained import Trained
from bert_tf.tokenization.vocabulary import CLS, MASK, PAD, SEP, SPECIAL_TOKENS, UNK
from bert_tf.tokenization.wordpiece import MAX_WORD_CHARACTERS

_NAMES = {"unk_token": UNK, "sep_token": SEP, "pad_token": PAD, "cls_token": CLS, "mask_token": MASK}


def files(trained: Trained) -> dict[str, dict[str, Any]]:
    """Returns the contents of JSON files by name."""
    return {
        "tokenizer_config.json": {
            **_NAMES,
            "tokenizer_class": "BertTokenizer",
            "do_lower_case": trained.lower_case,
            "model_max_length": trained.max_seq_length,
            "strip_accents": None,
            "tokenize_chinese_chars": True,
        },
        "special_tokens_map.json": dict(_NAMES),
        "tokenizer.json": _whole(trained),
    }


def _whole(trained: Trained) -> dict[str, Any]:
    """Returns the pipeline from texts to ids that the library tokenizers reads."""
    tokens = trained.vocabulary.tokens
    ids = {token: number for number, token in enumerate(tokens)}
    around = {token: {"id": token, "ids": [ids[token]], "tokens": [token]} for token in (CLS, SEP)}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added(ids[token], token) for token in sorted(SPECIAL_TOKENS, key=ids.__getitem__)],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": trained.lower_case,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
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


def _added(number: int, token: str) -> dict[str, Any]:
    switches = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"id": number, "content": token, **switches}


def _special(token: str, segment: int) -> dict[str, Any]:
    return {"SpecialToken": {"id": token, "type_id": segment}}


def _text(name: str, segment: int) -> dict[str, Any]:
    return {"Sequence": {"id": name, "type_id": segment}}

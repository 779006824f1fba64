"""Tokenizer files for transformers, besides `tokenizer_json`."""

from __future__ import annotations

from typing import Any

from bert_tf.batch.trained import Trained
from bert_tf.export import tokenizer_json
from bert_tf.tokenization.vocabulary import CLS, MASK, PAD, SEP, UNK

_NAMES = {"unk_token": UNK, "sep_token": SEP, "pad_token": PAD, "cls_token": CLS, "mask_token": MASK}


def files(trained: Trained) -> dict[str, dict[str, Any]]:
    return {
        "tokenizer_config.json": {
            **_NAMES,
            "tokenizer_class": "PreTrainedTokenizerFast",  # reads tokenizer.json; BertTokenizer makes rules of its own
            "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],  # that class has no segments else
            "split_special_tokens": tokenizer_json.splits_special(trained),
            "do_lower_case": trained.lower_case,
            "model_max_length": trained.max_seq_length,
            "strip_accents": None,
            "tokenize_chinese_chars": True,
        },
        "special_tokens_map.json": dict(_NAMES),
    }

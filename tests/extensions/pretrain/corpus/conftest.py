"""A small corpus and its tokenizer."""

import pytest

from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

TOKENS = (*SPECIAL_TOKENS, "[unused0]", *"abcdefghij", *(f"##{letter}" for letter in "abcdefghij"), ".")


@pytest.fixture(scope="session")
def tokenizer():
    return WordPieceTokenizer(Vocabulary(TOKENS))

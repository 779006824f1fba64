"""Vocabularies made of a corpus."""

import random
from collections import Counter

import pytest

from bert_tf.errors import FlagError
from bert_tf.tokenization import counting, training
from bert_tf.tokenization.counting import Counts
from bert_tf.tokenization.vocabulary import UNK, Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

TEXTS = ["The lighthouse keepers kept the lights.", "Naïve keepers keep lighter houses; 東京 houses, too!"] * 3


def counted(texts=TEXTS, *, lower_case=True):
    return counting.count([counting.chunks(texts)], lower_case=lower_case)


def many_words():
    """Words with many pairs that are equally frequent."""
    drawn = random.Random(7)
    return Counts(Counter({"".join(drawn.choices("abcdefghijkl", k=drawn.randint(2, 9))): 3 for _ in range(2000)}), 1, True)


def pieces(text, **settings):
    tokenizer = WordPieceTokenizer(Vocabulary(training.train(counted(), **settings).tokens))
    return [piece.token for piece in tokenizer.tokenize(text)]


def test_words_are_joined_but_not_those_that_are_too_long_and_special_pieces_come_first():
    tokens = training.train(counted(), size=80, unused=2).tokens
    assert tokens[:8] == ("[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "!")
    expected = ["naive", "keepers", "keep", "東", "京", "houses", "!"]
    assert pieces("Naïve KEEPERS keep 東京 houses!", size=200) == expected
    made = training.train(counted(["ab" * 40] * 9), size=200)
    assert max(map(len, made.tokens)) == len("[MASK]")


def test_neither_threads_nor_the_order_or_the_size_of_the_corpus_matter(monkeypatch):
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "true")
    first = training.train(many_words(), size=400).tokens
    backwards = Counts(Counter(dict(reversed(list(many_words().words.items())))), 1, True)
    assert training.train(backwards, size=400).tokens == first
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    assert training.train(many_words(), size=400).tokens == first
    monkeypatch.setattr(training, "_MOST_FED", many_words().total // 3)
    assert training.train(many_words(), size=400).tokens == first


@pytest.mark.parametrize("text", [" ".join(TEXTS), "vest"])  # the corpus has a v within words alone
def test_no_character_of_the_corpus_is_unknown(text):
    assert UNK not in pieces(text, size=75)


def test_characters_below_the_limit_are_left_out_and_counted():
    made = training.train(counted([*TEXTS, "quiz"]), size=200)
    assert made.left_out == {"q": 1, "z": 1}
    assert not {"q", "##q", "quiz"} & set(made.tokens)


def test_marks_and_ideographs_are_not_in_the_middle_of_words_and_capitals_stay_where_letters_are_kept():
    tokens = set(training.train(counted(lower_case=False), size=200).tokens)
    assert {"東", "!", ";", "The", "Naïve"} < tokens
    assert not {"##東", "##!", "##;"} & tokens


def test_a_missing_package_is_named_with_its_command(monkeypatch):
    monkeypatch.setattr(training.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(FlagError, match="pip install 'tokenizers>=0.20"):
        training.refuse_missing()

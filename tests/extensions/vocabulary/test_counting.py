"""Words of a corpus, which are those that the tokenizer matches, and vocabularies that are made of them or extended."""

import random
from collections import Counter

import pytest

from bert_tf.errors import DataError, FlagError
from bert_tf.extensions.vocabulary import additions, counting, make
from bert_tf.extensions.vocabulary.counting import Counts
from bert_tf.tokenization.characters import CHUNK, Rules, words
from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS, UNK, Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer
from tests.tokenization import any_text

RULES = {lower_case: Rules.published(lower_case=lower_case) for lower_case in (True, False)}
PIECES = any_text.vocabulary(seed=1)
TEXTS = any_text.texts(1000, 3, PIECES)
TEXT = "Don't stop: the café\u00a0closes at ten.\t東京 a\u00adb"


def test_words_are_cleaned_and_divided_as_the_tokenizer_does():
    cased = "Don ' t stop : the café closes at ten . 東 京 ab".split()
    assert words(TEXT, RULES[False]) == cased
    assert words(TEXT, RULES[True]) == ["don", *cased[1:6], "cafe", *cased[7:]]


@pytest.mark.parametrize("lower_case", [True, False])
def test_counts_and_pieces_of_words_are_those_of_each_text(lower_case):
    tokenizer = WordPieceTokenizer(PIECES, lower_case=lower_case)
    for text in TEXTS:
        by_word = [piece for word in words(text, RULES[lower_case]) for piece in tokenizer.pieces_of_word(word)]
        assert by_word == [piece.token for piece in tokenizer.tokenize(text)]
    counts = counting.count([counting.chunks(TEXTS[:9]), counting.chunks(TEXTS[9:])], rules=RULES[lower_case])
    assert counts.words == Counter(word for text in TEXTS for word in words(text, RULES[lower_case]))
    assert counts.texts == len(TEXTS)


def test_fertility_is_as_counted_by_hand_and_rare_words_are_forgotten_among_too_many():
    vocabulary = Vocabulary([*SPECIAL_TOKENS, "un", "##aff", "##able", "rain", "."])
    counts = counting.count([counting.chunks(["Rain. Unaffable rain.", "Snow rain."])], rules=RULES[True])
    fertility = counting.fertility_of(counts, WordPieceTokenizer(vocabulary))
    assert (fertility.words, fertility.pieces, fertility.cut, fertility.unknown, fertility.texts) == (8, 10, 1, 1, 2)
    shares = (fertility.pieces_a_word, fertility.cut_share, fertility.unknown_share, fertility.tokens_a_sentence)
    assert shares == pytest.approx((1.25, 0.125, 0.125, 5.0))
    # What occurred once is forgotten where there are too many words.
    parts = [counting.chunks([f"rain rain w{number} v{number}"]) for number in range(50)]
    counts = counting.count(parts, rules=RULES[True], most=10)
    assert counts.words["rain"] == 100
    assert len(counts.words) <= 12
    # Words that begin with a new one are cut otherwise.
    pieces = [*SPECIAL_TOKENS, "li", "##ght", "##s", "##house"]
    before, after = (WordPieceTokenizer(Vocabulary(some)) for some in (pieces, [*pieces, "light"]))
    counts = counting.count([counting.chunks(["Light lights lights li lighthouse snow"])], rules=RULES[True])
    assert counting.cut_otherwise(counts, before, after) == {"lights": 2, "lighthouse": 1}


LETTERS = [*"abcdefghijklmnopqrstuvwxyz", *(f"##{c}" for c in "abcdefghijklmnopqrstuvwxyz")]
VOCABULARY = Vocabulary(["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[unused7]", "[SEP]", "[MASK]", "rain", *LETTERS])
TOKENIZER = WordPieceTokenizer(VOCABULARY)


def counted(text, *, lower_case=True):
    return counting.count([counting.chunks([text])], rules=RULES[lower_case])


def listed(folder, text, tokenizer=TOKENIZER):
    """Returns what a file of words holds."""
    (folder / "words.txt").write_bytes(text if isinstance(text, bytes) else text.encode())
    return additions.listed(folder / "words.txt", tokenizer)


def test_the_words_that_save_most_pieces_come_first_and_take_unused_rows_before_there_are_more():
    counts = counted("sun sun sun clouds clouds moon star rain rain 9 !")  # saves 2 a time, 5, 3, 3, 0; the rest is unknown
    chosen = additions.most_saving(counts, TOKENIZER, 9)
    assert [(new.word, new.saved) for new in chosen] == [("clouds", 10), ("sun", 6), ("moon", 3), ("star", 3)]
    assert additions.most_saving(counts, TOKENIZER, 2) == chosen[:2]
    done = additions.extended(VOCABULARY, ["sun", "moon", "star"])
    assert done.rows == (1, 4, len(VOCABULARY))
    assert [done.vocabulary.tokens[row] for row in done.rows] == ["sun", "moon", "star"]
    kept = [row for row in range(len(VOCABULARY)) if row not in done.rows]
    assert [done.vocabulary.tokens[row] for row in kept] == [VOCABULARY.tokens[row] for row in kept]


@pytest.mark.parametrize("lower_case", [True, False])
def test_a_word_that_is_added_is_found_whole(lower_case, tmp_path):
    before = WordPieceTokenizer(any_text.vocabulary(seed=1), lower_case=lower_case)
    texts = {text.strip() for text in any_text.texts(3000, 5, before.vocabulary) if "\0" not in text and "\n" not in text}
    lines = sorted(text for text in texts if len(CHUNK.findall(text)) == 1)
    added = {new.word for new in listed(tmp_path, "\n".join(lines), before).words}
    extended = additions.extended(before.vocabulary, sorted(added)).vocabulary
    after = WordPieceTokenizer(extended, lower_case=lower_case)
    whole = [line for line in lines if added.issuperset(words(line, RULES[lower_case]))]
    assert len(whole) >= len(added) > 100
    for line in whole:
        assert [piece.token for piece in after.tokenize(line)] == words(line, RULES[lower_case])


def test_what_the_tokenizer_changes_or_cuts_is_named_and_a_list_that_cannot_be_used_refused(tmp_path):
    new_words = listed(tmp_path, "Sturm\n\nnaïve\nwell-known\nrain\nsturm\n☂\n")
    assert [new.word for new in new_words.words] == ["sturm", "naive", "☂"]
    said = [note.partition("words.txt:")[2] for note in new_words.notes]
    assert said == [
        "1: 'Sturm' becomes 'sturm', as the tokenizer sees it",
        "3: 'naïve' becomes 'naive', as the tokenizer sees it",
        "4: 'well-known' is left out: the tokenizer cuts it into well - known",
        "5: 'rain' is left out: in the vocabulary already",
        "6: 'sturm' is left out: in the list already",
        "7: '☂' has characters that no piece has: its vector begins as that of [UNK]",
    ]
    unusable = {"\n \n": ": no word in the file", b"sun\n\xff\xfe\n": ":2: not UTF-8", b"s\0u\n": ":1: a NUL character"}
    for text, message in unusable.items():
        with pytest.raises(DataError, match=f"words.txt{message}"):
            listed(tmp_path, text)


SENTENCES = ["The lighthouse keepers kept the lights.", "Naïve keepers keep lighter houses; 東京 houses, too!"] * 3


def counts_of(texts=SENTENCES, *, lower_case=True):
    return counting.count([counting.chunks(texts)], rules=RULES[lower_case])


def many_words():
    """Words with many pairs that are equally frequent."""
    drawn = random.Random(7)
    return Counts(Counter({"".join(drawn.choices("abcdefghijkl", k=drawn.randint(2, 9))): 3 for _ in range(2000)}), 1)


def pieces_of(text, **settings):
    tokenizer = WordPieceTokenizer(Vocabulary(make.train(counts_of(), **settings).tokens))
    return [piece.token for piece in tokenizer.tokenize(text)]


def test_words_are_joined_but_not_those_that_are_too_long_and_special_pieces_come_first():
    tokens = make.train(counts_of(), size=80, unused=2).tokens
    assert tokens[:8] == ("[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "!")
    expected = ["naive", "keepers", "keep", "東", "京", "houses", "!"]
    assert pieces_of("Naïve KEEPERS keep 東京 houses!", size=200) == expected
    made = make.train(counts_of(["ab" * 40] * 9), size=200)
    assert max(map(len, made.tokens)) == len("[MASK]")


def test_neither_threads_nor_the_order_or_the_size_of_the_corpus_matter(monkeypatch):
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "true")
    first = make.train(many_words(), size=400).tokens
    backwards = Counts(Counter(dict(reversed(list(many_words().words.items())))), 1)
    assert make.train(backwards, size=400).tokens == first
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    assert make.train(many_words(), size=400).tokens == first
    monkeypatch.setattr(make, "_MOST_FED", many_words().total // 3)
    assert make.train(many_words(), size=400).tokens == first


@pytest.mark.parametrize("text", [" ".join(SENTENCES), "vest"])  # the corpus has a v within words alone
def test_no_character_of_the_corpus_is_unknown(text):
    assert UNK not in pieces_of(text, size=75)


def test_characters_below_the_limit_are_left_out_and_marks_not_in_the_middle_of_words():
    made = make.train(counts_of([*SENTENCES, "quiz"]), size=200)
    assert made.left_out == {"q": 1, "z": 1}
    assert not {"q", "##q", "quiz"} & set(made.tokens)
    tokens = set(make.train(counts_of(lower_case=False), size=200).tokens)
    assert {"東", "!", ";", "The", "Naïve"} < tokens
    assert not {"##東", "##!", "##;"} & tokens


def test_a_missing_package_is_named_with_its_command(monkeypatch):
    monkeypatch.setattr(make.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(FlagError, match="pip install 'tokenizers>=0.20"):
        make.refuse_missing()

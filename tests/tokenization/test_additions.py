"""Words that come into a vocabulary."""

from __future__ import annotations

import pytest

from bert_tf.errors import DataError
from bert_tf.tokenization import additions, counting
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import CHUNK, WordPieceTokenizer, words
from tests.tokenization import any_text

LETTERS = [*"abcdefghijklmnopqrstuvwxyz", *(f"##{c}" for c in "abcdefghijklmnopqrstuvwxyz")]
VOCABULARY = Vocabulary(["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[unused7]", "[SEP]", "[MASK]", "rain", *LETTERS])
TOKENIZER = WordPieceTokenizer(VOCABULARY)


def counted(text, *, lower_case=True):
    return counting.count([counting.chunks([text])], lower_case=lower_case)


@pytest.fixture
def listed(tmp_path):
    """Returns what a file of words holds."""

    def listed(text, tokenizer=TOKENIZER):
        (tmp_path / "words.txt").write_bytes(text if isinstance(text, bytes) else text.encode())
        return additions.listed(tmp_path / "words.txt", tokenizer)

    return listed


def test_the_words_that_save_most_pieces_come_first_then_by_letters():
    counts = counted("sun sun sun clouds clouds moon star rain rain 9 !")  # saves 2 a time, 5, 3, 3, 0; the rest is unknown
    chosen = additions.most_saving(counts, TOKENIZER, 9)
    assert [(new.word, new.saved) for new in chosen] == [("clouds", 10), ("sun", 6), ("moon", 3), ("star", 3)]
    assert additions.most_saving(counts, TOKENIZER, 2) == chosen[:2]


def test_unused_rows_are_taken_first_then_there_are_more():
    done = additions.extended(VOCABULARY, ["sun", "moon", "star"])
    assert done.rows == (1, 4, len(VOCABULARY))
    assert [done.vocabulary.tokens[row] for row in done.rows] == ["sun", "moon", "star"]
    kept = [row for row in range(len(VOCABULARY)) if row not in done.rows]
    assert [done.vocabulary.tokens[row] for row in kept] == [VOCABULARY.tokens[row] for row in kept]


@pytest.mark.parametrize("lower_case", [True, False])
def test_a_word_that_is_added_is_found_whole(lower_case, listed):
    before = WordPieceTokenizer(any_text.vocabulary(seed=1), lower_case=lower_case)
    texts = {text.strip() for text in any_text.texts(3000, 5, before.vocabulary) if "\0" not in text and "\n" not in text}
    lines = sorted(text for text in texts if len(CHUNK.findall(text)) == 1)
    added = {new.word for new in listed("\n".join(lines), before).words}
    extended = additions.extended(before.vocabulary, sorted(added)).vocabulary
    after = WordPieceTokenizer(extended, lower_case=lower_case)
    whole = [line for line in lines if added.issuperset(words(line, lower_case=lower_case))]
    assert len(whole) >= len(added) > 100
    for line in whole:
        assert [piece.token for piece in after.tokenize(line)] == list(words(line, lower_case=lower_case))


def test_what_the_tokenizer_changes_or_cuts_is_named(listed):
    found = listed("Sturm\n\nnaïve\nwell-known\nrain\nsturm\n☂\n")
    assert [new.word for new in found.words] == ["sturm", "naive", "☂"]
    said = [note.partition("words.txt:")[2] for note in found.notes]
    assert said == [
        "1: 'Sturm' becomes 'sturm', as the tokenizer sees it",
        "3: 'naïve' becomes 'naive', as the tokenizer sees it",
        "4: 'well-known' is left out: the tokenizer cuts it into well - known",
        "5: 'rain' is left out: in the vocabulary already",
        "6: 'sturm' is left out: in the list already",
        "7: '☂' has characters that no piece has: its vector begins as that of [UNK]",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n \n", r"words.txt: no word in the file"),
        (b"sun\n\xff\xfe\n", r"words.txt:2: not UTF-8"),
        (b"s\0u\n", r"words.txt:1: a NUL character"),
    ],
)
def test_a_list_that_cannot_be_used_is_refused(listed, text, message):
    with pytest.raises(DataError, match=message):
        listed(text)

"""Word pieces in the graph are those of the reference: ids and offsets, of any text."""

import functools

import pytest
import tensorflow as tf

from bert_tf.errors import VocabularyError
from bert_tf.extensions.export.saved_model.tokenizer import GraphTokenizer
from bert_tf.extensions.export.tokenizer_tables import tables
from bert_tf.tokenization.characters import MAX_WORD_CHARACTERS
from bert_tf.tokenization.text_rules import TextRules
from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer
from tests.tokenization import any_text

tf1 = tf.compat.v1

PIECES = any_text.vocabulary(seed=1)
LONG_PIECES = ("a" * 100, "##" + "b" * 128, "-" * 150, "a" * 201, "##" + "-" * 201)  # no word has the last three
LONG = Vocabulary([*SPECIAL_TOKENS, *(mark + piece for piece in "ae-\U0001f600" for mark in ("", "##")), *LONG_PIECES])
BOTH_CASES = pytest.mark.parametrize("lower_case", [True, False], ids=["uncased", "cased"])
BATCH = 500


@functools.cache
def cut(vocabulary: Vocabulary, lower_case: bool):
    """Returns a function of a batch: for each text its pieces, as (id, start, end)."""
    graph = tf.Graph()
    with graph.as_default():
        texts = tf1.placeholder(tf.string, [None])
        cuts = GraphTokenizer(tables(vocabulary, lower_case=lower_case)).pieces(texts)
    run = tf1.Session(graph=graph).make_callable([cuts.ids.row_splits, *(column.values for column in cuts)], feed_list=[texts])

    def pieces(batch):
        splits, *columns = run(batch)
        rows = list(zip(*(column.tolist() for column in columns)))
        return [rows[start:end] for start, end in zip(splits, splits[1:])]

    return pieces


def differences(batches, vocabulary: Vocabulary, lower_case: bool):
    """Yields texts of which the graph makes something else than the reference."""
    reference, graph = WordPieceTokenizer(vocabulary, lower_case=lower_case), cut(vocabulary, lower_case)
    for start in range(0, len(batches), BATCH):
        batch = batches[start : start + BATCH]
        for data, actual in zip(batch, graph(batch)):
            wanted = reference.tokenize(data.decode(errors="replace"))
            if actual != [(piece.id, piece.start, piece.end) for piece in wanted]:
                yield data, actual, wanted


@pytest.mark.parametrize("count", [1000, pytest.param(100_000, marks=pytest.mark.slow)])
@BOTH_CASES
def test_any_text_has_the_ids_and_offsets_of_the_reference(lower_case, count):
    texts = any_text.texts(count, 19, PIECES)
    assert not list(differences([text.encode() for text in texts], PIECES, lower_case))


def between_letters(characters) -> list[bytes]:
    """Returns texts with each character by itself and in a word, 200 characters each."""
    parts = (characters[start : start + 200] for start in range(0, len(characters), 200))
    return ["".join(f"{c} a{c}b " for c in part).encode() for part in parts]


@BOTH_CASES
def test_each_character_that_a_rule_changes(lower_case):
    assert not list(differences(between_letters(any_text.CHANGED), PIECES, lower_case))


@pytest.mark.slow
def test_each_code_point():
    assert not list(differences(between_letters(any_text.CHARACTERS), PIECES, True))


@BOTH_CASES
def test_bytes_that_are_no_text_vanish_as_where_python_replaces_them(lower_case):
    assert not list(differences(any_text.bytes_of(2000, 21), PIECES, lower_case))


LONG_WORDS = [character * (MAX_WORD_CHARACTERS + more) for character in "aé中-\U0001f600" for more in (-1, 0, 1)]
LONG_WORDS += ["a" * 100, "a" + "b" * 128, "a" * 101, "-" * 150, "a" + "-" * 201]


@pytest.mark.parametrize(
    ("vocabulary", "texts"),
    [*((PIECES, texts) for texts in ([], [""], ["", " \0", ""], ["a", "", "b c"])), (LONG, LONG_WORDS)],
    ids=range(5),
)
def test_texts_without_pieces_and_long_words_have_rows_of_their_own(vocabulary, texts):
    batch = [text.encode() for text in texts]
    assert len(cut(vocabulary, True)(batch)) == len(texts)
    assert not list(differences(batch, vocabulary, True))


def test_a_piece_that_cannot_be_matched_is_refused():
    with pytest.raises(VocabularyError, match="has more than 128 characters, which TensorFlow Text cannot match"):
        tables(Vocabulary([*SPECIAL_TOKENS, "a" * 150]), lower_case=True)


def test_more_characters_than_two_bytes_can_tell_apart():
    characters = [piece for piece in PIECES.tokens if len(piece) == 1]
    assert len(characters) > 2000
    assert tables(PIECES, lower_case=False).width == 3
    assert not list(differences(between_letters(characters), PIECES, False))


@pytest.mark.parametrize(("lower_case", "rules"), [(True, TextRules(False, False)), (False, TextRules(True))], ids=str)
def test_other_rules_of_accents_and_ideographs(lower_case, rules):
    vocabulary = Vocabulary(PIECES.tokens, rules=rules)
    texts = [text.encode() for text in any_text.texts(200, 23, PIECES)]
    assert not list(differences([*texts, *between_letters(any_text.CHANGED[::20])], vocabulary, lower_case))

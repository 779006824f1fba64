"""Stores of tokens and their rows: the same bytes whatever the workers, pieces or interruptions; pairs as published."""

import os

import numpy as np
import pytest

from bert_tf.errors import DataError, VocabularyError
from bert_tf.extensions.pretrain.corpus import appending, documents, store
from bert_tf.extensions.pretrain.corpus import rows as module
from bert_tf.extensions.pretrain.corpus.documents import Corpus
from bert_tf.extensions.pretrain.corpus.rows import Rows, RowSettings
from bert_tf.extensions.pretrain.corpus.store import TokenStore, build
from bert_tf.tokenization.library import LibraryVocabulary
from bert_tf.tokenization.tokenizer import tokenizer_of
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer
from tests import tokenizer_files
from tests.extensions.pretrain.corpus.conftest import TOKENS

TEXT = "a bc\nd\n\n\ne f g\n\u200b\n\n\u200b\n\nh\n"


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT)
    return Corpus((str(tmp_path / "text.txt"),))


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def words(stored, tokens=TOKENS):
    """Returns documents as lists of sentences, these as texts."""
    cut = stored.sentence_starts
    sentences = [" ".join(tokens[number] for number in stored.ids[a:b]) for a, b in zip(cut, cut[1:])]
    return [sentences[a:b] for a, b in zip(stored.document_starts, stored.document_starts[1:])]


@pytest.mark.parametrize(("pieces", "dtype"), [(len(TOKENS), "uint16"), (1 << 16, "uint16"), ((1 << 16) + 1, "uint32")])
def test_holds_sentences_with_tokens_and_the_last_id_has_room(tmp_path, corpus, pieces, dtype):
    tokens = [*TOKENS[:-1], *(f"[unused{number}]" for number in range(1, pieces - len(TOKENS) + 1)), "bc"]
    stored = build(tmp_path / "store", corpus, WordPieceTokenizer(Vocabulary(tokens)), workers=1)
    assert len(tokens) == pieces
    assert words(stored, tokens) == [["a bc", "d"], ["e f g"], ["h"]]
    assert stored.ids.dtype == dtype


@pytest.mark.parametrize("workers", [1, 2])
def test_a_tokenizer_of_a_library_sees_the_blank_before_a_sentence(tmp_path, monkeypatch, workers):
    pytest.importorskip("tokenizers")
    (tmp_path / "text.txt").write_text("w 1\nw2\n\nw3\nw4\n")
    monkeypatch.setattr(documents, "PIECE", 4)  # a piece may begin within a document
    vocabulary = LibraryVocabulary(tokenizer_files.byte_level())
    tokenizer = tokenizer_of(vocabulary, lower_case=False)
    stored = build(tmp_path / "store", Corpus((str(tmp_path / "text.txt"),)), tokenizer, workers=workers)
    assert words(stored, vocabulary.tokens) == [["\u0120w \u0120 1", "\u0120w 2"], ["\u0120w 3", "\u0120w 4"]]


@pytest.mark.parametrize(("size", "workers"), [(1, 1), (3, 2), (8, 1)])
def test_bytes_depend_neither_on_pieces_nor_on_workers(tmp_path, corpus, tokenizer, monkeypatch, size, workers):
    build(tmp_path / "whole", corpus, tokenizer, workers=1)
    monkeypatch.setattr(documents, "PIECE", size)
    build(tmp_path / "pieces", corpus, tokenizer, workers=workers)
    assert contents(tmp_path / "pieces") == contents(tmp_path / "whole")


@pytest.mark.parametrize("stop", range(1, 6))
def test_a_build_that_was_stopped_goes_on(tmp_path, corpus, tokenizer, monkeypatch, stop):
    monkeypatch.setattr(documents, "PIECE", 3)
    monkeypatch.setattr(appending, "_NOTED_EVERY", 2)
    build(tmp_path / "whole", corpus, tokenizer, workers=1)
    left, tokenized = [], []

    def stopping(piece, **of):
        if not left and len(tokenized) == stop:
            left.append(piece)
            raise KeyboardInterrupt
        tokenized.append(piece)
        return tokenize(piece, **of)

    tokenize = store.tokenize
    monkeypatch.setattr(store, "tokenize", stopping)
    with pytest.raises(KeyboardInterrupt):
        build(tmp_path / "stopped", corpus, tokenizer, workers=1)
    build(tmp_path / "stopped", corpus, tokenizer, workers=1)
    assert contents(tmp_path / "stopped") == contents(tmp_path / "whole")
    assert len(tokenized) - len(set(tokenized)) < 2


def test_a_store_that_is_there_is_used_until_its_text_changes(tmp_path, corpus, tokenizer):
    first = build(tmp_path / "store", corpus, tokenizer, workers=1)
    assert build(tmp_path / "store", corpus, tokenizer, workers=1).key == first.key
    path = corpus.files[0]
    with open(path, "a") as file:
        file.write("\ni j\n")
    os.utime(path, ns=(1, 1))
    assert words(build(tmp_path / "store", corpus, tokenizer, workers=1))[-1] == ["i j"]


def test_another_vocabulary_a_file_that_is_cut_off_and_a_corpus_without_text_are_refused(tmp_path, corpus, tokenizer):
    build(tmp_path / "store", corpus, tokenizer, workers=1)
    with pytest.raises(VocabularyError, match="made with another vocabulary"):
        TokenStore.open(tmp_path / "store", Vocabulary([*TOKENS, "k"]))
    os.truncate(tmp_path / "store" / "ids.bin", 4)
    with pytest.raises(DataError, match=r"ids.bin: cut off: 4 of 16 bytes"):
        TokenStore.open(tmp_path / "store", tokenizer.vocabulary)
    for text in ("", "\n\n", "\u200b\n"):
        (tmp_path / "text.txt").write_text(text)
        with pytest.raises(DataError, match="no text in any file"):
            build(tmp_path / "store", corpus, tokenizer, workers=1)


def test_files_that_are_tokenized_one_by_one_come_to_the_same(tmp_path, tokenizer, monkeypatch):
    monkeypatch.setattr(store, "_SENTENCES_OF_PART", 2)
    texts = (TEXT, "", "\u200b\n", "i\n\nj\n\n")
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.txt").write_text(text)
    files = Corpus(tuple(str(tmp_path / f"{number}.txt") for number in range(len(texts))))
    build(tmp_path / "whole", files, tokenizer, workers=1)
    for number in reversed(range(len(texts))):
        store.build_of_file(number, tmp_path / "joined", files, tokenizer)
    assert words(store.join(tmp_path / "joined", files, tokenizer)) == [["a b ##c", "d"], ["e f g"], ["h"], ["i"], ["j"]]
    assert contents(tmp_path / "joined") == contents(tmp_path / "whole")
    assert not list(tmp_path.glob("joined-*"))


LETTERS = "abcdefghij"


@pytest.fixture
def tokens(tmp_path, tokenizer):
    """A store of 60 documents of up to 12 sentences of up to 9 words; the first letter tells the document."""
    draw = np.random.default_rng(1)
    text = ""
    for number in range(60):
        for _ in range(draw.integers(1, 12)):
            text += " ".join([LETTERS[number % 10], *draw.choice(list(LETTERS), draw.integers(0, 9))]) + "\n"
        text += "\n"
    (tmp_path / "text.txt").write_text(text)
    return store.build(tmp_path / "store", Corpus((str(tmp_path / "text.txt"),)), tokenizer, workers=1)


def spans(rows: Rows, name):
    return list(zip(rows.table[f"{name}_start"].tolist(), rows.table[f"{name}_length"].tolist()))


def document_of(tokens, token):
    return np.searchsorted(tokens.sentence_starts[tokens.document_starts], token, "right") - 1


def test_rows_do_not_depend_on_workers_or_tasks(tmp_path, tokens, monkeypatch):
    settings = RowSettings(32, duplicates=2)
    first = module.build(tmp_path / "1", tokens, settings, workers=1).table.tobytes()
    monkeypatch.setattr(module, "_TASK", 50)
    monkeypatch.setattr(module, "_DOCUMENTS", 7)
    for workers in (1, 2):
        assert module.build(tmp_path / f"of {workers}", tokens, settings, workers=workers).table.tobytes() == first


def test_b_begins_where_a_ends_and_no_row_is_too_long_or_empty(tmp_path, tokens):
    rows = module.build(tmp_path / "short", tokens, RowSettings(16), workers=1)
    assert rows.lengths().max() == 16
    assert rows.table["a_length"].min() >= 1
    assert rows.table["b_length"].min() >= 1
    rows = module.build(tmp_path / "long", tokens, RowSettings(512, short_seq_prob=0), workers=1)  # nothing is cut off
    ends = rows.table["a_start"] + rows.table["a_length"]
    follows = rows.next_sentence_labels() == 0
    assert (rows.table["b_start"] == ends)[follows].all()
    assert np.isin(rows.table["a_start"], tokens.sentence_starts).all()
    assert np.isin(ends, tokens.sentence_starts).all()


def test_half_of_the_pairs_follow_each_other_and_documents_that_are_held_out_are_in_none(tmp_path, tokens):
    rows = module.build(tmp_path / "rows", tokens, RowSettings(64, duplicates=20), workers=1)
    a, b = rows.table["a_start"], rows.table["b_start"]
    same = document_of(tokens, a) == document_of(tokens, b)
    is_random = rows.next_sentence_labels() == 1
    assert same[~is_random].all()
    assert (b > a)[~is_random].all()
    assert not same[is_random].any()
    alone = np.diff(tokens.document_starts)[document_of(tokens, a)] == 1
    assert is_random[alone].all()
    used = np.arange(0, tokens.documents, 2)
    rows = module.build(tmp_path / "used", tokens, RowSettings(32, duplicates=5), documents=used, workers=1)
    documents = np.concatenate([document_of(tokens, rows.table[name]) for name in ("a_start", "b_start")])
    assert set(documents) == set(used)


def test_every_sentence_of_the_other_document_can_be_a_random_b(tmp_path, tokenizer):
    (tmp_path / "text.txt").write_text("a b\nc\nd e f\n\ng\nh i\nj a\nb c d\n\ne\n")
    tokens = store.build(tmp_path / "store", Corpus((str(tmp_path / "text.txt"),)), tokenizer, workers=1)
    rows = module.build(tmp_path / "rows", tokens, RowSettings(64, short_seq_prob=0, duplicates=100), workers=1)
    pairs = {
        (document_of(tokens, a), b)
        for a, b, is_random in rows.table[["a_start", "b_start", "random_next"]].tolist()
        if is_random
    }
    starts = tokens.sentence_starts[:-1].tolist()
    assert pairs == {(one, b) for one in range(3) for b in starts if document_of(tokens, b) != one}


@pytest.mark.parametrize("stretch", [module._STRETCH, 2])
def test_what_a_random_b_displaces_begins_the_next_row(tmp_path, tokens, monkeypatch, stretch):
    monkeypatch.setattr(module, "_STRETCH", stretch)
    rows = module.build(tmp_path / "rows", tokens, RowSettings(512), workers=1)
    covered = np.zeros(tokens.tokens, int)
    for start, length in spans(rows, "a"):
        covered[start : start + length] += 1
    for (start, length), label in zip(spans(rows, "b"), rows.next_sentence_labels()):
        covered[start : start + length] += label == 0
    assert (covered == 1).all()


def test_full_sentences_hold_each_token_once(tmp_path, tokens):
    rows = module.build(tmp_path / "rows", tokens, RowSettings(8, next_sentence=False), workers=1)
    ends = np.array([start + length for start, length in spans(rows, "a")])
    starts = np.array([start for start, _ in spans(rows, "a")])
    assert starts[0] == 0
    assert (starts[1:] == ends[:-1]).all()
    assert (document_of(tokens, starts) == document_of(tokens, ends - 1)).all()
    assert rows.lengths().max() == 8
    short = module.build(tmp_path / "short", tokens, RowSettings(5, 0.5, next_sentence=False, duplicates=50), workers=1)
    assert set(short.table["a_length"]) == {1, 2, 3}  # a share of the rows


@pytest.mark.parametrize(("a", "b", "most"), [(9, 3, 8), (3, 9, 8), (6, 6, 7), (10, 9, 2), (2, 3, 5)])
def test_a_surplus_is_cut_off_the_longer(a, b, most):
    lengths = [a, b]
    while sum(lengths) > most:
        lengths[0 if lengths[0] > lengths[1] else 1] -= 1
    draws = module._draws(1)
    cut = [module._truncated((0, a), (100, 100 + b), most, draws) for _ in range(50)]
    assert {(a_length, b_length) for _, a_length, _, b_length in cut} == {tuple(lengths)}
    assert all(0 <= start <= a - lengths[0] and 100 <= second <= 100 + b - lengths[1] for start, _, second, _ in cut)
    assert len({(start, second) for start, _, second, _ in cut}) > 1 or sum(lengths) == a + b


@pytest.mark.parametrize("next_sentence", [True, False])
def test_a_batch_is_padded(tmp_path, tokens, tokenizer, next_sentence):
    rows = module.build(tmp_path / "rows", tokens, RowSettings(16, next_sentence=next_sentence), workers=1)
    cls_id, sep_id = tokenizer.vocabulary.cls_id, tokenizer.vocabulary.sep_id
    batch = rows.batch(np.array([3, 0]), 18, cls_id=cls_id, sep_id=sep_id)
    a, a_length, b, b_length, _ = rows.table[3].tolist()
    second = [*tokens.ids[b : b + b_length], sep_id] if next_sentence else []
    pieces = [cls_id, *tokens.ids[a : a + a_length], sep_id, *second]
    padding = [0] * (18 - len(pieces))
    assert batch.input_ids[0].tolist() == pieces + padding
    assert batch.input_mask[0].tolist() == [1] * len(pieces) + padding
    assert batch.segment_ids[0].tolist() == [0] * (a_length + 2) + [1] * len(second) + padding
    assert batch.input_mask.sum(axis=1).tolist() == rows.lengths(np.array([3, 0])).tolist()

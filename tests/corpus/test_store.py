"""Stores of tokens: their bytes do not depend on workers, pieces or interruptions."""

import os

import pytest

from bert_tf.corpus import appending, documents, store
from bert_tf.corpus.documents import Corpus
from bert_tf.corpus.store import TokenStore, build
from bert_tf.errors import DataError, VocabularyError
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer
from tests.corpus.conftest import TOKENS

TEXT = "a bc\nd\n\n\ne f g\n\u200b\n\n\u200b\n\nh\n"


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT)
    return Corpus((str(tmp_path / "text.txt"),))


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def words(found, tokens=TOKENS):
    """Returns documents as lists of sentences, these as texts."""
    cut = found.sentence_starts
    sentences = [" ".join(tokens[number] for number in found.ids[a:b]) for a, b in zip(cut, cut[1:])]
    return [sentences[a:b] for a, b in zip(found.document_starts, found.document_starts[1:])]


@pytest.mark.parametrize(("pieces", "dtype"), [(len(TOKENS), "uint16"), (1 << 16, "uint16"), ((1 << 16) + 1, "uint32")])
def test_holds_sentences_with_tokens_and_the_last_id_has_room(tmp_path, corpus, pieces, dtype):
    tokens = [*TOKENS[:-1], *(f"[unused{number}]" for number in range(1, pieces - len(TOKENS) + 1)), "bc"]
    found = build(tmp_path / "store", corpus, WordPieceTokenizer(Vocabulary(tokens)), workers=1)
    assert len(tokens) == pieces
    assert words(found, tokens) == [["a bc", "d"], ["e f g"], ["h"]]
    assert found.ids.dtype == dtype


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

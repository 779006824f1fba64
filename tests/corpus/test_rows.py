"""Rows of a store: pairs as published, full sentences, and the same whatever the number of workers."""

import numpy as np
import pytest

from bert_tf.corpus import rows as module
from bert_tf.corpus import store
from bert_tf.corpus.documents import Corpus
from bert_tf.corpus.rows import Rows, RowSettings, build

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
    first = build(tmp_path / "1", tokens, settings, workers=1).table.tobytes()
    monkeypatch.setattr(module, "_TASK", 50)
    monkeypatch.setattr(module, "_DOCUMENTS", 7)
    for workers in (1, 2):
        assert build(tmp_path / f"of {workers}", tokens, settings, workers=workers).table.tobytes() == first


def test_b_begins_where_a_ends_and_no_row_is_too_long_or_empty(tmp_path, tokens):
    rows = build(tmp_path / "short", tokens, RowSettings(16), workers=1)
    assert rows.lengths().max() == 16
    assert rows.table["a_length"].min() >= 1
    assert rows.table["b_length"].min() >= 1
    rows = build(tmp_path / "long", tokens, RowSettings(512, short_seq_prob=0), workers=1)  # nothing is cut off
    ends = rows.table["a_start"] + rows.table["a_length"]
    follows = rows.next_sentence_labels() == 0
    assert (rows.table["b_start"] == ends)[follows].all()
    assert np.isin(rows.table["a_start"], tokens.sentence_starts).all()
    assert np.isin(ends, tokens.sentence_starts).all()


def test_half_of_the_pairs_follow_each_other_and_documents_that_are_held_out_are_in_none(tmp_path, tokens):
    rows = build(tmp_path / "rows", tokens, RowSettings(64, duplicates=20), workers=1)
    a, b = rows.table["a_start"], rows.table["b_start"]
    same = document_of(tokens, a) == document_of(tokens, b)
    is_random = rows.next_sentence_labels() == 1
    assert same[~is_random].all()
    assert (b > a)[~is_random].all()
    assert not same[is_random].any()
    alone = np.diff(tokens.document_starts)[document_of(tokens, a)] == 1
    assert is_random[alone].all()
    used = np.arange(0, tokens.documents, 2)
    rows = build(tmp_path / "used", tokens, RowSettings(32, duplicates=5), documents=used, workers=1)
    found = np.concatenate([document_of(tokens, rows.table[name]) for name in ("a_start", "b_start")])
    assert set(found) == set(used)


def test_every_sentence_of_the_other_document_can_be_a_random_b(tmp_path, tokenizer):
    (tmp_path / "text.txt").write_text("a b\nc\nd e f\n\ng\nh i\nj a\nb c d\n\ne\n")
    tokens = store.build(tmp_path / "store", Corpus((str(tmp_path / "text.txt"),)), tokenizer, workers=1)
    rows = build(tmp_path / "rows", tokens, RowSettings(64, short_seq_prob=0, duplicates=100), workers=1)
    found = {
        (document_of(tokens, a), b)
        for a, b, is_random in rows.table[["a_start", "b_start", "random_next"]].tolist()
        if is_random
    }
    starts = tokens.sentence_starts[:-1].tolist()
    assert found == {(one, b) for one in range(3) for b in starts if document_of(tokens, b) != one}


@pytest.mark.parametrize("stretch", [module._STRETCH, 2])
def test_what_a_random_b_displaces_begins_the_next_row(tmp_path, tokens, monkeypatch, stretch):
    monkeypatch.setattr(module, "_STRETCH", stretch)
    rows = build(tmp_path / "rows", tokens, RowSettings(512), workers=1)
    covered = np.zeros(tokens.tokens, int)
    for start, length in spans(rows, "a"):
        covered[start : start + length] += 1
    for (start, length), label in zip(spans(rows, "b"), rows.next_sentence_labels()):
        covered[start : start + length] += label == 0
    assert (covered == 1).all()


def test_full_sentences_hold_each_token_once(tmp_path, tokens):
    rows = build(tmp_path / "rows", tokens, RowSettings(8, next_sentence=False), workers=1)
    ends = np.array([start + length for start, length in spans(rows, "a")])
    starts = np.array([start for start, _ in spans(rows, "a")])
    assert starts[0] == 0
    assert (starts[1:] == ends[:-1]).all()
    assert (document_of(tokens, starts) == document_of(tokens, ends - 1)).all()
    assert rows.lengths().max() == 8
    short = build(tmp_path / "short", tokens, RowSettings(5, 0.5, next_sentence=False, duplicates=50), workers=1)
    assert set(short.table["a_length"]) == {1, 2, 3}  # a share of the rows


@pytest.mark.parametrize(("a", "b", "most"), [(9, 3, 8), (3, 9, 8), (6, 6, 7), (10, 9, 2), (2, 3, 5)])
def test_a_surplus_is_cut_off_the_longer(a, b, most):
    lengths = [a, b]
    while sum(lengths) > most:
        lengths[0 if lengths[0] > lengths[1] else 1] -= 1
    draws = module._draws(1)
    found = [module._truncated((0, a), (100, 100 + b), most, draws) for _ in range(50)]
    assert {(a_length, b_length) for _, a_length, _, b_length in found} == {tuple(lengths)}
    assert all(0 <= start <= a - lengths[0] and 100 <= second <= 100 + b - lengths[1] for start, _, second, _ in found)
    assert len({(start, second) for start, _, second, _ in found}) > 1 or sum(lengths) == a + b


@pytest.mark.parametrize("next_sentence", [True, False])
def test_a_batch_is_padded(tmp_path, tokens, tokenizer, next_sentence):
    rows = build(tmp_path / "rows", tokens, RowSettings(16, next_sentence=next_sentence), workers=1)
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

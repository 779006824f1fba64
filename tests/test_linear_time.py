"""Text becomes ids in linear time, whoever wrote it: a service tokenizes in the thread that listens."""

import functools
import gc
import string
import time

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.extensions.choice import features as choices
from bert_tf.extensions.export.saved_model.characters import Text
from bert_tf.extensions.export.saved_model.tokenizer import GraphTokenizer
from bert_tf.extensions.export.tokenizer_tables import tables
from bert_tf.extensions.fill_mask import filler
from bert_tf.extensions.pretrain.corpus import sentences as sentence_cuts
from bert_tf.extensions.span import features as spans
from bert_tf.extensions.tags import features as tags
from bert_tf.extensions.tags import graph_words as graph_words
from bert_tf.extensions.tags import words
from bert_tf.extensions.vocabulary import counting
from bert_tf.features import sentences
from bert_tf.features.long_text import CUTS
from bert_tf.tasks.tables import open_table
from bert_tf.tokenization.characters import Rules
from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

tf1 = tf.compat.v1

TIMES = 16  # the longer text is as many times as long
MOST = 48  # times as long for it: quadratic time would be 256 times; caches and other processes can make it three times 16
ROUNDS = 12  # the machine is in use: it is enough that one of them shows it
SLACK_S = 0.03  # what takes less blocks nobody
SIZE = 1 << 11
IN_GRAPH = 8  # times the size: the graph is fast, and its start is not

VOCABULARY = Vocabulary([*SPECIAL_TOKENS, *string.ascii_lowercase, *(f"##{c}" for c in string.ascii_lowercase), "."])
HOSTILE = {
    "marks in two orders": ("a", "\u0301\u0316", ""),
    "marks that stay": ("a", "\U0001d165\u302e", ""),
    "sigmas that look around": ("", "\u03a3'", ""),
    "apostrophes": ("", "'", "\u03a3"),
    "one word": ("", "a", ""),
    "one word with accents": ("", "\u00e9", ""),
    "letters and periods": ("", "a.", ""),
    "deleted characters": ("a", "\u200b", "b"),
    "ideographs": ("", "\u4e00", ""),
    "Hangul": ("", "\ud55c", ""),
    "blanks": ("a", " \t", "b"),
    "open quotations": ("", "\u201ca ", ""),
    "words": ("", "un able. ", ""),
}


def hostile(kind: str, size: int) -> str:
    first, repeated, last = HOSTILE[kind]
    return first + repeated * (size // len(repeated)) + last


def tokenizer(*, lower_case: bool = True) -> WordPieceTokenizer:
    """Returns one that remembers nothing yet."""
    return WordPieceTokenizer(VOCABULARY, lower_case=lower_case)


def seconds(work, text: str) -> float:
    start = time.process_time()
    work(text)
    return time.process_time() - start


def assert_linear(work, text_of, size: int = SIZE) -> None:
    """Compares the least times of several rounds, until they show that time grows as the text does."""
    short, long = text_of(size), text_of(TIMES * size)
    least = [float("inf")] * 2
    gc.disable()  # its time depends on what else is in memory
    try:
        for _ in range(ROUNDS):
            least = [min(before, seconds(work, text)) for before, text in zip(least, (short, long))]
            if least[1] <= MOST * least[0] + SLACK_S:
                return
    finally:
        gc.enable()
    raise AssertionError(f"{least[0]:.3f} s, and {least[1]:.3f} s for {TIMES} times the text")


def count(text: str) -> None:
    counting.fertility_of(counting.count([counting.chunks([text])], rules=Rules()), tokenizer())


@functools.cache
def in_graph():
    with tf.Graph().as_default() as graph:
        texts = tf1.placeholder(tf.string, [None])
        pieces = GraphTokenizer(tables(VOCABULARY, lower_case=True)).pieces(texts)
        columns = [pieces.ids.values, graph_words.split(Text.of(texts)).start]
    run = tf1.Session(graph=graph).make_callable(columns, feed_list=[texts])
    return lambda text: run([text])


TO_PIECES = {
    "uncased": lambda text: tokenizer().pieces(text),
    "cased": lambda text: tokenizer(lower_case=False).ids(text),
    "words of tags": words.split,
    "counts for a vocabulary": count,
    "sentences": sentence_cuts.cut,
}


@pytest.mark.parametrize("path", TO_PIECES)
@pytest.mark.parametrize("kind", HOSTILE)
def test_pieces_and_sentences_take_linear_time(path, kind):
    assert_linear(TO_PIECES[path], functools.partial(hostile, kind), 4 * SIZE if path == "sentences" else SIZE)


@pytest.mark.parametrize("kind", HOSTILE)
def test_the_graph_takes_linear_time(kind):
    assert_linear(in_graph(), functools.partial(hostile, kind), IN_GRAPH * SIZE)


def tagged(text: str) -> None:
    words_of_text = [text[start:end] for start, end in words.split(text)]
    tags.build([words_of_text, [text]], np.zeros(len(words_of_text) + 1, np.int32), tokenizer(), max_seq_length=64)


def paired(text: str, long_text: str) -> None:
    sentences.build([(text, text)], None, tokenizer(), max_seq_length=64, long_text=long_text)


def chosen(text: str, long_text: str) -> None:
    choice = choices.Choice(text, text, text, (text, "b"))
    choices.build([choice], [0], tokenizer(), max_seq_length=64, long_text=long_text)


TO_ROWS = {
    "spans": lambda text: spans.build([spans.Question(text, text, (0, 1))], tokenizer(), spans.Windows(64, 16, 16)),
    "tags": tagged,
    "masked": lambda text: filler.rows(f"[MASK]{text}[MASK]", tokenizer(), 64),
    **{f"sentences, {cut}": functools.partial(paired, long_text=cut) for cut in CUTS},
    **{f"choices, {cut}": functools.partial(chosen, long_text=cut) for cut in CUTS},
}


@pytest.mark.parametrize("path", TO_ROWS)
@pytest.mark.parametrize("kind", ["one word", "letters and periods", "words"])
def test_rows_take_linear_time(path, kind):
    assert_linear(TO_ROWS[path], functools.partial(hostile, kind))


def test_a_cell_of_tsv_whose_quote_stays_open_takes_linear_time(tmp_path):
    path = tmp_path / "rows.tsv"

    def read(text: str) -> None:
        path.write_text(f"x\ty\n{text}\t1\n")
        assert list(open_table(path).read_rows(["x"], lambda _, row: row)) == [[text]]

    assert_linear(read, lambda size: '"' + 'a ""b' * size, SIZE // 8)

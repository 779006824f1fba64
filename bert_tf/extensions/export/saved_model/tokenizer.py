"""Tokenizes text inside a TensorFlow graph, with the pieces and offsets of `wordpiece`.

Texts are UTF-8; invalid bytes are read as U+FFFD, which belongs to no word. The rules are those of `tables`; the
remaining words of letters are matched by TensorFlow Text.

Shapes: B texts; N characters, K of them in words, M letters, W words and P pieces, all texts concatenated.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf
import tensorflow_text

from bert_tf.extensions.export.tokenizer_tables import (
    BLANK,
    CAPITAL_SIGMA,
    CASED,
    DELETED,
    IDEOGRAPH,
    IGNORED,
    PAGE,
    REMOVED,
    SUFFIX,
    Paged,
    Tables,
)
from bert_tf.tokenization.characters import MAX_WORD_CHARACTERS

_ORDERS = 256  # more than there are classes of marks


class RaggedPieces(NamedTuple):
    """The pieces of B texts, each [B, (pieces)]; starts and ends are counted in characters."""

    ids: tf.RaggedTensor
    starts: tf.RaggedTensor
    ends: tf.RaggedTensor


class _Characters(NamedTuple):
    """Characters of words, or the letters that they become, concatenated."""

    chunk: tf.Tensor  # increases at each blank or new text
    text: tf.Tensor  # index of the text
    position: tf.Tensor  # in the text

    def part(self, numbers: tf.Tensor) -> _Characters:
        return _Characters(*(tf.gather(column, numbers) for column in self))


class GraphTokenizer:
    """Splits texts into the pieces of a vocabulary; the graph holds its tables as constants."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._words = tensorflow_text.FastWordpieceTokenizer(
            list(tables.pieces),
            suffix_indicator=SUFFIX,
            max_bytes_per_word=MAX_WORD_CHARACTERS * tables.width,
            token_out_type=tf.int32,
            unknown_token=tables.unknown,
            no_pretokenization=True,
        )

    def pieces(self, texts: tf.Tensor) -> RaggedPieces:
        with tf.name_scope("word_pieces"):
            of_class, characters = self._read(texts)
            letters, alone, origin = self._letters(of_class, characters.chunk)
            return self._matched(letters, alone, characters.part(origin), tf.size(texts))

    def _read(self, texts: tf.Tensor) -> tuple[tf.Tensor, _Characters]:
        """Returns the class of each of the [K] characters of words, and the characters."""
        tables = self._tables
        decoded = tf.strings.unicode_decode(texts, "UTF-8", errors="replace")  # [B, (characters)]
        point, text = decoded.flat_values, tf.cast(decoded.value_rowids(), tf.int32)  # [N]
        position = tf.range(tf.size(point)) - tf.gather(tf.cast(decoded.row_splits, tf.int32), text)
        of_class = look_up(tables.class_of, point)
        kind = tf.gather(tables.kind, of_class)
        is_blank = tf.equal(kind, BLANK)
        indices = tf.where(~is_blank & tf.not_equal(kind, DELETED))[:, 0]  # [K]
        characters = _Characters(text + tf.cumsum(tf.cast(is_blank, tf.int32)), text, position).part(indices)
        of_class = tf.gather(of_class, indices)
        if tables.final_sigma is not None:
            is_sigma = tf.equal(tf.gather(point, indices), CAPITAL_SIGMA)
            of_class = self._with_final_sigmas(is_sigma, of_class, characters.chunk)
        return of_class, characters

    def _with_final_sigmas(self, is_sigma: tf.Tensor, of_class: tf.Tensor, chunk: tf.Tensor) -> tf.Tensor:
        """Returns the [K] classes, capital sigmas resolved: at the end of a word they become another letter.

        Neighbours decide it: the next characters of the word that are not ignored. Ideographs divide words.
        """
        tables = self._tables
        word = tf.cumsum(tf.cast(_begins(chunk, tf.equal(tf.gather(tables.kind, of_class), IDEOGRAPH)), tf.int32))
        role = tf.gather(tables.role, of_class)
        seen = tf.where(tf.not_equal(role, IGNORED))[:, 0]  # includes sigmas
        word, cased = tf.gather(word, seen), tf.equal(tf.gather(role, seen), CASED)
        same = tf.equal(word[1:], word[:-1])
        before, after = tf.concat([[False], same & cased[:-1]], axis=0), tf.concat([same & cased[1:], [False]], axis=0)
        is_final = tf.gather(is_sigma, seen) & before & ~after
        final = tf.scatter_nd(seen[:, None], is_final, tf.shape(of_class, out_type=tf.int64))
        return tf.where(final, tables.final_sigma, of_class)

    def _letters(self, of_class: tf.Tensor, chunk: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns [M] letters, whether each is a word of its own, and the index of its source character."""
        tables = self._tables
        count = tf.gather(tables.counts, of_class)
        origin = tf.repeat(tf.range(tf.size(count)), count)
        first = tf.gather(tables.first, of_class) - tf.cumsum(count, exclusive=True)
        number = tf.range(tf.size(origin)) + tf.gather(first, origin)
        number = _sorted(number, tf.gather(tables.order, number), tf.gather(chunk, origin))
        letter = tf.gather(tables.letter, number)
        indices = tf.where(tf.not_equal(letter, REMOVED))[:, 0]
        return tf.gather(letter, indices), tf.gather(tables.alone, tf.gather(number, indices)), tf.gather(origin, indices)

    def _matched(self, letters: tf.Tensor, alone: tf.Tensor, characters: _Characters, texts: tf.Tensor) -> RaggedPieces:
        """Returns the pieces of words from their letters [M], `alone` [M], source characters [M] and texts [B]."""
        first = tf.where(_begins(characters.chunk, alone))[:, 0]  # [W] letter of each word
        splits = tf.concat([first, [tf.size(letters, out_type=tf.int64)]], axis=0)
        words = tf.strings.unicode_encode(tf.RaggedTensor.from_row_splits(letters, splits, validate=False), "UTF-8")
        pieces, start, end = self._words.tokenize_with_offsets(words)  # [W, (pieces)]
        begin = tf.gather(first, pieces.value_rowids())  # [P]
        starts = tf.gather(characters.position, begin + tf.cast(start.values, tf.int64) // self._tables.width)
        ends = tf.gather(characters.position, begin + tf.cast(end.values, tf.int64) // self._tables.width - 1) + 1
        text = tf.cast(tf.gather(characters.text, begin), tf.int64)

        def by_text(column: tf.Tensor) -> tf.RaggedTensor:
            return tf.RaggedTensor.from_value_rowids(column, text, nrows=tf.cast(texts, tf.int64), validate=False)

        return RaggedPieces(by_text(pieces.values), by_text(starts), by_text(ends))


def look_up(table: Paged, points: tf.Tensor) -> tf.Tensor:
    return tf.gather(table.values.reshape(-1), tf.gather(table.page_of, points // PAGE) * PAGE + points % PAGE)


def _begins(chunk: tf.Tensor, alone: tf.Tensor) -> tf.Tensor:
    """Returns whether a word begins at each place: after a blank, and at and after a word of its own."""
    before = tf.concat([[-1], chunk], axis=0)[:-1], tf.concat([[False], alone], axis=0)[:-1]
    return tf.not_equal(chunk, before[0]) | alone | before[1]


def _sorted(number: tf.Tensor, order: tf.Tensor, chunk: tf.Tensor) -> tf.Tensor:
    """Returns [M] letters, adjacent marks in canonical order (Unicode Standard, 3.11); others stay in place.

    number and order are [M], order 0 for letters that are no marks; chunk [M] increases at each blank.
    """
    run = tf.cumsum(tf.cast(_begins(chunk, tf.equal(order, 0)), tf.int64))
    marks = tf.where(order > 0)  # few
    key = tf.gather_nd(run, marks) * _ORDERS + tf.cast(tf.gather_nd(order, marks), tf.int64)
    return tf.tensor_scatter_nd_update(number, marks, tf.gather(tf.gather_nd(number, marks), tf.argsort(key, stable=True)))

"""Words as `extensions.tags.words` splits them, in a graph.

Shapes: B texts; N non-blank characters and W words of all texts, concatenated.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import tensorflow as tf

from bert_tf.extensions.export.saved_model.characters import Text
from bert_tf.extensions.export.saved_model.tokenizer import look_up
from bert_tf.extensions.export.tokenizer_tables import Paged
from bert_tf.extensions.tags import words as rules

_BLANK, _WORD, _DIGIT, _ALPHA, _JOINT, _OF_NUMBERS, _APOSTROPHE = (1 << bit for bit in range(7))
_LETTER = 1 << 7  # the number of a clitic letter is multiplied by it
_BITS = 7  # per character of an abbreviation
_LONGEST = max(map(len, rules.SHORT))
_LETTERS = sorted(set("".join(rules.CLITICS)))


class Words(NamedTuple):
    """The words of texts, [W] each."""

    text: tf.Tensor  # index of the text
    start: tf.Tensor  # first character
    end: tf.Tensor  # exclusive


def split(texts: Text) -> Words:
    all_points, of_text = texts.points.flat_values, tf.cast(texts.points.value_rowids(), tf.int32)
    position = tf.range(tf.size(all_points)) - tf.gather(tf.cast(texts.points.row_starts(), tf.int32), of_text)
    traits = look_up(_traits(), all_points)
    is_blank = _has(traits, _BLANK)
    visible = tf.where(~is_blank)[:, 0]
    chunk = tf.gather(of_text + tf.cumsum(tf.cast(is_blank, tf.int32)), visible)
    begins = _begins(tf.gather(all_points, visible), tf.gather(traits, visible), chunk)
    first = tf.where(begins)[:, 0]
    after = tf.concat([first[1:], [tf.size(visible, out_type=tf.int64)]], axis=0)[: tf.size(first)]
    of_text, position = tf.gather(of_text, visible), tf.gather(position, visible)
    return Words(tf.gather(of_text, first), tf.gather(position, first), tf.gather(position, after - 1) + 1)


def _begins(points: tf.Tensor, traits: tf.Tensor, chunk: tf.Tensor) -> tf.Tensor:
    """[N] whether a word begins at a character.

    `points` [N] are characters, `traits` [N] from `_traits`; `chunk` [N] increases at each blank or new text.
    """
    at = functools.partial(_at, chunk)
    is_word = _has(traits, _WORD)
    clitic = _clitics(traits, chunk, is_word)  # [N] letters of the one that begins at an apostrophe
    in_clitic = (at(clitic, -1) > 0) | tf.equal(at(clitic, -2), 2)
    between = at(is_word, -1) & at(is_word, 1) & ~at(in_clitic, -1)
    of_digits = at(_has(traits, _DIGIT), -1) & at(_has(traits, _DIGIT), 1)
    joined = _has(traits, _JOINT) & between & (of_digits | ~_has(traits, _OF_NUMBERS)) & tf.equal(clitic, 0)
    goes_on = joined | in_clitic | (is_word & (at(is_word, -1) | at(joined, -1)))
    is_period = tf.equal(points, ord(".")) & ~joined & at(is_word & ~in_clitic, -1)
    return ~goes_on & ~(is_period & at(_is_short(points, traits, ~goes_on), -1))


def _clitics(traits: tf.Tensor, chunk: tf.Tensor, is_word: tf.Tensor) -> tf.Tensor:
    """[N] length of the clitic that begins with an apostrophe here; 0 if there is none."""
    first, second, third = (_at(chunk, is_word, step) for step in (1, 2, 3))
    letter, following = (_at(chunk, traits // _LETTER, step) for step in (1, 2))
    of_one = first & ~second & _is_any(letter, [_number(clitic[0]) for clitic in rules.CLITICS if len(clitic) == 1])
    pairs = [_number(clitic[0]) * _LETTER + _number(clitic[1]) for clitic in rules.CLITICS if len(clitic) == 2]
    of_two = first & second & ~third & _is_any(letter * _LETTER + following, pairs)
    size = tf.where(of_one, 1, tf.where(of_two, 2, 0))
    return tf.where(_has(traits, _APOSTROPHE), size, 0)


def _is_short(points: tf.Tensor, traits: tf.Tensor, begins: tf.Tensor) -> tf.Tensor:
    """[N] whether a period after the character's word belongs to it: U.S., J., Dr."""
    word = tf.cumsum(tf.cast(begins, tf.int32)) - 1  # [N]
    first = tf.cast(tf.where(begins)[:, 0], tf.int32)
    number = tf.range(tf.size(points)) - tf.gather(first, word)  # of the character in its word
    is_period = tf.equal(points, ord("."))
    alternates = tf.math.segment_min(tf.cast(tf.equal(tf.equal(number % 2, 1), is_period), tf.int32), word) > 0
    is_initials = alternates & tf.gather(_has(traits, _ALPHA), first)
    # Letters of ASCII, packed into an integer that is unique among texts of any length.
    key = tf.cast(tf.minimum(points, (1 << _BITS) - 1), tf.int64) * tf.bitwise.left_shift(
        tf.ones_like(points, tf.int64), tf.cast(_BITS * tf.minimum(number, _LONGEST), tf.int64)
    )
    known = [sum(ord(letter) << _BITS * place for place, letter in enumerate(short)) for short in rules.SHORT]
    is_known = _is_any(tf.math.segment_sum(key, word), known)
    return tf.gather(is_initials | is_known, word)


def _at(chunk: tf.Tensor, values: tf.Tensor, step: int) -> tf.Tensor:
    """[N] values `step` characters further in the same chunk; False or 0 if there is none."""
    size = tf.size(chunk)
    target = tf.range(size) + step
    inside = tf.clip_by_value(target, 0, tf.maximum(size - 1, 0))
    same = tf.equal(target, inside) & tf.equal(tf.gather(chunk, inside), chunk)
    shifted = tf.gather(values, inside)
    return tf.where(same, shifted, tf.zeros_like(shifted))


def _is_any(values: tf.Tensor, known: list[int]) -> tf.Tensor:
    return tf.reduce_any(tf.equal(values[:, None], tf.constant(sorted(known), values.dtype)[None]), axis=1)


def _has(traits: tf.Tensor, trait: int) -> tf.Tensor:
    return tf.not_equal(tf.bitwise.bitwise_and(traits, trait), 0)


@functools.cache
def _traits() -> Paged:
    return Paged.from_function(_trait)


def _trait(c: str) -> int:
    if c.isspace():
        return _BLANK
    is_word = rules.kind_of(c) == rules.WORD
    marks = (
        (_WORD, is_word),
        (_DIGIT, c.isdigit()),
        (_ALPHA, c.isalpha()),
        (_JOINT, c in rules.JOINTS),
        (_OF_NUMBERS, c in rules.OF_NUMBERS),
        (_APOSTROPHE, c in rules.APOSTROPHES),
    )
    return sum(bit for bit, applies in marks if applies) + _LETTER * _number(c.lower())


def _number(letter: str) -> int:
    """Index of a clitic letter from 1; 0 for others."""
    return _LETTERS.index(letter) + 1 if letter in _LETTERS else 0

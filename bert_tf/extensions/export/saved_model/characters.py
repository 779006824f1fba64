"""Characters of UTF-8 texts with their byte offsets, in a graph. Shapes: B texts; W parts of all texts, concatenated."""

from __future__ import annotations

import functools
from typing import NamedTuple

import tensorflow as tf

from bert_tf.extensions.export.saved_model.tokenizer import look_up
from bert_tf.extensions.export.tokenizer_tables import Paged


class Text(NamedTuple):
    """Texts and their characters."""

    whole: tf.Tensor  # [B] texts
    points: tf.RaggedTensor  # [B, (characters)] code points; U+FFFD for invalid bytes
    offsets: tf.RaggedTensor  # [B, (characters)] first byte of each character

    @classmethod
    def of(cls, texts: tf.Tensor) -> Text:
        return cls(texts, *tf.strings.unicode_decode_with_offsets(texts, "UTF-8"))

    def are_blank(self) -> tf.Tensor:
        """[B], whether a text has only whitespace."""
        is_blank = look_up(_blanks(), self.points.flat_values)
        return tf.math.unsorted_segment_min(is_blank, self.points.value_rowids(), self.points.nrows()) > 0

    def cut(self, starts: tf.Tensor, ends: tf.Tensor) -> tf.Tensor:
        """A substring of each text, from character `starts` [B] up to `ends` [B], exclusive."""
        return self.parts(tf.range(tf.size(self.whole)), starts, ends)

    def parts(self, texts: tf.Tensor, starts: tf.Tensor, ends: tf.Tensor) -> tf.Tensor:
        """Substrings [W]: of text number `texts` [W], from character `starts` [W] up to `ends` [W], exclusive."""
        first, after = (self._byte(texts, place) for place in (starts, ends))
        return tf.strings.substr(tf.gather(self.whole, texts), first, after - first)

    def _byte(self, texts: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
        """[W] byte offset of a character; the end of the text for the position after the last one."""
        places = tf.cast(places, tf.int64)
        is_end = places >= tf.gather(self.offsets.row_lengths(), texts)
        at = tf.gather(self.offsets.row_starts(), texts) + tf.where(is_end, tf.zeros_like(places), places)
        inside = tf.gather(tf.concat([self.offsets.values, [0]], axis=0), at)
        return tf.where(is_end, tf.cast(tf.gather(tf.strings.length(self.whole), texts), tf.int64), inside)


@functools.cache
def _blanks() -> Paged:
    return Paged.from_function(str.isspace)

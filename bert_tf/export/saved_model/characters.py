"""Characters of texts in UTF-8, and where they are in bytes.

Shapes: B texts.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import tensorflow as tf

from bert_tf.tokenization.graph import look_up
from bert_tf.tokenization.tables import Paged


class Text(NamedTuple):
    """Texts and their characters.

    Attributes:
      whole: [B] the texts.
      points: [B, (characters)] code points; U+FFFD where the bytes are none.
      offsets: [B, (characters)] first byte of each character.
    """

    whole: tf.Tensor
    points: tf.RaggedTensor
    offsets: tf.RaggedTensor

    @classmethod
    def of(cls, texts: tf.Tensor) -> Text:
        """Returns the characters of [B] texts."""
        return cls(texts, *tf.strings.unicode_decode_with_offsets(texts, "UTF-8"))

    def are_blank(self) -> tf.Tensor:
        """Returns [B] whether a text has nothing but blanks."""
        is_blank = look_up(_blanks(), self.points.flat_values)
        return tf.math.unsorted_segment_min(is_blank, self.points.value_rowids(), self.points.nrows()) > 0

    def cut(self, starts: tf.Tensor, ends: tf.Tensor) -> tf.Tensor:
        """Returns a part of each text.

        Args:
          starts: [B] first characters.
          ends: [B] the ones after the last.
        """
        return self.parts(tf.range(tf.size(self.whole)), starts, ends)

    def parts(self, texts: tf.Tensor, starts: tf.Tensor, ends: tf.Tensor) -> tf.Tensor:
        """Returns [W] parts of texts.

        Args:
          texts: [W] which text each is of.
          starts: [W] first characters.
          ends: [W] the ones after the last.
        """
        first, after = (self._byte(texts, place) for place in (starts, ends))
        return tf.strings.substr(tf.gather(self.whole, texts), first, after - first)

    def _byte(self, texts: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
        """Returns [W] the first byte of a character of a text, for the place after the last the byte after the last."""
        places = tf.cast(places, tf.int64)
        is_end = places >= tf.gather(self.offsets.row_lengths(), texts)
        at = tf.gather(self.offsets.row_starts(), texts) + tf.where(is_end, tf.zeros_like(places), places)
        inside = tf.gather(tf.concat([self.offsets.values, [0]], axis=0), at)
        return tf.where(is_end, tf.cast(tf.gather(tf.strings.length(self.whole), texts), tf.int64), inside)


@functools.cache
def _blanks() -> Paged:
    return Paged.of(str.isspace)

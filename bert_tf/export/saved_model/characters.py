"""Characters of texts in UTF-8, and where they are in bytes.

Shapes: B texts.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf


class Text(NamedTuple):
    """Texts and their characters.

    Attributes:
      whole: [B] the texts.
      points: [B, (characters)] code points; U+FFFD where the bytes are none.
      offsets: [B, (characters + 1)] first byte of each character, and the byte after the last.
    """

    whole: tf.Tensor
    points: tf.RaggedTensor
    offsets: tf.RaggedTensor

    @classmethod
    def of(cls, texts: tf.Tensor) -> Text:
        """Returns the characters of [B] texts."""
        points, offsets = tf.strings.unicode_decode_with_offsets(texts, "UTF-8")
        ends = tf.RaggedTensor.from_row_lengths(
            tf.cast(tf.strings.length(texts), tf.int64), tf.ones_like(points.row_lengths()), validate=False
        )
        return cls(texts, points, tf.concat([offsets, ends], axis=1))

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
        at = tf.gather(self.offsets.row_starts(), texts) + tf.cast(places, tf.int64)
        return tf.gather(self.offsets.values, at)

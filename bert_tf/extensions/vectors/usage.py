"""Code of a card of vectors."""

from bert_tf.extensions.card.usage import ENCODE, TEXT, Usage

USAGE = Usage(TEXT, call="", line="", transformers=ENCODE)

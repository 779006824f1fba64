"""Code of a card of vectors."""

from bert_tf.card.usage import ENCODE, TEXT, Usage

USAGE = Usage(TEXT, call="", line="", transformers=ENCODE)

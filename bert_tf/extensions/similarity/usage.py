"""Code of a card of a model of similar texts."""

from bert_tf.extensions.card.usage import ENCODE, PAIR, Usage

USAGE = Usage(PAIR, "model.predict([{row}])[0].cosine", transformers=ENCODE)

"""Request and response of the service for pairs of texts."""

from bert_tf.extensions.serve.forms import PAIR, PAIR_EXAMPLE, PAIR_FIELDS, PAIR_OF_ROWS, Form, either

FORM = Form(
    "Scores the similarity of two texts and embeds texts.", either(PAIR, PAIR_OF_ROWS), PAIR_EXAMPLE, PAIR_FIELDS, "pair"
)

"""Code of a card of a pre-training model."""

from bert_tf import extension
from bert_tf.extensions.card.usage import PIPELINE, Usage

USAGE = Usage(
    {"text": "It rained all [MASK]."},
    extension.advice("fill-mask", "model.fill_mask([{row}])[0][0].words"),
    extension.advice("fill-mask", "python -m bert_tf fill-mask {place} --text={row}"),
    transformers=PIPELINE.format(task="fill-mask", options="", row="{text}"),
)

"""Code of a card of tags."""

from bert_tf.extensions.card.usage import PIPELINE, Usage

USAGE = Usage(
    {"text": "Ada built the mill in 1871."},
    "model.predict([{row}])[0].entities",
    transformers=PIPELINE.format(task="token-classification", options=', aggregation_strategy="simple"', row="{text}"),
)

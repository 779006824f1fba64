"""Code of a card of questions about a text."""

from bert_tf.extensions.card.usage import CLASS, Usage

_ANSWER = """\
inputs = tokenizer({question}, {context}, truncation="only_second", return_tensors="pt")
with torch.no_grad():
    outputs = model(**inputs)
start, end = int(outputs.start_logits.argmax()), int(outputs.end_logits.argmax())
tokenizer.decode(inputs["input_ids"][0, start : end + 1])"""

USAGE = Usage(
    {"question": "Who built the mill?", "context": "Ada built the mill in 1871."},
    named=True,
    transformers=CLASS.replace("{name}", "AutoModelForQuestionAnswering") + _ANSWER,  # transformers 5 has no pipeline for it
)

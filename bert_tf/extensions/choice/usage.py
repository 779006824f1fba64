"""Code of a card of multiple choice."""

from bert_tf.extensions.card.usage import CLASS, Usage

_CHOOSE = """\
context, question, options = {context}, {question}, {options}
endings = [f"{{question}} {{option}}" for option in options]
inputs = tokenizer([context] * len(options), endings, padding=True, truncation=True, return_tensors="pt")
with torch.no_grad():
    logits = model(**{{name: rows[None] for name, rows in inputs.items()}}).logits
options[int(logits.argmax())]"""

USAGE = Usage(
    {"context": "It rained all night.", "question": "In the morning the street", "options": ["was wet.", "sang."]},
    "model.predict([{row}])[0].option",
    transformers=CLASS.replace("{name}", "AutoModelForMultipleChoice") + _CHOOSE,
)

"""Code of a card that loads the model and predicts; it runs in the folder of the card."""

from __future__ import annotations

from bert_tf.head_spec import (
    CHOICE,
    CLASSIFICATION,
    CONTRASTIVE,
    MULTI_LABEL,
    PRETRAINING,
    REGRESSION,
    SIMILARITY,
    SPAN,
    TAGS,
    VECTORS,
)

_TEXT, _PAIR = '"He left."', '("He left.", "He went away.")'
_QUESTION, _CONTEXT = '"Who built the mill?"', '"Ada built the mill in 1871."'
_MASKED = "It rained all [MASK]."
_CHOICE = '"It rained all night.", "In the morning the street", ["was wet.", "sang."]'
_SENTENCES = (CLASSIFICATION, REGRESSION, MULTI_LABEL)

_CALLS = {  # of a model of this package, by kind
    SPAN: f'model.predict([{{"question": {_QUESTION}, "context": {_CONTEXT}}}])[0].label',
    TAGS: "model.predict([" + _CONTEXT + "])[0].entities",
    CHOICE: f"model.predict([({_CHOICE})])[0].option",
    SIMILARITY: f"model.predict([{_PAIR}])[0].cosine",
    CONTRASTIVE: f"model.predict([{_PAIR}])[0].cosine",
    PRETRAINING: f'model.fill_mask(["{_MASKED}"])[0][0].words',
}
_OPTIONS_OF = {  # of a pipeline
    REGRESSION: ', function_to_apply="none"',
    MULTI_LABEL: ", top_k=None",
    TAGS: ', aggregation_strategy="simple"',
}
_PIPELINE = """\
from transformers import pipeline

model = pipeline("{task}", model="."{options})
model({row})"""
_CLASS = """\
import torch
from transformers import {name}, AutoTokenizer

tokenizer, model = AutoTokenizer.from_pretrained("."), {name}.from_pretrained(".")
"""
_ANSWER = f"""\
inputs = tokenizer({_QUESTION}, {_CONTEXT}, truncation="only_second", return_tensors="pt")
with torch.no_grad():
    outputs = model(**inputs)
start, end = int(outputs.start_logits.argmax()), int(outputs.end_logits.argmax())
tokenizer.decode(inputs["input_ids"][0, start : end + 1])"""
_CHOOSE = f"""\
context, question, options = {_CHOICE}
endings = [f"{{question}} {{option}}" for option in options]
inputs = tokenizer([context] * len(options), endings, padding=True, truncation=True, return_tensors="pt")
with torch.no_grad():
    logits = model(**{{name: rows[None] for name, rows in inputs.items()}}).logits
options[int(logits.argmax())]"""
_ENCODE = f"""\
from sentence_transformers import SentenceTransformer

model = SentenceTransformer(".")
model.encode([{_TEXT}])"""


def package(kind: str, place: str, *, pairs: bool) -> tuple[str, str]:
    """Python code and a command line, empty if there is none; `place` is the run or its checkpoint."""
    call = f"model.predict([{_PAIR if pairs else _TEXT}])[0].label" if kind in _SENTENCES else _CALLS.get(kind, "")
    line = f"python -m bert_tf predict --checkpoint={place} --input=FILE --output=predictions.tsv" if call else ""
    if kind == PRETRAINING:
        line = f'python -m bert_tf fill-mask {place} --text="{_MASKED}"'
    return f'import bert_tf\n\nmodel = bert_tf.load("{place}")\n{call}'.rstrip(), line


def transformers(kind: str, pipeline: str, *, pairs: bool) -> str:
    """Code for a folder in Hugging Face's layout."""
    if kind in (SIMILARITY, CONTRASTIVE, VECTORS):
        return _ENCODE
    if kind == SPAN:  # transformers 5 has no pipeline for it
        return _CLASS.format(name="AutoModelForQuestionAnswering") + _ANSWER
    if kind == CHOICE:
        return _CLASS.format(name="AutoModelForMultipleChoice") + _CHOOSE
    rows = {PRETRAINING: f'"{_MASKED}"', TAGS: _CONTEXT}
    text = '{"text": "He left.", "text_pair": "He went away."}' if pairs else _TEXT
    options = _OPTIONS_OF.get(kind, "")
    return _PIPELINE.format(task=pipeline, options=options, row=rows.get(kind, f"{text}, truncation=True"))

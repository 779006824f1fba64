"""Task families as users of transformers write them: model, texts, features, batches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import torch
import transformers
from protocol import WorkerError, read_texts

_STRIDE = 128  # tokens that a window has in common with the next
_NO_TAG = -100  # of tokens that do not count in the loss


def read_questions(workload):
    """Returns questions, their contexts, and (text, first character) of their answers."""
    data = json.loads(Path(workload.texts).read_text(encoding="utf-8"))["data"]
    paragraphs = [paragraph for article in data for paragraph in article["paragraphs"]]
    asked = [(found, paragraph["context"]) for paragraph in paragraphs for found in paragraph["qas"]]
    answers = [(found["answers"][0]["text"], found["answers"][0]["answer_start"]) for found, _ in asked]
    return [found["question"] for found, _ in asked], [context for _, context in asked], answers


def read_words(workload):
    """Returns words and the indices of their tags."""
    rows = [json.loads(line) for line in Path(workload.texts).read_text(encoding="utf-8").split("\n") if line]
    number_of = {label: number for number, label in enumerate(workload.labels)}
    return [row["tokens"] for row in rows], [[number_of[tag] for tag in row["tags"]] for row in rows]


def encode_pairs(tokenizer, texts, workload, padding=False):
    first, second, labels = texts
    limit = workload.max_seq_length
    return {**tokenizer(first, second, truncation="longest_first", max_length=limit, padding=padding).data, "labels": labels}


def encode_questions(tokenizer, texts, workload, padding=False):
    """Returns the columns of windows, with first and last token of the answer; both 0 if it is outside the window."""
    questions, contexts, answers = texts
    found = tokenizer(
        questions,
        contexts,
        truncation="only_second",
        max_length=workload.max_seq_length,
        stride=_STRIDE,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
        padding=padding,
    )
    ends = [answer_tokens(found, row, answers[sample]) for row, sample in enumerate(found["overflow_to_sample_mapping"])]
    columns = {name: found[name] for name in ("input_ids", "token_type_ids", "attention_mask")}
    return {**columns, "start_positions": [first for first, _ in ends], "end_positions": [last for _, last in ends]}


def answer_tokens(found, row, answer):
    text, start = answer
    first, last = (found.char_to_token(row, character, 1) for character in (start, start + len(text) - 1))
    return (0, 0) if first is None or last is None else (first, last)


def encode_words(tokenizer, texts, workload, padding=False):
    """Returns the feature columns of words; a word's first piece has its tag."""
    words, tags = texts
    found = tokenizer(words, is_split_into_words=True, truncation=True, max_length=workload.max_seq_length, padding=padding)
    return {**found.data, "labels": [tags_of_tokens(found.word_ids(row), some) for row, some in enumerate(tags)]}


def tags_of_tokens(words, tags):
    """Returns each token's tag, from the index of its word or None."""
    before = [None, *words]
    return [_NO_TAG if word is None or word == last else tags[word] for word, last in zip(words, before)]


class Kind(NamedTuple):
    """A family."""

    model: type  # class
    head: object  # name of the last layer; None if it is pretrained
    read: object = None  # returns the columns of a workload's texts; None if not measured
    encode: object = None  # returns feature columns
    collator: type = transformers.DataCollatorWithPadding  # class that makes batches


KINDS = {
    "classification": Kind(
        transformers.AutoModelForSequenceClassification, "classifier", lambda workload: read_texts(workload.texts), encode_pairs
    ),
    "span": Kind(transformers.AutoModelForQuestionAnswering, "qa_outputs", read_questions, encode_questions),
    "tags": Kind(
        transformers.AutoModelForTokenClassification,
        "classifier",
        read_words,
        encode_words,
        transformers.DataCollatorForTokenClassification,
    ),
    "choice": Kind(transformers.AutoModelForMultipleChoice, "classifier"),
    "pretraining": Kind(transformers.BertForPreTraining, None),
}


def load_pretrained(kind, folder, **settings):
    """Loads the model of a kind from a folder, which must lack its own last layer and nothing else."""
    kind = KINDS[kind]
    model, info = kind.model.from_pretrained(folder, dtype=torch.float32, output_loading_info=True, **settings)
    if set(info["missing_keys"]) != ({f"{kind.head}.weight", f"{kind.head}.bias"} if kind.head else set()):
        raise WorkerError(f"not in {folder}: {', '.join(sorted(info['missing_keys']))}")
    return model

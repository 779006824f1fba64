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


def read_lines(*names):
    """Returns what reads these columns from a workload's lines."""

    def read(workload):
        rows = [json.loads(line) for line in Path(workload.texts).read_text(encoding="utf-8").split("\n") if line]
        return [[row[name] for row in rows] for name in names]

    return read


def read_words(workload):
    """Returns words and the indices of their tags."""
    number_of = {label: number for number, label in enumerate(workload.labels)}
    words, tags = read_lines("tokens", "tags")(workload)
    return words, [[number_of[tag] for tag in some] for some in tags]


def encode_options(tokenizer, texts, workload, padding=False):
    """Returns the columns of questions, each a list of its options' rows."""
    contexts, options, labels = texts
    found = [
        tokenizer([context] * len(some), some, truncation="longest_first", max_length=workload.max_seq_length, padding=padding)
        for context, some in zip(contexts, options)
    ]
    return {**{name: [one[name] for one in found] for name in found[0]}, "labels": labels}


def encode_apart(tokenizer, texts, workload, padding=False):
    """Returns the columns of pairs, each a list of both texts' rows."""
    first, second, labels = texts
    pairs = list(zip(first, second))
    found = [tokenizer(list(pair), truncation=True, max_length=workload.max_seq_length, padding=padding) for pair in pairs]
    return {**{name: [one[name] for one in found] for name in found[0]}, "labels": labels}


def encode_pieces(tokenizer, texts, workload, padding=False):
    """Returns the columns of rows that are word pieces already; the collator masks."""
    del workload, padding
    pieces, are_random = texts
    ids = [tokenizer.convert_tokens_to_ids(row) for row in pieces]
    seconds = [row.index(tokenizer.sep_token) + 1 for row in pieces]
    segments = [[int(place >= second) for place in range(len(row))] for row, second in zip(pieces, seconds)]
    return {"input_ids": ids, "token_type_ids": segments, "next_sentence_label": are_random}


class TextsApart:
    """Pads the first texts of pairs and the second ones, each to the longest of them."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    def __call__(self, rows):
        names = [name for name in rows[0] if name != "labels"]
        sides = [self.tokenizer.pad([{n: row[n][side] for n in names} for row in rows], return_tensors="pt") for side in (0, 1)]
        named = {f"{name}_{side}": column for side, found in enumerate(sides) for name, column in found.items()}
        return {**named, "labels": torch.tensor([row["labels"] for row in rows], dtype=torch.float32)}


class OfPairs(torch.nn.Module):
    """An encoder whose mean token vectors are trained on pairs (Reimers and Gurevych, 2019; Henderson et al., 2017)."""

    temperature = None  # of cosines to all second texts of the batch; None to learn a pair's own cosine

    def __init__(self, encoder):
        super().__init__()
        self.encoder, self.config = encoder, encoder.config

    def forward(self, labels, **columns):
        first, second = (self.directions(columns, f"_{side}") for side in (0, 1))
        if self.temperature is None:
            loss = torch.nn.functional.mse_loss((first * second).sum(1), labels)
        else:
            own = torch.arange(len(first))
            loss = torch.nn.functional.cross_entropy(first @ second.T / self.temperature, own)
        return transformers.modeling_outputs.SequenceClassifierOutput(loss=loss, logits=first)

    def directions(self, columns, end):
        """Returns the [B, D] unit vectors of one side."""
        inputs = {name[: -len(end)]: column for name, column in columns.items() if name.endswith(end)}
        mask = inputs["attention_mask"].unsqueeze(-1)
        sums = (self.encoder(**inputs).last_hidden_state * mask).sum(1)
        return torch.nn.functional.normalize(sums / mask.sum(1))


class AmongPairs(OfPairs):
    """Trained to tell the second text of a pair from those of the other pairs."""

    temperature = 0.05


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
    goal: type = None  # module that trains the model, if that has no loss of its own


PAIRS = read_lines("text_a", "text_b", "label")

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
    "choice": Kind(
        transformers.AutoModelForMultipleChoice,
        "classifier",
        read_lines("context", "options", "label"),
        encode_options,
        transformers.DataCollatorForMultipleChoice,
    ),
    "similarity": Kind(transformers.AutoModel, None, PAIRS, encode_apart, TextsApart, OfPairs),
    "contrastive": Kind(transformers.AutoModel, None, PAIRS, encode_apart, TextsApart, AmongPairs),
    "pretraining": Kind(
        transformers.AutoModelForPreTraining,
        None,
        read_lines("pieces", "is_random"),
        encode_pieces,
        transformers.DataCollatorForLanguageModeling,
    ),
}


def load_pretrained(kind, folder, **settings):
    """Loads the model of a kind from a folder, which must lack its own last layer and nothing else."""
    kind = KINDS[kind]
    model, info = kind.model.from_pretrained(folder, dtype=torch.float32, output_loading_info=True, **settings)
    if set(info["missing_keys"]) != ({f"{kind.head}.weight", f"{kind.head}.bias"} if kind.head else set()):
        raise WorkerError(f"not in {folder}: {', '.join(sorted(info['missing_keys']))}")
    return model

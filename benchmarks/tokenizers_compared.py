"""Texts with other ids in an export.

    python -m benchmarks.tokenizers_compared EXPORTED [--mrpc=DIR] [--squad=FILE]

EXPORTED is written by `export --format=huggingface`; `tokenizers` reads its tokenizer.json, TensorFlow the graph of
a SavedModel. Odd strings are seeded, 100 of each class; pairs are cut to 128 and to 64 tokens.
"""

from __future__ import annotations

import argparse
import collections
import json
import random
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.features import sentences
from bert_tf.tasks.base import DEV, TEST, TRAIN
from bert_tf.tasks.registry import get_task
from bert_tf.tokenization.characters import IDEOGRAPHS, MAX_WORD_CHARACTERS
from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

Pair = tuple[str, str]
Ids = Callable[[Sequence[str]], list[list[int]]]

EACH = 100
_LENGTHS = (128, 64)
_WORDS = ("a", "the", "e", "caf", "un", "able", "news", "19", "o", "UN", "Res")


def odd_strings(each: int = EACH, seed: int = 0) -> dict[str, list[str]]:
    """Returns `each` odd strings by class of oddity, the same for the same seed."""
    rng = random.Random(seed)  # noqa: S311  (chooses texts)

    def text(parts: Sequence[str]) -> str:
        pieces = (rng.choice(_WORDS) + "".join(rng.choices(parts, k=rng.choice((1, 1, 2, 3)))) for _ in range(4))
        return "".join(piece + rng.choice(("", " ", rng.choice(_WORDS))) for piece in pieces)

    return {name: [text(parts) for _ in range(each)] for name, parts in _parts().items()}


def _parts() -> Mapping[str, Sequence[str]]:
    by_category = collections.defaultdict(list)
    for point in range(sys.maxunicode + 1):
        by_category[unicodedata.category(chr(point))].append(chr(point))

    def of(*names: str) -> list[str]:
        return [c for category, some in by_category.items() if category.startswith(names) for c in some]

    assigned = "".join(of("L", "M", "N", "P", "S", "Z", "Cc", "Cf"))
    letters = IDEOGRAPHS.sub("", assigned)
    sorted_marks = [c for c in letters if unicodedata.combining(c)]
    return {
        "unassigned": of("Cn"),
        "private": of("Co"),
        "control": of("Cc"),
        "format": of("Cf"),
        "blank": of("Z"),
        "mark without width": of("Mn"),
        "mark with width": of("Mc", "Me"),
        "mark with width that is sorted": [c for c in sorted_marks if unicodedata.category(c) != "Mn"],
        "several marks": ["".join(pair) for pair in zip(sorted_marks, sorted_marks[7:])],
        "punctuation": of("P"),
        "symbol": of("S"),
        "number": of("N"),
        "capital": [c for c in letters if c != c.lower()],
        "capital sigma": ["Σ", "ΛΟΓΟΣ ", "Σ\u0301", "ΑΣ.", "'Σ"],
        "decomposed": [c for c in letters if unicodedata.normalize("NFD", c) != c],
        "letter": of("Lo", "Lm"),
        "ideograph": IDEOGRAPHS.findall(assigned),
        "newer than Unicode 3.2": [c for c in letters if unicodedata.ucd_3_2_0.category(c) == "Cn"],
        "piece with a meaning": [*SPECIAL_TOKENS, "[unused1]", "##s"],
        "word of about 200 characters": ["a" * (MAX_WORD_CHARACTERS + more) + " " for more in (-101, -99, -4, -1, 0, 1)],
    }


def library(folder: Path) -> Ids:
    import tokenizers

    read = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    return lambda texts: [one.ids for one in read.encode_batch(list(texts), add_special_tokens=False)]


def graph(vocabulary: Vocabulary, *, lower_case: bool) -> Ids:
    import tensorflow as tf

    from bert_tf.extensions.export.saved_model.tokenizer import GraphTokenizer
    from bert_tf.extensions.export.tokenizer_tables import tables

    tokenizer = GraphTokenizer(tables(vocabulary, lower_case=lower_case))
    return lambda texts: _lists(tokenizer.pieces(tf.constant(list(texts))).ids)


def _lists(ragged: Any) -> list[list[int]]:
    values, splits = ragged.values.numpy().tolist(), ragged.row_splits.numpy().tolist()
    return [values[start:end] for start, end in zip(splits, splits[1:])]


def different(texts: Sequence[str], ours: WordPieceTokenizer, theirs: Ids) -> list[str]:
    return [text for text, ids in zip(texts, theirs(texts)) if ids != ours.ids(text)]


def different_pairs(pairs: Sequence[Pair], ours: WordPieceTokenizer, folder: Path, length: int) -> tuple[int, int]:
    """Returns how many pairs exceed `length` tokens, and how many get other ids from `tokenizers`."""
    import tokenizers

    read = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    read.enable_truncation(length, strategy="longest_first")
    rows = sentences.build(pairs, None, ours, max_seq_length=length)
    ends = rows.lengths.cumsum()
    found = [one.ids for one in read.encode_batch(list(pairs))]
    wanted = [rows.token_ids[end - size : end].tolist() for end, size in zip(ends, rows.lengths)]
    return rows.truncated, sum(one != other for one, other in zip(found, wanted))


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tokenizers_compared")
    parser.add_argument("exported", type=Path, help="folder that export --format=huggingface wrote")
    parser.add_argument("--mrpc", type=Path, help="folder of MRPC's files")
    parser.add_argument("--squad", type=Path, help="file in SQuAD's layout: questions and their paragraphs")
    asked = parser.parse_args(arguments)
    vocabulary = Vocabulary.from_file(asked.exported / "vocab.txt")
    lower_case = json.loads((asked.exported / "tokenizer_config.json").read_text())["do_lower_case"]
    ours = WordPieceTokenizer(vocabulary, lower_case=lower_case)
    for row in (*_odd_rows(asked.exported, vocabulary, ours), "", *_pair_rows(asked, ours)):
        sys.stdout.write(f"{row}\n")


def _odd_rows(folder: Path, vocabulary: Vocabulary, ours: WordPieceTokenizer) -> Iterator[str]:
    others = library(folder), graph(vocabulary, lower_case=ours.lower_case)
    total = [0, 0, 0]
    yield from ("| odd strings | of | tokenizer.json | SavedModel |", "|---|---|---|---|")
    for name, texts in odd_strings().items():
        row = [len(texts), *(len(different(texts, ours, theirs)) for theirs in others)]
        total = [sum(pair) for pair in zip(total, row)]
        yield f"| {name} | {' | '.join(map(str, row))} |"
    yield f"| all | {' | '.join(map(str, total))} |"


def _pair_rows(asked: argparse.Namespace, ours: WordPieceTokenizer) -> Iterator[str]:
    yield from ("| pairs | rows | tokens | longer | tokenizer.json |", "|---|---|---|---|---|")
    for name, pairs in (("MRPC", _mrpc(asked.mrpc)), ("question and paragraph", _squad(asked.squad))):
        for length in _LENGTHS if pairs else ():
            counts = different_pairs(pairs, ours, asked.exported, length)
            yield f"| {name} | {len(pairs)} | {length} | {' | '.join(map(str, counts))} |"


def _mrpc(folder: Path | None) -> list[Pair]:
    if folder is None:
        return []
    task = get_task("MRPC")
    splits = [split for purpose in (TRAIN, DEV, TEST) for split in task.splits(folder, purpose)]
    return [(one.text_a, one.text_b) for split in splits for one in task.examples(folder, split)]


def _squad(file: Path | None) -> list[Pair]:
    articles = json.loads(file.read_text(encoding="utf-8"))["data"] if file else []
    paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]]
    return [(asked["question"], paragraph["context"]) for paragraph in paragraphs for asked in paragraph["qas"]]


if __name__ == "__main__":
    main(sys.argv[1:])

"""The bundled samples are what data/README.md says."""

import collections
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bert_tf.extensions.tags import schemes
from bert_tf.tasks.registry import get_task

FOLDER = Path(__file__).resolve().parents[1] / "data" / "sample"


def examples(task, splits=("train", "dev", "test")):
    return {split: get_task(task).examples(FOLDER / task, split) for split in splits}


def test_pairs_are_many_two_thirds_paraphrases_and_no_sentence_occurs_twice():
    by_split = examples("MRPC")
    assert all(len(by_split[split]) >= least for split, least in (("train", 400), ("dev", 100), ("test", 100)))
    for split in ("train", "dev"):
        labels = [example.label for example in by_split[split]]
        assert labels.count("1") / len(labels) == pytest.approx(2 / 3, abs=0.02)
    counts = collections.Counter(text for rows in by_split.values() for one in rows for text in (one.text_a, one.text_b))
    assert max(counts.values()) == 1


def words(text):
    return re.findall(r"\w+|[^\w\s]", text.lower())


def shallow_features(example):
    """Lengths and overlaps of words and of word pairs: what a model sees that does not know what words mean."""
    a, b = words(example.text_a), words(example.text_b)
    pairs_a, pairs_b = set(zip(a, a[1:])), set(zip(b, b[1:]))
    shared = len(set(a) & set(b))
    return [
        *(len(a), len(b), len(a) - len(b), abs(len(a) - len(b))),
        *(shared / len(set(a) | set(b)), shared / min(len(set(a)), len(set(b)))),
        len(pairs_a & pairs_b) / len(pairs_a | pairs_b),
    ]


def test_lengths_and_overlap_of_pairs_do_not_beat_the_majority():
    rows, labels = {}, {}
    for split, of_split in examples("MRPC", ("train", "dev")).items():
        rows[split] = [shallow_features(example) for example in of_split]
        labels[split] = np.array([example.label == "1" for example in of_split])
    shallow = make_pipeline(StandardScaler(), LogisticRegression()).fit(rows["train"], labels["train"])
    assert shallow.score(rows["dev"], labels["dev"]) <= labels["dev"].mean() + 0.01


def test_sentences_with_tags_are_as_many_as_is_said_none_occurs_twice_and_most_names_of_dev_are_new():
    by_split = examples("CoNLL2003")
    assert {split: len(rows) for split, rows in by_split.items()} == {"train": 196, "dev": 60, "test": 16}
    assert len({example.words for rows in by_split.values() for example in rows}) == 196 + 60 + 16
    train, dev = (
        {" ".join(one.words[first:end]) for one in by_split[split] for _, first, end in schemes.entities_of(one.label)}
        for split in ("train", "dev")
    )
    assert len(dev & train) < 0.1 * len(dev)  # else a model could learn them by heart


def test_questions_have_four_endings_of_which_one_is_theirs_and_no_situation_is_in_two_splits():
    by_split = examples("SWAG")
    assert {len(set(example.options)) for rows in by_split.values() for example in rows} == {4}
    assert all({example.label for example in by_split[split]} == {0, 1, 2, 3} for split in ("train", "dev"))
    contexts = [one.context for rows in by_split.values() for one in rows]
    assert len(set(contexts)) == len(contexts)


def test_pairs_of_the_sample_have_scores_of_sts_b():
    pairs = examples("STS-B-vectors", ["train"])["train"]
    assert len(pairs) >= 100
    assert {example.label for example in pairs} <= {0.0, 1.0, 2.4, 2.6, 4.8}

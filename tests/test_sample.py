"""The bundled samples are what data/README.md says; that of pairs gives nothing away by lengths or word overlap."""

from __future__ import annotations

import collections
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bert_tf.tasks.registry import get_task
from bert_tf.tasks.tags import schemes

FOLDER = Path(__file__).resolve().parents[1] / "data" / "sample" / "MRPC"


def examples(split):
    return get_task("MRPC").examples(FOLDER, split)


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


def test_pairs_are_many_two_thirds_paraphrases_and_no_sentence_occurs_twice():
    found = {split: examples(split) for split in ("train", "dev", "test")}
    assert all(len(found[split]) >= least for split, least in (("train", 400), ("dev", 100), ("test", 100)))
    for split in ("train", "dev"):
        labels = [example.label for example in found[split]]
        assert labels.count("1") / len(labels) == pytest.approx(2 / 3, abs=0.02)
    counts = collections.Counter(text for rows in found.values() for one in rows for text in (one.text_a, one.text_b))
    assert max(counts.values()) == 1


@pytest.mark.parametrize(
    "model", [LogisticRegression(), GradientBoostingClassifier(n_estimators=50, max_depth=2, random_state=0)]
)
def test_lengths_and_overlap_do_not_beat_the_majority(model):
    features, labels = {}, {}
    for split in ("train", "dev"):
        features[split] = np.array([shallow_features(example) for example in examples(split)])
        labels[split] = np.array([example.label == "1" for example in examples(split)])
    shallow = make_pipeline(StandardScaler(), model).fit(features["train"], labels["train"])
    assert shallow.score(features["dev"], labels["dev"]) <= labels["dev"].mean() + 0.01


TAGGED = FOLDER.parent / "CoNLL2003"


def test_sentences_with_tags_are_as_many_as_is_said_and_none_occurs_twice():
    found = {split: get_task("CoNLL2003").examples(TAGGED, split) for split in ("train", "dev", "test")}
    assert {split: len(rows) for split, rows in found.items()} == {"train": 196, "dev": 60, "test": 16}
    assert len({example.words for rows in found.values() for example in rows}) == 196 + 60 + 16


def test_most_names_of_dev_are_not_in_train():
    """Else a model could learn them by heart."""
    task = get_task("CoNLL2003")
    names = {
        split: {
            " ".join(example.words[first:end])
            for example in task.examples(TAGGED, split)
            for _, first, end in schemes.entities_of(example.label)
        }
        for split in ("train", "dev")
    }
    assert len(names["dev"] & names["train"]) < 0.1 * len(names["dev"])


def test_questions_have_four_endings_of_which_one_is_theirs_and_no_situation_is_in_two_splits():
    found = {split: get_task("SWAG").examples(FOLDER.parent / "SWAG", split) for split in ("train", "dev", "test")}
    assert {len(set(example.options)) for rows in found.values() for example in rows} == {4}
    assert all({example.label for example in found[split]} == {0, 1, 2, 3} for split in ("train", "dev"))
    contexts = [one.context for rows in found.values() for one in rows]
    assert len(set(contexts)) == len(contexts)


def test_pairs_of_the_sample_have_scores_of_sts_b():
    found = get_task("STS-B-vectors").examples(FOLDER.parent / "STS-B-vectors", "train")
    assert len(found) >= 100
    assert {example.label for example in found} <= {0.0, 1.0, 2.4, 2.6, 4.8}

"""What the card says of texts that transformers cuts otherwise than the training."""

import dataclasses
import json
import re

import numpy as np
import pytest
import tokenizers

from bert_tf.errors import DataError, FlagError
from bert_tf.extensions.export import long_texts, tokenizer_json
from bert_tf.extensions.export.formats import ExportOptions
from bert_tf.features import sentences
from bert_tf.features.long_text import longest_first
from bert_tf.tasks.sentence.rows import SentenceExample
from tests.extensions.export.models import exported

LENGTH = 10  # 7 pieces of a pair


def words(count, word="red"):
    return " ".join([word] * count)


def pair(first, second):
    return SentenceExample("dev-1", words(first), words(second, "blue"), "yes")


def model(folder, *examples, kind="classification", long_text="truncate", **options):
    """Returns an export whose task has these examples of dev."""
    job = exported(folder, kind)
    trained = dataclasses.replace(job.trained, max_seq_length=LENGTH, long_text=long_text)
    given = ExportOptions(**{"pairs": True, **options})
    return dataclasses.replace(job, trained=trained, labelled=lambda: {"dev": examples}, options=given)


def test_the_library_cuts_as_we_say_it_does(tmp_path):
    read = tokenizers.Tokenizer.from_str(json.dumps(tokenizer_json.content(model(tmp_path).trained)))
    for length in (9, 10):
        read.enable_truncation(length, strategy="longest_first")
        for first in range(1, 12):
            for second in range(1, 12):
                segments = read.encode(words(first), words(second)).type_ids
                (one,), (other,), _, _ = longest_first(*(np.array([size], np.int32) for size in (first, second, length - 3)))
                assert (segments.count(0) - 2, segments.count(1) - 1) == (one.lengths[0], other.lengths[0])


def test_ties_get_other_ids_and_are_counted_of_rows_that_are_joined_until_they_are_long_enough(tmp_path):
    job = model(tmp_path, pair(6, 6), pair(6, 5), pair(9, 2), pair(3, 4))
    difference = long_texts.measure(job, job.labelled()["dev"][:3])
    assert (difference.long, difference.others) == (3, 1)
    assert 0 < difference.largest <= 1
    (told, *_) = long_texts.lines(job)
    assert f"Of 3 long examples (dev), 1 get different ids; probabilities change by up to {difference.largest:.3f}" in told
    (told, *_) = long_texts.lines(model(tmp_path, pair(2, 2), pair(2, 2), pair(1, 1)))
    assert "Of 1 long examples (dev, each of 2 rows joined), 1 get different ids" in told


def test_the_lines_in_the_card_make_the_ids_of_the_training(tmp_path):
    job = model(tmp_path)
    code = re.search("```python\n(.*)```", "\n".join(long_texts.lines(job)), re.DOTALL)[1]
    read = tokenizers.Tokenizer.from_str(json.dumps(tokenizer_json.content(job.trained)))

    class Tokenizer:
        cls_token_id, sep_token_id = map(read.token_to_id, ("[CLS]", "[SEP]"))

        def __call__(self, text, *, add_special_tokens):
            return {"input_ids": read.encode(text, add_special_tokens=add_special_tokens).ids}

    names = {}
    exec(code, names)  # noqa: S102  (what a user would paste)
    for first in range(1, 12):
        for second in range(1, 12):
            texts = words(first), words(second, "blue")
            wanted = sentences.build([texts], None, job.trained.tokenizer, max_seq_length=LENGTH)
            row = names["encode"](Tokenizer(), *texts)
            assert row["input_ids"] == wanted.token_ids.tolist()
            assert row["token_type_ids"].count(0) == wanted.first_lengths[0]


@pytest.mark.parametrize("long_text", ["head_tail", "windows"])
def test_ways_to_read_long_texts_that_transformers_lacks(tmp_path, long_text):
    single = SentenceExample("dev-1", words(5) + " " + words(20, "blue"), None, "yes")
    (told,) = long_texts.lines(model(tmp_path, single, long_text=long_text, pairs=False))
    assert f"long_text={long_text}" in told
    assert "1 get different ids" in told


@pytest.mark.parametrize("kind", ["similarity", "contrastive", "choice"])
def test_vectors_and_options_of_long_texts_are_warned_of(tmp_path, kind, caplog):
    (told,) = long_texts.lines(model(tmp_path / "a", kind=kind, long_text="head_tail"))
    assert told == "Training read texts of more than 10 tokens by `long_text=head_tail`, which `truncation=True` cannot do."
    assert told in caplog.text
    assert not list(long_texts.lines(model(tmp_path / "b", kind=kind)))


def test_nothing_is_said_where_nothing_differs_and_numbers_have_no_labels_that_change(tmp_path):
    assert not list(long_texts.lines(model(tmp_path / "a", pairs=False)))
    assert not list(long_texts.lines(model(tmp_path / "b", kind="tags")))
    with pytest.raises(FlagError, match="--gate_data: nothing is measured on it"):
        list(long_texts.lines(model(tmp_path / "c", kind="tags", gate_data="dev.tsv")))
    job = model(tmp_path, dataclasses.replace(pair(6, 6), label=1.0), kind="regression")
    difference = long_texts.measure(job, job.labelled()["dev"])
    assert difference.largest > 0
    assert difference.labels == 0


def test_without_examples_the_rule_is_said_without_figures(tmp_path):
    def missing():
        raise DataError("none", "dev")

    job = dataclasses.replace(model(tmp_path), labelled=missing)
    assert "not measured" in next(long_texts.lines(job))
    asked = dataclasses.replace(job, options=ExportOptions(pairs=True, gate_data="dev.tsv"))
    with pytest.raises(DataError, match="none"):
        list(long_texts.lines(asked))

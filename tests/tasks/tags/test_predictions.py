"""What a model says of words, for programs and files."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from bert_tf.features import tags
from bert_tf.tasks.tags import predictions
from bert_tf.tasks.tags.columns import TagExample
from bert_tf.tasks.tags.family import TagFamily
from tests.features.test_tags import CONTROL, TOKENIZER

FAMILY = TagFamily(("O", "B-PER", "I-PER"))


def said(examples, family=FAMILY, *, limit=16):
    """Returns predictions of a model that says B-PER of the words that begin with a, and I-PER of those with b."""
    words = [example.words for example in examples]
    features = tags.build(words, np.zeros(sum(map(len, words)), np.int32), TOKENIZER, max_seq_length=limit)
    pieces = [TOKENIZER.vocabulary.tokens[number] for number in features.token_ids]
    known = {"a": 1, "b": 2}
    logits = np.array([[2.0 * (label == known.get(piece, 0)) for label in range(3)] for piece in pieces], np.float32)
    return family.predictions({"logits": logits}, features, examples)


def sentence(text, **more):
    return TagExample("test-1", tuple(text.split(" ")), **more)


def test_entities_have_words_and_characters():
    example = sentence("c ax b c")
    (found,) = FAMILY.listed(said([example]), [example])
    (entity,) = found.entities
    assert found.label == ("O", "B-PER", "I-PER", "O")
    assert (entity.type, entity.text, entity.start, entity.end) == ("PER", "ax b", 2, 6)
    assert (entity.first_word, entity.end_word) == (1, 3)
    assert entity.score == pytest.approx(np.exp(2) / (np.exp(2) + 2))


def test_every_word_has_a_tag_whatever_the_limit():
    examples = [sentence("c ax " * 30 + "c"), sentence("b")]
    first, second = FAMILY.listed(said(examples, limit=7), examples)
    assert first.label == (*("O", "B-PER") * 30, "O")
    assert second.label == ("I-PER",)


def test_a_word_without_pieces_has_the_usual_tag():
    example = sentence(f"a {CONTROL} b")
    assert FAMILY.listed(said([example]), [example])[0].label == ("B-PER", "O", "I-PER")
    plain = TagFamily(("NN", "DT", "VB"))
    assert plain.listed(said([example], plain), [example])[0].label == ("DT", "NN", "VB")


def test_constrained_decoding_is_the_family_s():
    example = sentence("b b")
    family = TagFamily.from_record({"labels": FAMILY.labels, "kind": "tags", "constrained_decoding": True})
    assert FAMILY.listed(said([example]), [example])[0].label == ("I-PER", "I-PER")
    assert family.listed(said([example]), [example])[0].label == ("B-PER", "I-PER")


def test_a_column_file_keeps_its_lines():
    examples = [
        TagExample("1", ("a",), lines=("a\tx",), before=("-DOCSTART-\tO", ""), after=("",)),
        TagExample("2", ("c", "b"), lines=("c x ", "b x")),
        TagExample("end", (), before=("",)),
    ]
    text = FAMILY.layout("tsv").rows(examples, said(examples))
    assert text == "-DOCSTART-\tO\n\na\tx\tB-PER\n\nc x O\nb x I-PER\n\n"


def test_words_without_lines_become_columns():
    example = sentence("a c")
    assert FAMILY.layout("tsv").rows([example], said([example])) == "a\tB-PER\nc\tO\n\n"


def test_csv_has_a_row_for_each_word():
    layout, example = FAMILY.layout("csv"), sentence("a ,")
    rows = list(csv.reader(io.StringIO(layout.header() + layout.rows([example], said([example])))))
    assert rows[0] == ["id", "word_number", "word", "tag", "score"]
    assert [row[:4] for row in rows[1:]] == [["test-1", "0", "a", "B-PER"], ["test-1", "1", ",", "O"]]


def test_json_lines_have_entities():
    (example,) = FAMILY.from_rows(["c, ax b!"], "test", labelled=False)
    found = json.loads(FAMILY.layout("jsonl").rows([example], said([example])))
    assert found["text"] == "c, ax b!"
    assert found["tokens"] == ["c", ",", "ax", "b", "!"]
    assert [(one["type"], one["start"], one["end"]) for one in found["entities"]] == [("PER", 3, 7)]


def test_decoded_is_the_same_in_parts():
    examples = [sentence("a b c"), sentence("b a"), sentence("c")]
    whole = predictions.decoded(said(examples), FAMILY.labels, constrained=True)
    parts = [predictions.decoded(said([one]), FAMILY.labels, constrained=True) for one in examples]
    assert whole.tolist() == np.concatenate(parts).tolist()

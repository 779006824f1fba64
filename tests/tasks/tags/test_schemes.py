"""Schemes of tags, by hand."""

from __future__ import annotations

import pytest

from bert_tf.tasks.tags import schemes

IOB2 = ("B-PER", "I-PER", "B-PER", "O", "B-LOC", "B-ORG", "I-ORG", "I-ORG")
SAME = {
    "IOB1": ("I-PER", "I-PER", "B-PER", "O", "I-LOC", "I-ORG", "I-ORG", "I-ORG"),
    "IOB2": IOB2,
    "IOBES": ("B-PER", "E-PER", "S-PER", "O", "S-LOC", "B-ORG", "I-ORG", "E-ORG"),
    "BILOU": ("B-PER", "L-PER", "U-PER", "O", "U-LOC", "B-ORG", "I-ORG", "L-ORG"),
}


@pytest.mark.parametrize("scheme", SAME)
def test_every_scheme_becomes_iob2(scheme):
    assert schemes.to_iob2(SAME[scheme]) == IOB2


@pytest.mark.parametrize("scheme", SAME)
def test_a_scheme_is_known_by_what_occurs(scheme):
    seen = schemes.Seen()
    seen.add(SAME[scheme], IOB2)
    assert seen.scheme == scheme


def test_a_mixture_is_called_so():
    seen = schemes.Seen()
    for tags in (("B-PER", "O"), ("I-PER", "O")):
        seen.add(tags, schemes.to_iob2(tags))
    assert seen.scheme == "a mixture of IOB1 and IOB2"
    assert seen.changed == 1


@pytest.mark.parametrize(
    ("tags", "converted"),
    [
        (("I-PER", "I-LOC"), ("B-PER", "B-LOC")),
        (("B", "I", "O", "B"), ("B", "I", "O", "B")),
        (("I-A-B", "I-A-B"), ("B-A-B", "I-A-B")),
        ((), ()),
    ],
)
def test_types_end_entities_and_may_be_missing(tags, converted):
    assert schemes.to_iob2(tags) == converted


@pytest.mark.parametrize(
    ("tags", "are"),
    [(("O", "B-PER"), True), (("B", "I", "O"), True), (("O",), False), (("NN", "IN"), False), (("O", "I-PER", "NN"), False)],
)
def test_plain_tags_are_no_entities(tags, are):
    assert schemes.are_of_entities(tags) is are


def test_labels_have_both_tags_of_each_type():
    assert schemes.labels_of(["S-PER", "O", "E-LOC"]) == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")

"""Rules of answers that may be given anew where a model is used."""

from __future__ import annotations

import dataclasses

import pytest

from bert_tf.batch import job
from bert_tf.errors import FlagError
from bert_tf.tasks import families
from bert_tf.tasks.choice.family import ChoiceFamily
from bert_tf.tasks.families import rules_of, with_rules
from bert_tf.tasks.similarity.family import ContrastiveFamily
from bert_tf.tasks.span.family import SpanFamily
from bert_tf.tasks.tags.family import TagFamily

FAMILIES = (SpanFamily(), TagFamily(("O", "B-X")), ContrastiveFamily())
OTHERS = {int: 7, float: 0.5, bool: True}


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.kind)
def test_other_rules_leave_what_is_learned_as_it_is(family):
    other = {name: OTHERS[type(value)] for name, value in rules_of(family).items()}
    found = with_rules(family, other)
    assert rules_of(found) == other != rules_of(family)
    assert (found.record(), found.head, found.targets) == (family.record(), family.head, family.targets)


def test_rules_of_other_families_are_refused():
    with pytest.raises(FlagError, match="--n_best_size: a model of tags does not take it; it takes --constrained_decoding"):
        with_rules(TagFamily(("O", "B-X")), {"n_best_size": 3})
    with pytest.raises(FlagError, match="--n_best_size: a model of choice does not take it; leave it out"):
        with_rules(ChoiceFamily(), {"n_best_size": 3})


def test_a_job_knows_the_rules_of_all_families():
    known = {name for family in families._FAMILIES.values() for name in family.rules}
    assert {field.name for field in dataclasses.fields(job.Rules)} == {row.name for row in job.RULES} == known

"""Forms of lines in a log."""

from __future__ import annotations

import pytest

from bert_tf.reproduction.forms import EQUAL, FORMS, MISSING, NOT_COMPARABLE, found_in

ABSL = "I1122 09:15:47.048251 140360101895040 describe.py:90] "


def forms_of(line: str) -> list[str]:
    """Names of the forms that a line has."""
    return [found.form for found in found_in([line]) if found.lines]


@pytest.mark.parametrize("form", [form for form, (_, reason) in FORMS.items() if not reason and "..." not in form])
def test_a_form_is_found_in_the_line_that_it_is_named_after(form):
    assert form in forms_of(f"{ABSL}  {form}")


@pytest.mark.parametrize(
    ("line", "form"),
    [
        ("name = bert/pooler/dense/bias:0, shape = (8,), *INIT_FROM_CKPT*", "name = ...:0, shape = (768,), *INIT_FROM_CKPT*"),
        ("name = output_weights:0, shape = (2, 8)", "name = ...:0, shape = (2, 768)"),
        ("Saving checkpoints for 5 into /tmp/a b/model.ckpt.", "Saving checkpoints for 917 into ...model.ckpt."),
        ("Saving dict for global step 5: eval_accuracy = 0.5, global_step = 5", "Saving dict for global step 917: ..."),
        (
            "From x.py:70: A (from b) is deprecated and will be removed in a future version.",
            "From ...: ... is deprecated and will be removed",
        ),
        ("tokens: [CLS] a [SEP]", "tokens: [CLS] ... [SEP]"),
    ],
)
def test_a_form_leaves_numbers_and_names_open(line, form):
    assert forms_of(ABSL + line) == [form]


OTHERS = ["name = input_ids, shape = (?, ?)", "eval_accuracy = 0.75 (95 %: 0.6 to 0.8)", "guid: 4", "step 5 of 9: loss = 0.5"]


def test_other_lines_have_no_form():
    assert [forms_of(ABSL + line) for line in OTHERS] == [[]] * len(OTHERS)


def test_verdicts_say_whether_a_log_has_a_form_and_whether_it_can():
    found = {row.form: row for row in found_in(["guid: dev-1", "guid: dev-2"])}
    assert (found["guid: dev-4"].lines, found["guid: dev-4"].verdict) == (2, EQUAL)
    assert found["Graph was finalized."].verdict == MISSING
    assert {row.verdict for row in found.values() if row.reason} == {NOT_COMPARABLE}

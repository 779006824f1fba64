"""Verdicts on a made-up run, what is kept of the published one, forms of lines in a log, and the report for people."""

import dataclasses

import pytest

from bert_tf.checkpoints.names import encoder_shapes
from bert_tf.config import BertConfig
from bert_tf.extensions.reproduce.facts import FORMS, GTX1060, INPUT_IDS, TOKENS, Published, TokenLine, Variable, digest
from bert_tf.extensions.reproduce.report import Distribution, Report, to_markdown
from bert_tf.extensions.reproduce.verdicts import (
    EQUAL,
    MISSING,
    NOT_COMPARABLE,
    OUTSIDE,
    WITHIN,
    FormFound,
    Measured,
    Outcome,
    Row,
    compare,
    found_in,
)
from bert_tf.training.run_spec import configured
from tests import classifier

IDS, WORDS = [2, 5, 6, 3, 0], ["[CLS]", "rain", "salt", "[SEP]"]

PUBLISHED = Published(
    name="made_up",
    title="A made-up run",
    task="MRPC",
    command="python3 run_classifier.py",
    settings={},
    config=BertConfig(50),
    vocabulary="v",
    examples={"train": 40, "dev": 8},
    steps=10,
    accuracy=0.75,
    right=6,
    accuracy_range=(0.6, 0.9),
    loss=0.5313762,
    examples_per_second=(37.9, 37.5),
    steps_per_second=(3.16, 3.125),
    gpu="GTX 1060",
    gpu_total_mb=6144,
    gpu_limit_mb=5175,
    token_lines=(
        TokenLine("dev-1", INPUT_IDS, 4, ((0, 4, digest(IDS[:4])),)),
        TokenLine("dev-2", TOKENS, 4, ((0, 1, digest(WORDS[:1])), (2, 2, digest(WORDS[2:])))),
    ),
    labels={"dev-1": "yes (id = 1)"},
    features={"input_ids": (None, 5), "label_ids": (None,)},
    variables={
        "bert/encoder/layer_0/output/dense/bias": Variable((768,)),
        "bert/encoder/layer_11/output/dense/bias": Variable((768,)),
        "bert/embeddings/word_embeddings": Variable(None),
        "output_bias": Variable((2,), from_checkpoint=False),
    },
)
OUTCOME = Outcome(1, 10, 0.75, 0.53137621, 37.9, 3.16)
SAME = Measured(
    outcomes=(OUTCOME,),
    config=BertConfig(50),
    vocabulary="v",
    examples={"train": 40, "dev": 8},
    shown={"dev-1": {INPUT_IDS: IDS}, "dev-2": {TOKENS: WORDS}},
    labels={"dev-1": "yes (id = 1)", "dev-2": "no (id = 0)"},
    features={"input_ids": (None, 5), "input_mask": (None, 5), "label_ids": (None,)},
    variables={**PUBLISHED.variables, "bert/embeddings/word_embeddings": Variable((50, 768))},
    forms=(FormFound("guid: dev-4", 5, EQUAL, ""), FormFound("CPU Frequency", 0, NOT_COMPARABLE, "other words")),
    device=("GPU", "NVIDIA GeForce GTX 1060 6GB", 5175),
)


def rows(**changes) -> dict[str, tuple[str, str]]:
    """Verdict and reason by row, of a run that differs in these."""
    return {row.what: (row.verdict, row.reason) for row in compare(PUBLISHED, dataclasses.replace(SAME, **changes))}


def with_outcome(**changes) -> dict[str, tuple[Outcome, ...]]:
    return {"outcomes": (dataclasses.replace(OUTCOME, **changes),)}


def test_the_same_run_is_equal_in_every_row_and_several_seeds_have_rows_of_their_own():
    verdict_of = {what: of_row for what, (of_row, _) in rows().items()}
    assert {what for what, of_row in verdict_of.items() if of_row != EQUAL} == {"examples/s", "steps/s"}  # they have a bound
    assert (verdict_of["examples/s"], verdict_of["steps/s"]) == (WITHIN, WITHIN)
    verdict_of = rows(outcomes=(OUTCOME, dataclasses.replace(OUTCOME, seed=2, accuracy=0.5)))
    assert (verdict_of["eval_accuracy, seed 1"][0], verdict_of["eval_accuracy, seed 2"][0]) == (EQUAL, OUTSIDE)
    assert "eval_accuracy" not in verdict_of


def of_words(*words) -> dict[str, object]:
    return {"shown": {**SAME.shown, "dev-2": {TOKENS: words}}}


def without(name, **changes):
    return {"variables": {key: value for key, value in SAME.variables.items() if key != name}, **changes}


ACCURACY = "4 of 8 right, published 6; range 0.6 to 0.9; collapsed: all predictions are 1"
OTHER_WORD = of_words(*WORDS[:3], "salt")
LAST = "bert/encoder/layer_11/output/dense/bias"
NAMES = "names of variables, in layers that exist"
SHALLOW = without(LAST, config=dataclasses.replace(SAME.config, num_hidden_layers=6))
UNMARKED = {"variables": {**SAME.variables, "output_bias": Variable((2,))}}
RESHAPED = {"variables": {**SAME.variables, "output_bias": Variable((3,), from_checkpoint=False)}}


@pytest.mark.parametrize(
    ("changes", "what", "expected", "reason"),
    [
        (with_outcome(steps=11), "steps", OUTSIDE, ""),
        (with_outcome(accuracy=0.625), "eval_accuracy", WITHIN, None),
        (with_outcome(accuracy=0.5, collapsed="all predictions are 1"), "eval_accuracy", OUTSIDE, ACCURACY),
        (with_outcome(accuracy=1.0), "eval_accuracy", OUTSIDE, None),
        (with_outcome(loss=0.6), "eval_loss", NOT_COMPARABLE, None),
        (with_outcome(examples_per_second=37.4), "examples/s", OUTSIDE, None),
        (with_outcome(examples_per_second=99.0), "examples/s", WITHIN, None),
        (with_outcome(steps_per_second=3.1), "steps/s", OUTSIDE, None),
        ({"forms": [*SAME.forms, FormFound("loss = 0.5313762", 0, MISSING, "")]}, "forms of log lines", OUTSIDE, None),
        ({"num_train_steps": 10}, "steps", EQUAL, ""),
        ({"features": {"input_ids": (None, 5)}}, "feature names", OUTSIDE, "not label_ids"),
        ({"features": {"input_ids": (None, 6), "label_ids": (None,)}}, "feature shapes", OUTSIDE, "not input_ids"),
        (OTHER_WORD, "dev-2 tokens", OUTSIDE, "among positions 2 to 3"),
        (OTHER_WORD, "dev-1 input_ids", EQUAL, ""),
        (of_words(WORDS[0], "not legible", *WORDS[2:]), "dev-2 tokens", EQUAL, ""),
        ({"labels": {"dev-1": "yes (id = 0)"}}, "dev-1 label", OUTSIDE, ""),
        (without(LAST), NAMES, OUTSIDE, f"not {LAST}"),
        (SHALLOW, NAMES, EQUAL, ""),  # variables of layers that the model does not have are left out
        (SHALLOW, "shapes of variables", NOT_COMPARABLE, "other weights (num_hidden_layers 6, not 12)"),
        (UNMARKED, "*INIT_FROM_CKPT* of variables", OUTSIDE, "not output_bias"),
        (UNMARKED, NAMES, EQUAL, ""),
        (RESHAPED, "shapes of variables", OUTSIDE, "not output_bias"),
        (RESHAPED, NAMES, EQUAL, ""),
    ],
)
def test_a_difference_between_comparable_runs(changes, what, expected, reason):
    verdict, why = rows(**changes)[what]
    assert verdict == expected
    assert reason is None or why == reason


STEPS_AND_TOKENS = {"steps", "dev-1 input_ids", "dev-2 tokens", "dev-1 label"}
OTHER_DATA = "other data: train 20, dev 8 examples, published train 40, dev 8"
NARROW, SHORT = BertConfig(50, hidden_size=384), {"num_train_steps": 4, **with_outcome(steps=4)}
RESULTS = {"eval_accuracy", "eval_loss", "examples/s", "steps/s"}


@pytest.mark.parametrize(
    ("changes", "expected", "reason"),
    [
        ({"examples": {"train": 20, "dev": 8}}, STEPS_AND_TOKENS | RESULTS, OTHER_DATA),
        ({"vocabulary": "w"}, {*RESULTS, "dev-1 input_ids", "dev-2 tokens", "shapes of variables"}, "other vocabulary"),
        ({"config": NARROW}, RESULTS | {"shapes of variables"}, "other weights (hidden_size 384, not 768)"),
        ({"device": ("GPU", "NVIDIA H200", 5175)}, {"examples/s", "steps/s"}, "other hardware: NVIDIA H200"),
        ({"device": ("CPU", "Xeon", None)}, {"examples/s", "steps/s", "GPU memory, MB"}, "other hardware: Xeon"),
        ({"device": ("GPU", "GTX 1060", None)}, {"GPU memory, MB"}, "--gpu_memory_limit_mb=5175 sets it"),
        (SHORT, {"steps", "eval_accuracy", "eval_loss"}, "other length: --num_train_steps=4, published 10"),
    ],
)
def test_what_another_run_leaves_comparable(changes, expected, reason):
    compared = rows(**changes)
    assert {what for what, (of_row, _) in compared.items() if of_row == NOT_COMPARABLE} == expected
    assert any(why == reason for _, why in compared.values())


def test_published_figures_agree_with_each_other_and_settings_with_the_command():
    assert GTX1060.steps == int(GTX1060.examples["train"] / 12 * 3)
    assert round(GTX1060.right / GTX1060.examples["dev"], 6) == round(GTX1060.accuracy, 6)
    for examples, steps in zip(GTX1060.examples_per_second, GTX1060.steps_per_second):
        assert examples == pytest.approx(12 * steps, rel=1e-3)
    settings = configured(task_name="MRPC", **GTX1060.settings)
    published = classifier.parse(GTX1060.command.split()[1:])
    assert published.actions == settings.actions
    for name in ("train_batch_size", "learning_rate", "num_train_epochs"):
        assert getattr(published.train, name) == getattr(settings.train, name)
    assert published.data.max_seq_length == settings.data.max_seq_length
    assert (settings.train.adam_bias_correction, settings.train.warmup_proportion) == (False, 0.1)
    # printf 'a 1' | sha256sum
    assert digest(["a", 1]) == "042a5f2e7634c4c80a75691b6b89dfe4e1758558ce99e7346b5297b68fa95d11"


def test_variables_have_the_names_and_shapes_of_the_encoder_and_legible_spans_are_in_order():
    shapes = encoder_shapes(GTX1060.config)
    of_encoder = {name: variable for name, variable in GTX1060.variables.items() if variable.from_checkpoint}
    assert {name: variable.shape or shapes[name] for name, variable in of_encoder.items()} == {
        name: shapes[name] for name in of_encoder
    }
    assert set(GTX1060.variables) - set(of_encoder) == {"output_weights", "output_bias"}
    assert len(GTX1060.variables) == 79
    for line in GTX1060.token_lines:
        ends = [0]
        for start, count, _ in line.spans:
            assert start >= ends[-1]
            ends.append(start + count)
        assert ends[-1] <= line.shown
    assert [(line.legible, line.shown) for line in GTX1060.token_lines] == [(24, 24), (47, 52), (60, 64), (60, 60), (24, 24)]


ABSL = "I1122 09:15:47.048251 140360101895040 describe.py:90] "


def forms_of(line: str) -> list[str]:
    """Names of the forms that a line has."""
    return [row.form for row in found_in([line]) if row.lines]


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


def test_verdicts_say_whether_a_log_has_a_form_and_whether_it_can():
    by_form = {row.form: row for row in found_in(["guid: dev-1", "guid: dev-2"])}
    assert (by_form["guid: dev-4"].lines, by_form["guid: dev-4"].verdict) == (2, EQUAL)
    assert by_form["Graph was finalized."].verdict == MISSING
    assert {row.verdict for row in by_form.values() if row.reason} == {NOT_COMPARABLE}
    assert [forms_of(ABSL + line) for line in OTHERS] == [[]] * len(OTHERS)


ROWS = [Row("steps", 917, 917, "equal"), Row("eval_accuracy", 0.8504902, 0.25, "outside", "a | b")]


def test_rows_seeds_and_forms_of_lines_are_tables():
    forms = [FormFound("guid: dev-4", 5, "equal", ""), FormFound("CPU Frequency", 0, "not comparable", "other words")]
    seeds = {"eval_accuracy": Distribution(0.8504902, 0.8, 0.1, 0.684, 0.9, 3, 5)}
    lines = to_markdown(Report(GTX1060, "python x", ROWS, seeds, {4: "dev: all predictions are 1"}, forms)).splitlines()
    assert [line for line in lines if line.startswith(("|", "Seed"))] == [
        "|               | published | here | verdict | reason |",
        "| ------------- | --------- | ---- | ------- | ------ |",
        "| steps         | 917       | 917  | equal   |        |",
        "| eval_accuracy | 0.8504902 | 0.25 | outside | a \\| b |",
        "|               | published | mean | sd  | lowest | highest | below | seeds |",
        "| ------------- | --------- | ---- | --- | ------ | ------- | ----- | ----- |",
        "| eval_accuracy | 0.8504902 | 0.8  | 0.1 | 0.684  | 0.9     | 3     | 5     |",
        "Seed 4 collapsed: dev: all predictions are 1.",
        "|               | lines here | verdict        | reason      |",
        "| ------------- | ---------- | -------------- | ----------- |",
        "| guid: dev-4   | 5          | equal          |             |",
        "| CPU Frequency | 0          | not comparable | other words |",
    ]

"""The pages in a real browser: Debian's package chromium, or Google Chrome. The model is a toy."""

from __future__ import annotations

import dataclasses
import json

import pytest

from bert_tf.extensions.serve import forms
from bert_tf.tasks import families
from tests.extensions.report.test_browser import LEAST_CONTRAST, OVERFLOWING, SMALLEST_LETTERS
from tests.extensions.serve.fakes import READER, Running, Toy, description
from tests.extensions.serve.runs import KINDS

pytestmark = pytest.mark.slow

SMILE = "\N{GRINNING FACE}"  # one character for Python, two for JavaScript
SHARES = {"0": 0.25, "<b>1</b>": 0.75}
CANDIDATES = [{"text": "Ann & Bob", "probability": 0.9}, {"text": "", "probability": 0.1}]
ENTITY = {"type": "PER", "text": "Ann & Bob", "start": 2, "end": 11, "score": 0.9}
# Of each kind what the toy answers, what is typed in, what is then in the answer, and what is marked.
ANSWERS = {
    "classification": ({"label": "<b>1</b>", "probabilities": SHARES}, {}, ["<b>1</b>", "75.0 %", "25.0 %"], []),
    "multi_label": ({"label": ["0", "1"], "probabilities": {"0": 0.6, "1": 0.7}}, {"text_b": ""}, ["0, 1", "70.0 %"], []),
    "regression": ({"label": 2.5, "probabilities": {}}, {}, ["2.5000"], []),
    "span": (
        {"label": "Ann & Bob", "start": 2, "end": 11, "n_best": CANDIDATES},
        {"context": f"{SMILE} Ann & Bob left."},
        ["Ann & Bob", "(no answer)", "90.0 %"],
        ["Ann & Bob"],
    ),
    "tags": (
        {"words": ["x"], "label": ["B-PER"], "scores": [0.9], "entities": [ENTITY]},
        {"text": f"{SMILE} Ann & Bob left."},
        ["90.0 %"],
        ["Ann & BobPER"],
    ),
    "choice": ({"label": 1, "option": "They swim.", "probabilities": [0.4, 0.6]}, {}, ["They swim.", "60.0 %"], []),
    "similarity": ({"label": 4.25, "cosine": 0.85}, {}, ["4.250", "0.8500"], []),
    "contrastive": ({"label": 0.5, "cosine": 0.5}, {}, ["0.500"], []),
    "unheard of": ({"label": "x"}, {"body": '{"rows": ["a"]}'}, ['"label": "x"'], []),
}
ASK = """(async () => {
  const typed = %s, form = document.getElementById('ask');
  for (const [name, value] of Object.entries(typed)) form.elements[name].value = value;
  form.requestSubmit(form.querySelector('button[value=%s]'));
  while (document.getElementById('answer').textContent.includes('No request yet'))
    await new Promise(go => setTimeout(go, 20));
  return document.getElementById('answer').innerText;
})()"""
EXPLAINED = """(async () => {
  while (!document.querySelector("mark")) await new Promise(go => setTimeout(go, 20));
  document.querySelector("#answer details").open = true;
  return document.getElementById("answer").innerText;
})()"""
BARS = "[...document.querySelectorAll('.bar')].map(bar => bar.clientWidth / bar.parentElement.clientWidth)"
MARKS = "[...document.querySelectorAll('mark')].map(mark => mark.textContent)"
UNLABELLED = "[...document.querySelectorAll('textarea, button')].filter(one => !(one.labels.length || one.textContent)).length"


CALLS = ("predict", "explain")


class Canned(Toy):
    def __init__(self, kind, answer, explanation=None):
        family = families.of_record({"kind": kind, **KINDS[kind][0]}) if kind in KINDS else READER.family
        reader = dataclasses.replace(READER, family=family)
        super().__init__(description(kind=kind, reader=reader, calls=CALLS))
        self._canned = {call: json.dumps({"id": "test-0", **(one or {})}) for call, one in zip(CALLS, (answer, explanation))}

    def _answer(self, _, part):
        return self._canned[part.call].encode()


def is_readable(chromium):
    """Without errors, scrolling to the side, or letters that are hard to read."""
    assert (chromium.complaints, chromium.evaluate(OVERFLOWING)) == ([], [])
    return chromium.evaluate(LEAST_CONTRAST) >= 4.5


def test_every_kind_with_a_form_is_tried():
    assert set(forms.FORMS) == set(ANSWERS) - {"unheard of"}


@pytest.mark.parametrize("kind", ANSWERS)
@pytest.mark.parametrize(("width", "dark"), [(1000, False), (360, True)])
def test_what_is_asked_is_answered_and_marked(chromium, kind, width, dark):
    answer, typed, shown, marks = ANSWERS[kind]
    with Running(Canned(kind, answer)) as running:
        chromium.open(f"http://127.0.0.1:{running.port}/", width=width, dark=dark)
        text = chromium.evaluate(ASK % (json.dumps(typed), "predict"))
    assert [part for part in shown if part not in text] == []
    assert chromium.evaluate(MARKS) == marks
    assert {request.rpartition("/")[2] for request in chromium.requests} == {"", "page.css", "page.js", "predict"}
    assert chromium.evaluate(SMALLEST_LETTERS) >= 12
    assert is_readable(chromium)
    assert chromium.evaluate(UNLABELLED) == 0


EXPLANATION = {
    "label": "<b>1</b>", "words": ["Ann", "<i>", "left"], "scores": [0.5, -0.25, 0.0], "segments": [0, 0, 1],
    "method": "occlusion", "output": 2.5, "baseline": 0.125, "completeness_error": 0.004, "steps": 0,
}  # fmt: skip


@pytest.mark.parametrize("dark", [False, True])
def test_words_of_an_explanation_are_coloured(chromium, dark):
    with Running(Canned("classification", ANSWERS["classification"][0], EXPLANATION)) as running:
        chromium.open(f"http://127.0.0.1:{running.port}/", width=500, dark=dark)
        chromium.evaluate(ASK % ("{}", "explain"))
        text = chromium.evaluate(EXPLAINED)
    facts = "Output 2.5000, without words 0.1250; completeness error 0.40 %."
    for part in ("75.0 %", "Why <b>1</b>", facts, "+0.5000", "-0.2500"):
        assert part in text
    assert chromium.evaluate(MARKS) == EXPLANATION["words"]
    colours = chromium.evaluate("[...document.querySelectorAll('mark')].map(mark => getComputedStyle(mark).backgroundColor)")
    assert colours == ["rgba(40, 160, 60, 0.5)", "rgba(220, 60, 50, 0.25)", "rgba(40, 160, 60, 0)"]
    assert is_readable(chromium)


def test_a_refusal_is_shown(chromium):
    with Running(max_text_length=3) as running:
        chromium.open(f"http://127.0.0.1:{running.port}/", width=800)
        text = chromium.evaluate(ASK % (json.dumps({"text_a": "a long text"}), "predict"))
    assert text.startswith("a text of 39 characters, at most 3")


@pytest.mark.parametrize("dark", [False, True])
def test_the_list_of_paths_is_readable(chromium, dark):
    with Running() as running:
        chromium.open(f"http://127.0.0.1:{running.port}/docs", width=700, dark=dark)
        text = chromium.evaluate("document.body.innerText")
    assert "POST /encode" in text
    assert is_readable(chromium)


def test_probabilities_are_bars_and_the_example_is_a_row_of_the_data(chromium):
    toy = Canned("classification", ANSWERS["classification"][0])
    toy.description = dataclasses.replace(toy.description, example={"text": "a row <i>of</i> dev"})
    with Running(toy) as running:
        chromium.open(f"http://127.0.0.1:{running.port}/", width=800)
        assert chromium.evaluate("document.querySelector('textarea').value") == "a row <i>of</i> dev"
        chromium.evaluate(ASK % ("{}", "predict"))
    high, low = chromium.evaluate(BARS)
    assert high / low == pytest.approx(3, rel=0.02)

"""The page of an audit, in a real browser: what is decided there is what a training reads."""

import csv
import io
import json

import pytest

from bert_tf.extensions.audit import findings, page
from bert_tf.extensions.audit.findings import Finding
from bert_tf.extensions.corrections import rows as corrections
from bert_tf.head_spec import MULTI_LABEL
from bert_tf.tasks.sentence.family import SentenceFamily
from bert_tf.tasks.sentence.rows import SentenceExample
from tests.extensions.report.test_browser import LEAST_CONTRAST, OVERFLOWING, SMALLEST_LETTERS

pytestmark = pytest.mark.slow

FAMILY = SentenceFamily(("a", '"b"', "=c"))
SCRIPT = "<script>document.title = 'taken over'</script>"
PRESS = """(keys => {
  for (const key of keys) document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
})"""
FILE = """(async () => {
  let blob;
  URL.createObjectURL = given => { blob = given; return "data:,"; };
  document.getElementById("download").click();
  return await blob.text();
})()"""
SHOWN = "[...document.querySelectorAll('#findings tbody tr')].filter(row => !row.hidden).map(row => row.dataset.id)"
CHOOSE = """((selector, value) => {{
  const field = document.querySelector(selector);
  field.value = value;
  field.dispatchEvent(new Event("input", {{bubbles: true}}));
}})({0}, {1})"""


def row(number, split="train", label="a"):
    example = SentenceExample(f"{split}-{number}", f"{SCRIPT} text {number} {'x' * 300}", "a second text", label)
    return findings.row_of(split, example, is_train=split == "train")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    suggested = ('"b"', "=c", '"b"')
    errors = [Finding(findings.LABEL, place / 10, row(place), label) for place, label in enumerate(suggested)]
    others = [
        Finding(findings.LEAK, 1.0, row(3), other=row(3, "dev")),
        Finding(findings.LEAK, 1.0, row(3, "dev"), other=row(3)),
        Finding(findings.OUTLIER, 0.5, row(2)),
        Finding(findings.OUTLIER, 0.6, row(4)),
    ]
    path = tmp_path_factory.mktemp("audit") / "audit.html"
    ranked = findings.ranked([*errors, *others])
    path.write_text(page.render("tickets.csv", FAMILY, ranked, ["a note"], ",", digest="0" * 64), encoding="utf-8")
    return path


@pytest.fixture
def opened(chromium, path):
    """The page, without the decisions of an earlier visit."""
    chromium.open(path, width=1400)
    chromium.evaluate("localStorage.clear()")
    chromium.open(path, width=1400)
    return chromium


def choose(chromium, selector, value):
    chromium.evaluate(CHOOSE.format(json.dumps(selector), json.dumps(value)))


@pytest.mark.parametrize("dark", [True, False])
@pytest.mark.parametrize("width", [400, 1400])
def test_reads_well_at_any_width_and_runs_nothing_of_the_data(opened, path, width, dark):
    opened.open(path, width=width, dark=dark)
    assert opened.complaints == []
    assert opened.requests == [path.as_uri()]
    assert opened.evaluate("document.title") == "Audit of tickets.csv \N{EN DASH} bert_tf"
    assert opened.evaluate("document.documentElement.scrollWidth") == width
    assert opened.evaluate(OVERFLOWING) == []
    assert opened.evaluate(LEAST_CONTRAST) >= 4.5
    assert opened.evaluate(SMALLEST_LETTERS) >= 13
    unnamed = "[...document.querySelectorAll('select, input')].filter(one => !one.labels.length && !one.ariaLabel).length"
    assert opened.evaluate(unnamed) == 0


def test_decisions_by_keys_are_the_corrections_of_a_training(opened, path, tmp_path):
    opened.evaluate("document.querySelector('#findings tbody tr').focus()")
    opened.evaluate(f"{PRESS}(['a', 'x', 'r'])")  # accepts train-0, excludes train-1, relabels train-2
    assert opened.evaluate("document.activeElement.ariaLabel") == "New label of train row train-2"
    choose(opened, "tr[data-id=train-2] input", "unknown")
    assert "1 without a known label, left out" in opened.evaluate("document.getElementById('progress').textContent")
    choose(opened, "tr[data-id=train-2] input", "=c")
    opened.evaluate(f"{PRESS}(['Enter', 'ArrowDown', 'a'])")  # the leak; the next open row is train-4
    opened.evaluate(f"{PRESS}(['ArrowUp', 'ArrowUp', 'x'])")  # a row of dev: nothing
    opened.open(path, width=1400)  # decisions are kept
    text = opened.evaluate(FILE)
    (tmp_path / "corrections.csv").write_bytes(text.encode())
    assert {line["text_b"] for line in csv.DictReader(io.StringIO(text, newline=""))} == {"a second text"}
    table = str(tmp_path / "corrections.csv")
    assert corrections.read_labels(table, corrections.EXCLUDE) == {"train-1": "", "train-3": ""}
    assert corrections.read_labels(table, corrections.RELABEL) == {"train-0": '"b"', "train-2": "=c"}
    opened.evaluate("document.querySelector('tr[data-id=train-1]').focus()")
    opened.evaluate(f"{PRESS}(['u'])")
    assert "train-1" not in opened.evaluate(FILE)


def test_a_proposal_of_no_label_is_a_correction(chromium, tmp_path):
    family, finding = SentenceFamily(("a", "b"), MULTI_LABEL), Finding(findings.LABEL, 0.1, row(0, label=("a",)), "")
    path, table = tmp_path / "audit.html", tmp_path / "corrections.csv"
    path.write_text(page.render("tickets.csv", family, [finding], [], ",", digest="1" * 64), encoding="utf-8")
    chromium.open(path, width=1400)
    chromium.evaluate("localStorage.clear()")
    chromium.open(path, width=1400)
    assert chromium.evaluate("document.querySelector('td.decision button').textContent") == "Accept: (none)"
    chromium.evaluate("document.querySelector('td.decision button').click()")
    table.write_bytes(chromium.evaluate(FILE).encode())
    assert corrections.read_labels(str(table), corrections.RELABEL, may_be_empty=True) == {"train-0": ""}


def test_filters_sorts_and_accepts_what_matches(opened):
    assert opened.evaluate(SHOWN) == ["train-0", "train-1", "train-2", "train-3", "dev-3", "train-2", "train-4"]
    choose(opened, "[name=problem]", "label_error")
    choose(opened, "[name=text]", "TEXT 2")
    assert opened.evaluate(SHOWN) == ["train-2"]
    opened.evaluate("document.getElementById('accept-all').click()")
    choose(opened, "[name=problem]", "")
    choose(opened, "[name=text]", "")
    choose(opened, "[name=decision]", "decided")
    assert opened.evaluate(SHOWN) == ["train-2", "train-2"]  # both findings of the row
    choose(opened, "[name=decision]", "")
    choose(opened, "[name=split]", "dev")
    assert opened.evaluate("document.querySelector('tr[data-id=dev-3] td.decision').textContent") == "not a training row"
    choose(opened, "[name=split]", "train")
    opened.evaluate("document.querySelectorAll('#findings thead button')[2].click()")
    opened.evaluate("document.querySelectorAll('#findings thead button')[2].click()")
    assert opened.evaluate(SHOWN)[0] == "train-3"
    assert opened.evaluate("document.querySelector('th[aria-sort]').ariaSort") == "descending"

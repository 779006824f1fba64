"""The page in a real browser: Debian's package chromium, or Google Chrome."""

from __future__ import annotations

import pytest

from bert_tf.report import page, run_files
from tests.report import browser, example

pytestmark = pytest.mark.slow

PICTURES = "[...document.images].map(image => image.naturalWidth > 0 && image.getBoundingClientRect().width > 100)"
OVERFLOWING = """[...document.querySelectorAll('body *')].filter(one => !one.closest('.scroll') && !one.closest('head')
  && one.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map(one => one.outerHTML.slice(0, 80))"""
CLIPPED = """[...document.querySelectorAll('.scroll')].filter(one => one.scrollWidth > one.clientWidth + 1)
  .map(one => one.textContent.trim().slice(0, 60))"""
SMALLEST_LETTERS = """Math.min(...[...document.querySelectorAll('body *')].filter(one => [...one.childNodes].some(
  node => node.nodeType === 3 && node.textContent.trim())).map(one => parseFloat(getComputedStyle(one).fontSize)))"""
# Of letters with what lies behind them, as WCAG 2 counts: 4.5 is its level AA.
LEAST_CONTRAST = """(() => {
  const parts = text => { const found = text.match(/[\\d.]+/g).map(Number); return found.length < 4 ? [...found, 1] : found; };
  const light = rgb => rgb.slice(0, 3).map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, place) => sum + v * [0.2126, 0.7152, 0.0722][place], 0);
  const behind = one => {
    const layers = [];
    for (let at = one; at; at = at.parentElement) layers.unshift(parts(getComputedStyle(at).backgroundColor));
    return layers.reduce((under, [r, g, b, a]) => under.map((v, place) => v * (1 - a) + [r, g, b][place] * a), [255, 255, 255]);
  };
  const lettered = [...document.querySelectorAll('body *')].filter(one =>
    [...one.childNodes].some(node => node.nodeType === 3 && node.textContent.trim()));
  return Math.min(...lettered.map(one => {
    const [a, b] = [light(parts(getComputedStyle(one).color)), light(behind(one))].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  }));
})()"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    finished, begun = example.finished(folder / "finished"), example.begun(folder / "begun")
    long_word = {**example.WRONG, "text_a": "x" * 500, "id": "y" * 200}
    example.write_lines(finished / "wrong_examples.jsonl", [example.WRONG, long_word])
    runs = {"finished": [finished], "begun": [begun], "both": [finished, begun]}
    for name, folders in runs.items():
        page.write(folder / f"{name}.html", run_files.read(folders))
    return folder


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    with browser.started(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize(("name", "pictures"), [("finished", 10), ("begun", 6), ("both", 10)])
def test_renders_without_complaint_at_any_width(chromium, pages, name, pictures, width):
    chromium.open(pages / f"{name}.html", width=width)
    assert chromium.complaints == []
    assert chromium.requests == [(pages / f"{name}.html").as_uri()]
    assert chromium.evaluate(PICTURES) == [True] * pictures
    assert chromium.evaluate("document.documentElement.scrollWidth") == width
    assert chromium.evaluate(OVERFLOWING) == []
    assert chromium.evaluate(CLIPPED) == []
    assert chromium.evaluate(LEAST_CONTRAST) >= 4.5
    assert chromium.evaluate(SMALLEST_LETTERS) >= 13


def test_script_in_an_example_stays_text(chromium, pages):
    chromium.open(pages / "finished.html", width=1400)
    assert chromium.evaluate("document.title") == "RTE \N{EN DASH} bert_tf"
    assert chromium.evaluate("document.scripts.length") == 0
    assert example.SCRIPT in chromium.evaluate("document.querySelector('ol.wrong p').textContent")


def test_script_would_not_run_either(chromium, pages):
    text = (pages / "finished.html").read_text(encoding="utf-8")
    (pages / "broken.html").write_text(text.replace("<main>", f"<main>{example.SCRIPT}"), encoding="utf-8")
    chromium.open(pages / "broken.html", width=1400)
    assert chromium.evaluate("document.title") != "taken over"
    assert any("Content Security Policy" in complaint for complaint in chromium.complaints)

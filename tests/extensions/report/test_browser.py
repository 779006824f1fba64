"""The page in a real browser: Debian's package chromium, or Google Chrome."""

import pytest

from bert_tf.extensions.report import page, run_files
from tests.extensions.report import example

pytestmark = pytest.mark.slow

PICTURES = "[...document.querySelectorAll('.chart svg')].map(picture => picture.getBoundingClientRect().width > 100)"
OVERFLOWING = """[...document.querySelectorAll('body *')].filter(one => !one.closest('.scroll, svg, #vg-tooltip-element')
  && one.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map(one => one.outerHTML.slice(0, 80))"""
CLIPPED = """[...document.querySelectorAll('.scroll')].filter(one => one.scrollWidth > one.clientWidth + 1)
  .map(one => one.textContent.trim().slice(0, 60))"""
SMALLEST_LETTERS = """Math.min(...[...document.querySelectorAll('body *')].filter(one => one.tagName !== 'SCRIPT'
  && [...one.childNodes].some(node => node.nodeType === 3 && node.textContent.trim()))
  .map(one => parseFloat(getComputedStyle(one).fontSize)))"""
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
  const ink = one => parts(getComputedStyle(one)[one.tagName === 'text' ? 'fill' : 'color']);
  const lettered = [...document.querySelectorAll('body *')].filter(one => one.tagName !== 'SCRIPT' &&
    [...one.childNodes].some(node => node.nodeType === 3 && node.textContent.trim()));
  return Math.min(...lettered.map(one => {
    const [a, b] = [light(ink(one)), light(behind(one))].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  }));
})()"""


# Charts are drawn where they come into sight; true once all of them are.
ALL_DRAWN = """(async () => {
  const charts = [...document.querySelectorAll('.chart')];
  for (const chart of charts) {
    for (let at = chart.closest('details'); at; at = at.parentElement.closest('details')) at.open = true;
    chart.scrollIntoView();
    for (let wait = 0; wait < 200 && !chart.querySelector('.vega-embed svg'); wait++)
      await new Promise(go => setTimeout(go, 25));
  }
  return charts.every(chart => chart.querySelector('.vega-embed svg'));
})()"""
CHOOSE = """(async () => {{
  const form = document.querySelector('form.choice'), chart = document.querySelector('.chart');
  const before = chart.firstElementChild;
  {0};
  form.dispatchEvent(new Event('input'));
  for (let wait = 0; wait < 200 && chart.firstElementChild === before; wait++) await new Promise(go => setTimeout(go, 25));
}})()"""
TEXTS = "[...document.querySelectorAll('.chart')[0].querySelectorAll('text')].map(one => one.textContent)"
LINE = "[...document.querySelectorAll('.chart .mark-line path')].pop().getAttribute('d')"
TOLD = """Object.fromEntries([...document.querySelectorAll('#vg-tooltip-element.visible tr')].map(
  row => [...row.cells].map(cell => cell.textContent)))"""
HOSTILE = "<img src=x onerror=document.title='taken-over'>"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    finished, begun = example.finished(folder / "finished"), example.begun(folder / "begun")
    long_word = {**example.WRONG, "text_a": "x" * 500, "id": "y" * 200}
    example.write_lines(finished / "wrong_examples.jsonl", [example.WRONG, long_word])
    long_name = example.operation("bert/" + "z" * 300, "W" * 200, 5.0)
    operations = {**example.OPERATIONS, "operations": [long_name, *example.OPERATIONS["operations"]]}
    example.write_json(finished / "profile" / "operations.json", operations)
    for seed in (1, 2, 3):
        example.finished(folder / "series" / f"seed-{seed}", seed=seed, accuracy=0.5 + seed / 10)
    tasks = [example.finished(folder / HOSTILE, task_name="MRPC"), example.finished(folder / "other")]
    noisy = example.begun(folder / "noisy")
    example.write_lines(noisy / "metrics.jsonl", [{"step": step, "loss": 1 + step % 7} for step in range(1, 61)])
    runs = {"finished": [finished], "begun": [begun], "both": [finished, begun]}
    runs |= {"series": [folder / "series"], "tasks": tasks, "noisy": [noisy]}
    for name, folders in runs.items():
        page.write(folder / f"{name}.html", run_files.read_runs(folders))
    return folder


@pytest.mark.parametrize("scripts", [True, False])
@pytest.mark.parametrize("dark", [True, False])
@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize(("name", "pictures"), [("finished", 10), ("begun", 6), ("both", 10), ("series", 14), ("tasks", 14)])
def test_renders_without_complaint_at_any_width(chromium, pages, name, pictures, width, dark, scripts):
    chromium.open(pages / f"{name}.html", width=width, dark=dark, scripts=scripts)
    assert not scripts or chromium.evaluate(ALL_DRAWN)
    assert chromium.evaluate("document.querySelector('.vega-embed') !== null") is scripts
    assert chromium.complaints == []
    assert chromium.requests == [(pages / f"{name}.html").as_uri()]
    assert chromium.evaluate(PICTURES) == [True] * pictures
    assert chromium.evaluate("document.documentElement.scrollWidth") == width
    assert chromium.evaluate(OVERFLOWING) == []
    assert chromium.evaluate(CLIPPED) == []
    assert chromium.evaluate(LEAST_CONTRAST) >= 4.5
    assert chromium.evaluate(SMALLEST_LETTERS) >= 13
    assert chromium.evaluate("document.querySelector('form.choice').hidden") is not scripts


def opened(chromium, pages, name):
    chromium.open(pages / f"{name}.html", width=1400)
    assert chromium.evaluate(ALL_DRAWN)
    return chromium


def told(chromium, chart=0):
    """What is said of the middle of a chart."""
    place = f"document.querySelectorAll('.chart')[{chart}]"
    chromium.evaluate(f"{place}.scrollIntoView({{block: 'center'}})")
    left, top, width, height = chromium.evaluate(
        f"(box => [box.left, box.top, box.width, box.height])({place}.getBoundingClientRect())"
    )
    for across in (0.4, 0.5):
        chromium.move_to(left + across * width, top + height / 2)
    return chromium.evaluate(f"new Promise(go => setTimeout(() => go({TOLD}), 200))")


def test_pointer_tells_the_value(chromium, pages):
    tooltip = told(opened(chromium, pages, "noisy"))
    step = int(tooltip["step"])  # in the middle, by a pixel or two
    assert tooltip == {"step": f"{step}", "epoch": f"{step / 10:.2f}", "value": f"{1 + step % 7}"}


def test_pointer_tells_mean_and_ends_of_seeds(chromium, pages):
    tooltip = told(opened(chromium, pages, "series"), chart=2)  # accuracy on dev
    assert {name: tooltip[name] for name in ("run", "runs", "mean")}.items() <= tooltip.items()
    assert (tooltip["run"], tooltip["runs"], tooltip["lowest"]) == ("series", "3", tooltip["highest"])


def test_pointer_tells_what_is_alive(chromium, pages):
    tooltip = told(opened(chromium, pages, "finished"), chart=8)
    assert tooltip["optimizer state"] == "40"


def test_name_at_the_pointer_stays_text(chromium, pages):
    tooltip = told(opened(chromium, pages, "tasks"))
    assert tooltip["run"] in (HOSTILE, "other")
    assert chromium.evaluate("document.images.length") == 0
    assert chromium.evaluate("document.title") != "taken-over"


def test_axis_of_epochs(chromium, pages):
    opened(chromium, pages, "noisy")
    assert "step" in chromium.evaluate(TEXTS)
    chromium.evaluate(CHOOSE.format("form.elements.axis.value = 'epoch'"))
    assert {"epoch", "6"} <= set(chromium.evaluate(TEXTS))


def test_logarithmic_axis(chromium, pages):
    opened(chromium, pages, "noisy")
    assert "0" in chromium.evaluate(TEXTS)
    chromium.evaluate(CHOOSE.format("form.elements.log.checked = true"))
    assert "0" not in chromium.evaluate(TEXTS)[-5:]
    assert chromium.complaints == []


def test_smoothing_of_none_shows_the_values(chromium, pages):
    opened(chromium, pages, "noisy")
    smooth = chromium.evaluate(LINE)
    chromium.evaluate(CHOOSE.format("form.elements.smoothing.value = 0"))
    assert chromium.evaluate(LINE) != smooth
    assert chromium.evaluate("document.querySelector('.smooth').hidden")


def test_script_in_an_example_stays_text(chromium, pages):
    chromium.open(pages / "finished.html", width=1400)
    assert chromium.evaluate("document.title") == "finished: RTE \N{EN DASH} bert_tf"
    assert chromium.evaluate("[...document.scripts].filter(one => one.type !== 'application/json').length") == 2
    assert example.SCRIPT in chromium.evaluate("document.querySelector('ol.wrong p').textContent")


def test_script_would_not_run_either(chromium, pages):
    text = (pages / "finished.html").read_text(encoding="utf-8")
    (pages / "broken.html").write_text(text.replace("<main>", f"<main>{example.SCRIPT}"), encoding="utf-8")
    chromium.open(pages / "broken.html", width=1400)
    assert chromium.evaluate("document.title") != "taken over"
    assert any("Content Security Policy" in complaint for complaint in chromium.complaints)

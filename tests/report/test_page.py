"""The page as HTML; what a browser makes of it is in test_browser.py."""

from __future__ import annotations

import html.parser
import json

import pytest

from bert_tf.report import page, run_files, wording
from bert_tf.report.wording import duration, number
from tests.report import example

pytestmark = pytest.mark.usefixtures("_pictures_drawn_once")

PICTURES = 10  # of a finished run
VOID = {"meta", "link", "img", "br", "hr", "input"}


class Outline(html.parser.HTMLParser):
    """Reads a page, and notes what does not nest.

    Attributes:
      tags: names of all elements, in their order.
      words: texts of the page, without style.
      addresses: everything that is loaded or led to.
      ids: of elements.
      attributes: names of all.
    """

    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self.addresses, self.ids, self.attributes, self._open = [], [], [], [], set(), []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.addresses += [value for name, value in attributes if name in ("src", "href", "srcset", "data", "action")]
        self.attributes |= {name for name, _ in attributes}
        self.ids += [value for name, value in attributes if name == "id"]
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open and self._open[-1] != "style":
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def outline(*folders):
    return Outline(page.render(run_files.read(folders)))


@pytest.fixture
def finished(tmp_path):
    return example.finished(tmp_path / "run")


def test_shows_what_was_reached(finished):
    text = outline(finished).text
    for part in (
        "RTE",
        "0.7500",
        "95 %: 0.650 to 0.850",
        "Trained and evaluated at step 20 of 20.",
        "The run was input-bound.",
    ):
        assert part in text


def test_a_picture_for_each_chart(finished):
    # Loss and rate, two evaluations, three of speed, memory over the run, of a step alive and put out.
    assert outline(finished).tags.count("img") == PICTURES


def test_text_of_an_example_stays_text(finished):
    found = outline(finished)
    assert "script" not in found.tags
    assert example.SCRIPT in found.text


@pytest.mark.parametrize("place", ["label", "predicted", "id", "text_b"])
def test_all_of_an_example_stays_text(finished, place):
    example.write_lines(finished / "wrong_examples.jsonl", [{**example.WRONG, place: "<img src=x onerror=alert(1)>"}])
    found = outline(finished)
    assert found.tags.count("img") == PICTURES
    assert "<img src=x" in found.text


def hostile(folder, mark):
    """A run whose every text is `mark`, in its folder's name too."""
    folder = example.finished(
        folder / mark.replace("/", "\N{DIVISION SLASH}"), task_name=mark, freeze=mark, bert_config={mark: mark}
    )
    content = example.results()
    dev = content["splits"].pop("dev")
    content["splits"][mark] = {**dev, mark: 0.5, "labels": [mark, f"{mark} 2"], "collapsed": mark}
    content["splits"][mark]["per_class"] = [{**row, "label": mark} for row in dev["per_class"]]
    example.write_json(folder / "eval_results.json", content)
    example.write_json(folder / "AX" / "eval_results.json", content)
    example.write_lines(folder / "wrong_examples.jsonl", [{**dict.fromkeys(example.WRONG, mark), "confidence": 0.9}])
    example.write_json(folder / "timing.json", {**example.TIMING, "diagnosis": {"text": f"{mark} --{mark}=1 --flag={mark}"}})
    example.write_json(folder / "profile" / "phases.json", {mark: 0.1, "batch": 0.2})
    (folder / "live_memory_step8.tsv").write_text(example.LIVE.replace("cpu", mark.replace("\t", " ")))
    record = json.loads((folder / "run_config.json").read_text())
    record.update(command=f"python run_classifier.py --x='{mark}' {mark}", data_note=mark)
    record["machine"][mark] = record["versions"]["tensorflow"] = mark
    example.write_json(folder / "run_config.json", record)
    return folder


@pytest.mark.parametrize(
    "mark", [example.SCRIPT, '"><b id=bad onclick="alert(1)">', "</style></title>{{ 7 * 7 }}&lt;b id=bad>"]
)
def test_no_text_of_a_run_is_markup(tmp_path, mark):
    bad = hostile(tmp_path, mark)
    for found in (outline(bad), outline(bad, example.finished(tmp_path / "plain"))):
        assert "script" not in found.tags
        assert "bad" not in found.ids
        assert not {name for name in found.attributes if name.startswith("on")}
        assert "49" not in found.text.split()
        assert " ".join(mark.split()) in found.text


def test_loads_nothing_from_elsewhere(finished):
    found = outline(finished)
    assert all(address.startswith(("data:", "#")) for address in found.addresses)
    assert "default-src 'none'" in page.render(run_files.read([finished]))


def test_links_lead_to_a_place(finished, tmp_path):
    for found in (outline(finished), outline(example.begun(tmp_path / "begun")), outline(finished, tmp_path / "begun")):
        assert {address[1:] for address in found.addresses if address.startswith("#")} <= set(found.ids)
        assert len(set(found.ids)) == len(found.ids)


def test_interrupted_run(tmp_path):
    found = outline(example.begun(tmp_path))
    assert "Not finished: the last logged step is 20 of 30" in found.text
    assert "results" not in found.ids


def test_run_killed_in_the_middle_of_a_line(tmp_path):
    folder = example.begun(tmp_path)
    with (folder / "metrics.jsonl").open("a") as lines:
        lines.write('{"step": 30, "loss": 0.')
    text = outline(folder).text
    assert "Not finished: the last logged step is 20 of 30" in text
    assert "unreadable" not in text


@pytest.mark.parametrize(
    "name",
    [
        *("run_config.json", "metrics.jsonl", "eval_results.json", "evaluations.jsonl", "timing.json"),
        *("profile/phases.json", "live_memory_step8.tsv", "memory_trace_step8.txt"),
    ],
)
def test_without_one_of_the_files(finished, name):
    (finished / name).unlink()
    assert outline(finished).tags.count("h1") == 1


@pytest.mark.parametrize("content", ["{}", '{"training": []}', '{"training": {"task_name": null}, "machine": 3, "command": 4}'])
def test_record_with_something_else_in_it(finished, content):
    (finished / "run_config.json").write_text(content)
    assert outline(finished).tags.count("h1") == 1


@pytest.mark.parametrize(
    "splits", [[], {"dev": 3}, {"dev": {}}, {"dev": {"accuracy": 0.5, "intervals_95": [], "per_class": [1]}}]
)
def test_results_with_something_else_in_them(finished, splits):
    example.write_json(finished / "eval_results.json", {"splits": splits})
    assert outline(finished).tags.count("h1") == 1


def test_older_run_says_how_to_see_its_mistakes(finished):
    (finished / "wrong_examples.jsonl").unlink()
    assert "there is no wrong_examples.jsonl" in outline(finished).text


def test_run_that_learned_nothing_says_so(finished):
    content = example.results()
    content["splits"]["dev"]["collapsed"] = "all predictions are yes"
    example.write_json(finished / "eval_results.json", content)
    assert "Nothing was learned: all predictions are yes." in outline(finished).text


def test_several_runs_share_their_charts(finished, tmp_path):
    both = outline(finished, example.finished(tmp_path / "other", accuracy=0.5, seed=2))
    # Two of learning, two evaluations, three of speed, memory over the runs; two of a step for each.
    assert both.tags.count("img") == 12
    assert "Mean over the runs 0.6250, standard deviation 0.1768." in both.text
    assert "What differs; all else is the same" in both.text


def test_finished_beside_interrupted(finished, tmp_path):
    text = outline(finished, example.begun(tmp_path / "begun")).text
    assert "Trained and evaluated at step 20 of 20." in text
    assert "Not finished" in text


def test_more_runs_than_can_be_told_apart(tmp_path):
    runs = run_files.read([example.finished(tmp_path / f"seed-{seed}", seed=seed) for seed in range(26)])
    text = page.render(runs)
    assert "2 more are in the tables" in text
    assert "Traced steps of 18 more runs" in text
    assert len(text) < 2_000_000


def test_shows_where_time_and_memory_of_a_step_went(finished):
    text = outline(finished).text
    for part in (
        "A recorded step by phase, mean of 3 steps data 10 ms 2.5 % forward 100 ms 25.0 % backward 200 ms 50.0 %",
        "Memory of step 8: 200 MiB at the peak",
        "The peak is 2 ms after the first allocation; the allocator itself counted 220 MiB at most",
        "backward 60.0 30.0 %",
        "memory of the host, highest 950 MiB",
    ):
        assert part in text


def test_flags_in_the_diagnosis_are_not_broken():
    text = wording.flags("<i> Try --group_by_length: less, or --precision=bfloat16.")
    code = "<code class=flag>{}</code>".format
    assert text == f"&lt;i&gt; Try {code('--group_by_length')}: less, or {code('--precision=bfloat16')}."


def test_large_run_stays_below_two_megabytes(tmp_path):
    folder = example.finished(tmp_path)
    lines = [
        {**example.METRICS[0], "step": step, "loss": step % 97, "tokens_per_second": step % 89, "host_memory_mb": step % 83}
        for step in range(1, 8_001)
    ]
    example.write_lines(folder / "metrics.jsonl", lines)
    example.write_lines(folder / "wrong_examples.jsonl", [{**example.WRONG, "text_a": "word " * 20_000}] * 50)
    content = example.results()
    names = [f"label {place}" for place in range(150)]
    classes = [{**content["splits"]["dev"]["per_class"][0], "label": name} for name in names]
    content["splits"]["dev"].update(labels=names, confusion=[[1] * 150] * 150, per_class=classes)
    example.write_json(folder / "eval_results.json", content)
    live, changes = example.LIVE, "".join(f"{5000 + step}\t1\t{step + 1}\tcpu\ta\n" for step in range(5_000))
    (folder / "live_memory_step8.tsv").write_text(live + changes)
    text = page.render(run_files.read([folder]))
    assert "200 MiB at the peak" in text
    assert len(text.encode()) < 1_000_000


def test_half_a_character_is_written(finished):
    example.write_lines(finished / "wrong_examples.jsonl", [{**example.WRONG, "text_a": "half \ud800"}])
    page.write(finished / "report.html", run_files.read([finished]))
    assert "half ?" in (finished / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0351, "35.1 ms"), (42.04, "42 s"), (59.7, "1 min 00 s"), (312, "5 min 12 s"), (11100, "3 h 05 min")],
)
def test_times(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (5.4532e-08, "5.45e-08"), (337.7, "338"), (1851.2, "1,851")])
def test_numbers(value, text):
    assert number(value) == text

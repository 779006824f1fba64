"""The page as HTML; what a browser makes of it is in test_browser.py."""

import contextlib
import html
import html.parser
import json
import re
from unittest import mock

import pytest

from bert_tf.extensions.report import charts, page, run_files, scripts, wording
from bert_tf.extensions.report.wording import duration, number
from tests.extensions.report import example

pytestmark = pytest.mark.usefixtures("_pictures_drawn_once")

SCRIPTS = 2  # of every page, besides data
VEGA = scripts.vega  # as it is where pictures are drawn once
VOID = {"meta", "link", "img", "br", "hr", "input"}


class Outline(html.parser.HTMLParser):
    """Reads a page, and fails if its elements do not nest."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.ids, self.classes, self.attributes, self._open = [], [], [], set(), []
        self.words, self.runs, self._is_data = [], [], False  # texts of the page, scripts that run
        self.addresses = []  # loaded or led to
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self._is_data = dict(attributes).get("type") == "application/json"
        self.addresses += [value for name, value in attributes if name in ("src", "href", "srcset", "data", "action")]
        self.attributes |= {name for name, _ in attributes}
        self.classes += [value for name, value in attributes if name == "class"]
        self.ids += [value for name, value in attributes if name == "id"]
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open and self._open[-1] == "script":
            self.runs += [] if self._is_data else [data]
        elif self._open and self._open[-1] != "style":
            self.words.append(data)

    @property
    def pictures(self):
        return self.classes.count("chart")

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def outline(*folders, drawn=False):
    """Reads a page, whose pictures are empty unless they are `drawn`."""
    with contextlib.nullcontext() if drawn else mock.patch.object(charts, "svg", return_value="<svg></svg>"):
        return Outline(page.render(run_files.read_runs(folders)))


@pytest.fixture
def finished(tmp_path):
    return example.finished(tmp_path / "run")


def test_shows_all_of_a_run(finished):
    shown = outline(finished, drawn=True)
    # Loss and rate, two evaluations, three of speed, memory over the run, of a step alive and put out.
    assert shown.pictures == 10
    for part in (
        "RTE",
        "0.7500",
        "95 %: 0.650 to 0.850 always no: 0.500",
        "Trained and evaluated at step 20 of 20.",
        "The run was input-bound.",
        "By phase phase ms a step share operations GFLOP/s of peak forward 0.6 75.0 % 2 5 50.0 %",
        "bert 0.8 100.0 % 0.6 0.2 5 50.0 % pooler",
        "bert/pooler/dense/MatMul MatMul, [100, 100] [100, 150], Tensor Cores: float32 0.6 75.0 % 1 5 50.0 %",
        "A recorded step by phase, mean of 3 steps data 10 ms 2.5 % forward 100 ms 25.0 % backward 200 ms 50.0 %",
        "Memory of step 8: 200 MiB at the peak",
        "The peak is 2 ms after the first allocation; the allocator counted a peak of 220 MiB",
        "backward 60.0 30.0 %",
        "highest 950 at step 20, last 950 at step 20",
    ):
        assert part in shown.text


def hostile(folder, mark):
    """A run whose every text is `mark`, in its folder's name too."""
    folder = example.finished(
        folder / mark.replace("/", "\N{DIVISION SLASH}"), task_name=mark, freeze=mark, bert_config={mark: mark}
    )
    content = example.results()
    dev = content["splits"].pop("dev")
    content["splits"][mark] = {**dev, mark: 0.5, "labels": [mark, f"{mark} 2"], "collapsed": mark}
    panel = {"title": mark, "columns": [mark, mark], "rows": [[mark, 0.5], [mark, mark]], "note": mark}
    content["splits"][mark]["panels"] = [panel]
    content["splits"][mark]["per_class"] = [{**row, "label": mark} for row in dev["per_class"]]
    example.write_json(folder / "eval_results.json", content)
    example.write_json(folder / "AX" / "eval_results.json", content)
    example.write_lines(
        folder / "wrong_examples.jsonl", [{**dict.fromkeys(example.WRONG, mark), "confidence": 0.9, "marks": [[0, 1, "both"]]}]
    )
    example.write_json(folder / "timing.json", {**example.TIMING, "diagnosis": {"text": f"{mark} --{mark}=1 --flag={mark}"}})
    example.write_json(folder / "profile" / "phases.json", {mark: 0.1, "batch": 0.2})
    operations = [example.operation(f"{mark}/{mark}", mark, 5.0), *example.OPERATIONS["operations"]]
    example.write_json(folder / "profile" / "operations.json", {**example.OPERATIONS, "operations": operations})
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
    for shown in (outline(bad, drawn=True), outline(bad, example.finished(tmp_path / "plain"), drawn=True)):
        assert len(shown.runs) == SCRIPTS
        assert "img" not in shown.tags
        assert "bad" not in shown.ids
        assert not {name for name in shown.attributes if name.startswith("on")}
        assert "49" not in shown.text.split()
        assert " ".join(mark.split()) in shown.text


def test_quality_is_above_costs(finished, tmp_path):
    order = ["results", "mistakes", "learning", "speed", "operations", "configuration", "environment"]
    assert [name for name in outline(finished).ids if name in order] == order
    several = outline(finished, example.finished(tmp_path / "other", seed=2)).ids
    assert [name for name in several if name in (*order, "runs")] == [*order[:2], "runs", *order[2:]]


def test_titles_name_the_folder_and_the_data(tmp_path):
    def titled(name, **training):
        folder = example.begun(tmp_path / name, **training)
        record = {**example.record(**training), "command": "python run.py --train_file=/data/tickets.csv"}
        example.write_json(folder / "run_config.json", record)
        return outline(folder).text.partition(" \N{EN DASH} bert_tf")[0]

    assert titled("first") == "first: RTE"
    assert titled("series/seed-3") == "series/seed-3: RTE"
    assert titled("own", task_name="custom", kind="multi_label") == "own: tickets.csv, multi-label"


def test_what_says_nothing_is_left_out(tmp_path):
    folder = example.finished(tmp_path)
    example.write_lines(folder / "metrics.jsonl", example.METRICS[:1])
    example.write_lines(folder / "evaluations.jsonl", example.EVALUATIONS[:1])
    shown = outline(folder)
    assert shown.pictures == 2  # of the memory of a step
    assert "learning" not in shown.ids
    for path in ("metrics.jsonl", "timing.json", "profile/phases.json", "memory_trace_step8.txt", "live_memory_step8.tsv"):
        (folder / path).unlink()
    assert "speed" not in outline(folder).ids


def test_links_lead_to_a_place(finished, tmp_path):
    begun = outline(example.begun(tmp_path / "begun"))
    assert "results" not in begun.ids
    for shown in (outline(finished), begun, outline(finished, tmp_path / "begun")):
        assert {address[1:] for address in shown.addresses if address.startswith("#")} <= set(shown.ids)
        assert len(set(shown.ids)) == len(shown.ids)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *((name, None) for name in ("run_config.json", "metrics.jsonl", "eval_results.json", "evaluations.jsonl")),
        *((name, None) for name in ("timing.json", "profile/phases.json", "profile/operations.json")),
        ("run_config.json", {"training": []}),
        ("run_config.json", {"training": {"task_name": None}, "machine": 3, "command": 4}),
        ("eval_results.json", {"splits": []}),
        ("eval_results.json", {"splits": {"dev": 3}}),
        ("eval_results.json", {"splits": {"dev": {}}}),
        ("eval_results.json", {"splits": {"dev": {"accuracy": 0.5, "intervals_95": [], "per_class": [1]}}}),
    ],
)
def test_without_a_file_or_with_something_else_in_it(finished, name, content):
    if content is None:
        (finished / name).unlink()
    else:
        example.write_json(finished / name, content)
    assert outline(finished).tags.count("h1") == 1


def test_run_without_mistakes_or_that_learned_nothing_says_so(finished):
    (finished / "wrong_examples.jsonl").unlink()
    content = example.results()
    content["splits"]["dev"].update(collapsed="all predictions are yes", file="more.csv")
    example.write_json(finished / "eval_results.json", content)
    text = outline(finished).text
    assert "Nothing was learned on dev: all predictions are yes." in text
    assert "dev, 8 examples of more.csv" in text
    series = [finished, example.finished(finished.with_name("other"), seed=2)]
    assert "run collapsed 0.7500" in outline(*series).text
    assert "there is no wrong_examples.jsonl" in text


def test_several_runs_share_their_charts(finished, tmp_path):
    both = outline(finished, example.finished(tmp_path / "other", accuracy=0.5, seed=2))
    assert both.pictures == 12  # two of a step for each
    assert "mean of 2 seeds 0.6250 sd 0.1768" in both.text
    assert "What differs; all else is the same" in both.text


def test_no_mean_over_runs_that_differ_in_more_than_the_seed(finished, tmp_path):
    text = outline(finished, example.finished(tmp_path / "other", accuracy=0.5, seed=2, learning_rate=1.0)).text
    assert "mean of 2 seeds" not in text
    assert all(part in text for part in ("a mean over them would say nothing", "0.7500", "0.5000"))


def test_series_beside_a_run_has_the_mean_of_its_seeds_alone(finished, tmp_path):
    for seed, accuracy in ((1, 0.4), (2, 0.6)):
        example.finished(tmp_path / "small" / f"seed-{seed}", seed=seed, accuracy=accuracy, layers=2)
    assert outline(tmp_path / "small").text.startswith("small: RTE, 2 seeds")
    text = outline(finished, tmp_path / "small").text
    assert "mean of 2 seeds small 0.5000 sd 0.1414" in text
    assert "mean of 2: 0.4000 to 0.6000" in outline(tmp_path / "small").text
    assert "small mean of 2 seeds, in a band from the lowest to the highest" in text


def test_loads_nothing_from_elsewhere_and_policy_lets_its_own_scripts_run_and_no_other(finished):
    text = page.render(run_files.read_runs([finished]))
    shown = Outline(text)
    assert all(address.startswith(("data:", "#")) for address in shown.addresses)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert "default-src 'none'" in html.unescape(policy)
    (sources,) = re.findall(r"script-src ([^;]*)", html.unescape(policy))
    assert sources.split() == [scripts.source(script) for script in shown.runs]


def size(text):
    """Bytes of a page with Vega's script."""
    return len(text.encode()) + len(VEGA().encode())


def test_more_runs_than_can_be_told_apart(tmp_path):
    runs = run_files.read_runs([example.finished(tmp_path / f"seed-{seed}", seed=seed) for seed in range(26)])
    text = page.render(runs)
    assert "2 more are in the tables" in text
    assert "22 more runs have their own reports" in text
    assert size(text) < 2_000_000


def test_flags_times_and_numbers_in_words():
    text = wording.flags("<i> Try --group_by_length: less, or --precision=bfloat16.")
    code = "<code class=flag>{}</code>".format
    assert text == f"&lt;i&gt; Try {code('--group_by_length')}: less, or {code('--precision=bfloat16')}."
    times = {0.0351: "35.1 ms", 0.9996: "1 s", 42.04: "42 s", 59.7: "1 min 00 s", 312: "5 min 12 s", 11100: "3 h 05 min"}
    assert {seconds: duration(seconds) for seconds in times} == times
    numbers = {0: "0", 5.4532e-08: "5.45e-08", 337.7: "338", 999.7: "1,000", 1851.2: "1,851"}
    assert {value: number(value) for value in numbers} == numbers


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
    text = page.render(run_files.read_runs([folder]))
    assert "200 MiB at the peak" in text
    assert size(text) < 2_000_000


def test_half_a_character_is_written(finished):
    example.write_lines(finished / "wrong_examples.jsonl", [{**example.WRONG, "text_a": "half \ud800"}])
    page.write(finished / "report.html", run_files.read_runs([finished]))
    assert "half ?" in (finished / "report.html").read_text(encoding="utf-8")


def test_tables_of_the_configuration(tmp_path):
    (run,) = run_files.read_runs([example.begun(tmp_path, seed=7, vocabulary_sha256="ab")])
    tables = page.tables(run)
    assert tables["Flags"] == {"task_name": "RTE", "seed": "7"}
    assert tables["Training"] == {"train_batch_size": "8"}  # what flags say stands there only
    assert tables["Model"] == {"hidden_size": "8"}
    assert tables["Fingerprints (sha256)"] == {"vocabulary": "ab"}
    machine = {"strategy": "one_device", "devices": "/device:CPU:0", "replicas": "1"}
    assert page.environment(run) == {**machine, "tensorflow": "2.15.1"}
    (tmp_path / "run_config.json").unlink()
    (run,) = run_files.read_runs([tmp_path])
    assert (page.tables(run), page.environment(run)) == ({}, {})


def test_only_differences_between_runs(tmp_path):
    runs = run_files.read_runs([example.begun(tmp_path / "a", seed=1, layer_decay=0.9), example.begun(tmp_path / "b", seed=2)])
    assert page.differences(runs) == {"seed": ["1", "2"], "layer_decay": ["0.9", "-"]}


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), ([], "-"), (1e-12, "1e-12"), ([1, None], "1, -"), (True, "true"), ({"a": 1}, '{"a": 1}')]
)
def test_values_as_a_person_writes_them(value, text):
    assert page.value_text(value) == text
